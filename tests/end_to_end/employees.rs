//! A team gets another manager, while the service is killed: everybody stays, and the chart follows.

use std::time::Duration;

use aws_sdk_dynamodb::Client;
use support::database::embedded_endpoint;
use tokio::time::{Instant, interval};

use crate::{
    database::{Item, TABLE, client, put, s, scan},
    items::item,
    ripple::{Ripple, verify},
};

/// Teams of the manager who moves, and people in each.
const N_TEAMS: usize = 10;
const N_PEOPLE: usize = 49;

/// How often the service is killed meanwhile.
const N_KILLS: usize = 3;

/// How long the chart may take, and how often it is looked.
const MOVE_WAIT: Duration = Duration::from_mins(2);
const POLL: Duration = Duration::from_millis(250);

const OLD: &str = "EMP#/ceo/vp";
const NEW: &str = "EMP#/ceo/cto/vp";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_chart_of_a_team_that_moves_follows_through_kills() {
    let endpoint = embedded_endpoint().await;
    let client = client(&endpoint);
    let mut service = Ripple::dev(&["--endpoint", &endpoint]).await;
    let mut people = vec![employee("ceo", None), employee("cto", Some("ceo")), employee("vp", Some("ceo"))];
    for team in 0..N_TEAMS {
        let lead = format!("lead{team}");
        people.push(employee(&lead, Some("vp")));
        people.extend((0..N_PEOPLE).map(|at| employee(&format!("dev{team}x{at}"), Some(&lead))));
    }
    let n_people = people.len();
    for person in people {
        put(&client, person).await;
    }
    let n_team = 1 + N_TEAMS * (1 + N_PEOPLE);
    until(&client, &endpoint, OLD, n_team).await;
    put(&client, employee("vp", Some("cto"))).await;
    // Killed in the middle of the move, as long as there is one.
    for _ in 0..N_KILLS {
        service.line(|line| line.starts_with("propagate")).await;
        service.kill();
        service = Ripple::dev(&["--endpoint", &endpoint]).await;
    }
    until(&client, &endpoint, NEW, n_team).await;
    assert_eq!(under(&client, OLD).await, 0, "nobody is in the chart twice");
    let n_left = scan(&client, TABLE).await.into_keys().filter(|(_, sk)| sk.starts_with("EMPLOYEE#")).count();
    assert_eq!(n_left, n_people, "everybody is there under their id");
    assert_eq!(service.stop().code(), Some(0));
}

/// Waits until so many stand at a path or under it, and everything is as it should be.
async fn until(client: &Client, endpoint: &str, path: &str, n_wanted: usize) {
    let deadline = Instant::now() + MOVE_WAIT;
    let mut again = interval(POLL);
    while under(client, path).await < n_wanted || verify(endpoint).code != Some(0) {
        assert!(Instant::now() < deadline, "{} are under {path}", under(client, path).await);
        again.tick().await;
    }
    assert_eq!(under(client, path).await, n_wanted);
}

fn employee(id: &str, manager: Option<&str>) -> Item {
    let mut employee = item([
        ("PK", "ORG#o".to_owned()),
        ("SK", format!("EMPLOYEE#{id}")),
        ("EntityType", "Employee".to_owned()),
        ("GSI1PK", format!("EMP#{id}")),
        ("GSI1SK", "EMP".to_owned()),
        ("Name", format!("Name of {id}")),
    ]);
    if let Some(manager) = manager {
        let index = [("GSI2PK", format!("MANAGER#{manager}")), ("GSI2SK", format!("EMP#{id}"))];
        employee.extend(index.map(|(name, text)| (name.to_owned(), s(&text))));
        employee.insert("ManagerId".to_owned(), s(manager));
    }
    employee
}

/// How many stand at a path or under it.
async fn under(client: &Client, path: &str) -> usize {
    let below = format!("{path}/");
    scan(client, TABLE).await.into_keys().filter(|(_, sk)| sk == path || sk.starts_with(&below)).count()
}
