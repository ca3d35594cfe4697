//! WP-10: folders.

use expect_test::expect;
use keys::key::Key;
use queries::writes::folders::FOLDER_DEPTH_MAX;
use store::Store;

use crate::writes::{
    bed::{Bed, n, s},
    files::file,
};

/// Nested folders: `a` contains `b`, and `b` contains `c`.
async fn three_folders<S: Store>(bed: &Bed<S>) {
    bed.queries.create_folder(&"a".into(), None, "A").await.unwrap();
    bed.queries.create_folder(&"b".into(), Some(&"a".into()), "B").await.unwrap();
    bed.queries.create_folder(&"c".into(), Some(&"b".into()), "C").await.unwrap();
}

pub(crate) async fn wp_10_a_folder_is_renamed_with_its_place_in_the_index<S: Store>(bed: Bed<S>) {
    three_folders(&bed).await;
    bed.set(&Key::new("FOLDER#b", "METADATA"), [("Path", s("/A/B")), ("FileCount", n(2))]).await;
    bed.later();
    bed.queries.rename_folder(&"a".into(), "Root").await.unwrap();
    bed.queries.rename_folder(&"b".into(), "Bills #1").await.unwrap();
    bed.holds(expect![[r#"
        FOLDER#a / METADATA
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = Folder
            Name = Root
            UpdatedAt = 2024-01-15T10:30:01.000Z
        FOLDER#b / METADATA
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = Folder
            FileCount = 2
            GSI1PK = FOLDER#a
            GSI1SK = FOLDER#Bills %231#b
            Name = Bills #1
            ParentId = a
            Path = /A/B
            UpdatedAt = 2024-01-15T10:30:01.000Z
        FOLDER#c / METADATA
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = Folder
            GSI1PK = FOLDER#b
            GSI1SK = FOLDER#C#c
            Name = C
            ParentId = b
            UpdatedAt = 2024-01-15T10:30:00.000Z
    "#]])
        .await;
}

pub(crate) async fn wp_10_a_folder_moves_and_becomes_a_root<S: Store>(bed: Bed<S>) {
    three_folders(&bed).await;
    bed.set(&Key::new("FOLDER#c", "METADATA"), [("Path", s("/A/B/C")), ("FileCount", n(2))]).await;
    bed.later();
    bed.queries.move_folder(&"c".into(), Some(&"a".into())).await.unwrap();
    bed.queries.move_folder(&"b".into(), None).await.unwrap();
    bed.holds(expect![[r#"
        FOLDER#a / METADATA
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = Folder
            Name = A
            UpdatedAt = 2024-01-15T10:30:00.000Z
        FOLDER#b / METADATA
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = Folder
            Name = B
            UpdatedAt = 2024-01-15T10:30:01.000Z
        FOLDER#c / METADATA
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = Folder
            FileCount = 2
            GSI1PK = FOLDER#a
            GSI1SK = FOLDER#C#c
            Name = C
            ParentId = a
            Path = /A/B/C
            UpdatedAt = 2024-01-15T10:30:01.000Z
    "#]])
        .await;
    bed.refuses(
        bed.queries.move_folder(&"c".into(), Some(&"a".into())).await,
        "FOLDER#c / METADATA: ParentId is that already; nothing is to be changed",
    );
    bed.refuses(
        bed.queries.move_folder(&"b".into(), None).await,
        "FOLDER#b / METADATA: ParentId is that already; nothing is to be changed",
    );
    bed.queries.move_folder(&"b".into(), Some(&"c".into())).await.unwrap();
    let b = bed.item(&Key::new("FOLDER#b", "METADATA")).await.unwrap();
    assert_eq!((b.get("GSI1PK"), b.get("GSI1SK")), (Some(&s("FOLDER#c")), Some(&s("FOLDER#B#b"))));
}

pub(crate) async fn wp_10_a_folder_under_itself_is_refused<S: Store>(bed: Bed<S>) {
    three_folders(&bed).await;
    let before = bed.items().await;
    let wanted = "folder a: it would be below itself; choose a folder outside of it";
    for to in ["a", "b", "c"] {
        bed.refuses(bed.queries.move_folder(&"a".into(), Some(&to.into())).await, wanted);
    }
    bed.refuses(bed.queries.create_folder(&"d".into(), Some(&"d".into()), "D").await, &wanted.replace(" a:", " d:"));
    assert_eq!(bed.items().await, before);
}

pub(crate) async fn wp_10_only_an_empty_folder_is_deleted<S: Store>(bed: Bed<S>) {
    three_folders(&bed).await;
    let wanted = |folder: &str| format!("folder {folder}: it is not empty; move or delete what is in it first");
    bed.refuses(bed.queries.delete_folder(&"b".into()).await, &wanted("b"));
    let inside = bed.queries.upload_file(&"c".into(), &"x".into(), file("x.txt")).await.unwrap();
    bed.refuses(bed.queries.delete_folder(&"c".into()).await, &wanted("c"));
    bed.queries.delete_file(&inside).await.unwrap();
    // A counter in the folder's collection is no content.
    bed.set(&Key::new("FOLDER#c", "METADATA#COUNT#folder-totals#00"), [("Value", n(0))]).await;
    for folder in ["c", "b", "a"] {
        assert!(bed.queries.delete_folder(&folder.into()).await.unwrap());
    }
    assert!(!bed.queries.delete_folder(&"a".into()).await.unwrap());
    assert_eq!(bed.items().await.len(), 1);
}

pub(crate) async fn wp_10_a_folder_that_is_there_or_is_not_is_refused<S: Store>(bed: Bed<S>) {
    three_folders(&bed).await;
    let before = bed.items().await;
    bed.refuses(
        bed.queries.create_folder(&"b".into(), None, "Other").await,
        "FOLDER#b / METADATA: there is one already; choose another id, or change that one",
    );
    let none = "FOLDER#x / METADATA: there is none; look for it again";
    bed.refuses(bed.queries.create_folder(&"d".into(), Some(&"x".into()), "D").await, none);
    bed.refuses(bed.queries.rename_folder(&"x".into(), "X").await, none);
    bed.refuses(bed.queries.move_folder(&"x".into(), None).await, none);
    bed.refuses(bed.queries.move_folder(&"b".into(), Some(&"x".into())).await, none);
    assert_eq!(bed.items().await, before);
}

pub(crate) async fn wp_10_a_folder_is_not_moved_too_deep<S: Store>(bed: Bed<S>) {
    let name = |at: usize| format!("f{at}");
    bed.queries.create_folder(&name(1).into(), None, "F").await.unwrap();
    for at in 2..=FOLDER_DEPTH_MAX {
        bed.queries.create_folder(&name(at).into(), Some(&name(at - 1).into()), "F").await.unwrap();
    }
    bed.queries.create_folder(&"x".into(), None, "X").await.unwrap();
    bed.refuses(
        bed.queries.move_folder(&"x".into(), Some(&name(FOLDER_DEPTH_MAX).into())).await,
        "FOLDER#x / METADATA: it would be more than 64 deep; choose a place further up",
    );
    bed.queries.move_folder(&"x".into(), Some(&name(FOLDER_DEPTH_MAX - 1).into())).await.unwrap();
}
