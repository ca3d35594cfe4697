//! Writes to owners and what belongs to them, and to hierarchies: employees and their managers.

use std::collections::BTreeSet;

use derive::write::{Action, Table, Update};
use engine::{
    clock::Clock as _,
    job::{self, Job, Pass},
};
use keys::{
    fields::Fields,
    item::{Item, text},
    key::Key,
};
use store::memory::MemoryStore;

use crate::{
    items::{EMPLOYEES, NAMES, PAIR, USERS, fields, indexed, n, s, value},
    stored::jobs,
    world::Application,
};

/// How long before a cascade is due its post may come back, in milliseconds.
const NEAR_MS: u64 = 5_000;

/// Of a hundred writes about removals while a cascade deletes, how many bring its owner back.
const COME_BACK_LATE_PERCENT: usize = 25;

/// Entities that belong to a user or a post.
const BELONGING: [&str; 10] =
    ["Subscription", "CartItem", "EmailClaim", "Follow", "Like", "Membership", "Member", "View", "Comment", "Post"];

/// Is it a cascade that deletes what it has listed?
fn is_deleting(job: &Job) -> bool {
    job.is_running && matches!(job.task, job::Task::Cascade { pass: Pass::Deletes { .. }, .. })
}

impl Application {
    /// An employee is hired, gets another manager, leaves, or is edited.
    pub(super) fn move_about(&mut self, table: &MemoryStore) {
        match self.scene.chance.below(10) {
            0..=2 => self.hire(table),
            3..=6 => self.report_elsewhere(table),
            7 => self.remove_of(table, "Employee"),
            8 => self.put_back_employee(table),
            _ => self.annotate(table),
        }
    }

    /// An owner is removed, and something that belongs to it comes.
    pub(super) fn remove_owners(&mut self, table: &MemoryStore) {
        let is_late = jobs(&self.scene).iter().any(is_deleting) && self.scene.chance.percent(COME_BACK_LATE_PERCENT);
        match self.scene.chance.below(12) {
            _ if is_late => self.come_back(table, is_deleting),
            0 | 1 => self.remove_of(table, "User"),
            2 => self.remove_of(table, "Post"),
            3 => self.make_user(table),
            4 | 5 => self.come_back_soon(table),
            _ => self.put_belonging(table),
        }
    }

    /// A write that leads to a cascade, or a change of an employee.
    pub(super) fn touch_ground(&mut self, table: &MemoryStore) {
        match self.scene.chance.below(20) {
            0 | 1 => self.remove_of(table, "User"),
            2 => self.make_user(table),
            3 => self.remove_of(table, "Post"),
            4 | 5 => self.put_belonging(table),
            6 => self.give_claim(table),
            7..=9 => self.hire(table),
            10 | 11 => self.report_elsewhere(table),
            12 => self.remove_of(table, "Employee"),
            13..=15 => self.annotate(table),
            16 | 17 => self.put_back_employee(table),
            _ => self.come_back_soon(table),
        }
    }

    fn remove_of(&mut self, table: &MemoryStore, entity: &str) {
        if let Some((key, _)) = self.any(table, |definition| definition.name == entity) {
            self.act(table, key, Action::Delete);
        }
    }

    /// A user or a post comes back just before its cascade begins or while it runs.
    fn come_back_soon(&mut self, table: &MemoryStore) {
        let near_ms = self.scene.clock.now_ms() + NEAR_MS;
        self.come_back(table, |job| job.is_running || job.due_at_ms <= near_ms);
    }

    /// The owner of one of these cascades comes back: a post often under another key, and with a like. Without such a
    /// cascade a post is deleted.
    fn come_back(&mut self, table: &MemoryStore, is_meant: impl Fn(&Job) -> bool) {
        let (scene, schema) = (std::sync::Arc::clone(&self.scene), std::sync::Arc::clone(&self.schema));
        let owners = [("User", "UserId"), ("PostDetail", "PostId"), ("Post", "PostId")];
        let owner_of = |job: Job| {
            let id = |(entity, name)| {
                let fields = schema.entity(entity).unwrap().key.parse_key(job.origin())?;
                Some((name, fields.get(name)?.to_owned()))
            };
            owners.into_iter().filter(|_| is_meant(&job)).find_map(id)
        };
        let removed: Vec<(&str, String)> = jobs(&scene).into_iter().filter_map(owner_of).collect();
        match scene.chance.one_of(&removed) {
            Some(("UserId", id)) => {
                scene.count("users came back");
                self.make_user_of(table, id);
            }
            Some((_, id)) => {
                scene.count("posts came back");
                for entity in ["Post", "Like"] {
                    let mut own = fields(&scene.chance, &schema.entity(entity).unwrap().key);
                    own.insert("PostId", id.as_str());
                    self.put_of(table, entity, &own, [("Status", s("published"))]);
                }
            }
            None => self.remove_of(table, "Post"),
        }
    }

    /// A user with an email address, and the claim of that address.
    fn make_user(&mut self, table: &MemoryStore) {
        let id = *self.scene.chance.one_of(&USERS).unwrap();
        self.make_user_of(table, id);
    }

    fn make_user_of(&mut self, table: &MemoryStore, id: &str) {
        let email = *self.scene.chance.one_of(&NAMES).unwrap();
        let own = Fields::from_iter([("UserId".to_owned(), id.to_owned())]);
        let name = value(&self.scene.chance, "Name");
        self.put_of(table, "User", &own, [("Name", name), ("Email", s(email))]);
        self.claim(table, email, id);
    }

