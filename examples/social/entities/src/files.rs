//! Folders and files.
//!
//! A file stands in its folder's collection, newest last; it is found by its id alone in the mirror [`FileDetail`],
//! which is ours and carries the path.

use keys::number::Decimal;

use crate::{
    claim::Claim,
    ids::{FileId, FolderId},
};

keys::entity! {
    /// A folder. One without a parent is a root, and is reached by its id only.
    ground Folder "E-16" {
        key FolderKey("FOLDER#{FolderId}", "METADATA") {
            /// The folder.
            folder_id: FolderId = "FolderId",
        }
        index "GSI1" ("FOLDER#{ParentId}", "FOLDER#{Name}#{FolderId}") only with "ParentId";
        attributes {
            /// Name as shown; below a parent, its index key needs it.
            name: Option<String> = "Name",
            /// The folder that it is in; absent at a root.
            parent_id: Option<FolderId> = "ParentId",
            /// When it was made, ISO 8601 UTC in milliseconds.
            created_at: Option<String> = "CreatedAt",
            /// When it was last edited, ISO 8601 UTC in milliseconds.
            updated_at: Option<String> = "UpdatedAt",
        }
        derived {
            /// Names from the root down to its own, each behind a `/`; absent where no root is above it.
            path: Option<String> = "Path",
            /// Display of how many files are in it, not below it; absent for 0.
            file_count: Option<i64> = "FileCount",
            /// Display of their size in all, in bytes; absent for 0.
            total_bytes: Option<Decimal> = "TotalBytes",
        }
    }
}

keys::entity! {
    /// A file, in its folder's collection.
    ground File "E-17" {
        key FileKey("FOLDER#{FolderId}", "FILE#{UploadedAt}#{FileId}") {
            /// The folder that it is in.
            folder_id: FolderId = "FolderId",
            /// When it was uploaded, ISO 8601 UTC in milliseconds.
            uploaded_at: String = "UploadedAt",
            /// The file.
            file_id: FileId = "FileId",
        }
        attributes {
            /// Name as shown.
            name: Option<String> = "Name",
            /// Its size, in bytes.
            size_bytes: Option<i64> = "SizeBytes",
            /// When the item was first written, ISO 8601 UTC in milliseconds.
            created_at: Option<String> = "CreatedAt",
            /// When the item was last written, ISO 8601 UTC in milliseconds.
            updated_at: Option<String> = "UpdatedAt",
        }
        derived {}
    }
}

keys::entity! {
    /// The mirror of a [`File`], by the file's id, with its path.
    derived FileDetail "E-18" {
        key FileDetailKey("FILE#{FileId}", "METADATA") {
            /// The file.
            file_id: FileId = "FileId",
        }
        attributes {
            /// The folder that it is in, from the file's key.
            folder_id: Option<FolderId> = "FolderId",
            /// When it was uploaded, from the file's key, ISO 8601 UTC in milliseconds.
            uploaded_at: Option<String> = "UploadedAt",
            /// The file's.
            name: Option<String> = "Name",
            /// The file's.
            size_bytes: Option<i64> = "SizeBytes",
            /// The file's.
            created_at: Option<String> = "CreatedAt",
            /// The file's.
            updated_at: Option<String> = "UpdatedAt",
        }
        derived {
            /// Keys of the files that say they are this one; the greatest of the living wins.
            claims: Option<Vec<Claim>> = "Claims",
            /// Its folder's path and its own name; absent where the folder has none.
            path: Option<String> = "Path",
        }
    }
}

#[cfg(test)]
mod tests {
    use keys::entity::Entity;

    use super::*;
    use crate::table::layout;

    #[test]
    fn only_a_folder_with_a_parent_is_in_the_index_of_sub_folders_and_needs_a_name() {
        let folder = |parent: Option<&str>, name: Option<&str>| Folder {
            key: FolderKey { folder_id: FolderId::from("f") },
            name: name.map(str::to_owned),
            parent_id: parent.map(FolderId::from),
            ..Folder::default()
        };
        let inside = |parent, name| folder(parent, name).to_item(&layout()).map(|item| item.contains_key("GSI1PK"));
        assert!(inside(Some("top"), Some("Letters")).unwrap());
        assert!(!inside(None, Some("Letters")).unwrap() && !inside(None, None).unwrap());
        let refusal = |parent, name| inside(parent, name).unwrap_err().to_string();
        assert_eq!(refusal(Some("top"), None), "Folder.Name is missing; the key needs it");
        assert_eq!(refusal(Some(""), Some("Letters")), "Folder.ParentId is empty; a key value must not be");
    }
}
