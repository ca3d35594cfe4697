//! WP-10: files.

use expect_test::expect;
use keys::key::Key;
use queries::writes::{
    folders::{FOLDER_DEPTH_MAX, NewFile},
    organizations::EMPLOYEE_DEPTH_MAX,
};
use serde_json::json;
use store::Store;

use crate::{
    s,
    writes::{Bed, n},
};

pub(crate) fn file(name: &str) -> NewFile {
    NewFile { name: name.to_owned(), size_bytes: 1_024 }
}

async fn two_folders<S: Store>(bed: &Bed<S>) {
    bed.queries.create_folder("f1", None, "Letters").await.unwrap();
    bed.queries.create_folder("f2", None, "Bills").await.unwrap();
}

pub(crate) async fn wp_10_a_file_is_uploaded_renamed_moved_and_deleted<S: Store>(bed: Bed<S>) {
    two_folders(&bed).await;
    bed.later();
    let uploaded = bed.queries.upload_file("f1", "a", file("a.txt")).await.unwrap();
    bed.set(&Key::new("FOLDER#f1", "FILE#2024-01-15T10:30:01.000Z#a"), [("Note", s("another client's"))]).await;
    bed.later();
    bed.queries.rename_file(&uploaded, "b.txt").await.unwrap();
    bed.later();
    let moved = bed.queries.move_file(&uploaded, "f2").await.unwrap();
    assert_eq!(moved, Key::new("FOLDER#f2", uploaded.sk.as_str()));
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
    let none = "FOLDER#f1 / FILE#2024-01-15T10:30:01.000Z#a";
    bed.lacks(bed.queries.move_file(&uploaded, "f2").await, none);
    bed.lacks(bed.queries.rename_file(&uploaded, "c.txt").await, none);
    assert!(!bed.queries.delete_file(&uploaded).await.unwrap());
    assert!(bed.queries.delete_file(&moved).await.unwrap());
    assert_eq!(bed.items().await.len(), 2);
}

pub(crate) async fn wp_10_a_file_needs_its_folder<S: Store>(bed: Bed<S>) {
    two_folders(&bed).await;
    let key = bed.queries.upload_file("f1", "a", file("a.txt")).await.unwrap();
    let before = bed.items().await;
    let none = "FOLDER#f3 / METADATA";
    bed.lacks(bed.queries.upload_file("f3", "a", file("a.txt")).await, none);
    bed.lacks(bed.queries.move_file(&key, "f3").await, none);
    bed.exists(bed.queries.upload_file("f1", "a", file("b.txt")).await, "FOLDER#f1 / FILE#2024-01-15T10:30:00.000Z#a");
    assert_eq!(bed.items().await, before);
}

pub(crate) async fn wp_10_a_move_to_the_same_folder_is_refused<S: Store>(bed: Bed<S>) {
    two_folders(&bed).await;
    let key = bed.queries.upload_file("f1", "a", file("a.txt")).await.unwrap();
    let before = bed.items().await;
    bed.has_it(bed.queries.move_file(&key, "f1").await, "FOLDER#f1 / FILE#2024-01-15T10:30:00.000Z#a", "FolderId");
    assert_eq!(bed.items().await, before);
}

// ---- WP-10: folders ----

/// Nested folders: `a` contains `b`, and `b` contains `c`.
async fn three_folders<S: Store>(bed: &Bed<S>) {
    bed.queries.create_folder("a", None, "A").await.unwrap();
    bed.queries.create_folder("b", Some("a"), "B").await.unwrap();
    bed.queries.create_folder("c", Some("b"), "C").await.unwrap();
}

pub(crate) async fn wp_10_a_folder_is_renamed_with_its_place_in_the_index<S: Store>(bed: Bed<S>) {
    three_folders(&bed).await;
    bed.set(&Key::new("FOLDER#b", "METADATA"), [("Path", s("/A/B")), ("FileCount", n(2))]).await;
    bed.later();
    bed.queries.rename_folder("a", "Root").await.unwrap();
    bed.queries.rename_folder("b", "Bills #1").await.unwrap();
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
    bed.queries.move_folder("c", Some("a")).await.unwrap();
    bed.queries.move_folder("b", None).await.unwrap();
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
    bed.has_it(bed.queries.move_folder("c", Some("a")).await, "FOLDER#c / METADATA", "ParentId");
    bed.has_it(bed.queries.move_folder("b", None).await, "FOLDER#b / METADATA", "ParentId");
    bed.queries.move_folder("b", Some("c")).await.unwrap();
    let b = bed.item(&Key::new("FOLDER#b", "METADATA")).await.unwrap();
    assert_eq!((b.get("GSI1PK"), b.get("GSI1SK")), (Some(&s("FOLDER#c")), Some(&s("FOLDER#B#b"))));
}

