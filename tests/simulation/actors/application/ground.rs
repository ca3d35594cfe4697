//! What the application does with what others hang on, and with what stands below each other.

use std::collections::BTreeSet;

use derive::write::{Action, Update};
use keys::{
    fields::Fields,
    item::{Item, text},
    key::Key,
    path::Path,
};
use store::memory::MemoryStore;

use super::Application;
use crate::items::{NAMES, PAIR, USERS, fields, indexed, n, s, value};

/// Ids of those who work somewhere.
const EMPLOYEES: [&str; 5] = ["ceo", "vp", "v/p", "x#", "dev"];

/// What hangs on a user or a post.
const HANGING: [&str; 10] =
    ["Subscription", "CartItem", "EmailClaim", "Follow", "Like", "Membership", "Member", "View", "Comment", "Post"];

impl Application {
    /// Somebody comes, goes elsewhere, or is written to on the way.
    pub(super) fn move_about(&mut self, table: &MemoryStore) {
        match self.scene.chance.below(10) {
            0..=2 => self.hire(table),
            3..=5 => self.report_elsewhere(table),
            _ => self.annotate(table),
        }
    }

    /// Somebody or something goes, and what would hang there comes.
    pub(super) fn remove_and_hang(&mut self, table: &MemoryStore) {
        match self.scene.chance.below(10) {
            0 | 1 => self.remove_of(table, "User"),
            2 => self.remove_of(table, "Post"),
            3 => self.make_user(table),
            _ => self.hang(table),
        }
    }

    /// Something that a cascade follows from, or a move.
    pub(super) fn touch_ground(&mut self, table: &MemoryStore) {
        match self.scene.chance.below(18) {
            0 | 1 => self.remove_of(table, "User"),
            2 => self.make_user(table),
            3 => self.remove_of(table, "Post"),
            4 | 5 => self.hang(table),
            6 => self.give_claim(table),
            7..=9 => self.hire(table),
            10 | 11 => self.report_elsewhere(table),
            12 => self.remove_of(table, "Employee"),
            13..=15 => self.annotate(table),
            16 => self.copy_employee(table),
            _ => self.put_back_employee(table),
        }
    }

    fn remove_of(&mut self, table: &MemoryStore, entity: &str) {
        if let Some((key, _)) = self.any(table, |definition| definition.name == entity) {
            self.act(table, key, Action::Delete);
        }
    }

    /// A user with an address, which is theirs from then on.
    fn make_user(&mut self, table: &MemoryStore) {
        let (id, email) = (*self.scene.chance.one_of(&USERS).unwrap(), *self.scene.chance.one_of(&NAMES).unwrap());
        let own = Fields::from_iter([("UserId".to_owned(), id.to_owned())]);
        let name = value(&self.scene.chance, "Name");
        self.put_of(table, "User", &own, [("Name", name), ("Email", s(email))]);
        self.claim(table, email, id);
    }

    fn claim(&mut self, table: &MemoryStore, email: &str, id: &str) {
        let claimed = Fields::from_iter([("Email".to_owned(), email.to_lowercase())]);
        self.put_of(table, "EmailClaim", &claimed, [("UserId", s(id))]);
    }

    /// An address is somebody else's.
    fn give_claim(&mut self, table: &MemoryStore) {
        let (id, email) = (*self.scene.chance.one_of(&USERS).unwrap(), *self.scene.chance.one_of(&NAMES).unwrap());
        self.claim(table, email, id);
    }

