//! AP-026 to AP-028: folders and files.

use derive::query::{Consistency, Query, SortKeys};
use entities::{
    files::{File, FileDetail, FileDetailKey, Folder, FolderKey},
    ids::{FileId, FolderId},
};
use keys::{entity::Entity, fields::Fields};
use store::Store;

use super::{
    listing::ListPlan,
    projection::{Projected, projection},
    ranges,
};
use crate::{
    Queries,
    page::{Page, PageRequest},
    pattern::{AccessPattern, sample, sample_page},
    read_error::ReadError,
};

projection! {
    /// The projection of [`Folder`] in GSI1 with a parent.
    SubFolder of Folder by FolderKey, "GSI1" {
        /// Its name.
        name: String = "Name",
        /// Its path; absent while it has none.
        path: String = "Path",
        /// When it was created.
        created_at: String = "CreatedAt",
    }
}

/// A folder and some of its files.
#[derive(Debug)]
#[must_use]
pub struct FolderWithFiles {
    /// The folder, on the first page; `None` if it does not exist.
    pub folder: Option<Folder>,
    /// Its files, newest first.
    pub files: Page<File>,
}

enum FolderOrFile {
    Folder(Folder),
    File(File),
}

impl<S: Store> Queries<S> {
    /// AP-026: a folder with its files, newest first, in one query. The folder is one of the first page's items.
    ///
    /// The folder's key is the last one in the range, before those of its counters.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn folder_with_files(&self, folder: &FolderId, page: &PageRequest) -> Result<FolderWithFiles, ReadError> {
        let key = Folder::primary_key(&FolderKey { folder_id: folder.clone() })?;
        let range = SortKeys::Between(ranges::first::<File>()?, key.sk);
        let query = ranges::descending(ranges::eventual(Query::of(None, key.pk, range)));
        let take = |item: &_| {
            if let Some(folder) = Folder::from_item(&self.layout, item)? {
                return Ok(Some(FolderOrFile::Folder(folder)));
            }
            Ok(File::from_item(&self.layout, item)?.map(FolderOrFile::File))
        };
        let found = self.list(&ListPlan::of("AP-026", query, Box::new(take)), page).await?;
        let mut folder = None;
        let mut files = Page { items: Vec::new(), unreadable: found.unreadable, next: found.next };
        for part in found.items {
            match part {
                FolderOrFile::Folder(whole) => folder = Some(whole),
                FolderOrFile::File(file) => files.items.push(file),
            }
        }
        Ok(FolderWithFiles { folder, files })
    }

    /// AP-027: a file by ID, with its full path.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn file(&self, file: &FileId) -> Result<Option<FileDetail>, ReadError> {
        self.one(&FileDetailKey { file_id: file.clone() }, Consistency::Eventual).await
    }

    /// AP-028: the sub-folders of a folder by name, by GSI1, which may be stale. They have the order of the keys, in
    /// which a name ends in `#`: `a b` comes before `a`.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if nothing could be read.
    pub async fn sub_folders_of(&self, folder: &FolderId, page: &PageRequest) -> Result<Page<SubFolder>, ReadError> {
        let queries = SubFolder::entries(&Fields::from([("ParentId", folder.as_str())]))?;
        self.list(&SubFolder::listing("AP-028", &self.layout, queries), page).await
    }
}

/// The patterns of this file.
pub(crate) fn patterns() -> Vec<AccessPattern> {
    vec![
        AccessPattern {
            id: "AP-026",
            title: "folder with its files, newest first, one query",
            input: "FolderId, PageRequest",
            result: "FolderWithFiles: Folder, Page<File>",
            order: "UploadedAt, FileId, descending",
            sample: sample!(|queries| {
                let _page = queries.folder_with_files(&"{FolderId}".into(), &sample_page()).await?;
            }),
        },
        AccessPattern {
            id: "AP-027",
            title: "file by ID with its full path",
            input: "FileId",
            result: "FileDetail, if there",
            order: "",
            sample: sample!(|queries| {
                queries.file(&"{FileId}".into()).await?;
            }),
        },
        AccessPattern {
            id: "AP-028",
            title: "sub-folders of a folder by name",
            input: "FolderId of the parent, PageRequest",
            result: "Page<SubFolder> (projection)",
            order: "Name, FolderId",
            sample: sample!(|queries| {
                let _page = queries.sub_folders_of(&"{ParentId}".into(), &sample_page()).await?;
            }),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reads::projection::check;

    #[test]
    fn the_projection_has_what_its_index_holds() {
        check::<SubFolder>();
    }
}
