//! Reads a text from any kind of file, within a limit.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

/// The text of a file of at most `bytes_max` bytes: a device or a pipe may never end.
///
/// # Errors
///
/// Read errors, and an error for a longer file or for bytes that are not UTF-8.
pub fn text(path: &Path, bytes_max: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    let n_bytes = File::open(path)?.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if u64::try_from(n_bytes).is_ok_and(|n_bytes| n_bytes > bytes_max) {
        return Err(io::Error::other(format!("it is longer than {} MB", bytes_max / 1_000_000)));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is no UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_up_to_the_limit_and_one_without_an_end_is_refused() {
        let own = Path::new("src/file.rs");
        let whole = text(own, 1_000_000).unwrap();
        let n_bytes = u64::try_from(whole.len()).unwrap();
        assert_eq!(text(own, n_bytes).unwrap(), whole);
        assert!(whole.ends_with("}\n") && text(own, n_bytes - 1).is_err());
        let error = text(Path::new("/dev/zero"), 2_000_000).unwrap_err().to_string();
        assert_eq!(error, "it is longer than 2 MB");
    }
}