pub(crate) async fn wp_10_a_folder_under_itself_is_refused<S: Store>(bed: Bed<S>) {
    three_folders(&bed).await;
    let before = bed.items().await;
    let wanted = "folder a: it would be below itself; choose a folder outside of it";
    for to in ["a", "b", "c"] {
        bed.refuses(bed.queries.move_folder("a", Some(to)).await, wanted);
    }
    bed.refuses(bed.queries.create_folder("d", Some("d"), "D").await, &wanted.replace(" a:", " d:"));
    assert_eq!(bed.items().await, before);
}

pub(crate) async fn wp_10_only_an_empty_folder_is_deleted<S: Store>(bed: Bed<S>) {
    three_folders(&bed).await;
    let wanted = |folder: &str| format!("folder {folder} is not empty: move or delete its files and folders first");
    bed.refuses(bed.queries.delete_folder("b").await, &wanted("b"));
    let inside = bed.queries.upload_file("c", "x", file("x.txt")).await.unwrap();
    bed.refuses(bed.queries.delete_folder("c").await, &wanted("c"));
    bed.queries.delete_file(&inside).await.unwrap();
    // A counter in the folder's collection is no content.
    bed.set(&Key::new("FOLDER#c", "METADATA#COUNT#folder-totals#00"), [("Value", n(0))]).await;
    for folder in ["c", "b", "a"] {
        assert!(bed.queries.delete_folder(folder).await.unwrap());
    }
    assert!(!bed.queries.delete_folder("a").await.unwrap());
    assert_eq!(bed.items().await.len(), 1);
}

pub(crate) async fn wp_10_a_folder_that_is_there_or_is_not_is_refused<S: Store>(bed: Bed<S>) {
    three_folders(&bed).await;
    let before = bed.items().await;
    bed.exists(bed.queries.create_folder("b", None, "Other").await, "FOLDER#b / METADATA");
    let none = "FOLDER#x / METADATA";
    bed.lacks(bed.queries.create_folder("d", Some("x"), "D").await, none);
    bed.lacks(bed.queries.rename_folder("x", "X").await, none);
    bed.lacks(bed.queries.move_folder("x", None).await, none);
    bed.lacks(bed.queries.move_folder("b", Some("x")).await, none);
    assert_eq!(bed.items().await, before);
}

pub(crate) async fn wp_10_a_folder_is_not_moved_too_deep<S: Store>(bed: Bed<S>) {
    let name = |at: usize| format!("f{at}");
    bed.queries.create_folder(&name(1), None, "F").await.unwrap();
    for at in 2..=FOLDER_DEPTH_MAX {
        bed.queries.create_folder(&name(at), Some(&name(at - 1)), "F").await.unwrap();
    }
    bed.queries.create_folder("x", None, "X").await.unwrap();
    bed.refuses(
        bed.queries.move_folder("x", Some(&name(FOLDER_DEPTH_MAX))).await,
        "FOLDER#x / METADATA: it would be more than 64 deep; choose a place further up",
    );
    bed.queries.move_folder("x", Some(&name(FOLDER_DEPTH_MAX - 1))).await.unwrap();
}

// ---- WP-11 ----

/// `ceo`, with `vp` below, with `eng` below that.
async fn three_employees<S: Store>(bed: &Bed<S>) {
    let acme = "acme";
    bed.queries.hire(acme, "ceo", "Ada", None).await.unwrap();
    bed.queries.hire(acme, "vp", "Bob", Some("ceo")).await.unwrap();
    bed.queries.hire(acme, "eng", "Eve", Some("vp")).await.unwrap();
}

pub(crate) async fn wp_11_an_employee_is_hired_below_a_manager<S: Store>(bed: Bed<S>) {
    three_employees(&bed).await;
    bed.queries.hire("acme", "a/b #1", "Odd", Some("vp")).await.unwrap();
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
    let (acme, before) = ("acme", bed.items().await);
    let there = "ORG#acme / EMPLOYEE#vp";
    bed.exists(bed.queries.hire(acme, "vp", "Other", Some("ceo")).await, there);
    bed.exists(bed.queries.hire(acme, "vp", "Other", None).await, there);
    let none = "ORG#acme / EMPLOYEE#cto";
    bed.lacks(bed.queries.hire(acme, "new", "New", Some("cto")).await, none);
    bed.lacks(bed.queries.move_employee(acme, "cto", None).await, none);
    bed.lacks(bed.queries.move_employee(acme, "eng", Some("cto")).await, none);
    bed.lacks(bed.queries.dismiss(acme, "cto").await, none);
    assert_eq!(bed.items().await, before);
}

