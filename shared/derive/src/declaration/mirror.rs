//! The declaration of a [mirror](crate::kinds::mirror).

use crate::{condition::Condition, declaration::link::Link};

/// The declaration of a mirror.
#[derive(Clone, Debug)]
pub struct Mirror {
    /// Entity that is mirrored.
    pub source: String,
    /// Entity of the mirrors.
    pub target: String,
    /// How the mirror's key is made from the source's fields.
    pub link: Link,
    /// Which sources are mirrored.
    pub condition: Condition,
    /// The attribute of the source that lists members, if there is a mirror for each of them: where the link names it, it
    /// stands for the member.
    pub each: Option<String>,
    /// Attributes of the source that are left out.
    pub except: Vec<String>,
}

impl Mirror {
    /// The source's fields and attributes that stand in the mirror's key as they are.
    pub fn key_fields(&self) -> impl Iterator<Item = &str> {
        self.link.from_fields().filter(|from| self.each.as_deref() != Some(*from))
    }
}
