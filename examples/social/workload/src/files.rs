//! Folders, and the files in them.

use entities::{
    files::FileKey,
    ids::{FileId, FolderId},
};
use queries::{Queries, write_error::WriteError, writes::files::NewFile};
use rand::Rng as _;
use store::Store;

use super::Application;

/// Number of folder trees.
const TREES: u64 = 40;

/// Actions on folders and files.
#[derive(Clone, Debug)]
pub enum Files {
    CreateFolder(FolderId, Option<FolderId>, String),
    RenameFolder(FolderId, String),
    MoveFolder(FolderId, Option<FolderId>),
    DeleteFolder(FolderId),
    Upload(FolderId, FileId, NewFile),
    MoveFile(FileKey, FolderId),
    RenameFile(FileKey, String),
    DeleteFile(FileKey),
}

/// A folder, and the tree that contains it.
#[derive(Clone, Debug)]
pub(super) struct FolderPlace {
    tree: u64,
    folder_id: FolderId,
}

impl Application {
    /// The next action; the numbers are of 90. A tree is one subject, because a folder comes before its content.
    pub(super) fn of_files(&mut self) -> (String, Files) {
        let n = self.chance.random_range(0..90);
        let Some(FolderPlace { tree, folder_id }) = self.any(|app| &app.folders) else { return self.create_folder() };
        match n {
            0..=19 => self.create_folder(),
            20..=27 => files(tree, Files::RenameFolder(folder_id, format!("folder {}, renamed", self.n_actions))),
            28..=34 => {
                let to = if self.happens(1, 6) { None } else { self.any(|app| &app.folders) };
                files(tree, Files::MoveFolder(folder_id, to.map(|place| place.folder_id)))
            }
            35..=39 => files(tree, Files::DeleteFolder(folder_id)),
            40..=64 => {
                let file_id = FileId::from(self.new_id("f"));
                let name = format!("file {}.txt", self.n_actions);
                let new = NewFile { name, size_bytes: self.chance.random_range(0..5_000_000) };
                let key = FileKey { folder_id: folder_id.clone(), uploaded_at: self.now(), file_id: file_id.clone() };
                self.files.push((tree, key));
                files(tree, Files::Upload(folder_id, file_id, new))
            }
            _ => self.change_file(),
        }
    }

    fn create_folder(&mut self) -> (String, Files) {
        let folder_id = FolderId::from(self.new_id("d"));
        let parent = if self.happens(1, 6) { None } else { self.any(|app| &app.folders) };
        let tree = parent.as_ref().map_or(self.n_actions % TREES, |parent| parent.tree);
        self.folders.push(FolderPlace { tree, folder_id: folder_id.clone() });
        let parent_id = parent.map(|parent| parent.folder_id);
        files(tree, Files::CreateFolder(folder_id, parent_id, format!("folder {}", self.n_actions)))
    }

    fn change_file(&mut self) -> (String, Files) {
        let Some((tree, file)) = self.any(|app| &app.files) else { return self.create_folder() };
        let to = self.any(|app| &app.folders).map(|place| place.folder_id);
        match (self.chance.random_range(0..3), to) {
            (0, Some(to)) => {
                let moved = FileKey { folder_id: to.clone(), ..file.clone() };
                self.files.iter_mut().filter(|(_, other)| *other == file).for_each(|(_, other)| *other = moved.clone());
                files(tree, Files::MoveFile(file, to))
            }
            (1, _) => files(tree, Files::RenameFile(file, format!("file {}, renamed.txt", self.n_actions))),
            _ => files(tree, Files::DeleteFile(file)),
        }
    }
}

fn files(tree: u64, act: Files) -> (String, Files) {
    (format!("tree {tree}"), act)
}

impl Files {
    pub(super) async fn perform<S: Store>(self, queries: &Queries<S>) -> Result<(), WriteError> {
        match self {
            Self::CreateFolder(folder_id, parent_id, name) => {
                queries.create_folder(&folder_id, parent_id.as_ref(), &name).await
            }
            Self::RenameFolder(folder_id, name) => queries.rename_folder(&folder_id, &name).await,
            Self::MoveFolder(folder_id, to) => queries.move_folder(&folder_id, to.as_ref()).await,
            Self::DeleteFolder(folder_id) => queries.delete_folder(&folder_id).await.map(drop),
            Self::Upload(folder_id, file_id, new) => queries.upload_file(&folder_id, &file_id, new).await.map(drop),
            Self::MoveFile(file, to) => queries.move_file(&file, &to).await.map(drop),
            Self::RenameFile(file, name) => queries.rename_file(&file, &name).await,
            Self::DeleteFile(file) => queries.delete_file(&file).await.map(drop),
        }
    }
}