    /// Something hangs on a user or a post that may be there.
    fn hang(&mut self, table: &MemoryStore) {
        let entity = *self.scene.chance.one_of(&HANGING).unwrap();
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

    /// Somebody works here: below their manager, as a right client writes it, or anywhere.
    fn hire(&mut self, table: &MemoryStore) {
        let chance = self.scene.chance.clone();
        let (id, manager) = (*chance.one_of(&EMPLOYEES).unwrap(), *chance.one_of(&EMPLOYEES).unwrap());
        let above = self.any(table, |definition| definition.name == "Employee").filter(|_| chance.percent(50));
        let (org, mut segments) = if let Some((key, _)) = above {
            self.place(&key)
        } else {
            let ids = (0..chance.below(3)).map(|_| (*chance.one_of(&EMPLOYEES).unwrap()).to_owned());
            let wrong: Vec<String> = ids.collect();
            ((*chance.one_of(&PAIR).unwrap()).to_owned(), wrong)
        };
        let above = segments.last().cloned();
        segments.push(id.to_owned());
        let manager = if chance.percent(60) { above } else { Some(manager.to_owned()) };
        let mut attributes = vec![("Name", value(&chance, "Name"))];
        attributes.extend(manager.map(|manager| ("ManagerId", s(&manager))));
        attributes.extend(chance.percent(30).then(|| ("Note0", n("1"))));
        self.put_employee(table, &org, segments, attributes);
    }

    fn put_employee(
        &mut self,
        table: &MemoryStore,
        org: &str,
        segments: Vec<String>,
        attributes: Vec<(&str, serde_dynamo::AttributeValue)>,
    ) {
        let path = Path::new(segments).unwrap().to_string();
        let fields = Fields::from_iter([("OrgId".to_owned(), org.to_owned()), ("Path".to_owned(), path)]);
        let schema = std::sync::Arc::clone(&self.schema);
        let definition = schema.entity("Employee").unwrap();
        let key = definition.build(&fields).unwrap();
        let mut item = schema.layout.key_item(&key);
        item.extend(schema.layout.type_of("Employee"));
        item.extend(attributes.into_iter().map(|(name, value)| (name.to_owned(), value)));
        self.newest = Some(key.clone());
        self.put(table, indexed(&schema, definition, &key, item));
    }

    /// Organization and path of an employee.
    fn place(&self, key: &Key) -> (String, Vec<String>) {
        let fields = self.schema.entity("Employee").unwrap().key.parse_key(key).unwrap();
        let path: Path = fields.get("Path").unwrap().parse().unwrap();
        (fields.get("OrgId").unwrap().to_owned(), path.segments().to_vec())
    }

    /// An employee, often the one that was written last.
    fn employee(&mut self, table: &MemoryStore) -> Option<(Key, Item)> {
        let newest = self.newest.clone().filter(|_| self.scene.chance.percent(60));
        let is_newest = |(key, _): &(Key, Item)| newest.as_ref().is_none_or(|newest| newest == key);
        let all = self.any(table, |definition| definition.name == "Employee");
        let layout = &self.schema.layout;
        let held = newest.as_ref().and_then(|newest| {
            table.view(derive::write::Table::Main, |items| {
                let item = items.get(newest)?;
                (text(item, layout.entity_type.as_ref().unwrap()) == Some("Employee"))
                    .then(|| (newest.clone(), item.clone()))
            })
        });
        held.filter(is_newest).or(all)
    }

    /// An employee reports to somebody else, to nobody, or to themselves.
    fn report_elsewhere(&mut self, table: &MemoryStore) {
        let Some((key, _)) = self.any(table, |definition| definition.name == "Employee") else { return };
        let manager = "ManagerId".to_owned();
        let update = if self.scene.chance.percent(20) {
            Update { remove: BTreeSet::from([manager]), ..Update::default() }
        } else {
            Update::set(Item::from([(manager, s(self.scene.chance.one_of(&EMPLOYEES).unwrap()))]))
        };
        self.newest = Some(key.clone());
        self.act(table, key, Action::Update(update));
    }

    /// An attribute of an employee is added, changed or removed, one that is declared or one that is not.
    fn annotate(&mut self, table: &MemoryStore) {
        let Some((key, _)) = self.employee(table) else { return };
        let chance = &self.scene.chance;
        let name = (*chance.one_of(&["Note0", "Note1", "Note2", "Note3", "Name", "CreatedAt"]).unwrap()).to_owned();
        let update = if chance.percent(25) {
            Update { remove: BTreeSet::from([name]), ..Update::default() }
        } else {
            Update::set(Item::from([(name, n(&chance.below(9).to_string()))]))
        };
        self.newest = Some(key.clone());
        self.act(table, key, Action::Update(update));
    }

    /// An employee stands under a second key as well.
    fn copy_employee(&mut self, table: &MemoryStore) {
        let Some((key, item)) = self.any(table, |definition| definition.name == "Employee") else { return };
        let (org, mut segments) = self.place(&key);
        let id = segments.pop().unwrap();
        let above = *self.scene.chance.one_of(&EMPLOYEES).unwrap();
        let segments = if segments.is_empty() { vec![above.to_owned(), id] } else { vec![id] };
        let kept = ["Name", "ManagerId", "Note0"];
        let kept = kept.into_iter().filter_map(|name| Some((name, item.get(name)?.clone()))).collect();
        self.put_employee(table, &org, segments, kept);
    }

    /// An employee that was read long before is put back, where they may have moved meanwhile.
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
