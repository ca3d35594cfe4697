//! Files.
//!
//! A file's key contains its folder, so a move changes the key: one transaction deletes the old item and puts the new
//! one with the same content. The time of the upload stays.

use derive::{
    guard::Ask,
    write::{Action, Write},
};
use keys::key::Key;
use store::Store;

use super::{
    attempts::Sent,
    draft::{Draft, as_read, check, number, text, texts, write},
};
use crate::{Queries, write_error::WriteError};

/// The attributes of a new file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFile {
    /// Name as shown.
    pub name: String,
    /// Its size, in bytes.
    pub size_bytes: i64,
}

impl<S: Store> Queries<S> {
    /// WP-10: uploads a file to an existing folder. Returns the file's key, which contains the time.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotFound`] for the folder; [`WriteError::AlreadyExists`] for a file of the same folder, time and id.
    pub async fn upload_file(&self, folder_id: &str, file_id: &str, new: NewFile) -> Result<Key, WriteError> {
        let now = self.now()?;
        let values = texts([("FolderId", folder_id), ("UploadedAt", &now), ("FileId", file_id), ("Name", &new.name)]);
        let creation = self.creation("File", &now, values.chain([("SizeBytes", number(new.size_bytes))]))?;
        let key = creation.key.clone();
        let writes = [creation, self.folder_is_there(folder_id)?];
        match self.attempts().send(&writes).await? {
            Sent::Done => Ok(key),
            Sent::Refused(positions) => Err(refusal(writes, &positions)),
        }
    }

    /// WP-10: moves a file to another existing folder. Returns the new key.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotFound`] for the file or the folder; [`WriteError::Unchanged`] if the file is in that folder.
    pub async fn move_file(&self, file: &Key, to: &str) -> Result<Key, WriteError> {
        let (old, now, mut fields) = (file.clone(), self.now()?, self.fields("File", file)?);
        if fields.insert("FolderId", to).is_some_and(|from| from == to) {
            return Err(WriteError::Unchanged { item: old, attribute: "FolderId" });
        }
        let new = self.entity("File")?.build(&fields)?;
        let mut attempts = self.attempts();
        loop {
            let mut item = attempts.item(&old).await?.ok_or_else(|| WriteError::NotFound { item: old.clone() })?;
            let mut asks = vec![Ask::Present];
            asks.extend(["Name", "SizeBytes", "UpdatedAt"].map(|attribute| as_read(attribute, &item)));
            item.extend(self.schema.layout.key_item(&new));
            item.insert("UpdatedAt", text(now.as_str()));
            let writes = [
                write(new.clone(), Action::Put(item), vec![Ask::Absent]),
                self.folder_is_there(to)?,
                write(old.clone(), Action::Delete, asks),
            ];
            match attempts.send(&writes).await? {
                Sent::Done => return Ok(new),
                // Another client changed it, or moved it away.
                Sent::Refused(positions) if positions.contains(&2) => attempts.again(&old).await?,
                Sent::Refused(positions) => return Err(refusal(writes, &positions)),
            }
        }
    }

    /// WP-10: renames a file.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotFound`].
    pub async fn rename_file(&self, file: &Key, name: &str) -> Result<(), WriteError> {
        let draft = Draft::of(self.of("File", file)?, &self.now()?);
        self.amend(draft.set("Name", text(name))).await
    }

    /// WP-10: deletes a file; returns false if it does not exist.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if the outcome is unknown.
    pub async fn delete_file(&self, file: &Key) -> Result<bool, WriteError> {
        self.delete(self.of("File", file)?).await
    }

    /// Requires that a folder exists.
    fn folder_is_there(&self, folder_id: &str) -> Result<Write, WriteError> {
        Ok(check(self.folder(folder_id)?, vec![Ask::Present]))
    }

    pub(super) fn folder(&self, folder_id: &str) -> Result<Key, WriteError> {
        self.key("Folder", [("FolderId", folder_id)])
    }
}

/// The error for a refused write: the item of a put exists, or the item of a check does not.
pub(super) fn refusal(writes: impl IntoIterator<Item = Write>, positions: &[usize]) -> WriteError {
    let refused = writes.into_iter().enumerate().find(|(position, _)| positions.contains(position));
    match refused {
        Some((_, Write { key, action: Action::Put(_), .. })) => WriteError::AlreadyExists { item: key },
        Some((_, Write { key, .. })) => WriteError::NotFound { item: key },
        None => WriteError::NotFound { item: Key::new("", "") },
    }
}
