//! The declaration of an entity, and of an id.

/// Declares the type of an id: a text of its own kind.
///
/// ```
/// keys::id! {
///     /// Id of a user.
///     UserId
/// }
/// assert_eq!(UserId::from("ada").as_str(), "ada");
/// ```
#[macro_export]
macro_rules! id {
    ($($(#[$doc:meta])* $name:ident)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// The id as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl<T: Into<String>> From<T> for $name {
            fn from(text: T) -> Self {
                Self(text.into())
            }
        }

        impl $crate::attribute::Attribute for $name {
            const WANTED: &'static str = <String as $crate::attribute::Attribute>::WANTED;

            fn to_value(&self) -> Option<serde_dynamo::AttributeValue> {
                $crate::attribute::Attribute::to_value(&self.0)
            }

            fn from_value(value: &serde_dynamo::AttributeValue) -> Option<Self> {
                $crate::attribute::Attribute::from_value(value).map(Self)
            }
        }

        impl $crate::key_template::KeyField for $name {
            fn to_text(&self) -> String {
                self.0.clone()
            }

            fn from_text(text: &str) -> Option<Self> {
                Some(Self(text.to_owned()))
            }
        }
    )+};
}

/// Declares an entity: its typed key, its typed item, and both as data.
///
/// ```
/// use keys::{entity::Entity, fields::Fields, key::Key};
///
/// keys::entity! {
///     /// A comment on a post.
///     ground Comment "E-04" {
///         key CommentKey("POST#{PostId}", "COMMENT#{CreatedAt}#{CommentId}") {
///             /// The post.
///             post_id: String = "PostId",
///             /// When it was written.
///             created_at: String = "CreatedAt",
///             /// The comment.
///             comment_id: String = "CommentId",
///         }
///         index "GSI1" ("USER#{UserId}", "COMMENT#{CreatedAt}#{CommentId}");
///         attributes {
///             /// Who wrote it.
///             user_id: String = "UserId",
///         }
///         derived {
///             /// The writer's name.
///             user_name: Option<String> = "UserName",
///         }
///     }
/// }
///
/// let key = CommentKey { post_id: "p".into(), created_at: "2024".into(), comment_id: "c".into() };
/// assert_eq!(Comment::primary_key(&key)?, Key::new("POST#p", "COMMENT#2024#c"));
/// assert_eq!(Comment::parse_key(&Key::new("POST#p", "COMMENT#2024#c")), Some(key));
/// assert_eq!(Comment::sort_key_prefix(&Fields::new())?, "COMMENT#");
/// # Ok::<(), keys::error::KeyError>(())
/// ```
///
/// A whole item is declared `derived Follower …` instead of `ground …`; a sparse index as
/// `index "GSI2" (…, …) only if "Status" = "paid" | "packed";` or `index "GSI1" (…, …) only with "ParentId";`.
/// An index key that only this service sets is declared after the others, as `derived index "GSI2" (…, …);`.
/// A declaration is parsed at its first use, so a wrong template fails the first test that uses it.
#[macro_export]
macro_rules! entity {
    (
        $(#[$doc:meta])*
        $origin:ident $name:ident $id:literal {
            key $key:ident ($pk:expr, $sk:expr) {
                $($(#[$key_doc:meta])* $key_field:ident : $key_type:ty = $key_name:literal),* $(,)?
            }
            $($rest:tt)*
        }
    ) => {
        #[doc = concat!("Key of a [`", stringify!($name), "`].")]
        #[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $key {
            $($(#[$key_doc])* pub $key_field: $key_type,)*
        }

        impl $crate::entity::EntityKey for $key {
            fn fields(&self) -> $crate::fields::Fields {
                [$(($key_name, $crate::key_template::KeyField::to_text(&self.$key_field))),*].into_iter().collect()
            }

            fn from_fields(fields: &$crate::fields::Fields) -> Option<Self> {
                Some(Self { $($key_field: $crate::key_template::KeyField::from_text(fields.get($key_name)?)?,)* })
            }
        }

        $crate::entity! {
            $(#[$doc])*
            $origin $name $id { key type $key ($pk, $sk); $($rest)* }
        }
    };
    (
        $(#[$doc:meta])*
        $origin:ident $name:ident $id:literal {
            key type $key:ident ($pk:expr, $sk:expr);
            $(
                index $index:literal ($index_pk:literal, $index_sk:literal)
                $(only if $only:literal = $($is:literal)|+)? $(only with $has:literal)?;
            )*
            $(derived index $derived_index:literal ($derived_pk:literal, $derived_sk:literal);)*
            attributes { $($(#[$attribute_doc:meta])* $attribute:ident : $type:ty = $attribute_name:literal),* $(,)? }
            derived { $($(#[$derived_doc:meta])* $derived:ident : $derived_type:ty = $derived_name:literal),* $(,)? }
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            /// The key.
            pub key: $key,
            $($(#[$attribute_doc])* pub $attribute: $type,)*
            $($(#[$derived_doc])* pub $derived: $derived_type,)*
        }

        impl $crate::entity::Entity for $name {
            const NAME: &'static str = stringify!($name);

            type Key = $key;

            #[expect(clippy::expect_used, reason = "a declaration is constant; a test reads every one")]
            fn definition() -> &'static $crate::entity::Definition {
                static DEFINITION: std::sync::LazyLock<$crate::entity::Definition> = std::sync::LazyLock::new(|| {
                    let read = |pk, sk| $crate::entity::KeyTemplate::parse(pk, sk).expect(stringify!($name));
                    $crate::entity::Definition {
                        id: $id.to_owned(),
                        name: stringify!($name).to_owned(),
                        key: read($pk, $sk),
                        indexes: vec![
                            $($crate::index_key::IndexKey {
                                index: $index.to_owned(),
                                key: read($index_pk, $index_sk),
                                only_if: $crate::entity!(@only_if $(if $only, $($is),+)? $(with $has)?),
                                derived: false,
                            },)*
                            $($crate::index_key::IndexKey {
                                index: $derived_index.to_owned(),
                                key: read($derived_pk, $derived_sk),
                                only_if: None,
                                derived: true,
                            },)*
                        ],
                        derived: $crate::entity!(@derived $origin),
                        attributes: vec![$($attribute_name.to_owned()),*],
                        derived_attributes: vec![$($derived_name.to_owned()),*],
                    }
                });
                &DEFINITION
            }

            fn key(&self) -> &$key {
                &self.key
            }

            fn attributes(&self) -> $crate::item::Item {
                let attributes: [(&'static str, Option<serde_dynamo::AttributeValue>); _] = [
                    $(($attribute_name, $crate::attribute::Attribute::to_value(&self.$attribute)),)*
                    $(($derived_name, $crate::attribute::Attribute::to_value(&self.$derived)),)*
                ];
                attributes.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
            }

            fn read(key: $key, attributes: &$crate::item::Item) -> Result<Self, $crate::error::EntityError> {
                Ok(Self {
                    key,
                    $($attribute: $crate::attribute::read(stringify!($name), $attribute_name, attributes)?,)*
                    $($derived: $crate::attribute::read(stringify!($name), $derived_name, attributes)?,)*
                })
            }
        }
    };
    (@only_if) => { None };
    (@only_if if $attribute:literal, $($is:literal),+) => {
        Some($crate::index_key::OnlyIf::Is { attribute: $attribute.to_owned(), any_of: vec![$($is.to_owned()),+] })
    };
    (@only_if with $attribute:literal) => {
        Some($crate::index_key::OnlyIf::Has { attribute: $attribute.to_owned() })
    };
    (@derived ground) => { false };
    (@derived derived) => { true };
}
