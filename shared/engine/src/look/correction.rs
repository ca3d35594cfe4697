//! Corrections: writes by which an item's own bell puts right what was made of its derived part.
//!
//! *Keeps true*: a write counts when nothing but records of the item itself rang for it, and one of them changed an
//! attribute that it writes. So the record of an item that comes with a wrong name, or is put back as it was long ago,
//! counts; one whose source changed does not, nor does a new item that lacks what is derived.
//!
//! What somebody else wrote cannot be distinguished from a write of our own that was right when it was decided, and was overtaken
//! by its source. So some are normal where sources change fast; many, and for long, are somebody's own trigger.

use derive::{
    change::Change,
    write::{Action, Write},
};
use keys::{item::Item, value::same};

use crate::{batch::input::Batch, look::bells::Rung};

/// Is this write a correction?
pub(crate) fn is_correction(rung: &Rung, write: &Write, batch: &Batch<'_>) -> bool {
    let records = rung.causes.iter().filter_map(|position| batch.record(*position));
    let mut changes = records.filter_map(|record| record.change.as_ref().ok());
    rung.is_own && changes.any(|change| has_touched(change, write))
}

/// Did the change touch what the write writes?
fn has_touched(change: &Change, write: &Write) -> bool {
    let (old, new) = (change.old_image(), change.new_image());
    let value = |image: Option<&'_ Item>, name: &str| image.and_then(|image| image.get(name)).cloned();
    let differs = |name: &str| !same(value(old, name).as_ref(), value(new, name).as_ref());
    match &write.action {
        Action::Put(item) => item.keys().any(differs),
        Action::Update(update) => update.set.keys().chain(update.remove.iter().map(String::as_str)).any(differs),
        // What should not be there was put there.
        Action::Delete => new.is_some(),
        Action::Check => false,
    }
}
