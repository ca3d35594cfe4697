//! Update expressions of DynamoDB.
//!
//! Names and values are placeholders, so that an attribute may have any name: a reserved word, or one with dots or `#`
//! in it. Placeholders of a guard start with `#g` and `:g`, which are not used here.
//!
//! Setting `Name`, removing `a.b` and adding 2 to `Value` is `SET #s0 = :s0 REMOVE #r0 ADD #a0 :a0`. Counting `Rev` from 7
//! is `SET #c0 = if_not_exists(#c0, :c0) + :one`.

use std::collections::BTreeMap;

use derive::write::Update;
use keys::item::Item;
use serde_dynamo::AttributeValue;

/// Longest expression, in bytes. Source: DynamoDB service quotas.
pub(crate) const EXPRESSION_BYTES_MAX: usize = 4_096;

/// Most operators and functions of a condition, `AND` and `OR` included. Source: DynamoDB, "Count expression operators".
/// The expressions of updates have none: the `=` of a `SET` does not count.
pub(crate) const OPERATORS_MAX: usize = 300;

/// An update expression with its names and values.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct UpdateExpression {
    pub(crate) text: String,
    pub(crate) names: BTreeMap<String, String>,
    pub(crate) values: Item,
}

impl UpdateExpression {
    pub(crate) fn new(update: &Update) -> Self {
        let Update { set, remove, add, delete, count_from } = update;
        let mut expression = Self::default();
        expression.clause("SET", "s", set.iter().map(|(name, value)| (name, Some((" = ", value.clone())))));
        expression.count(count_from);
        expression.clause("REMOVE", "r", remove.iter().map(|name| (name.as_str(), None)));
        expression.clause("ADD", "a", add.iter().map(|(name, amount)| (name, Some((" ", amount.clone())))));
        expression.clause("DELETE", "d", delete.iter().map(|(name, elements)| (name, Some((" ", elements.clone())))));
        expression
    }

    /// A bound of the text's length in bytes, which needs no text: terms have fewer than 1,000 of each sort, so the
    /// longest, `#c999 = if_not_exists(#c999, :c999) + :one, `, has 44 bytes, and the keywords have 23.
    pub(crate) fn bytes_max(update: &Update) -> usize {
        let Update { set, remove, add, delete, count_from } = update;
        32 + 44 * (set.len() + remove.len() + add.len() + delete.len() + count_from.len())
    }

    /// Increments these attributes, as a part of the `SET` clause.
    fn count(&mut self, count_from: &Item) {
        for (at, (name, from)) in count_from.iter().enumerate() {
            self.text.push_str(if self.text.is_empty() { "SET " } else { ", " });
            self.text.extend([format!("#c{at} = if_not_exists(#c{at}, :c{at}) + :one")]);
            self.names.insert(format!("#c{at}"), name.to_owned());
            self.values.insert(format!(":c{at}"), from.clone());
            self.values.insert(":one".to_owned(), AttributeValue::N("1".to_owned()));
        }
    }

    fn clause<'a>(
        &mut self,
        keyword: &str,
        letter: &str,
        terms: impl Iterator<Item = (&'a str, Option<(&'static str, AttributeValue)>)>,
    ) {
        for (position, (name, value)) in terms.enumerate() {
            let separator = if self.text.is_empty() { "" } else { " " };
            self.text.extend(if position == 0 { [separator, keyword, " "] } else { [", ", "", ""] });
            let position = position.to_string();
            let placeholder = ["#", letter, &position].concat();
            self.text.push_str(&placeholder);
            if let Some((operator, value)) = value {
                let placeholder = [":", letter, &position].concat();
                self.text.extend([operator, &placeholder]);
                self.values.insert(placeholder, value);
            }
            self.names.insert(placeholder, name.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_and_values_stand_behind_placeholders() {
        let set = Item::from([
            ("Name".to_owned(), AttributeValue::Bool(true)),
            ("a#b".to_owned(), AttributeValue::Null(true)),
        ]);
        let remove = BTreeSet::from(["a.b".to_owned()]);
        let add = Item::from([("Value".to_owned(), AttributeValue::N("-2".to_owned()))]);
        let delete = Item::from([("Tags".to_owned(), AttributeValue::Ss(vec!["a".to_owned()]))]);
        let count_from = Item::from([("Rev".to_owned(), AttributeValue::N("7".to_owned()))]);
        let update = Update { set, remove, add: add.clone(), delete, count_from: count_from.clone() };
        let expression = UpdateExpression::new(&update);
        let counts = "#c0 = if_not_exists(#c0, :c0) + :one";
        let wanted = format!("SET #s0 = :s0, #s1 = :s1, {counts} REMOVE #r0 ADD #a0 :a0 DELETE #d0 :d0");
        assert_eq!(expression.text, wanted);
        let only_count = UpdateExpression::new(&Update { count_from, ..Update::default() });
        assert_eq!(only_count.text, format!("SET {counts}"));
        assert_eq!(only_count.values.get(":one"), Some(&AttributeValue::N("1".to_owned())));
        assert_eq!(expression.names.get("#r0").map(String::as_str), Some("a.b"));
        assert_eq!(expression.values.get(":a0"), Some(&AttributeValue::N("-2".to_owned())));
        let only_add = UpdateExpression::new(&Update { add, ..Update::default() });
        assert_eq!(only_add.text, "ADD #a0 :a0");
    }
}
