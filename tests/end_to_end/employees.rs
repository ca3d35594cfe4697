//! A team moves to another manager, while the service is killed: nobody is lost, nobody is there twice.

use std::{collections::BTreeMap, time::Duration};

use aws_sdk_dynamodb::Client;
use support::database::embedded_endpoint;
use tokio::time::{Instant, interval};

use crate::{
    database::{Item, TABLE, alter, client, key, put, s, scan},
    items::item,
    ripple::{Ripple, verify},
};

/// Teams of the manager who moves, and people in each.
const N_TEAMS: usize = 10;
const N_PEOPLE: usize = 49;

/// How often the service is killed meanwhile.
const N_KILLS: usize = 3;

/// How long the move may take, and how often it is looked.
const MOVE_WAIT: Duration = Duration::from_mins(2);
const POLL: Duration = Duration::from_millis(250);

const OLD: &str = "EMP#/ceo/vp";
const NEW: &str = "EMP#/ceo/cto/vp";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subtree_of_employees_moves_through_kills() {
    let endpoint = embedded_endpoint().await;
    let client = client(&endpoint);
    let mut service = Ripple::dev(&["--endpoint", &endpoint]).await;
    let mut people = vec![employee("/ceo", None), employee("/ceo/cto", Some("ceo")), employee("/ceo/vp", Some("ceo"))];
    for team in 0..N_TEAMS {
        people.push(employee(&format!("/ceo/vp/lead{team}"), Some("vp")));
        let member = |at| employee(&format!("/ceo/vp/lead{team}/dev{team}x{at}"), Some(&format!("lead{team}")));
        people.extend((0..N_PEOPLE).map(member));
    }
    let n_people = people.len();
    for person in people {
        put(&client, person).await;
    }
    let vp = key("ORG#o", OLD);
    alter(&client, &vp, "ManagerId", Some(s("cto"))).await;
    // Killed in the middle of the move, as long as there is one.
    for _ in 0..N_KILLS {
        service.line(|line| line.starts_with("propagate")).await;
        service.kill();
        let ids = ids(&client).await;
        assert_eq!((ids.len(), ids.values().sum::<usize>()), (n_people, n_people), "everybody is there once");
        service = Ripple::dev(&["--endpoint", &endpoint]).await;
    }
    let deadline = Instant::now() + MOVE_WAIT;
    let mut again = interval(POLL);
    while under(&client, OLD).await > 0 || verify(&endpoint).code != Some(0) {
        assert!(Instant::now() < deadline, "{} are still under the old path", under(&client, OLD).await);
        again.tick().await;
    }
    assert_eq!(under(&client, NEW).await, 1 + N_TEAMS * (1 + N_PEOPLE));
    let ids = ids(&client).await;
    assert_eq!((ids.len(), ids.values().sum::<usize>()), (n_people, n_people), "everybody is there once");
    assert_eq!(service.stop().code(), Some(0));
}

fn employee(path: &str, manager: Option<&str>) -> Item {
    let id = path.rsplit('/').next().unwrap_or_default();
    let mut employee = item([
        ("PK", "ORG#o".to_owned()),
        ("SK", format!("EMP#{path}")),
        ("EntityType", "Employee".to_owned()),
        ("GSI1PK", format!("EMP#{id}")),
        ("GSI1SK", "EMP".to_owned()),
        ("Name", format!("Name of {id}")),
    ]);
    employee.extend(manager.map(|manager| ("ManagerId".to_owned(), s(manager))));
    employee
}

/// How often each id is there.
async fn ids(client: &Client) -> BTreeMap<String, usize> {
    let mut ids = BTreeMap::new();
    for (_, sk) in scan(client, TABLE).await.into_keys().filter(|(_, sk)| sk.starts_with("EMP#")) {
        *ids.entry(sk.rsplit('/').next().unwrap_or_default().to_owned()).or_default() += 1;
    }
    ids
}

/// How many stand at a path or under it.
async fn under(client: &Client, path: &str) -> usize {
    let below = format!("{path}/");
    scan(client, TABLE).await.into_keys().filter(|(_, sk)| sk == path || sk.starts_with(&below)).count()
}
