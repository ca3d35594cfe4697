//! WP-11.

use entities::organizations::{Employee, EmployeeKey};
use expect_test::expect;
use keys::key::Key;
use queries::writes::employees::EMPLOYEE_DEPTH_MAX;
use store::Store;

use crate::writes::bed::{Bed, s};

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
