//! Samples of the writes of files, folders and employees.

use entities::files::FileKey;

use super::write;
use crate::{
    pattern::{AccessPattern, SampleError, SampleQueries, sample},
    writes::files::NewFile,
};

/// The patterns of this file.
pub(super) const PATTERNS: &[AccessPattern] = &[
    write(
        "WP-10",
        "upload a file",
        "FolderId, FileId, NewFile",
        "FileKey; refused: no such folder, one of the same folder, time and ID",
        sample!(|queries| {
            folder(queries, "{FolderId}", None).await?;
            file(queries).await?;
        }),
    ),
    write(
        "WP-10",
        "move a file",
        "FileKey, the FolderId where it goes",
        "the new FileKey; refused: none there, no such folder, unchanged",
        sample!(|queries| {
            folder(queries, "{FolderId}", None).await?;
            folder(queries, "{NewFolderId}", None).await?;
            let file = file(queries).await?;
            queries.forget();
            queries.move_file(&file, &"{NewFolderId}".into()).await?;
        }),
    ),
    write(
        "WP-10",
        "rename a file",
        "FileKey, name",
        "nothing; refused: none there",
        sample!(|queries| {
            folder(queries, "{FolderId}", None).await?;
            let file = file(queries).await?;
            queries.forget();
            queries.rename_file(&file, "{Name}").await?;
        }),
    ),
    write(
        "WP-10",
        "delete a file",
        "FileKey",
        "was it there",
        sample!(|queries| {
            folder(queries, "{FolderId}", None).await?;
            let file = file(queries).await?;
            queries.forget();
            queries.delete_file(&file).await?;
        }),
    ),
    write(
        "WP-10",
        "create a folder",
        "FolderId, the FolderId where it goes, name",
        "nothing; refused: an existing ID, no such parent, under itself",
        sample!(|queries| {
            folder(queries, "{ParentId}", None).await?;
            folder(queries, "{FolderId}", Some("{ParentId}")).await?;
        }),
    ),
    write(
        "WP-10",
        "rename a folder",
        "FolderId, name",
        "nothing; refused: none there",
        sample!(|queries| {
            folder(queries, "{ParentId}", None).await?;
            folder(queries, "{FolderId}", Some("{ParentId}")).await?;
            queries.forget();
            queries.rename_folder(&"{FolderId}".into(), "{Name}").await?;
        }),
    ),
    write(
        "WP-10",
        "move a folder with all that is in it",
        "FolderId, the FolderId where it goes, or none",
        "nothing; refused: none there, no such parent, under itself, unchanged, too deep",
        sample!(|queries| {
            folder(queries, "{GrandparentId}", None).await?;
            folder(queries, "{ParentId}", Some("{GrandparentId}")).await?;
            folder(queries, "{FolderId}", None).await?;
            queries.forget();
            queries.move_folder(&"{FolderId}".into(), Some(&"{ParentId}".into())).await?;
        }),
    ),
    write(
        "WP-10",
        "delete an empty folder",
        "FolderId",
        "was it there; refused: not empty",
        sample!(|queries| {
            folder(queries, "{FolderId}", None).await?;
            queries.forget();
            queries.delete_folder(&"{FolderId}".into()).await?;
        }),
    ),
    write(
        "WP-11",
        "hire an employee",
        "OrgId, EmployeeId, name, the EmployeeId of the manager, or none",
        "EmployeeKey; refused: an existing ID, no such manager, under themselves, too deep",
        sample!(|queries| {
            employee(queries, "{ManagerId}", None).await?;
            employee(queries, "{EmployeeId}", Some("{ManagerId}")).await?;
        }),
    ),
    write(
        "WP-11",
        "move an employee with the whole team",
        "OrgId, EmployeeId, the EmployeeId of the manager, or none",
        "nothing; refused: none there, no such manager, under a report, unchanged, too deep",
        sample!(|queries| {
            employee(queries, "{HeadId}", None).await?;
            employee(queries, "{ManagerId}", Some("{HeadId}")).await?;
            employee(queries, "{EmployeeId}", None).await?;
            queries.forget();
            queries.move_employee(&"{OrgId}".into(), &"{EmployeeId}".into(), Some(&"{ManagerId}".into())).await?;
        }),
    ),
    write(
        "WP-11",
        "dismiss an employee",
        "OrgId, EmployeeId",
        "nothing; refused: none there, somebody reports to them",
        sample!(|queries| {
            employee(queries, "{EmployeeId}", None).await?;
            queries.forget();
            queries.dismiss(&"{OrgId}".into(), &"{EmployeeId}".into()).await?;
        }),
    ),
];

/// Creates a folder, and forgets the requests so far.
async fn folder(queries: &SampleQueries, id: &str, parent: Option<&str>) -> Result<(), SampleError> {
    queries.forget();
    Ok(queries.create_folder(&id.into(), parent.map(Into::into).as_ref(), "{Name}").await?)
}

/// Uploads a file, and forgets the requests so far.
async fn file(queries: &SampleQueries) -> Result<FileKey, SampleError> {
    queries.forget();
    let new = NewFile { name: "{Name}".to_owned(), size_bytes: 1_024 };
    Ok(queries.upload_file(&"{FolderId}".into(), &"{FileId}".into(), new).await?)
}

/// Hires an employee, and forgets the requests so far.
async fn employee(queries: &SampleQueries, id: &str, manager: Option<&str>) -> Result<(), SampleError> {
    queries.forget();
    queries.hire(&"{OrgId}".into(), &id.into(), "{Name}", manager.map(Into::into).as_ref()).await?;
    Ok(())
}
