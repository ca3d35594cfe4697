//! What touches the application's own items: the employees' move, and the cascades.

use derive::{
    derivation::Derivation,
    kinds::{
        Link,
        cascade::{Cascade, Fate, Hanging, Way},
        copy::Found,
        rekey::Rekey,
    },
};

use entities::posts::status;

use crate::found;

/// Most people above and below each other, the topmost included. 27 ids of 36 characters and their slashes fit in the
/// 1,024 bytes of a sort key.
const EMPLOYEE_DEPTH_MAX: usize = 27;

/// D-21, D-28 and D-29.
pub(crate) fn derivations() -> Vec<Derivation> {
    vec![employee_move(), post_cascade(), user_cascade()]
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

/// Orders, comments and reviews stay; the counts follow from what is deleted.
fn user_cascade() -> Derivation {
    let by = |field: &str| vec![(field.to_owned(), "UserId".to_owned())];
    let own = |entity: &str, field: &str| {
        let found = Found { via: entity.to_owned(), index: None, by: Link(by(field)) };
        deleted(entity, Way::Found(found))
    };
    let indexed = |entity: &str| deleted(entity, Way::Found(found(entity, Some("GSI1"), &[("UserId", "UserId")])));
    let cascade = Cascade {
        owner: "User".to_owned(),
        starts: vec![("User".to_owned(), Link::of(&[("UserId", "UserId")]))],
        hanging: vec![
            own("Follow", "FollowerId"),
            deleted("Follow", Way::Found(found("Follower", None, &[("FolloweeId", "UserId")]))),
            own("Like", "UserId"),
            own("View", "UserId"),
            own("Membership", "UserId"),
            indexed("Member"),
            own("Subscription", "UserId"),
            indexed("CartItem"),
            Hanging {
                entity: "EmailClaim".to_owned(),
                found: Way::Named(Link::of(&[("Email", "Email")])),
                fate: Fate::DeletedWhere { attribute: "UserId".to_owned(), field: "UserId".to_owned() },
            },
            Hanging {
                entity: "Post".to_owned(),
                found: Way::Found(found("Post", None, &[("AuthorId", "UserId")])),
                fate: Fate::Set { attribute: "Status".to_owned(), text: status::ARCHIVED.to_owned() },
            },
        ],
    };
    Derivation::new("D-29", "user-cascade", cascade)
}

fn deleted(entity: &str, found: Way) -> Hanging {
    Hanging { entity: entity.to_owned(), found, fate: Fate::Deleted }
}
