//! Sort keys that are made of texts of any length.

use flate2::Crc;
use keys::key::Key;

/// Longest sort key that is spelled out, in bytes; a longer one is cut and distinguished by its checksum.
const SPELLED_OUT_MAX: usize = 900;

/// Sort key under which an item is listed on behalf of a derivation.
pub(crate) fn sort_key(derivation: &str, item: &Key) -> String {
    fitted(format!("{derivation}#{}#{}", item.pk, item.sk))
}

/// A text that fits in a sort key: as it is, or cut and distinguished by its checksum.
pub(crate) fn fitted(text: String) -> String {
    if text.len() <= SPELLED_OUT_MAX {
        return text;
    }
    let end = text.floor_char_boundary(SPELLED_OUT_MAX);
    format!("{}#{:08x}", text.get(..end).unwrap_or_default(), checksum(&text))
}

/// CRC-32 of a text.
pub(crate) fn checksum(text: &str) -> u32 {
    let mut crc = Crc::new();
    crc.update(text.as_bytes());
    crc.sum()
}
