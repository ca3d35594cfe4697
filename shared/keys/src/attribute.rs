//! Typed values of an entity's attributes.
//!
//! Every value has one type in DynamoDB, and reads back as it was written: a number exactly, whatever its size, and
//! never through binary floating point. A value of another type is refused by the attribute's name, and errors contain
//! no value.

use std::collections::BTreeSet;

use serde_dynamo::AttributeValue;

use crate::{error::EntityError, item::Item, number::Decimal};

/// A typed value of an attribute.
pub trait Attribute: Sized {
    /// Description of this type, for the error message.
    const WANTED: &'static str;

    /// The attribute's value; `None` if the attribute is omitted.
    fn to_value(&self) -> Option<AttributeValue>;

    /// The typed value; `None` if the value does not have this type.
    fn from_value(value: &AttributeValue) -> Option<Self>;

    /// The value of an absent attribute; `None` if it must not be absent.
    #[must_use]
    fn absent() -> Option<Self> {
        None
    }
}

/// Reads an attribute of an entity's item.
///
/// # Errors
///
/// [`EntityError::Attribute`] if it is absent and must not be, or its value is of another type.
pub fn read<T: Attribute>(entity: &'static str, attribute: &'static str, item: &Item) -> Result<T, EntityError> {
    let value = match item.get(attribute) {
        Some(value) => T::from_value(value),
        None => T::absent(),
    };
    value.ok_or(EntityError::Attribute { entity, attribute, wanted: T::WANTED })
}

/// Absent, or the value. Another client may have written `NULL` for absent.
impl<T: Attribute> Attribute for Option<T> {
    const WANTED: &'static str = T::WANTED;

    fn to_value(&self) -> Option<AttributeValue> {
        self.as_ref()?.to_value()
    }

    fn from_value(value: &AttributeValue) -> Option<Self> {
        match value {
            AttributeValue::Null(true) => Some(None),
            value => T::from_value(value).map(Some),
        }
    }

    fn absent() -> Option<Self> {
        Some(None)
    }
}

impl Attribute for String {
    const WANTED: &'static str = "a text (S)";

    fn to_value(&self) -> Option<AttributeValue> {
        Some(AttributeValue::S(self.clone()))
    }

    fn from_value(value: &AttributeValue) -> Option<Self> {
        match value {
            AttributeValue::S(text) => Some(text.clone()),
            _ => None,
        }
    }
}

/// A count, or another whole number.
impl Attribute for i64 {
    const WANTED: &'static str = "a whole number (N)";

    fn to_value(&self) -> Option<AttributeValue> {
        Some(AttributeValue::N(self.to_string()))
    }

    fn from_value(value: &AttributeValue) -> Option<Self> {
        match value {
            AttributeValue::N(text) => crate::number::whole(text),
            _ => None,
        }
    }
}

/// An exact amount.
impl Attribute for Decimal {
    const WANTED: &'static str = "a number (N)";

    fn to_value(&self) -> Option<AttributeValue> {
        Some(AttributeValue::N(self.to_string()))
    }

    fn from_value(value: &AttributeValue) -> Option<Self> {
        match value {
            AttributeValue::N(text) => Self::parse(text),
            _ => None,
        }
    }
}

/// A flag, which is omitted while it is not set.
impl Attribute for bool {
    const WANTED: &'static str = "a flag (BOOL)";

    fn to_value(&self) -> Option<AttributeValue> {
        self.then_some(AttributeValue::Bool(true))
    }

    fn from_value(value: &AttributeValue) -> Option<Self> {
        match value {
            AttributeValue::Bool(flag) => Some(*flag),
            _ => None,
        }
    }

    fn absent() -> Option<Self> {
        Some(false)
    }
}

/// A set of texts, which is omitted while it is empty: DynamoDB has no empty sets.
impl Attribute for BTreeSet<String> {
    const WANTED: &'static str = "a set of texts (SS)";

    fn to_value(&self) -> Option<AttributeValue> {
        (!self.is_empty()).then(|| AttributeValue::Ss(self.iter().cloned().collect()))
    }

