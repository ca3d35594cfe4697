//! Files.
//!
//! A file's key contains its folder, so a move changes the key: one transaction deletes the old item and puts the new
//! one with the same content. The time of the upload stays.

use derive::{
    guard::Ask,
    write::{Action, Write},
};
use entities::{
    files::{File, FileKey, Folder, FolderKey},
    ids::{FileId, FolderId},
};
use keys::{entity::Entity, key::Key};
use store::Store;

use super::{
    attempts::Sent,
    draft::{Draft, as_read, check, text, write},
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
    pub async fn upload_file(
        &self,
        folder_id: &FolderId,
        file_id: &FileId,
        new: NewFile,
    ) -> Result<FileKey, WriteError> {
        let now = self.now()?;
        let file = File {
            key: FileKey { folder_id: folder_id.clone(), uploaded_at: now.clone(), file_id: file_id.clone() },
            name: Some(new.name),
            size_bytes: Some(new.size_bytes),
            created_at: Some(now.clone()),
            updated_at: Some(now),
        };
        let writes = [self.creation(&file)?, folder_is_there(folder_id)?];
        match self.attempts().send(&writes).await? {
            Sent::Done => Ok(file.key),
            Sent::Refused(positions) => Err(refusal(writes, &positions)),
        }
    }

    /// WP-10: moves a file to another existing folder. Returns the new key.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotFound`] for the file or the folder; [`WriteError::Unchanged`] if the file is in that folder.
    pub async fn move_file(&self, file: &FileKey, to: &FolderId) -> Result<FileKey, WriteError> {
        let (old, now) = (File::primary_key(file)?, self.now()?);
        if *to == file.folder_id {
            return Err(WriteError::Unchanged { item: old, attribute: "FolderId" });
        }
        let moved = FileKey { folder_id: to.clone(), ..file.clone() };
        let new = File::primary_key(&moved)?;
        let mut attempts = self.attempts();
        loop {
            let mut item = attempts.item(&old).await?.ok_or_else(|| WriteError::NotFound { item: old.clone() })?;
            let mut asks = vec![Ask::Present];
            asks.extend(["Name", "SizeBytes", "UpdatedAt"].map(|attribute| as_read(attribute, &item)));
            item.extend(self.layout.key_item(&new));
            item.insert("UpdatedAt", text(now.as_str()));
            let writes = [
                write(new.clone(), Action::Put(item), vec![Ask::Absent]),
                folder_is_there(to)?,
                write(old.clone(), Action::Delete, asks),
            ];
            match attempts.send(&writes).await? {
                Sent::Done => return Ok(moved),
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
    pub async fn rename_file(&self, file: &FileKey, name: &str) -> Result<(), WriteError> {
        let draft = Draft::of::<File>(file)?.set("Name", text(name));
        self.amend(draft.set("UpdatedAt", text(self.now()?))).await
    }

    /// WP-10: deletes a file; returns false if it does not exist.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if the outcome is unknown.
    pub async fn delete_file(&self, file: &FileKey) -> Result<bool, WriteError> {
        self.delete(File::primary_key(file)?).await
    }
}

/// Requires that a folder exists.
fn folder_is_there(folder_id: &FolderId) -> Result<Write, WriteError> {
    Ok(check(folder_key(folder_id)?, vec![Ask::Present]))
}

pub(super) fn folder_key(folder_id: &FolderId) -> Result<Key, WriteError> {
    Ok(Folder::primary_key(&FolderKey { folder_id: folder_id.clone() })?)
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
