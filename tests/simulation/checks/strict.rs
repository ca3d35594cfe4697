//! Cascades delete only what belongs to an owner that was gone for long enough, and leave nothing over.

use std::collections::{BTreeMap, BTreeSet};

use derive::{derived::Items, family::Family, schema::Seen};
use engine::{
    jobs::job::{self, Job},
    ledger::watermarks::is_mark,
};
use keys::{
    counter::{CounterKey, REVISION},
    item::{Item, text},
    job::{JobKey, PARTITION},
    key::Key,
    value::differing,
};
use serde_dynamo::AttributeValue;

use crate::{
    checks::{
        history::{Past, replayed},
        listed::{has_come_back, listed_at},
    },
    failure::Failure,
    items::is_zero,
    platform::stream::{Author, Stream, TableChange},
    scene::Scene,
};

/// What an item belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    User(String),
    Post(String),
}

#[derive(Debug)]
struct Removal {
    at: usize,
    at_ms: u64,
    /// Did the item have its type?
    is_typed: bool,
    /// All keys under which it was known.
    keys: Vec<Key>,
    item: Item,
}

/// The owners so far.
#[derive(Default)]
struct Owners {
    removals: BTreeMap<Owner, Vec<Removal>>,
    /// The last claims of each post's mirror; none after somebody changed it by hand, and none of posts gone when it went.
    claims: BTreeMap<String, Vec<Key>>,
}

/// Checks every write of the service to the application's items, and what is left at the end.
pub(crate) fn cascades_are_strict(scene: &Scene, stream: &Stream, untyped: &BTreeSet<Key>) -> Result<(), Failure> {
    let mut owners = Owners::default();
    let past = replayed(stream, |past, at, made| {
        if made.author == Author::Service {
            allowed(scene, &owners, past, made)?;
        }
        owners.note(scene, past, at, made);
        Ok(())
    })?;
    let touched = |key: &Key| {
        untyped.contains(key) || stream.made.iter().any(|made| made.key == *key && made.author != Author::Service)
    };
    nothing_is_left(scene, stream, &owners, &past, untyped, touched)
}

impl Owners {
    fn note(&mut self, scene: &Scene, past: &Past, at: usize, made: &TableChange) {
        let (Some(owner), schema) = (owner_at(scene, &made.key), &scene.schema) else { return };
        let image = |item: &Item| schema.image(&made.key, item).is_some();
        let is_detail = made.key.sk == "METADATA";
        if let (Some(old), None) = (&made.old, &made.new) {
            let mut keys = vec![home(scene, &owner), made.key.clone()];
            keys.extend(claims(old));
            let (at_ms, is_typed, item) = (made.at_ms, image(old), old.clone());
            self.removals.entry(owner.clone()).or_default().push(Removal { at, at_ms, is_typed, keys, item });
        }
        if let (Owner::Post(post), true) = (&owner, is_detail) {
            match (&made.new, made.author) {
                (Some(new), Author::Service) => drop(self.claims.insert(post.clone(), claims(new))),
                // The mirror goes when nothing claims it. A claim by a post that exists stays.
                (_, Author::Service) => {
                    self.claims.entry(post.clone()).or_default().retain(|claim| is_post(scene, past, claim));
                }
                _ => drop(self.claims.remove(post)),
            }
        }
    }

    /// May a cascade delete what was so, or empty it?
    fn may_go(&self, scene: &Scene, past: &Past, made: &TableChange, old: &Item) -> Result<(), String> {
        let gone = owners_of(scene, &made.key, old).into_iter().map(|owner| {
            let listed_at = listed_at(scene, past, &made.key, old, made.at_ms)?;
            match &owner {
                Owner::Post(id) if has_come_back(scene, past, id, listed_at) => {
                    Err(format!("it was written when {owner:?} was there again"))
                }
                _ => self.is_gone(scene, past, &owner, made.at_ms),
            }
        });
        let gone: Vec<_> = gone.collect();
        if gone.iter().any(Result::is_ok) { Ok(()) } else { Err(format!("{gone:?}")) }
    }

    /// Was the owner gone for long enough?
    fn is_gone(&self, scene: &Scene, past: &Past, owner: &Owner, at_ms: u64) -> Result<(), String> {
        let removals = self.removals.get(owner).map(Vec::as_slice).unwrap_or_default();
        let is_absent = |key: &Key| !past.items.contains_key(key);
        let suffices = |removal: &&Removal| {
            removal.is_typed && removal.at_ms + scene.settle_ms() <= at_ms && removal.keys.iter().all(is_absent)
        };
        if !removals.iter().any(|removal| suffices(&removal)) {
            return Err(format!("{owner:?} was there, or not gone long enough"));
        }
        if let Owner::Post(post) = owner
            && let Some(claim) = self.claims.get(post).into_iter().flatten().find(|key| is_post(scene, past, key))
        {
            return Err(format!("{claim} claims {owner:?}"));
        }
        Ok(())
    }
}

