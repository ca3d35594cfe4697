//! D-28 and D-29: the cascades, which delete the application's own items.

use derive::{
    declaration::{
        cascade::{Cascade, Fate, Hanging, Way},
        found_by::FoundBy,
        link::Link,
    },
    derivation::Derivation,
};

use entities::posts::status;

use crate::found;

pub(crate) fn derivations() -> Vec<Derivation> {
    vec![post_cascade(), user_cascade()]
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

/// Orders, comments and reviews stay. The counts follow from the deletions.
fn user_cascade() -> Derivation {
    let by = |field: &str| vec![(field.to_owned(), "UserId".to_owned())];
    let own = |entity: &str, field: &str| {
        let found = FoundBy { via: entity.to_owned(), index: None, by: Link(by(field)) };
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
