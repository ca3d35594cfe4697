//! What the functions of a run have: the shipped table, with a derivation of each kind that the shipped one lacks.

use derive::{
    catalogue::Catalogue,
    declaration::Link,
    derivation::Derivation,
    expression::pairs,
    kinds::{
        display::{Display, Shows, Zero},
        latest::Latest,
    },
    query::Order,
    schema::Schema,
};

/// Derived attributes that the shipped table lacks, by entity.
const ATTRIBUTES: [(&str, &str); 4] = [
    ("PostDetail", "LastCommentBy"),
    ("PostDetail", "LastCommentAt"),
    ("PostDetail", "FirstCommentAt"),
    ("Organization", "HasTeams"),
];

pub(crate) fn schema() -> Schema {
    let shipped = catalogue::schema();
    let with_more = |definition: &keys::entity::Definition| {
        let mut definition = definition.clone();
        let more = ATTRIBUTES.into_iter().filter(|(entity, _)| *entity == definition.name);
        definition.derived_attributes.extend(more.map(|(_, name)| name.to_owned()));
        definition
    };
    Schema::new(shipped.layout.clone(), shipped.entities().map(with_more))
}

pub(crate) fn derivations() -> Vec<Derivation> {
    let last = [("UserId", "LastCommentBy"), ("CreatedAt", "LastCommentAt")];
    let team_exists = Display {
        count: "team-count".to_owned(),
        target: "Organization".to_owned(),
        shows: Shows::Exists,
        attribute: "HasTeams".to_owned(),
        zero: Zero::Write,
    };
    let mut derivations = catalogue::derivations();
    derivations.extend([
        Derivation::new("S-01", "last-comment", latest(Order::Descending, &last)),
        Derivation::new("S-02", "first-comment", latest(Order::Ascending, &[("CreatedAt", "FirstCommentAt")])),
        Derivation::new("S-03", "team-exists", team_exists),
    ]);
    derivations
}

fn latest(order: Order, attributes: &[(&str, &str)]) -> Latest {
    Latest {
        source: "Comment".to_owned(),
        target: "PostDetail".to_owned(),
        link: Some(Link::of(&[("PostId", "PostId")])),
        order,
        attributes: pairs(attributes),
        list: None,
    }
}

pub(crate) fn catalogue(schema: &Schema) -> Catalogue {
    Catalogue::new(schema, derivations()).unwrap()
}