/// Is it a counter of what only arrives?
fn is_history(key: &Key) -> bool {
    CounterKey::parse(key).is_some_and(|counter| counter.derivation == "view-count")
}

fn is_emptied(old: &Item, new: &Item) -> bool {
    is_zero(new) && !is_zero(old) && new.get(REVISION) == old.get(REVISION)
}

/// Does a post, with its type, stand under this key?
fn is_post(scene: &Scene, past: &Past, key: &Key) -> bool {
    let image = past.items.get(key).and_then(|item| scene.schema.image(key, item));
    image.is_some_and(|image| image.is("Post"))
}

/// The owner with this key; a post's own item counts too.
fn owner_at(scene: &Scene, key: &Key) -> Option<Owner> {
    let field =
        |entity: &str, name: &str| Some(scene.schema.entity(entity).unwrap().key.parse_key(key)?.get(name)?.to_owned());
    field("User", "UserId")
        .map(Owner::User)
        .or_else(|| field("PostDetail", "PostId").map(Owner::Post))
        .or_else(|| field("Post", "PostId").map(Owner::Post))
}

/// The key by which an owner is known.
fn home(scene: &Scene, owner: &Owner) -> Key {
    let (entity, name, id) = match owner {
        Owner::User(id) => ("User", "UserId", id),
        Owner::Post(id) => ("PostDetail", "PostId", id),
    };
    scene.schema.entity(entity).unwrap().build(&[(name, id.as_str())].into_iter().collect()).unwrap()
}

fn claims(item: &Item) -> Vec<Key> {
    let Some(AttributeValue::L(claims)) = item.get("Claims") else { return Vec::new() };
    let part = |map: &std::collections::HashMap<String, AttributeValue>, name: &str| match map.get(name) {
        Some(AttributeValue::S(text)) => Some(text.clone()),
        _ => None,
    };
    let claim = |value: &AttributeValue| match value {
        AttributeValue::M(map) => Some(Key { pk: part(map, "PK")?, sk: part(map, "SK")? }),
        _ => None,
    };
    claims.iter().filter_map(claim).collect()
}

/// The owners of an item; a counter belongs to its target.
fn owners_of(scene: &Scene, key: &Key, item: &Item) -> Vec<Owner> {
    if let Some(counter) = CounterKey::parse(key) {
        let is_history = counter.derivation == "view-count";
        return owner_at(scene, &counter.target).filter(|_| is_history).into_iter().collect();
    }
    let Some(image) = scene.schema.image(key, item) else { return Vec::new() };
    let field = |name: &str| image.key_fields().get(name).map(str::to_owned);
    let (users, posts): (&[&str], &[&str]) = match image.definition.name.as_str() {
        "Comment" => (&[], &["PostId"]),
        "Like" => (&["UserId"], &["PostId"]),
        "Follow" => (&["FollowerId", "FolloweeId"], &[]),
        "View" | "Membership" | "Member" | "Subscription" | "CartItem" => (&["UserId"], &[]),
        "EmailClaim" => return text(item, "UserId").map(|id| Owner::User(id.to_owned())).into_iter().collect(),
        _ => (&[], &[]),
    };
    let users = users.iter().filter_map(|name| field(name)).map(Owner::User);
    users.chain(posts.iter().filter_map(|name| field(name)).map(Owner::Post)).collect()
}