    fn from_value(value: &AttributeValue) -> Option<Self> {
        match value {
            AttributeValue::Ss(texts) => Some(texts.iter().cloned().collect()),
            _ => None,
        }
    }

    fn absent() -> Option<Self> {
        Some(Self::new())
    }
}

/// A list, whose elements are never omitted.
impl<T: Attribute> Attribute for Vec<T> {
    const WANTED: &'static str = "a list (L)";

    fn to_value(&self) -> Option<AttributeValue> {
        let value = |one: &T| one.to_value().unwrap_or(AttributeValue::Null(true));
        Some(AttributeValue::L(self.iter().map(value).collect()))
    }

    fn from_value(value: &AttributeValue) -> Option<Self> {
        match value {
            AttributeValue::L(values) => values.iter().map(T::from_value).collect(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use proptest::{collection, prop_assert_eq};

    use super::*;

    #[track_caller]
    fn reads_back<T: Attribute + Debug + PartialEq>(typed: &T) {
        let read = typed.to_value().map_or_else(T::absent, |value| T::from_value(&value));
        assert_eq!(read.as_ref(), Some(typed));
    }

    proptest::proptest! {
        #[test]
        fn every_value_reads_back(
            text in ".*", number: i64, flag: bool, texts in collection::btree_set(".{0,3}", 0..4), list: Vec<Option<i64>>
        ) {
            reads_back(&text);
            reads_back(&Some(text));
            reads_back(&None::<String>);
            reads_back(&number);
            reads_back(&flag);
            reads_back(&texts);
            reads_back(&list);
        }

        #[test]
        fn a_number_is_written_and_read_to_its_last_digit(
            digits in "[1-9][0-9]{0,36}[1-9]?", exponent in -130i32..88, negative: bool
        ) {
            let text = format!("{}{digits}E{exponent}", if negative { "-" } else { "" });
            let canonical = crate::number::canonical(&text).unwrap();
            let number = Decimal::from_value(&AttributeValue::N(text)).unwrap();
            prop_assert_eq!(number.to_value(), Some(AttributeValue::N(canonical)));
            reads_back(&number);
        }
    }

    #[test]
    fn a_value_of_another_type_is_refused_by_the_attributes_name() {
        fn refusal<T: Attribute>(value: AttributeValue) -> String {
            read::<T>("Gadget", "Part", &Item::from([("Part", value)])).map(|_| ()).unwrap_err().to_string()
        }
        let text = || AttributeValue::S("secret".into());
        assert_eq!(refusal::<String>(AttributeValue::N("1".into())), "Gadget.Part should be a text (S)");
        assert_eq!(refusal::<i64>(text()), "Gadget.Part should be a whole number (N)");
        assert_eq!(refusal::<i64>(AttributeValue::N("1.5".into())), "Gadget.Part should be a whole number (N)");
        assert_eq!(refusal::<Option<Decimal>>(text()), "Gadget.Part should be a number (N)");
        assert_eq!(refusal::<bool>(text()), "Gadget.Part should be a flag (BOOL)");
        assert_eq!(refusal::<BTreeSet<String>>(text()), "Gadget.Part should be a set of texts (SS)");
        assert_eq!(refusal::<Vec<String>>(text()), "Gadget.Part should be a list (L)");
        let absent = read::<String>("Gadget", "Part", &Item::new()).unwrap_err().to_string();
        assert_eq!(absent, "Gadget.Part should be a text (S)");
    }

    #[test]
    fn a_whole_number_is_read_in_any_form() {
        assert_eq!(i64::from_value(&AttributeValue::N("3E2".into())), Some(300));
        assert_eq!(i64::from_value(&AttributeValue::N("2.0".into())), Some(2));
    }

    #[test]
    fn null_of_another_client_is_absent() {
        assert_eq!(Option::<i64>::from_value(&AttributeValue::Null(true)), Some(None));
        assert_eq!(i64::from_value(&AttributeValue::Null(true)), None);
    }
}
