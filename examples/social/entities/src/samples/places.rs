//! Groups, organizations and sensors.

use keys::{entity::Entity, error::EntityError, item::Item, number::Decimal};

use super::AT;
use crate::{
    claim::Claim,
    groups::{Group, GroupKey, GroupMember, GroupMemberKey, Membership, MembershipKey},
    organizations::{
        Employee, EmployeeKey, EmployeePath, Member, MemberKey, OrgChart, OrgChartKey, Organization, OrganizationKey,
        Team, TeamKey,
    },
    sensors::{Grain, Reading, ReadingKey, Rollup, RollupKey},
    table::layout,
};

pub(super) fn samples() -> Result<Vec<Item>, EntityError> {
    let mut items = groups()?;
    items.extend(organizations()?);
    items.extend(sensors()?);
    Ok(items)
}

fn groups() -> Result<Vec<Item>, EntityError> {
    let layout = layout();
    Ok(vec![
        Group {
            key: GroupKey { group_id: "g-7".into() },
            name: Some("Compilers".into()),
            description: Some("For those who would rather write programs that write programs.".into()),
            created_at: Some(AT.into()),
            updated_at: Some(AT.into()),
            member_count: Some(58),
        }
        .to_item(&layout)?,
        Membership {
            key: MembershipKey { user_id: "grace".into(), group_id: "g-7".into() },
            role: Some("admin".into()),
            joined_at: Some(AT.into()),
            created_at: Some(AT.into()),
            updated_at: Some(AT.into()),
            group_name: Some("Compilers".into()),
        }
        .to_item(&layout)?,
        GroupMember {
            key: GroupMemberKey { group_id: "g-7".into(), user_id: "grace".into() },
            role: Some("admin".into()),
            joined_at: Some(AT.into()),
            created_at: Some(AT.into()),
            updated_at: Some(AT.into()),
            user_name: Some("Grace Hopper".into()),
        }
        .to_item(&layout)?,
    ])
}

fn organizations() -> Result<Vec<Item>, EntityError> {
    let layout = layout();
    Ok(vec![
        Organization {
            key: OrganizationKey { org_id: "o-3".into() },
            name: Some("Engines Ltd".into()),
            created_at: Some(AT.into()),
            updated_at: Some(AT.into()),
            team_count: Some(4),
            member_count: Some(26),
            employee_count: Some(41),
        }
        .to_item(&layout)?,
        Team {
            key: TeamKey { org_id: "o-3".into(), team_id: "t-2".into() },
            name: Some("Mill".into()),
            created_at: Some(AT.into()),
            updated_at: Some(AT.into()),
        }
        .to_item(&layout)?,
        Member {
            key: MemberKey { org_id: "o-3".into(), user_id: "ada".into() },
            role: Some("editor".into()),
            created_at: Some(AT.into()),
            updated_at: Some(AT.into()),
            user_name: Some("Ada Lovelace".into()),
            org_name: Some("Engines Ltd".into()),
        }
        .to_item(&layout)?,
        Employee {
            key: EmployeeKey { org_id: "o-3".into(), employee_id: "e-12".into() },
            name: Some("Charles Babbage".into()),
            manager_id: Some("vp-east".into()),
            created_at: Some(AT.into()),
            updated_at: Some(AT.into()),
            path: Some("/ceo/vp-east/e-12".into()),
        }
        .to_item(&layout)?,
        OrgChart {
            key: OrgChartKey {
                org_id: "o-3".into(),
                path: EmployeePath::new(vec!["ceo".into(), "vp-east".into(), "e-12".into()]),
            },
            employee_id: Some("e-12".into()),
            name: Some("Charles Babbage".into()),
            manager_id: Some("vp-east".into()),
            created_at: Some(AT.into()),
            updated_at: Some(AT.into()),
            claims: Some(vec![Claim { pk: "ORG#o-3".into(), sk: "EMPLOYEE#e-12".into() }]),
        }
        .to_item(&layout)?,
    ])
}

fn sensors() -> Result<Vec<Item>, EntityError> {
    let layout = layout();
    Ok(vec![
        Reading {
            key: ReadingKey { sensor_id: "n-40".into(), day: "2024-01-15".to_owned(), at: AT.to_owned() },
            value: Decimal::parse("21.5"),
            created_at: Some(AT.into()),
            updated_at: Some(AT.into()),
        }
        .to_item(&layout)?,
        Rollup {
            key: RollupKey { sensor_id: "n-40".into(), grain: Grain::Hour, bucket: "2024-01-15T10".to_owned() },
            count: Some(60),
            sum: Decimal::parse("1287.4"),
            min: Decimal::parse("20.9"),
            max: Decimal::parse("22.1"),
        }
        .to_item(&layout)?,
    ])
}