/// May the service do this?
fn allowed(scene: &Scene, owners_so_far: &Owners, past: &Past, made: &TableChange) -> Result<(), Failure> {
    let of = |item: &Item| match scene.schema.see(&made.key, item) {
        Seen::Known(image) => Some((image.definition.name.clone(), image.definition.derived)),
        _ => None,
    };
    let refused = |what: String| Failure::new("strict", format!("the service {what} {}", made.key));
    if JobKey::parse(&made.key).is_some() {
        let job = made.new.as_ref().and_then(|item| Job::of(&scene.schema.layout, item));
        let is_cascade = job.is_some_and(|job| matches!(job.task, job::Task::Cascade { .. }));
        // The key of a cascade names the record of the removal.
        let is_again = made.old.is_none() && past.written.contains_key(&made.key);
        return if is_cascade && is_again { Err(refused("started a cascade again:".to_owned())) } else { Ok(()) };
    }
    match (&made.old, &made.new) {
        (Some(old), None) if CounterKey::parse(&made.key).is_some() && is_zero(old) => {
            scene.count("zeros collected");
            Ok(())
        }
        (Some(old), None) => match of(old) {
            Some((name, true)) if CounterKey::parse(&made.key).is_none() => {
                scene.count_all("left the chart", usize::from(name == "OrgChart"));
                Ok(())
            }
            // A repair deletes counters of what the functions do not have any more. What is deployed again is filled again.
            Some((name, _)) if name == "Counter" && scene.rollout.may_drop(&made.key) => Ok(()),
            Some((name, _)) => {
                let may_go = owners_so_far.may_go(scene, past, made, old);
                may_go.map_err(|why| refused(format!("deleted the {name}, though {why}:")))?;
                scene.count(if name == "Counter" { "counters deleted" } else { "deleted" });
                Ok(())
            }
            None => Err(refused("deleted what is none of ours,".to_owned())),
        },
        // Under watermarks a cascade sets a counter to zero and leaves its revision.
        (Some(old), Some(new)) if is_history(&made.key) && is_emptied(old, new) => {
            let may_go = owners_so_far.may_go(scene, past, made, old);
            may_go.map_err(|why| refused(format!("emptied the counter, though {why}:")))?;
            scene.count("counters deleted");
            Ok(())
        }
        (Some(old), Some(new)) => match of(old) {
            Some((name, false)) => {
                let definition = scene.schema.entity(&name).unwrap();
                let changed: Vec<&str> =
                    differing(old, new).into_iter().filter(|name| !definition.derives(name)).collect();
                let is_archived = name == "Post" && changed == ["Status"] && text(new, "Status") == Some("archived");
                let author = scene.schema.entity("Post").unwrap().key.parse_key(&made.key);
                let author = author.and_then(|fields| Some(Owner::User(fields.get("AuthorId")?.to_owned())));
                match (changed.is_empty(), author.filter(|_| is_archived)) {
                    (true, _) => Ok(()),
                    (false, Some(author)) => listed_at(scene, past, &made.key, old, made.at_ms)
                        .and_then(|_| owners_so_far.is_gone(scene, past, &author, made.at_ms))
                        .map(|()| scene.count("archived"))
                        .map_err(|why| refused(format!("archived, though {why}:"))),
                    (false, None) => Err(refused(format!("changed {changed:?} of"))),
                }
            }
            Some((_, true)) => Ok(()),
            None if made.key.pk.starts_with(PARTITION) => Ok(()),
            None => Err(refused("changed what is none of ours,".to_owned())),
        },
        (None, Some(new)) => match of(new) {
            Some((name, false)) => Err(refused(format!("made the {name}"))),
            _ => Ok(()),
        },
        (None, None) => Ok(()),
    }
}

/// Is there no item of this owner, under any key and type?
fn is_absent(scene: &Scene, items: &Items, owner: &Owner) -> bool {
    !items.contains_key(&home(scene, owner)) && !items.keys().any(|key| owner_at(scene, key).as_ref() == Some(owner))
}

/// Nothing is left that belonged to a removed owner.
fn nothing_is_left(
    scene: &Scene,
    stream: &Stream,
    known: &Owners,
    past: &Past,
    untyped: &BTreeSet<Key>,
    touched: impl Fn(&Key) -> bool,
) -> Result<(), Failure> {
    let starts = |at: usize| !stream.lost.has(at, Family::LevelTriggered);
    let gone = |owner: &Owner| {
        let removal = known.removals.get(owner)?.last().filter(|removal| removal.is_typed && starts(removal.at))?;
        is_absent(scene, &past.items, owner).then_some(removal)
    };
    for (key, item) in past.items.iter().filter(|(key, _)| !untyped.contains(*key)) {
        let left = |why: String| Err(Failure::new("left", format!("{key} is left, though {why}")));
        for owner in owners_of(scene, key, item) {
            // What was written later stays. A counter stays when it was counted later.
            let writes = if CounterKey::parse(key).is_some() { &past.written } else { &past.touched };
            let is_older = |removal: &&Removal| writes.get(key).is_none_or(|at| *at < removal.at);
            // An earlier cascade emptied it, and the sweep deletes it when its watermarks are too old.
            let is_empty = is_history(key) && is_zero(item) && item.keys().any(is_mark);
            let Some(removal) = gone(&owner).filter(is_older).filter(|_| !is_empty) else { continue };
            let is_found = match (scene.schema.image(key, item).map(|image| image.definition.name.clone()), &owner) {
                (Some(name), Owner::User(id)) if name == "EmailClaim" => {
                    let email = text(&removal.item, "Email").unwrap_or_default().trim().to_lowercase();
                    let _: &String = id;
                    key.pk == format!("EMAIL#{email}") && past.written[key] < removal.at
                }
                (Some(name), Owner::User(id)) if name == "Follow" => {
                    let fields = scene.schema.entity("Follow").unwrap().key.parse_key(key).unwrap();
                    let mirror = scene.schema.entity("Follower").unwrap().build(&fields).unwrap();
                    fields.get("FollowerId") == Some(id) || !touched(&mirror)
                }
                _ => true,
            };
            if is_found {
                return left(format!("{owner:?} is gone since record {}", removal.at));
            }
        }
        let post = scene.schema.image(key, item).filter(|image| image.is("Post"));
        let author = post.and_then(|image| Some(Owner::User(image.key_fields().get("AuthorId")?.to_owned())));
        let removal = author.as_ref().and_then(gone).filter(|removal| past.written[key] < removal.at);
        if removal.is_some() && text(item, "Status") != Some("archived") {
            return left(format!("not archived, though {author:?} is gone"));
        }
    }
    Ok(())
}