pub(crate) async fn wp_11_a_move_changes_the_manager_and_its_index_key_alone<S: Store>(bed: Bed<S>) {
    three_employees(&bed).await;
    let (acme, eng) = ("acme", "eng");
    let key = Key::new("ORG#acme", "EMPLOYEE#eng");
    bed.set(&key, [("Note", s("another client's"))]).await;
    let mut seen = Vec::new();
    for manager in [Some("ceo"), None] {
        bed.later();
        bed.queries.move_employee(acme, eng, manager).await.unwrap();
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
    .assert_eq(&crate::writes::shown(&seen));
    bed.has_it(bed.queries.move_employee(acme, eng, None).await, "ORG#acme / EMPLOYEE#eng", "ManagerId");
}

pub(crate) async fn wp_11_a_move_under_a_report_is_refused<S: Store>(bed: Bed<S>) {
    three_employees(&bed).await;
    let before = bed.items().await;
    for manager in ["ceo", "vp", "eng"] {
        bed.refuses(
            bed.queries.move_employee("acme", "ceo", Some(manager)).await,
            "employee ceo: they would report to themselves; choose somebody who does not report to them",
        );
    }
    assert_eq!(bed.items().await, before);
}

/// Whatever the chart contains, because it is derived later.
pub(crate) async fn wp_11_a_report_is_known_by_the_manager_and_not_by_the_chart<S: Store>(bed: Bed<S>) {
    three_employees(&bed).await;
    let acme = "acme";
    bed.queries.move_employee(acme, "eng", None).await.unwrap();
    bed.queries.move_employee(acme, "vp", Some("eng")).await.unwrap();
    bed.refuses(
        bed.queries.move_employee(acme, "eng", Some("vp")).await,
        "employee eng: they would report to themselves; choose somebody who does not report to them",
    );
    bed.queries.move_employee(acme, "ceo", Some("vp")).await.unwrap();
}

pub(crate) async fn wp_11_who_has_reports_is_not_dismissed<S: Store>(bed: Bed<S>) {
    three_employees(&bed).await;
    let acme = "acme";
    // An id that begins like another one is no report of it.
    bed.queries.hire(acme, "vp2", "Two", Some("ceo")).await.unwrap();
    bed.refuses(bed.queries.dismiss(acme, "vp").await, "employee vp: somebody reports to them; move those first");
    for employee in ["eng", "vp"] {
        bed.queries.dismiss(acme, employee).await.unwrap();
    }
    let left: Vec<String> = bed.items().await.into_iter().map(|(key, _)| key.sk).collect();
    assert_eq!(left, ["EMPLOYEE#ceo", "EMPLOYEE#vp2"]);
}

pub(crate) async fn wp_11_nobody_is_hired_or_moved_too_deep<S: Store>(bed: Bed<S>) {
    let (acme, name) = ("acme", |at: usize| format!("e{at}"));
    bed.queries.hire(acme, &name(1), "E", None).await.unwrap();
    for at in 2..=EMPLOYEE_DEPTH_MAX {
        bed.queries.hire(acme, &name(at), "E", Some(&name(at - 1))).await.unwrap();
    }
    bed.queries.hire(acme, "x", "X", None).await.unwrap();
    let deepest = name(EMPLOYEE_DEPTH_MAX);
    bed.refuses(
        bed.queries.move_employee(acme, "x", Some(&deepest)).await,
        "ORG#acme / EMPLOYEE#x: it would be more than 27 deep; choose a place further up",
    );
    bed.refuses(
        bed.queries.hire(acme, "y", "Y", Some(&deepest)).await,
        "ORG#acme / EMPLOYEE#y: it would be more than 27 deep; choose a place further up",
    );
    bed.queries.move_employee(acme, "x", Some(&name(EMPLOYEE_DEPTH_MAX - 1))).await.unwrap();
}

pub(crate) async fn wp_11_an_employee_of_another_organization_is_not_found<S: Store>(bed: Bed<S>) {
    three_employees(&bed).await;
    bed.given("Employee", json!({ "OrgId": "other", "EmployeeId": "boss" })).await;
    bed.lacks(bed.queries.move_employee("acme", "eng", Some("boss")).await, "ORG#acme / EMPLOYEE#boss");
}

/// The reports of a dismissed manager still name them; hired again below one of those, the manager would be above
/// themselves.
pub(crate) async fn wp_11_nobody_is_hired_below_somebody_who_names_them<S: Store>(bed: Bed<S>) {
    let acme = "acme";
    bed.given("Employee", json!({ "OrgId": "acme", "EmployeeId": "eng", "ManagerId": "vp" })).await;
    bed.refuses(
        bed.queries.hire(acme, "vp", "Bob", Some("eng")).await,
        "employee vp: they would report to themselves; choose somebody who does not report to them",
    );
    bed.queries.hire(acme, "vp", "Bob", None).await.unwrap();
}
