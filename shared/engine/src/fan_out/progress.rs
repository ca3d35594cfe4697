//! How far a fan-out is: the part of its job that no other job has.

use keys::{
    item::{Item, text},
    key::Key,
};
use serde_dynamo::AttributeValue;

use crate::{
    attribute::{n, number, s},
    sort_key::checksum,
};

// Attributes of a job that fans out. Stored, so they are stable.
const SOURCE_PK: &str = "SourcePK";
const SOURCE_SK: &str = "SourceSK";
pub(crate) const UNTIL: &str = "Until";
pub(crate) const ROUND: &str = "Round";
pub(crate) const FREE_AT: &str = "FreeAt";

/// Longest key of a source that is spelled out in a job's key, in bytes: escaped, it still fits in a sort key.
const SPELLED_OUT_MAX: usize = 256;

/// What a job of this kind works at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FanOut {
    /// The source that changed.
    pub source: Key,
    /// Sort key up to which the job goes on when it has been to the end, since the source changed meanwhile.
    pub until: Option<String>,
    /// Has it been to the end?
    pub is_round: bool,
    /// From when on it may write again, in milliseconds since the epoch, where its rate is limited.
    pub free_at_ms: u64,
}

impl FanOut {
    /// All of a source's search.
    pub(crate) fn of_all(source: &Key) -> Self {
        let source = source.clone();
        Self { source, until: None, is_round: false, free_at_ms: 0 }
    }

    /// What an item of a job says; `None` when it is no job of this kind.
    pub(crate) fn of(item: &Item) -> Option<Self> {
        Some(Self {
            source: Key::new(text(item, SOURCE_PK)?, text(item, SOURCE_SK)?),
            until: text(item, UNTIL).map(str::to_owned),
            is_round: item.get(ROUND) == Some(&AttributeValue::Bool(true)),
            free_at_ms: number(item, FREE_AT).unwrap_or(0),
        })
    }

    /// The attributes that stay as they are.
    pub(crate) fn origin(&self) -> Item {
        Item::from([(SOURCE_PK.to_owned(), s(&self.source.pk)), (SOURCE_SK.to_owned(), s(&self.source.sk))])
    }

    /// The attributes that say how far it is, as far as there is something to say.
    pub(crate) fn progress(&self) -> Item {
        let until = self.until.as_ref().map(|until| (UNTIL.to_owned(), s(until)));
        let free_at = (self.free_at_ms > 0).then(|| (FREE_AT.to_owned(), n(self.free_at_ms)));
        let round = self.is_round.then(|| (ROUND.to_owned(), AttributeValue::Bool(true)));
        [until, round, free_at].into_iter().flatten().collect()
    }
}

/// Id of the job of a source. No two sources have the same: the length says where the one key ends.
pub(crate) fn id_of(source: &Key) -> String {
    let id = format!("{}:{}|{}", source.pk.len(), source.pk, source.sk);
    if id.len() <= SPELLED_OUT_MAX {
        return id;
    }
    let end = id.floor_char_boundary(SPELLED_OUT_MAX);
    format!("{}~{:08x}", id.get(..end).unwrap_or_default(), checksum(&id))
}
