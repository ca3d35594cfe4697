//! Organizations, teams, members and employees.

use std::sync::Arc;

use entities::{
    ids::UserId,
    organizations::{Employee, Member, OrgChart, Organization, Team},
};
use keys::key_template::KeyField;
use queries::page::{Page, PageRequest};

use crate::patterns::{bed::Bed, crowd::ids};

type Held = Arc<Bed>;

pub(crate) async fn ap_020_an_organization_with_its_teams(bed: Held) {
    for org in ids("o") {
        let wanted = bed.crowd.only::<Organization>(|it| it.key.org_id.as_str() == org);
        let teams = bed.crowd.sorted(|it: &Team| it.key.org_id.as_str() == org, |it| it.key.team_id.clone());
        let id = org.clone().into();
        let found = bed.queries.organization_with_teams(&id, &PageRequest::first(3)).await.unwrap();
        bed.same(&found.organization, &Some(wanted), &org);
        bed.same(&found.teams.items, &teams[..2].to_vec(), &org);
        let read = async |page: PageRequest| {
            let found = bed.queries.organization_with_teams(&id, &page).await?;
            let items = found.organization.map(|_| None).into_iter().chain(found.teams.items.into_iter().map(Some));
            Ok(Page { items: items.collect(), unreadable: vec![], next: found.teams.next })
        };
        let wanted: Vec<_> = std::iter::once(None).chain(teams.into_iter().map(Some)).collect();
        bed.lists(&org, &wanted, read).await;
    }
}

pub(crate) async fn ap_021_members_of_an_organization(bed: Held) {
    for org in ids("o") {
        let wanted = bed.crowd.sorted(|it: &Member| it.key.org_id.as_str() == org, |it| it.key.user_id.clone());
        let id = org.clone().into();
        bed.lists(&org, &wanted, async |page| bed.queries.members_of_organization(&id, &page).await).await;
    }
}

pub(crate) async fn ap_022_organizations_of_a_user_with_names(bed: Held) {
    for user in ids("u").into_iter().map(UserId::from) {
        let wanted = bed.crowd.sorted(|it: &Member| it.key.user_id == user, |it| it.key.org_id.clone());
        assert!(wanted.iter().all(|member| member.org_name.is_some()));
        bed.lists(&user, &wanted, async |page| bed.queries.organizations_of(&user, &page).await).await;
    }
}

pub(crate) async fn ap_023_a_team_by_id(bed: Held) {
    let teams: Vec<Team> = bed.crowd.sorted(|_| true, |_| ());
    for team in &teams {
        let found = bed.queries.team(&team.key.team_id).await.unwrap().unwrap();
        bed.same(&(found.key, found.name), &(team.key.clone(), team.name.clone()), &team.key);
    }
    assert!(bed.queries.team(&"tu1@o2".into()).await.unwrap().is_none());
}

pub(crate) async fn ap_024_all_reports_of_a_manager_in_path_order(bed: Held) {
    let managers: Vec<OrgChart> = bed.crowd.sorted(|_| true, |_| ());
    let mut n_listed = 0;
    for manager in &managers {
        let is_below = |it: &OrgChart| {
            let (ids, above) = (it.key.path.ids(), manager.key.path.ids());
            it.key.org_id == manager.key.org_id && ids.len() > above.len() && ids.starts_with(above)
        };
        let wanted = bed.crowd.sorted(is_below, |it| it.key.path.to_text());
        if wanted.len() >= 3 {
            n_listed += 1;
            bed.lists(&manager.key, &wanted, async |page| bed.queries.reports_of(&manager.key, &page).await).await;
        } else {
            let found = bed.queries.reports_of(&manager.key, &PageRequest::first(10)).await.unwrap();
            bed.same(&found.items, &wanted, &manager.key);
        }
    }
    assert_eq!(n_listed, 14, "the root and another in each organization");
}

pub(crate) async fn ap_025_an_employee_by_id(bed: Held) {
    for employee in bed.crowd.sorted(|_: &Employee| true, |_| ()) {
        let id = &employee.key.employee_id;
        let found = bed.queries.employee(id).await.unwrap().unwrap();
        let wanted = (employee.key.clone(), employee.name.clone(), employee.path.clone());
        bed.same(&(found.key, found.name, found.path), &wanted, id);
    }
    assert!(bed.queries.employee(&"e@o2".into()).await.unwrap().is_none());
}
