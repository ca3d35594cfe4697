//! What touches the application's own items: the employees' move, and the cascades.

use derive::{
    derivation::Derivation,
    kinds::{
        Link,
        cascade::{Cascade, Fate, Hanging, Way},
        rekey::Rekey,
    },
};

use crate::found;

/// Most people above and below each other, the topmost included. 27 ids of 36 characters and their slashes fit in the
/// 1,024 bytes of a sort key.
const EMPLOYEE_DEPTH_MAX: usize = 27;

/// D-21 and D-28.
pub(crate) fn derivations() -> Vec<Derivation> {
    vec![employee_move(), post_cascade()]
}

fn employee_move() -> Derivation {
    let rekey = Rekey {
        entity: "Employee".to_owned(),
        path: "Path".to_owned(),
        parent: "ManagerId".to_owned(),
        index: "GSI1".to_owned(),
        depth_max: EMPLOYEE_DEPTH_MAX,
    };
    Derivation::new("D-21", "employee-move", rekey)
}

fn post_cascade() -> Derivation {
    let to_detail = || Link::of(&[("PostId", "PostId")]);
    let cascade = Cascade {
        owner: "PostDetail".to_owned(),
        starts: vec![("Post".to_owned(), to_detail()), ("PostDetail".to_owned(), to_detail())],
        hanging: vec![
            deleted("Comment", Way::Found(found("Comment", None, &[("PostId", "PostId")]))),
            deleted("Like", Way::Found(found("Like", Some("GSI1"), &[("PostId", "PostId")]))),
            deleted("Counter", Way::Counters("view-count".to_owned())),
        ],
    };
    Derivation::new("D-28", "post-cascade", cascade)
}

fn deleted(entity: &str, found: Way) -> Hanging {
    Hanging { entity: entity.to_owned(), found, fate: Fate::Deleted }
}
