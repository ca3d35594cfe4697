//! The shipped derivations, D-01 to D-30: one list that everything reads.
//!
//! A count is declared together with its display, which is a derivation of its own, called `…-display`; where count and
//! sum are shown, `…-count-display` and `…-sum-display`.

mod totals;

mod ground;

mod files;
mod shop;

use derive::{
    catalogue::{Catalogue, CatalogueError},
    derivation::Derivation,
    kinds::{
        Link, Predicate,
        copy::{Copy, Found},
        count::Count,
        display::{Display, Shows},
        mirror::Mirror,
    },
    schema::Schema,
};

/// The shipped table.
#[must_use]
pub fn schema() -> Schema {
    Schema::new(entities::table::layout(), entities::table::definitions().into_iter().cloned())
}

/// The shipped derivations.
///
/// # Errors
///
/// [`CatalogueError`] when they do not fit the shipped table; a test shows that they do.
pub fn catalogue(schema: &Schema) -> Result<Catalogue, CatalogueError> {
    Catalogue::new(schema, derivations())
}

/// The declarations, in order of their ids.
#[must_use]
pub fn derivations() -> Vec<Derivation> {
    [
        people(),
        posts(),
        groups(),
        organizations(),
        files::files(),
        shop::shop(),
        totals::totals(),
        ground::derivations(),
    ]
    .concat()
}

fn people() -> Vec<Derivation> {
    let follow = [("FolloweeId", "FolloweeId"), ("FollowerId", "FollowerId")];
    let follower_count = Counted::each("Follow", "User", &[("UserId", "FolloweeId")]).shards(8);
    let following_count = Counted::each("Follow", "User", &[("UserId", "FollowerId")]);
    let mut all = vec![
        // Both halves of a pair have the same fields, so either key gives the other.
        Derivation::new(
            "D-01",
            "follower-mirror",
            Mirror {
                source: "Follow".to_owned(),
                target: "Follower".to_owned(),
                link: Link::of(&follow),
                except: Vec::new(),
            },
        ),
    ];
    all.extend(follower_count.shown("D-02", "follower-count", "FollowerCount"));
    all.extend(following_count.shown("D-03", "following-count", "FollowingCount"));
    all.push(copy(
        "D-11",
        "followee-name",
        ("User", "Follow", &[("UserId", "FolloweeId")]),
        &[("Name", "FolloweeName")],
        found("Follower", None, &[("FolloweeId", "UserId")]),
    ));
    all.push(copy(
        "D-11",
        "follower-name",
        ("User", "Follower", &[("UserId", "FollowerId")]),
        &[("Name", "FollowerName")],
        found("Follow", None, &[("FollowerId", "UserId")]),
    ));
    all
}

fn posts() -> Vec<Derivation> {
    let detail = |source| Counted::each(source, "PostDetail", &[("PostId", "PostId")]);
    let mut all = vec![Derivation::new(
        "D-04",
        "post-detail",
        Mirror {
            source: "Post".to_owned(),
            target: "PostDetail".to_owned(),
            link: Link::of(&[("PostId", "PostId")]),
            except: vec!["Content".to_owned()],
        },
    )];
    let published = Counted::each("Post", "User", &[("UserId", "AuthorId")]).only("Status", "published");
    all.extend(published.shown("D-05", "post-count", "PostCount"));
    all.extend(detail("Comment").shown("D-06", "comment-count", "CommentCount"));
    all.extend(detail("Like").shards(16).shown("D-07", "like-count", "LikeCount"));
    all.extend(detail("View").shards(16).history().shown("D-08", "view-count", "ViewCount"));
    all.push(copy(
        "D-09",
        "comment-author",
        ("User", "Comment", &[("UserId", "UserId")]),
        &[("Name", "UserName"), ("Avatar", "UserAvatar")],
        found("Comment", Some("GSI1"), &[("UserId", "UserId")]),
    ));
    all.push(copy(
        "D-10",
        "post-author",
        ("User", "PostDetail", &[("UserId", "AuthorId")]),
        &[("Name", "AuthorName"), ("Avatar", "AuthorAvatar")],
        found("Post", None, &[("AuthorId", "UserId")]),
    ));
    all
}

