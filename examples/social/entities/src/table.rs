//! The table as data: its key attributes, its indexes, its entities.

use keys::{
    entity::{Definition, Entity},
    layout::{Index, Layout},
};

use crate::{
    carts::CartItem,
    counter::Counter,
    emails::EmailClaim,
    files::{File, FileDetail, Folder},
    groups::{Group, GroupMember, Membership},
    orders::{Order, OrderDetail, OrderItem},
    organizations::{Employee, Member, OrgChart, Organization, Team},
    people::{Follow, Follower, User},
    posts::{Comment, Like, Post, PostDetail, View},
    products::{Product, Review},
    sensors::{Reading, Rollup},
    subscriptions::Subscription,
};

/// Attributes that GSI1 projects beside the keys. No count is among them, because each change of a count would write
/// the index.
const GSI1_PROJECTION: [&str; 13] = [
    "EntityType",
    "Name",
    "Title",
    "Text",
    "Role",
    "Status",
    "Total",
    "Price",
    "Quantity",
    "Rating",
    "Path",
    "Depth",
    "CreatedAt",
];

/// Attributes that GSI2 projects beside the keys. No count, for the same reason.
const GSI2_PROJECTION: [&str; 9] =
    ["EntityType", "Name", "Title", "AuthorName", "AuthorAvatar", "Status", "Total", "Price", "CreatedAt"];

/// The names in the table: `PK` and `SK`, two overloaded sparse indexes, `EntityType`, `ExpiresAt`.
#[must_use]
pub fn layout() -> Layout {
    Layout {
        entity_type: Some("EntityType".to_owned()),
        time_to_live: Some("ExpiresAt".to_owned()),
        indexes: vec![index("GSI1", &GSI1_PROJECTION), index("GSI2", &GSI2_PROJECTION)],
        ..Layout::of("PK", "SK")
    }
}

fn index(name: &str, projection: &[&str]) -> Index {
    Index {
        name: name.to_owned(),
        pk: format!("{name}PK"),
        sk: format!("{name}SK"),
        projection: projection.iter().map(|&attribute| attribute.to_owned()).collect(),
    }
}

/// Every entity of the table, in the order of their ids.
#[must_use]
pub fn definitions() -> Vec<&'static Definition> {
    vec![
        User::definition(),
        Post::definition(),
        PostDetail::definition(),
        Comment::definition(),
        Like::definition(),
        View::definition(),
        Follow::definition(),
        Follower::definition(),
        Group::definition(),
        Membership::definition(),
        GroupMember::definition(),
        Organization::definition(),
        Team::definition(),
        Member::definition(),
        Employee::definition(),
        Folder::definition(),
        File::definition(),
        FileDetail::definition(),
        Product::definition(),
        Review::definition(),
        Order::definition(),
        OrderItem::definition(),
        Reading::definition(),
        Rollup::definition(),
        Counter::definition(),
        EmailClaim::definition(),
        OrderDetail::definition(),
        Subscription::definition(),
        CartItem::definition(),
        OrgChart::definition(),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use keys::index_key::OnlyIf;

    use super::*;

    #[test]
    fn every_entity_is_listed_once_in_order_of_its_id() {
        let ids: Vec<&str> = definitions().iter().map(|definition| definition.id.as_str()).collect();
        let wanted: Vec<String> = (1..=29).chain([31]).map(|number| format!("E-{number:02}")).collect();
        assert_eq!(ids, wanted);
        let names: BTreeSet<&str> = definitions().iter().map(|definition| definition.name.as_str()).collect();
        assert_eq!(names.len(), ids.len());
    }

    #[test]
    fn mirrors_roll_ups_and_counters_are_wholly_derived() {
        let derived: Vec<&str> =
            definitions().iter().filter(|definition| definition.derived).map(|d| d.name.as_str()).collect();
        assert_eq!(
            derived,
            ["PostDetail", "Follower", "GroupMember", "FileDetail", "Rollup", "Counter", "OrderDetail", "OrgChart"]
        );
    }

    #[test]
    fn every_index_key_is_of_an_index_that_the_table_has() {
        let layout = layout();
        for definition in definitions() {
            for index in &definition.indexes {
                assert!(layout.index(&index.index).is_some(), "{} names {}", definition.name, index.index);
            }
        }
    }

    #[test]
    fn an_index_key_that_a_writer_makes_is_made_of_the_key_and_the_applications_attributes() {
        for definition in definitions() {
            let mut ground = definition.key.field_names();
            ground.extend(definition.attributes.iter().map(String::as_str));
            for index in &definition.indexes {
                let mut known = ground.clone();
                if index.derived {
                    known.extend(definition.derived_attributes.iter().map(String::as_str));
                }
                let mut needed = index.key.field_names();
                needed.extend(index.only_if.as_ref().map(OnlyIf::attribute));
                for name in needed {
                    assert!(known.contains(&name), "{}.{name} of {}", definition.name, index.index);
                }
            }
        }
    }

    #[test]
    fn no_attribute_is_declared_twice_or_named_like_a_key() {
        let layout = layout();
        for definition in definitions() {
            let mut names = definition.key.field_names();
            names.extend(definition.attributes.iter().chain(&definition.derived_attributes).map(String::as_str));
            let distinct: BTreeSet<&str> = names.iter().copied().collect();
            assert_eq!(distinct.len(), names.len(), "{}", definition.name);
            for name in names {
                let is_type = layout.entity_type.as_deref() == Some(name);
                assert!(!layout.is_key(name) && !is_type, "{}.{name}", definition.name);
            }
        }
    }

    #[test]
    fn no_index_projects_a_count() {
        let counted: BTreeSet<&str> = definitions()
            .iter()
            .flat_map(|definition| &definition.derived_attributes)
            .map(String::as_str)
            .filter(|name| {
                ["Count", "Sum", "Value"].iter().any(|end| name.ends_with(end))
                    || ["Min", "Max", "UnitsSold", "TotalBytes"].contains(name)
            })
            .collect();
        for index in layout().indexes {
            assert!(index.projection.iter().all(|name| !counted.contains(name.as_str())), "{}", index.name);
        }
    }
}
