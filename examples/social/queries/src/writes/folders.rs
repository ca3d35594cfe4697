//! Folders and files.
//!
//! A folder stores only its parent, so a move changes one item; D-20 derives the paths below. The transaction of a move
//! prevents that a folder is below itself: it requires that every folder above the new place still has the parent that
//! was read on the way up. Of two moves that would form a loop together, one is refused.
//!
//! A file's key contains its folder, so a move changes the key: one transaction deletes the old item and puts the new
//! one with the same content. The time of the upload stays.

use derive::{
    guard::Ask,
    query::Query,
    write::{Action, Write},
};
use keys::{
    fields::Fields,
    item::{self, Item},
    key::Key,
};
use store::Store;

use crate::{
    Queries,
    write_error::WriteError,
    writes::{
        Attempts, Sent,
        draft::{Draft, as_read, check, deletion, number, text, texts, write},
    },
};

/// Greatest depth of a folder, including the root and the folder. Source: the table's design.
pub const FOLDER_DEPTH_MAX: usize = 64;

impl<S: Store> Queries<S> {
    /// WP-10: creates a folder in another existing one, or as a root.
    ///
    /// # Errors
    ///
    /// [`WriteError::AlreadyExists`]; [`WriteError::NotFound`] for the parent.
    pub async fn create_folder(&self, folder_id: &str, parent_id: Option<&str>, name: &str) -> Result<(), WriteError> {
        let values = [("FolderId", folder_id), ("Name", name)].into_iter();
        let values = texts(values.chain(parent_id.map(|id| ("ParentId", id))));
        let mut writes = vec![self.creation("Folder", &self.now()?, values)?];
        if let Some(parent_id) = parent_id {
            if parent_id == folder_id {
                return Err(WriteError::FolderUnderItself { folder_id: folder_id.to_owned() });
            }
            writes.push(check(self.folder(parent_id)?, vec![Ask::Present]));
        }
        match self.attempts().send(&writes).await? {
            Sent::Done => Ok(()),
            Sent::Refused(positions) => Err(refusal(writes, &positions)),
        }
    }

    /// WP-10: renames a folder, which also moves it among its parent's folders.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotFound`].
    pub async fn rename_folder(&self, folder_id: &str, name: &str) -> Result<(), WriteError> {
        let (now, key, mut attempts) = (self.now()?, self.folder(folder_id)?, self.attempts());
        loop {
            let folder = attempts.existing(&key).await?;
            let parent_id = item::text(&folder, "ParentId");
            let draft = self.placing_folder(&key, parent_id, Some(name), &folder, &now)?;
            if attempts.send(&[draft.set("Name", text(name)).write()]).await? == Sent::Done {
                return Ok(());
            }
            attempts.again(&key).await?;
        }
    }

    /// WP-10: moves a folder with its whole content to another existing one, or makes it a root.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotFound`] for the folder or the new parent; [`WriteError::FolderUnderItself`];
    /// [`WriteError::Unchanged`] if that is the parent already; [`WriteError::TooDeep`].
    pub async fn move_folder(&self, folder_id: &str, to: Option<&str>) -> Result<(), WriteError> {
        let (now, key, mut attempts) = (self.now()?, self.folder(folder_id)?, self.attempts());
        loop {
            let folder = attempts.existing(&key).await?;
            let draft = self.placing_folder(&key, to, item::text(&folder, "Name"), &folder, &now)?;
            if item::text(&folder, "ParentId") == to {
                return Err(WriteError::Unchanged { item: key, attribute: "ParentId" });
            }
            let draft = match to {
                Some(to) => draft.set("ParentId", text(to)),
                None => draft.clear("ParentId"),
            };
            let mut writes = vec![draft.write()];
            if let Some(to) = to {
                writes.extend(attempts.folders_above(folder_id, to).await?);
            }
            if attempts.send(&writes).await? == Sent::Done {
                return Ok(());
            }
            attempts.again(&key).await?;
        }
    }

    /// WP-10: deletes a folder that is empty; returns false if it does not exist.
    ///
    /// Two conditions cannot be checked on the folder itself. Its files are read consistently, but a file that is
    /// uploaded between this read and the deletion stays without a folder; a later upload is refused. Its sub-folders
    /// are read from the index, which may lag and miss a new one. Such a file or folder is still found by its id, has
    /// no path, and can be moved or deleted.
    ///
    /// # Errors
    ///
    /// [`WriteError::NotEmpty`].
    pub async fn delete_folder(&self, folder_id: &str) -> Result<bool, WriteError> {
        let (key, mut attempts) = (self.folder(folder_id)?, self.attempts());
        let files = self.entity("File")?.key.sk.prefix(&Fields::new())?;
        let mut looks = vec![Query::prefix(None, key.pk.as_str(), files)];
        let parent = Fields::from([("ParentId", folder_id)]);
        for index in &self.entity("Folder")?.indexes {
            let (pk, prefix) = (index.key.pk.build(&parent)?, index.key.sk.prefix(&parent)?);
            looks.push(Query::prefix(Some(&index.index), pk, prefix));
        }
        for look in looks {
            if !attempts.page(&Query { limit: Some(1), ..look }).await?.items.is_empty() {
                return Err(WriteError::NotEmpty { folder_id: folder_id.to_owned() });
            }
        }
        Ok(attempts.send(&[deletion(key)]).await? == Sent::Done)
    }

    /// A change of a folder that is as it was read, with its index key for this parent and name.
    fn placing_folder(
        &self,
        key: &Key,
        parent_id: Option<&str>,
        name: Option<&str>,
        folder: &Item,
        now: &str,
    ) -> Result<Draft, WriteError> {
        let fields = [("ParentId", parent_id), ("Name", name)];
        let fields: Vec<(&str, &str)> = fields.into_iter().filter_map(|(field, text)| Some((field, text?))).collect();
        let draft = Draft::of(key.clone(), now).asking(as_read("Name", folder)).asking(as_read("ParentId", folder));
        self.indexed(draft, "Folder", "GSI1", &fields)
    }
}

impl<S: Store> Attempts<'_, S> {
    /// Requires that the new parent and every folder above it are as they were read, so that the folder is not below
    /// itself. Refused if the folder is among them.
    async fn folders_above(&mut self, folder_id: &str, to: &str) -> Result<Vec<Write>, WriteError> {
        let (mut checks, mut above) = (Vec::<Write>::new(), Some(to.to_owned()));
        while let Some(id) = above.take() {
            if id == folder_id {
                return Err(WriteError::FolderUnderItself { folder_id: id });
            }
            let key = self.queries.folder(&id)?;
            if checks.len() + 1 >= FOLDER_DEPTH_MAX {
                let item = self.queries.folder(folder_id)?;
                return Err(WriteError::TooDeep { item, depth_max: FOLDER_DEPTH_MAX });
            }
            match self.item(&key).await? {
                Some(folder) => {
                    above = item::text(&folder, "ParentId").map(str::to_owned);
                    checks.push(check(key, vec![Ask::Present, as_read("ParentId", &folder)]));
                }
                None if checks.is_empty() => return Err(WriteError::NotFound { item: key }),
                // The parent of one of them does not exist, and nobody may make the moved folder that parent.
                None => checks.push(check(key, vec![Ask::Absent])),
            }
        }
        Ok(checks)
    }
}

// ---- Files ----

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
            let mut item = attempts.existing(&old).await?;
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
