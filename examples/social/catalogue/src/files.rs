//! D-18 and D-20: files by their id, and the paths of files and folders.

use derive::{
    declaration::{link::Link, mirror::Mirror},
    derivation::Derivation,
    kinds::path::TreePath,
};

use crate::found;

/// Most levels of folders, the lowest included. A file in the lowest folder has a path with one segment more.
const FOLDER_DEPTH_MAX: usize = 64;

pub(crate) fn files() -> Vec<Derivation> {
    let folders = found("Folder", Some("GSI1"), &[("ParentId", "FolderId")]);
    let files = found("File", None, &[("FolderId", "FolderId")]);
    let path = |target: &str, parent: &str, depth_max, found| TreePath {
        target: target.to_owned(),
        parent: "Folder".to_owned(),
        link: Link::of(&[("FolderId", parent)]),
        name: "Name".to_owned(),
        attribute: "Path".to_owned(),
        depth_max,
        found,
    };
    vec![
        Derivation::new(
            "D-18",
            "file-detail",
            Mirror {
                source: "File".to_owned(),
                target: "FileDetail".to_owned(),
                link: Link::of(&[("FileId", "FileId")]),
                except: Vec::new(),
            },
        ),
        Derivation::new("D-20", "folder-path", path("Folder", "ParentId", FOLDER_DEPTH_MAX, folders)),
        Derivation::new("D-20", "file-path", path("FileDetail", "FolderId", FOLDER_DEPTH_MAX + 1, files)),
    ]
}
