//! Tables of any form.

use super::*;

/// A table per model, as tools that generate them make it: an `id` alone, a type name, indexes by foreign keys, and numeric
/// times.
const MODELS: &str = include_str!("models.toml");

fn models() -> (Schema, Catalogue) {
    load(MODELS).unwrap()
}

#[test]
fn a_table_a_model_is_one_key_space() {
    let (schema, catalogue) = models();
    let key = |entity: &str| {
        let definition = schema.entity(entity).unwrap();
        let indexes = definition.indexes.iter().map(|it| format!("; {}: {} / {}", it.index, it.key.pk, it.key.sk));
        format!("{entity}: {} / {}{}\n", definition.key.pk, definition.key.sk, indexes.collect::<String>())
    };
    expect![[r#"
        User: User#{id} / -
        Post: Post#{id} / -; Post.byAuthor: {authorId} / {createdAt:N}
        Comment: Comment#{id} / -; Comment.byPost: {postId} / -
        Message: Messages#{roomId} / {sentAt:N}
        Room: Rooms#ROOM#{roomId} / ROOM#{roomId}
        Member: Rooms#ROOM#{roomId} / MEMBER#{userId}; Rooms.byUser: USER#{userId} / ROOM#{roomId}
    "#]]
    .assert_eq(&["User", "Post", "Comment", "Message", "Room", "Member"].map(key).concat());
    let names: Vec<&str> = catalogue.derivations().map(|derivation| derivation.name.as_str()).collect();
    expect!["post-count post-count-display comment-count comment-count-display author-name last-message member-count member-count-display member-name"].assert_eq(&names.join(" "));
}

/// What a path leads into would be another attribute.
#[test]
fn no_attribute_of_an_index_is_a_path() {
    let (schema, _) = models();
    let names: Vec<&String> = schema.layout.indexes.iter().flat_map(|index| [&index.pk, &index.sk]).collect();
    assert_eq!(names.len(), 6);
    assert!(!names.iter().any(|name| derive::condition::is_path(name)), "{names:?}");
}

#[track_caller]
fn refused_here(is: &str, instead: &str, mistake: &expect_test::Expect) {
    assert!(MODELS.contains(is), "{is}");
    mistake.assert_eq(&load(&MODELS.replacen(is, instead, 1)).unwrap_err().to_string());
}

#[test]
fn what_cannot_be_a_table_is_refused() {
    refused_here(
        "partition-key = \"id\"",
        "",
        &expect!["1:9: tables.User: partition-key is missing: the attribute of the partition key"],
    );
    refused_here(
        "partition-key = \"id\"",
        "partition-key = { name = \"id\", type = \"X\" }",
        &expect![[
            r#"2:32: tables.User.partition-key.type: a key is of type S, N or B, and there is no "X": did you mean "S"?"#
        ]],
    );
    refused_here(
        "partition-key = \"id\"",
        "partition-key = 5",
        &expect![[
            r#"2:1: tables.User.partition-key: is a whole number: write the name of an attribute, or { name = "createdAt", type = "N" }"#
        ]],
    );
    refused_here(
        "partition-key = \"id\"",
        "partition-key = \"RipplePK\"",
        &expect![[r#"2:1: tables.User.partition-key: "RipplePK" is an attribute of Ripple's own"#]],
    );
    refused_here(
        "partition-key = \"id\"",
        "partition-key = \"address.id\"",
        &expect![[
            r#"2:1: tables.User.partition-key: "address.id" reads as a path into the attribute "address", and here stands only a whole attribute at the top of an item: what is written, or a key is made of, or is declared, is one"#
        ]],
    );
    refused_here(
        "[tables.User]",
        "[table]\npartition-key = \"pk\"\nsort-key = \"sk\"\n[tables.User]",
        &expect!["1:2: table: [table] is for a manifest of one table: leave it or [tables] out"],
    );
    refused_here(
        "[tables.User]",
        "[tables.\"a b\"]",
        &expect!["1:9: tables.a b: the name of a table has letters, digits, _, . and - only"],
    );
    refused_here(
        "[tables.User]",
        "[tables.Unused]\npartition-key = \"id\"\n[tables.User]",
        &expect![[r#"1:2: tables: no entity is in the table Unused: declare one with table = "Unused""#]],
    );
    refused_here(
        "sort-key = { name = \"sentAt\"",
        "sort-key = { name = \"roomId\"",
        &expect!["19:1: tables.Messages.sort-key: is the attribute of the partition key"],
    );
    refused_here(
        "type = \"__typename\"",
        "type = \"pk\"",
        &expect!["24:1: tables.Rooms.type: names an attribute that is a key, or has another use already"],
    );
    refused_here(
        "partition-key = \"authorId\"",
        "partition-key = []",
        &expect!["8:1: tables.Post.index.byAuthor.partition-key: is one attribute, or a list of one to four"],
    );
    refused_here(
        "partition-key = \"authorId\"",
        "partition-key = [\"a\", 5]",
        &expect![[
            r#"8:23: tables.Post.index.byAuthor.partition-key: is the name of an attribute, or { name = "createdAt", type = "N" }, or a list of them, and this in it is neither"#
        ]],
    );
}

#[test]
fn what_an_entity_says_of_its_table_must_fit_it() {
    refused_here(
        "table = \"Messages\"",
        "table = \"Message\"",
        &expect![[r#"45:1: entity.Message.table: there is no table "Message": did you mean "Messages"?"#]],
    );
    refused_here(
        "table = \"Messages\"",
        "",
        &expect!["44:9: entity.Message: table is missing: the table in which its items are, one of [tables]"],
    );
    refused_here(
        "table = \"Messages\"",
        "table = \"User\"",
        &expect![[
            r#"44:9: entity.Message: all items of the table User are of the entity User: for a second entity, name the attribute of the type, as in [tables.User] type = "…""#
        ]],
    );
    refused_here(
        "table = \"Messages\"",
        "table = \"Messages\"\nsort-key = \"{sentAt}\"",
        &expect![
            "46:1: entity.Message.sort-key: sentAt (N) is the sort-key of Messages, a value as it is: leave sort-key out, or declare a key of type S there to give it a form"
        ],
    );
    refused_here(
        "table = \"User\"",
        "table = \"User\"\nsort-key = \"{x}\"",
        &expect!["32:1: entity.User.sort-key: the table User has no sort key"],
    );
    refused_here(
        "sort-key = \"MEMBER#{userId}\"",
        "",
        &expect!["54:9: entity.Member: sort-key is missing: another entity of the table Rooms gives its form"],
    );
    refused_here(
        "sort-key = \"MEMBER#{userId}\"",
        "sort-key = \"MEMBER#{userId:N}\"",
        &expect![
            "57:1: entity.Member.sort-key: a field of type N or B is all of a key of that type: declare it in [tables.NAME]"
        ],
    );
    refused_here(
        "attributes = [\"authorId\"",
        "attributes = [\"id\", \"authorId\"",
        &expect![[
            r#"37:15: entity.Post.attributes: "id" is an attribute of the table's key, or of its type: leave it out"#
        ]],
    );
    refused_here(
        "[entity.Member.index.byUser]",
        "[entity.Member.index.byUsr]",
        &expect![[r#"60:22: entity.Member.index.byUsr: there is no index "byUsr": did you mean "byUser"?"#]],
    );
    refused_here(
        "link = { id = \"postId\" }",
        "",
        &expect![[
            r#"70:13: derivation.comment-count: nothing gives id of the key of Post: say what of Comment it is (id, postId, text), as in link = { id = "…" }"#
        ]],
    );
    refused_here(
        "found = { index = \"byAuthor\" }",
        "found = { index = \"byAutor\" }",
        &expect![[
            r#"82:11: derivation.author-name.found.index: Post has no key in an index "byAutor": did you mean "byAuthor"?"#
        ]],
    );
}

/// A cascade of posts over the tables, with this owner and what hangs on it.
fn cascade(owner: &str, hanging: &str) -> Result<Catalogue, ManifestError> {
    let text = format!(
        "{MODELS}\n[entity.MemberOfUser]\ntable = \"Rooms\"\npartition-key = \"USER#{{userId}}\"\nsort-key = \
         \"ROOM#{{roomId}}#M\"\nderived = true\n[derivation.members]\nkind = \"mirror\"\nfrom = \"Member\"\nto = \
         \"MemberOfUser\"\n[derivation.gone]\nkind = \"cascade\"\nowner = \"{owner}\"\nhanging = [{{ {hanging} }}]\n"
    );
    load(&text).map(|(_, catalogue)| catalogue)
}

#[test]
fn a_cascade_goes_by_what_the_application_writes() {
    assert!(cascade("Post", "entity = \"Comment\", index = \"byPost\", by = { postId = \"id\" }").is_ok());
    let refused = |owner: &str, hanging: &str, wanted: &expect_test::Expect| {
        let error = cascade(owner, hanging).unwrap_err();
        wanted.assert_eq(&format!("{}: {}", error.key, error.what));
    };
    refused(
        "Post",
        "entity = \"Comment\"",
        &expect![[
            r#"derivation.gone.hanging: say which field of the queried key is the id of Post, with the index whose key it is in, as in index = "byPost", by = { ownerId = "id" }"#
        ]],
    );
    refused(
        "Post",
        "entity = \"Comment\", by = { postId = \"id\" }",
        &expect![[
            r#"derivation.gone.hanging: a change of Post does not have id of Comment, by which its Comment items would be found: say index = "byPost""#
        ]],
    );
    refused(
        "MemberOfUser",
        "entity = \"Member\"",
        &expect![
            "derivation.gone.owner: MemberOfUser is derived, and with [tables] nothing shows whether the functions have handled all that it is derived from: name an entity that the application writes"
        ],
    );
    refused(
        "User",
        "entity = \"Member\", through = \"MemberOfUser\", by = { userId = \"id\" }",
        &expect![
            "derivation.gone.hanging: MemberOfUser is derived, and with [tables] nothing shows whether the functions have handled all that it is derived from: name an entity that the application writes"
        ],
    );
}
