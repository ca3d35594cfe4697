//! Queries as data: pages of items of one partition.

use keys::{entity::Definition, template::Template};

/// A page of items of one partition key, of the table or of an index.
///
/// ```
/// use derive::query::{Consistency, Order, Query, SortKeys};
///
/// let newest = Query { order: Order::Descending, limit: Some(20), ..Query::prefix(None, "POST#p", "COMMENT#") };
/// assert_eq!(newest.sk, SortKeys::Prefix("COMMENT#".to_owned()));
/// assert_eq!(newest.consistency, Consistency::Strong);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Query {
    /// The index, or the table itself if `None`.
    pub index: Option<String>,
    /// Partition key.
    pub pk: String,
    /// Which of its sort keys.
    pub sk: SortKeys,
    /// Order by the sort key.
    pub order: Order,
    /// Most items of a page; as many as fit if `None`.
    pub limit: Option<u32>,
    /// Consistency of the read; an index can only be read eventually.
    pub consistency: Consistency,
}

/// Which writes a read shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Consistency {
    /// All writes that completed before it.
    Strong,
    /// Possibly without the latest writes, at half the price.
    Eventual,
}

/// The sort keys that a query finds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SortKeys {
    /// All of the partition.
    All,
    /// Those that begin with this text.
    Prefix(String),
    /// Those from the first text to the second, inclusive.
    Between(String, String),
    /// Those greater than this text.
    After(String),
}

/// The order of a query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Order {
    /// Smallest sort key first.
    #[default]
    Ascending,
    /// Greatest sort key first.
    Descending,
}

impl Query {
    /// All items of a partition whose sort key has this prefix, which may be empty; consistent if possible.
    #[must_use]
    pub fn prefix(index: Option<&str>, pk: impl Into<String>, prefix: impl Into<String>) -> Self {
        let prefix = prefix.into();
        let sk = if prefix.is_empty() { SortKeys::All } else { SortKeys::Prefix(prefix) };
        Self::of(index, pk, sk)
    }

    /// All items of a partition in a range of sort keys, ascending; consistent if possible.
    #[must_use]
    pub fn of(index: Option<&str>, pk: impl Into<String>, sk: SortKeys) -> Self {
        Self {
            index: index.map(str::to_owned),
            pk: pk.into(),
            sk,
            order: Order::Ascending,
            limit: None,
            consistency: if index.is_none() { Consistency::Strong } else { Consistency::Eventual },
        }
    }
}

impl SortKeys {
    /// No sort key of them is smaller than this.
    #[must_use]
    pub fn first(&self) -> &str {
        match self {
            Self::All => "",
            Self::Prefix(text) | Self::Between(text, _) | Self::After(text) => text,
        }
    }

    /// True if this sort key is one of them.
    #[must_use]
    pub fn holds(&self, sk: &str) -> bool {
        match self {
            Self::All => true,
            Self::Prefix(prefix) => sk.starts_with(prefix.as_str()),
            Self::Between(first, last) => (first.as_str()..=last.as_str()).contains(&sk),
            Self::After(text) => sk > text.as_str(),
        }
    }

    /// True if this sort key and all after it are past the range.
    #[must_use]
    pub fn is_past(&self, sk: &str) -> bool {
        sk > self.first() && !self.holds(sk)
    }
}

/// The least text that is greater than every text with this prefix; `None` if there is none.
#[must_use]
pub fn past(prefix: &str) -> Option<String> {
    let mut text = prefix.to_owned();
    while let Some(last) = text.pop() {
        if let Some(next) = (last..=char::MAX).nth(1) {
            text.push(next);
            return Some(text);
        }
    }
    None
}

// ---- Ranges: the items of an entity with some fields of their key in common ----
//
// Where they are consecutive in one partition of the table, one consistent query reads them from either end.

/// Why the items with these fields of their key in common are not one range of one partition; `None` if they are.
/// `giver` has the fields, in words.
pub(crate) fn not_one_range(source: &Definition, given: &[&str], giver: &str) -> Option<String> {
    let (partition, sort) = (source.key.pk.field_names(), source.key.sk.field_names());
    let leading: Vec<&str> = sort.into_iter().take_while(|name| given.contains(name)).collect();
    let lacking = partition.iter().find(|name| !given.contains(name));
    let inside = given.iter().find(|name| !partition.contains(name) && !leading.contains(name));
    if source.key.sk.is_open() && !leading.is_empty() {
        return Some(format!("a value in {} may contain the text that ends it", source.key.sk));
    }
    match (lacking, inside) {
        (Some(name), _) => Some(format!("{giver} does not give {name} of their partition key")),
        (None, Some(name)) => Some(format!("{name} is not at the beginning of their key")),
        (None, None) => None,
    }
}

/// The first field of a sort key behind those that are given: a range is in the order of this field.
#[must_use]
pub fn first_behind(sort: &Template, is_given: impl Fn(&str) -> bool) -> Option<&str> {
    sort.field_names().into_iter().find(|name| !is_given(name))
}

/// True if a sort key has the greatest value of this field first.
#[must_use]
pub fn is_descending(sort: &Template, field: &str) -> bool {
    sort.written(field).is_some_and(|written| written.starts_with("{MAX-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_past_a_prefix_is_the_least_text_behind_it() {
        let all = ["MSG#", "a\u{d7ff}", "a\u{10ffff}", "\u{10ffff}", ""].map(past);
        assert_eq!(all, [Some("MSG$".into()), Some("a\u{e000}".into()), Some("b".into()), None, None]);
    }
}
