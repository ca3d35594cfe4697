//! Folders.
//!
//! A folder stores only its parent, so a move changes one item; D-20 derives the paths below. The transaction of a move
//! prevents that a folder is below itself: it requires that every folder above the new place still has the parent that
//! was read on the way up. Of two moves that would form a loop together, one is refused.

use derive::{guard::Ask, query::Query, write::Write};
use entities::{
    files::{File, Folder, FolderKey},
    ids::FolderId,
};
use keys::{
    entity::Entity,
    fields::Fields,
    item::{self, Item},
    key::Key,
};
use store::Store;

use super::{
    attempts::{Attempts, Sent},
    draft::{Draft, as_read, check, deletion, text},
    files::{folder_key, refusal},
};
use crate::{Queries, write_error::WriteError};

/// Greatest depth of a folder, including the root and the folder. Source: the table's design.
pub const FOLDER_DEPTH_MAX: usize = 64;

impl<S: Store> Queries<S> {
    /// WP-10: creates a folder in another existing one, or as a root.
    ///
    /// # Errors
    ///
    /// [`WriteError::AlreadyExists`]; [`WriteError::NotFound`] for the parent.
    pub async fn create_folder(
        &self,
        folder_id: &FolderId,
        parent_id: Option<&FolderId>,
        name: &str,
    ) -> Result<(), WriteError> {
        let now = self.now()?;
        let folder = Folder {
            key: FolderKey { folder_id: folder_id.clone() },
            name: Some(name.to_owned()),
            parent_id: parent_id.cloned(),
            created_at: Some(now.clone()),
            updated_at: Some(now),
            ..Folder::default()
        };
        let mut writes = vec![self.creation(&folder)?];
        if let Some(parent_id) = parent_id {
            if parent_id == folder_id {
                return Err(WriteError::FolderUnderItself { folder_id: folder_id.clone() });
            }
            writes.push(check(folder_key(parent_id)?, vec![Ask::Present]));
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
    pub async fn rename_folder(&self, folder_id: &FolderId, name: &str) -> Result<(), WriteError> {
        let (now, mut attempts) = (self.now()?, self.attempts());
        loop {
            let folder = attempts.folder(folder_id).await?;
            let parent_id = item::text(&folder, "ParentId");
            let draft = self.placing_folder(folder_id, parent_id, Some(name), &folder, &now)?;
            let key = draft.key().clone();
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
    pub async fn move_folder(&self, folder_id: &FolderId, to: Option<&FolderId>) -> Result<(), WriteError> {
        let (now, mut attempts) = (self.now()?, self.attempts());
        loop {
            let folder = attempts.folder(folder_id).await?;
            let name = item::text(&folder, "Name");
            let to_text = to.map(FolderId::as_str);
            let draft = self.placing_folder(folder_id, to_text, name, &folder, &now)?;
            let key = draft.key().clone();
            if item::text(&folder, "ParentId") == to_text {
                return Err(WriteError::Unchanged { item: key, attribute: "ParentId" });
            }
            let draft = match to {
                Some(to) => draft.set("ParentId", text(to.as_str())),
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
    pub async fn delete_folder(&self, folder_id: &FolderId) -> Result<bool, WriteError> {
        let (key, mut attempts) = (folder_key(folder_id)?, self.attempts());
        let mut looks = vec![Query::prefix(None, key.pk.as_str(), File::sort_key_prefix(&Fields::new())?)];
        let parent = Fields::from([("ParentId", folder_id.as_str())]);
        for index in &Folder::definition().indexes {
            let (pk, prefix) = (index.key.pk.build(&parent)?, index.key.sk.prefix(&parent)?);
            looks.push(Query::prefix(Some(&index.index), pk, prefix));
        }
        for look in looks {
            if !attempts.page(&Query { limit: Some(1), ..look }).await?.items.is_empty() {
                return Err(WriteError::NotEmpty { folder_id: folder_id.clone() });
            }
        }
        Ok(attempts.send(&[deletion(key)]).await? == Sent::Done)
    }

    /// A change of a folder that is as it was read, with its index key for this parent and name.
    fn placing_folder(
        &self,
        folder_id: &FolderId,
        parent_id: Option<&str>,
        name: Option<&str>,
        folder: &Item,
        now: &str,
    ) -> Result<Draft, WriteError> {
        let key = FolderKey { folder_id: folder_id.clone() };
        let fields = [("ParentId", parent_id), ("Name", name)];
        let fields: Vec<(&str, &str)> = fields.into_iter().filter_map(|(field, text)| Some((field, text?))).collect();
        let draft = Draft::of::<Folder>(&key)?.asking(as_read("Name", folder)).asking(as_read("ParentId", folder));
        draft.set("UpdatedAt", text(now)).indexed::<Folder>(&self.layout, "GSI1", &key, &fields)
    }
}

impl<S: Store> Attempts<'_, S> {
    async fn folder(&mut self, folder_id: &FolderId) -> Result<Item, WriteError> {
        let key = folder_key(folder_id)?;
        self.item(&key).await?.ok_or(WriteError::NotFound { item: key })
    }

    /// Requires that the new parent and every folder above it are as they were read, so that the folder is not below
    /// itself. Refused if the folder is among them.
    async fn folders_above(&mut self, folder_id: &FolderId, to: &FolderId) -> Result<Vec<Write>, WriteError> {
        let (mut checks, mut above) = (Vec::<Write>::new(), Some(to.clone()));
        while let Some(id) = above.take() {
            if id == *folder_id {
                return Err(WriteError::FolderUnderItself { folder_id: folder_id.clone() });
            }
            let key: Key = folder_key(&id)?;
            if checks.len() + 1 >= FOLDER_DEPTH_MAX {
                return Err(WriteError::TooDeep { item: folder_key(folder_id)?, depth_max: FOLDER_DEPTH_MAX });
            }
            match self.item(&key).await? {
                Some(folder) => {
                    above = item::text(&folder, "ParentId").map(FolderId::from);
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
