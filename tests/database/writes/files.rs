//! WP-10: files.

use entities::{
    files::FileKey,
    organizations::{Employee, EmployeeKey},
};
use expect_test::expect;
use keys::key::Key;
use queries::writes::{employees::EMPLOYEE_DEPTH_MAX, files::NewFile, folders::FOLDER_DEPTH_MAX};
use store::Store;

use crate::writes::bed::{Bed, n, s};

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

// ---- WP-10: folders ----

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

// ---- WP-11 ----

/// `ceo`, with `vp` below, with `eng` below that.
pub(crate) async fn three_employees<S: Store>(bed: &Bed<S>) {
    let acme = "acme".into();
    bed.queries.hire(&acme, &"ceo".into(), "Ada", None).await.unwrap();
    bed.queries.hire(&acme, &"vp".into(), "Bob", Some(&"ceo".into())).await.unwrap();
    bed.queries.hire(&acme, &"eng".into(), "Eve", Some(&"vp".into())).await.unwrap();
}

pub(crate) async fn wp_11_an_employee_is_hired_below_a_manager<S: Store>(bed: Bed<S>) {
    three_employees(&bed).await;
    bed.queries.hire(&"acme".into(), &"a/b #1".into(), "Odd", Some(&"vp".into())).await.unwrap();
    bed.holds(expect![[r#"
        ORG#acme / EMPLOYEE#a/b %231
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = Employee
            GSI1PK = EMP#a/b %231
            GSI1SK = EMP
            GSI2PK = MANAGER#vp
            GSI2SK = EMP#a/b %231
            ManagerId = vp
            Name = Odd
            UpdatedAt = 2024-01-15T10:30:00.000Z
        ORG#acme / EMPLOYEE#ceo
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = Employee
            GSI1PK = EMP#ceo
            GSI1SK = EMP
            Name = Ada
            UpdatedAt = 2024-01-15T10:30:00.000Z
        ORG#acme / EMPLOYEE#eng
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = Employee
            GSI1PK = EMP#eng
            GSI1SK = EMP
            GSI2PK = MANAGER#vp
            GSI2SK = EMP#eng
            ManagerId = vp
            Name = Eve
            UpdatedAt = 2024-01-15T10:30:00.000Z
        ORG#acme / EMPLOYEE#vp
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = Employee
            GSI1PK = EMP#vp
            GSI1SK = EMP
            GSI2PK = MANAGER#ceo
            GSI2SK = EMP#vp
            ManagerId = ceo
            Name = Bob
            UpdatedAt = 2024-01-15T10:30:00.000Z
    "#]])
        .await;
}

pub(crate) async fn wp_11_an_employee_that_is_there_or_a_manager_who_is_not_is_refused<S: Store>(bed: Bed<S>) {
    three_employees(&bed).await;
    let (acme, before) = ("acme".into(), bed.items().await);
    let there = "ORG#acme / EMPLOYEE#vp: there is one already; choose another id, or change that one";
    bed.refuses(bed.queries.hire(&acme, &"vp".into(), "Other", Some(&"ceo".into())).await, there);
    bed.refuses(bed.queries.hire(&acme, &"vp".into(), "Other", None).await, there);
    let none = "ORG#acme / EMPLOYEE#cto: there is none; look for it again";
    bed.refuses(bed.queries.hire(&acme, &"new".into(), "New", Some(&"cto".into())).await, none);
    bed.refuses(bed.queries.move_employee(&acme, &"cto".into(), None).await, none);
    bed.refuses(bed.queries.move_employee(&acme, &"eng".into(), Some(&"cto".into())).await, none);
    bed.refuses(bed.queries.dismiss(&acme, &"cto".into()).await, none);
    assert_eq!(bed.items().await, before);
}

pub(crate) async fn wp_11_a_move_changes_the_manager_and_its_index_key_alone<S: Store>(bed: Bed<S>) {
    three_employees(&bed).await;
    let (acme, eng) = ("acme".into(), "eng".into());
    let key = Key::new("ORG#acme", "EMPLOYEE#eng");
    bed.set(&key, [("Note", s("another client's"))]).await;
    let mut seen = Vec::new();
    for manager in [Some("ceo".into()), None] {
        bed.later();
        bed.queries.move_employee(&acme, &eng, manager.as_ref()).await.unwrap();
        seen.push((key.clone(), bed.item(&key).await.unwrap()));
    }
    expect![[r#"
        ORG#acme / EMPLOYEE#eng
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = Employee
            GSI1PK = EMP#eng
            GSI1SK = EMP
            GSI2PK = MANAGER#ceo
            GSI2SK = EMP#eng
            ManagerId = ceo
            Name = Eve
            Note = another client's
            UpdatedAt = 2024-01-15T10:30:01.000Z
        ORG#acme / EMPLOYEE#eng
            CreatedAt = 2024-01-15T10:30:00.000Z
            EntityType = Employee
            GSI1PK = EMP#eng
            GSI1SK = EMP
            Name = Eve
            Note = another client's
            UpdatedAt = 2024-01-15T10:30:02.000Z
    "#]]
    .assert_eq(&crate::writes::bed::shown(&seen));
    bed.refuses(
        bed.queries.move_employee(&acme, &eng, None).await,
        "ORG#acme / EMPLOYEE#eng: ManagerId is that already; nothing is to be changed",
    );
}

pub(crate) async fn wp_11_a_move_under_a_report_is_refused<S: Store>(bed: Bed<S>) {
    three_employees(&bed).await;
    let before = bed.items().await;
    for manager in ["ceo", "vp", "eng"] {
        bed.refuses(
            bed.queries.move_employee(&"acme".into(), &"ceo".into(), Some(&manager.into())).await,
            "employee ceo: they would report to themselves; choose somebody who does not report to them",
        );
    }
    assert_eq!(bed.items().await, before);
}

/// Whatever the chart contains, because it is derived later.
pub(crate) async fn wp_11_a_report_is_known_by_the_manager_and_not_by_the_chart<S: Store>(bed: Bed<S>) {
    three_employees(&bed).await;
    let acme = "acme".into();
    bed.queries.move_employee(&acme, &"eng".into(), None).await.unwrap();
    bed.queries.move_employee(&acme, &"vp".into(), Some(&"eng".into())).await.unwrap();
    bed.refuses(
        bed.queries.move_employee(&acme, &"eng".into(), Some(&"vp".into())).await,
        "employee eng: they would report to themselves; choose somebody who does not report to them",
    );
    bed.queries.move_employee(&acme, &"ceo".into(), Some(&"vp".into())).await.unwrap();
}

pub(crate) async fn wp_11_who_has_reports_is_not_dismissed<S: Store>(bed: Bed<S>) {
    three_employees(&bed).await;
    let acme = "acme".into();
    // An id that begins like another one is no report of it.
    bed.queries.hire(&acme, &"vp2".into(), "Two", Some(&"ceo".into())).await.unwrap();
    bed.refuses(
        bed.queries.dismiss(&acme, &"vp".into()).await,
        "employee vp: somebody reports to them; move those first",
    );
    for employee in ["eng", "vp"] {
        bed.queries.dismiss(&acme, &employee.into()).await.unwrap();
    }
    let left: Vec<String> = bed.items().await.into_iter().map(|(key, _)| key.sk).collect();
    assert_eq!(left, ["EMPLOYEE#ceo", "EMPLOYEE#vp2"]);
}

pub(crate) async fn wp_11_nobody_is_hired_or_moved_too_deep<S: Store>(bed: Bed<S>) {
    let (acme, name) = ("acme".into(), |at: usize| format!("e{at}"));
    bed.queries.hire(&acme, &name(1).into(), "E", None).await.unwrap();
    for at in 2..=EMPLOYEE_DEPTH_MAX {
        bed.queries.hire(&acme, &name(at).into(), "E", Some(&name(at - 1).into())).await.unwrap();
    }
    bed.queries.hire(&acme, &"x".into(), "X", None).await.unwrap();
    let deepest = name(EMPLOYEE_DEPTH_MAX).into();
    bed.refuses(
        bed.queries.move_employee(&acme, &"x".into(), Some(&deepest)).await,
        "ORG#acme / EMPLOYEE#x: it would be more than 27 deep; choose a place further up",
    );
    bed.refuses(
        bed.queries.hire(&acme, &"y".into(), "Y", Some(&deepest)).await,
        "ORG#acme / EMPLOYEE#y: it would be more than 27 deep; choose a place further up",
    );
    bed.queries.move_employee(&acme, &"x".into(), Some(&name(EMPLOYEE_DEPTH_MAX - 1).into())).await.unwrap();
}

pub(crate) async fn wp_11_an_employee_of_another_organization_is_not_found<S: Store>(bed: Bed<S>) {
    three_employees(&bed).await;
    let foreign =
        Employee { key: EmployeeKey { org_id: "other".into(), employee_id: "boss".into() }, ..Employee::default() };
    bed.given(&foreign).await;
    bed.refuses(
        bed.queries.move_employee(&"acme".into(), &"eng".into(), Some(&"boss".into())).await,
        "ORG#acme / EMPLOYEE#boss: there is none; look for it again",
    );
}

/// The reports of a dismissed manager still name them; hired again below one of those, the manager would be above
/// themselves.
pub(crate) async fn wp_11_nobody_is_hired_below_somebody_who_names_them<S: Store>(bed: Bed<S>) {
    let acme = "acme".into();
    let orphan = Employee {
        key: EmployeeKey { org_id: "acme".into(), employee_id: "eng".into() },
        manager_id: Some("vp".into()),
        ..Employee::default()
    };
    bed.given(&orphan).await;
    bed.refuses(
        bed.queries.hire(&acme, &"vp".into(), "Bob", Some(&"eng".into())).await,
        "employee vp: they would report to themselves; choose somebody who does not report to them",
    );
    bed.queries.hire(&acme, &"vp".into(), "Bob", None).await.unwrap();
}