fn groups() -> Vec<Derivation> {
    let member = [("GroupId", "GroupId"), ("UserId", "UserId")];
    let mut all = vec![Derivation::new(
        "D-12",
        "group-member",
        Mirror {
            source: "Membership".to_owned(),
            target: "GroupMember".to_owned(),
            link: Link::of(&member),
            except: Vec::new(),
        },
    )];
    let members = Counted::each("Membership", "Group", &[("GroupId", "GroupId")]);
    all.extend(members.shown("D-13", "member-count", "MemberCount"));
    all.push(copy(
        "D-14",
        "group-name",
        ("Group", "Membership", &[("GroupId", "GroupId")]),
        &[("Name", "GroupName")],
        found("GroupMember", None, &[("GroupId", "GroupId")]),
    ));
    all.push(copy(
        "D-15",
        "group-user-name",
        ("User", "GroupMember", &[("UserId", "UserId")]),
        &[("Name", "UserName")],
        found("Membership", None, &[("UserId", "UserId")]),
    ));
    all
}

fn organizations() -> Vec<Derivation> {
    let belonging = |source| Counted::each(source, "Organization", &[("OrgId", "OrgId")]);
    let mut all = Vec::new();
    all.extend(belonging("Team").shown("D-16", "team-count", "TeamCount"));
    all.extend(belonging("Member").shown("D-16", "org-member-count", "MemberCount"));
    all.extend(belonging("Employee").shown("D-16", "employee-count", "EmployeeCount"));
    all.push(copy(
        "D-17",
        "member-user-name",
        ("User", "Member", &[("UserId", "UserId")]),
        &[("Name", "UserName")],
        found("Member", Some("GSI1"), &[("UserId", "UserId")]),
    ));
    all.push(copy(
        "D-17",
        "member-org-name",
        ("Organization", "Member", &[("OrgId", "OrgId")]),
        &[("Name", "OrgName")],
        found("Member", None, &[("OrgId", "OrgId")]),
    ));
    all
}

/// A count that is being declared.
struct Counted(Count);

impl Counted {
    fn each(source: &str, target: &str, link: &[(&str, &str)]) -> Self {
        Self(Count {
            source: source.to_owned(),
            predicate: Predicate::Always,
            target: target.to_owned(),
            link: Link::of(link),
            sum: None,
            n_shards: 1,
            history: false,
        })
    }

    fn only(mut self, attribute: &str, text: &str) -> Self {
        self.0.predicate = Predicate::Is { attribute: attribute.to_owned(), text: text.to_owned() };
        self
    }

    fn shards(mut self, n_shards: u32) -> Self {
        self.0.n_shards = n_shards;
        self
    }

    fn history(mut self) -> Self {
        self.0.history = true;
        self
    }

    fn display(&self, name: &str, shows: Shows, attribute: &str) -> Display {
        let (count, target, attribute) = (name.to_owned(), self.0.target.clone(), attribute.to_owned());
        Display { count, target, shows, attribute }
    }

    /// The count and its display.
    fn shown(self, id: &str, name: &str, attribute: &str) -> [Derivation; 2] {
        let shown = self.display(name, Shows::Count, attribute);
        [Derivation::new(id, name, self.0), Derivation::new(id, &format!("{name}-display"), shown)]
    }
}

fn copy(
    id: &str,
    name: &str,
    (source, target, link): (&str, &str, &[(&str, &str)]),
    attributes: &[(&str, &str)],
    found: Found,
) -> Derivation {
    let attributes = attributes.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned())).collect();
    let (source, target) = (source.to_owned(), target.to_owned());
    Derivation::new(id, name, Copy { source, target, link: Link::of(link), attributes, found })
}

fn found(via: &str, index: Option<&str>, by: &[(&str, &str)]) -> Found {
    Found { via: via.to_owned(), index: index.map(str::to_owned), by: Link::of(by) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_derivations_fit_the_shipped_table() {
        let schema = schema();
        let catalogue = catalogue(&schema).unwrap();
        assert_eq!(catalogue.derivations().count(), 52);
    }
}
