//! Claims: the sources of a mirror whose source can change its key.

use std::collections::HashMap;

use keys::{attribute::Attribute, key::Key};
use serde_dynamo::AttributeValue;

/// Primary key of an item that can be the mirror's source, stored as a map of `PK` and `SK`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Claim {
    /// Partition key of the source.
    pub pk: String,
    /// Sort key of the source.
    pub sk: String,
}

impl From<Key> for Claim {
    fn from(key: Key) -> Self {
        Self { pk: key.pk, sk: key.sk }
    }
}

impl From<Claim> for Key {
    fn from(claim: Claim) -> Self {
        Self { pk: claim.pk, sk: claim.sk }
    }
}

impl Attribute for Claim {
    const WANTED: &'static str = "a map of PK and SK (M)";

    fn to_value(&self) -> Option<AttributeValue> {
        let part = |name: &str, text: &String| (name.to_owned(), AttributeValue::S(text.clone()));
        Some(AttributeValue::M(HashMap::from([part("PK", &self.pk), part("SK", &self.sk)])))
    }

    fn from_value(value: &AttributeValue) -> Option<Self> {
        let AttributeValue::M(map) = value else { return None };
        let part = |name: &str| map.get(name).and_then(String::from_value);
        Some(Self { pk: part("PK")?, sk: part("SK")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_reads_back_and_a_map_of_something_else_is_none() {
        let claim = Claim { pk: "USER#ada".to_owned(), sk: "POST#2024#p1".to_owned() };
        let value = claim.to_value().unwrap();
        assert_eq!(Claim::from_value(&value), Some(claim));
        let AttributeValue::M(mut map) = value else { panic!("no map") };
        map.remove("SK");
        assert_eq!(Claim::from_value(&AttributeValue::M(map)), None);
        assert_eq!(Claim::from_value(&AttributeValue::N("1".to_owned())), None);
    }
}
