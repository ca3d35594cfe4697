//! The declaration of a [mirror](crate::kinds::mirror).

use crate::declaration::link::Link;

/// The declaration of a mirror.
#[derive(Clone, Debug)]
pub struct Mirror {
    /// Entity that is mirrored.
    pub source: String,
    /// Entity of the mirrors.
    pub target: String,
    /// How the mirror's key is made from the source's fields.
    pub link: Link,
    /// Attributes of the source that are left out.
    pub except: Vec<String>,
}