    fn claim(&mut self, table: &MemoryStore, email: &str, id: &str) {
        let claimed = Fields::from_iter([("Email".to_owned(), email.to_lowercase())]);
        self.put_of(table, "EmailClaim", &claimed, [("UserId", s(id))]);
    }

    /// An email address goes to another user.
    fn give_claim(&mut self, table: &MemoryStore) {
        let (id, email) = (*self.scene.chance.one_of(&USERS).unwrap(), *self.scene.chance.one_of(&NAMES).unwrap());
        self.claim(table, email, id);
    }

    /// Puts an item that belongs to a user or a post, which may not exist.
    fn put_belonging(&mut self, table: &MemoryStore) {
        let entity = *self.scene.chance.one_of(&BELONGING).unwrap();
        if entity == "EmailClaim" {
            return self.give_claim(table);
        }
        let schema = std::sync::Arc::clone(&self.schema);
        let fields = fields(&self.scene.chance, &schema.entity(entity).unwrap().key);
        self.put_of(table, entity, &fields, [("Status", s("published"))]);
    }

    fn put_of<const N: usize>(
        &mut self,
        table: &MemoryStore,
        entity: &str,
        fields: &Fields,
        attributes: [(&str, serde_dynamo::AttributeValue); N],
    ) {
        let schema = std::sync::Arc::clone(&self.schema);
        let definition = schema.entity(entity).unwrap();
        let key = definition.build(fields).unwrap();
        let mut item = schema.layout.key_item(&key);
        item.extend(schema.layout.type_of(entity));
        item.extend(attributes.map(|(name, value)| (name.to_owned(), value)));
        self.newest = Some(key.clone());
        self.put(table, indexed(&schema, definition, &key, item));
    }

    /// Somebody is hired, with any manager, even themselves.
    fn hire(&mut self, table: &MemoryStore) {
        let chance = self.scene.chance.clone();
        let [id, manager] = [(); 2].map(|()| *chance.one_of(&EMPLOYEES).unwrap());
        let org = *chance.one_of(&PAIR).unwrap();
        let own =
            Fields::from_iter([("OrgId", org), ("EmployeeId", id)].map(|(name, id)| (name.to_owned(), id.to_owned())));
        let name = value(&chance, "Name");
        if chance.percent(25) {
            self.put_of(table, "Employee", &own, [("Name", name)]);
        } else {
            self.put_of(table, "Employee", &own, [("Name", name), ("ManagerId", s(manager))]);
        }
    }

    /// An employee, often the one written last.
    fn employee(&mut self, table: &MemoryStore) -> Option<(Key, Item)> {
        let newest = self.newest.clone().filter(|_| self.scene.chance.percent(60));
        let all = self.any(table, |definition| definition.name == "Employee");
        let layout = &self.schema.layout;
        let held = newest.and_then(|newest| {
            table.view(Table::Main, |items| {
                let item = items.get(&newest)?;
                (text(item, layout.entity_type.as_ref().unwrap()) == Some("Employee"))
                    .then(|| (newest.clone(), item.clone()))
            })
        });
        held.or(all)
    }

    /// An employee gets another manager, none, or themselves, with the index keys that follow.
    fn report_elsewhere(&mut self, table: &MemoryStore) {
        let Some((key, mut item)) = self.employee(table) else { return };
        let schema = std::sync::Arc::clone(&self.schema);
        let manager = (!self.scene.chance.percent(20)).then(|| s(self.scene.chance.one_of(&EMPLOYEES).unwrap()));
        match &manager {
            Some(manager) => drop(item.insert("ManagerId".to_owned(), manager.clone())),
            None => drop(item.remove("ManagerId")),
        }
        let definition = schema.entity("Employee").unwrap();
        let mut written = definition.index_attributes(&schema.layout, &definition.fields(&key, &item).unwrap());
        written.push(("ManagerId".to_owned(), manager));
        let mut update = Update::default();
        for (name, value) in written {
            match value {
                Some(value) => drop(update.set.insert(name, value)),
                None => drop(update.remove.insert(name)),
            }
        }
        self.newest = Some(key.clone());
        self.act(table, key, Action::Update(update));
    }

    /// A declared or undeclared attribute of an employee is added, changed or removed.
    fn annotate(&mut self, table: &MemoryStore) {
        let Some((key, _)) = self.employee(table) else { return };
        let chance = &self.scene.chance;
        let name = (*chance.one_of(&["Note0", "Note1", "Name", "CreatedAt"]).unwrap()).to_owned();
        let update = if chance.percent(25) {
            Update { remove: BTreeSet::from([name]), ..Update::default() }
        } else {
            Update::set(Item::from([(name, n(&chance.below(9).to_string()))]))
        };
        self.newest = Some(key.clone());
        self.act(table, key, Action::Update(update));
    }

    /// An employee that was read long before is put back, with the old manager and path.
    fn put_back_employee(&mut self, table: &MemoryStore) {
        let is_employee =
            |item: &&Item| text(item, self.schema.layout.entity_type.as_ref().unwrap()) == Some("Employee");
        let employees: Vec<Item> = self.read_before.iter().filter(is_employee).cloned().collect();
        if let Some(item) = self.scene.chance.one_of(&employees).cloned() {
            self.newest = self.schema.layout.key(&item);
            self.put(table, item);
        }
    }
}
