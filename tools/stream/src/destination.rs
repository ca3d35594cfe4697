//! Where the records go that a mapping gave up on.

use std::io;
use std::path::{Component, Path, PathBuf};

use futures::future::BoxFuture;

/// An on-failure destination. It is given the body that Lambda would send to a destination of the mapping's sort, and the
/// key that it would write to S3: where the destination is a queue or a topic there is no key on AWS.
pub trait Destination: Send + Sync {
    /// Keeps one failure record.
    ///
    /// The mapping goes on only after this succeeded, and calls it again with the same key when it did not.
    fn put(&self, key: String, body: String) -> BoxFuture<'_, io::Result<()>>;
}

/// A destination that keeps a file per failure record, its path the key that S3 would have:
/// `aws/lambda/<mapping UUID>/<shard>/YYYY/MM/DD/YYYY-MM-DDTHH.MM.SS-<random UUID>`.
///
/// A file is there whole or not at all. The UUID of a mapping depends on its name and its stream only.
#[derive(Debug, Clone)]
pub struct FolderDestination {
    folder: PathBuf,
}

impl FolderDestination {
    /// Keeps records below this folder, which is made when the first one comes.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }
}

impl Destination for FolderDestination {
    fn put(&self, key: String, body: String) -> BoxFuture<'_, io::Result<()>> {
        Box::pin(async move {
            let key = Path::new(&key);
            if !key.components().all(|part| matches!(part, Component::Normal(_))) {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "the key leads out of the folder"));
            }
            let path = self.folder.join(key);
            if let Some(folder) = path.parent() {
                tokio::fs::create_dir_all(folder).await?;
            }
            let mut part = path.clone().into_os_string();
            part.push(".part");
            tokio::fs::write(&part, body).await?;
            tokio::fs::rename(&part, &path).await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Destination as _, FolderDestination};

    #[tokio::test]
    async fn a_failure_record_is_a_file_under_its_key() {
        let folder = tempfile::tempdir().unwrap();
        let destination = FolderDestination::new(folder.path().join("failures"));
        let key = "aws/lambda/id/shard/2026/11/21/2026-11-21T10.00.00-uuid";
        destination.put(key.to_owned(), "{}".to_owned()).await.unwrap();
        let path = folder.path().join("failures").join(key);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{}");
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[tokio::test]
    async fn a_key_cannot_lead_out_of_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let destination = FolderDestination::new(folder.path().join("failures"));
        assert!(destination.put("../x".to_owned(), String::new()).await.is_err());
        assert!(destination.put("/x".to_owned(), String::new()).await.is_err());
    }
}
