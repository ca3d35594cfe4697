//! WP-10: files.

use entities::files::FileKey;
use expect_test::expect;
use keys::key::Key;
use queries::writes::files::NewFile;
use store::Store;

use crate::writes::bed::{Bed, s};

pub(crate) fn file(name: &str) -> NewFile {
    NewFile { name: name.to_owned(), size_bytes: 1_024 }
}

async fn two_folders<S: Store>(bed: &Bed<S>) {
    bed.queries.create_folder(&"f1".into(), None, "Letters").await.unwrap();
    bed.queries.create_folder(&"f2".into(), None, "Bills").await.unwrap();
}

pub(crate) async fn wp_10_a_file_is_uploaded_renamed_moved_and_deleted<S: Store>(bed: Bed<S>) {
    two_folders(&bed).await;
    bed.later();
    let uploaded = bed.queries.upload_file(&"f1".into(), &"a".into(), file("a.txt")).await.unwrap();
    bed.set(&Key::new("FOLDER#f1", "FILE#2024-01-15T10:30:01.000Z#a"), [("Note", s("another client's"))]).await;
    bed.later();
    bed.queries.rename_file(&uploaded, "b.txt").await.unwrap();
    bed.later();
    let moved = bed.queries.move_file(&uploaded, &"f2".into()).await.unwrap();
    assert_eq!(moved, FileKey { folder_id: "f2".into(), ..uploaded.clone() });
    bed.holds(expect![[r#"
        FOLDER#f1 / METADATA
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = Folder
            Name = Letters
            UpdatedAt = 2024-01-15T10:30:00.000Z
        FOLDER#f2 / FILE#2024-01-15T10:30:01.000Z#a
            CreatedAt = 2024-01-15T10:30:01.000Z
            EntityType = File
            Name = b.txt
            Note = another client's
            SizeBytes = 1024
            UpdatedAt = 2024-01-15T10:30:03.000Z
        FOLDER#f2 / METADATA
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = Folder
            Name = Bills
            UpdatedAt = 2024-01-15T10:30:00.000Z
    "#]])
        .await;
    let none = "FOLDER#f1 / FILE#2024-01-15T10:30:01.000Z#a: there is none; look for it again";
    bed.refuses(bed.queries.move_file(&uploaded, &"f2".into()).await, none);
    bed.refuses(bed.queries.rename_file(&uploaded, "c.txt").await, none);
    assert!(!bed.queries.delete_file(&uploaded).await.unwrap());
    assert!(bed.queries.delete_file(&moved).await.unwrap());
    assert_eq!(bed.items().await.len(), 2);
}

pub(crate) async fn wp_10_a_file_needs_its_folder<S: Store>(bed: Bed<S>) {
    two_folders(&bed).await;
    let key = bed.queries.upload_file(&"f1".into(), &"a".into(), file("a.txt")).await.unwrap();
    let before = bed.items().await;
    let none = "FOLDER#f3 / METADATA: there is none; look for it again";
    bed.refuses(bed.queries.upload_file(&"f3".into(), &"a".into(), file("a.txt")).await, none);
    bed.refuses(bed.queries.move_file(&key, &"f3".into()).await, none);
    bed.refuses(
        bed.queries.upload_file(&"f1".into(), &"a".into(), file("b.txt")).await,
        "FOLDER#f1 / FILE#2024-01-15T10:30:00.000Z#a: there is one already; choose another id, or change that one",
    );
    assert_eq!(bed.items().await, before);
}

pub(crate) async fn wp_10_a_move_to_the_same_folder_is_refused<S: Store>(bed: Bed<S>) {
    two_folders(&bed).await;
    let key = bed.queries.upload_file(&"f1".into(), &"a".into(), file("a.txt")).await.unwrap();
    let before = bed.items().await;
    bed.refuses(
        bed.queries.move_file(&key, &"f1".into()).await,
        "FOLDER#f1 / FILE#2024-01-15T10:30:00.000Z#a: FolderId is that already; nothing is to be changed",
    );
    assert_eq!(bed.items().await, before);
}
