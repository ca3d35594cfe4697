//! Folders and files.
//!
//! A file is in its folder's collection, the newest last. The mirror [`FileDetail`], which Ripple writes, finds it by
//! its id alone and has its path.

use keys::number::Decimal;

use crate::{
    claim::Claim,
    ids::{FileId, FolderId},
};

keys::entity! {
    /// A folder. A folder without a parent is a root, and is found by its id only.
    ground Folder "E-16" {
        key FolderKey("FOLDER#{FolderId}", "METADATA") {
            /// The folder.
            folder_id: FolderId = "FolderId",
        }
        index "GSI1" ("FOLDER#{ParentId}", "FOLDER#{Name}#{FolderId}") only with "ParentId";
        attributes {
            /// Name as shown; the index key of a folder with a parent needs it.
            name: Option<String> = "Name",
            /// The parent folder; absent for a root.
            parent_id: Option<FolderId> = "ParentId",
            /// When it was created, ISO 8601 UTC in milliseconds.
            created_at: Option<String> = "CreatedAt",
            /// When it was last edited, ISO 8601 UTC in milliseconds.
            updated_at: Option<String> = "UpdatedAt",
        }
        derived {
            /// Names from the root down to this folder, each after a `/`; absent if no root is above it.
            path: Option<String> = "Path",
            /// Display: number of files directly in it; absent for 0.
            file_count: Option<i64> = "FileCount",
            /// Display: size of these files in bytes; absent for 0.
            total_bytes: Option<Decimal> = "TotalBytes",
        }
    }
}

keys::entity! {
    /// A file, in its folder's collection.
    ground File "E-17" {
        key FileKey("FOLDER#{FolderId}", "FILE#{UploadedAt}#{FileId}") {
            /// The folder of the file.
            folder_id: FolderId = "FolderId",
            /// When it was uploaded, ISO 8601 UTC in milliseconds.
            uploaded_at: String = "UploadedAt",
            /// The file.
            file_id: FileId = "FileId",
        }
        attributes {
            /// Name as shown.
            name: Option<String> = "Name",
            /// Size in bytes.
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
    /// The mirror of a [`File`] under the file's id, with its path.
    derived FileDetail "E-18" {
        key FileDetailKey("FILE#{FileId}", "METADATA") {
            /// The file.
            file_id: FileId = "FileId",
        }
        attributes {
            /// The folder of the file, from the file's key.
            folder_id: Option<FolderId> = "FolderId",
            /// When it was uploaded, from the file's key, ISO 8601 UTC in milliseconds.
            uploaded_at: Option<String> = "UploadedAt",
            /// From the file.
            name: Option<String> = "Name",
            /// From the file.
            size_bytes: Option<i64> = "SizeBytes",
            /// From the file.
            created_at: Option<String> = "CreatedAt",
            /// From the file.
            updated_at: Option<String> = "UpdatedAt",
        }
        derived {
            /// Keys of all files with this id; the mirror repeats the greatest that exists.
            claims: Option<Vec<Claim>> = "Claims",
            /// The folder's path and the file's name; absent if the folder has no path.
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
