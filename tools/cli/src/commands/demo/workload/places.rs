//! Organizations with teams, members and employees; folders with files; sensors.

use operate::words::time;
use rand::Rng as _;
use serde_dynamo::AttributeValue;

use super::{
    Application, Drawn, action,
    client::{AppAction, Step},
    field,
    items::{Attribute, BEGIN_MS, KeyFields, key, number, text},
};

/// Number of sensors.
const SENSORS: u32 = 12;

/// Time between two actions of a sensor, in milliseconds: large enough to reach many hours and days.
const STEP_MS: u64 = 60_000;

/// The subject of all folders: one, because moves of different folders must keep their order.
const FOLDERS: &str = "folders";

impl Application {
    // ---- Organizations. Each is one subject, because a manager must be written before the employees below them ----

    /// The next action. The numbers are out of 90.
    pub(super) fn of_organizations(&mut self) -> Drawn {
        let n = self.chance.random_range(0..90);
        let name = self.new_name("Organization");
        let (Some(organization), true) = (self.any("Organization"), n > 7) else {
            let id = self.items.new_id("o");
            self.remember("Organization", &key([("OrgId", &id)]));
            return action(&id, [self.items.create("Organization", &key([("OrgId", &id)]), &[text("Name", name)])]);
        };
        let id = field(&organization, "OrgId");
        match n {
            0..=15 => {
                let name = text("Name", format!("{name}, renamed"));
                action(&id, [self.items.update("Organization", &organization, &[name])])
            }
            16..=27 => {
                let (name, team) = (text("Name", self.new_name("Team")), self.items.new_id("t"));
                self.of_part("Team", &key([("OrgId", &id), ("TeamId", &team)]), name)
            }
            28..=51 => {
                let (role, user) = (text("Role", self.role()), self.any_user());
                self.of_part("Member", &key([("OrgId", &id), ("UserId", &user)]), role)
            }
            _ => self.of_employees(&id),
        }
    }

    /// Creates a team or member, or changes or deletes another one.
    fn of_part(&mut self, entity: &'static str, new: &KeyFields, attribute: Attribute) -> Drawn {
        let known = if self.happens(1, 2) { self.any(entity) } else { None };
        let (write, of) = match known {
            None => {
                self.remember(entity, new);
                (self.items.create(entity, new, &[attribute]), new.clone())
            }
            Some(known) if self.happens(1, 2) => (self.items.update(entity, &known, &[attribute]), known),
            Some(known) => (self.items.delete(entity, &known), known),
        };
        action(&field(&of, "OrgId"), [write])
    }

    fn of_employees(&mut self, org: &str) -> Drawn {
        let n = self.chance.random_range(0..10);
        let Some(employee) = self.any("Employee").filter(|_| n >= 5) else {
            let (id, name) = (self.items.new_id("e"), text("Name", self.new_name("Employee")));
            let fields = key([("OrgId", org), ("EmployeeId", &id)]);
            let manager = self.manager(org, &id);
            self.remember("Employee", &fields);
            return action(org, [self.items.create("Employee", &fields, &[name, ("ManagerId", manager)])]);
        };
        let (org, id) = (field(&employee, "OrgId"), field(&employee, "EmployeeId"));
        if n > 7 {
            return action(&org, [self.items.delete("Employee", &employee)]);
        }
        let manager = self.manager(&org, &id);
        action(&org, [self.items.update("Employee", &employee, &[("ManagerId", manager)])])
    }

    /// A new manager for an employee: a random one of the organization, and sometimes none.
    fn manager(&mut self, org: &str, employee: &str) -> Option<AttributeValue> {
        let of_org = |fields: &&KeyFields| field(fields, "OrgId") == org;
        let there: Vec<KeyFields> = self.known.get("Employee").into_iter().flatten().filter(of_org).cloned().collect();
        let at = self.chance.random_range(0..there.len().max(1));
        let manager = if self.happens(1, 8) { None } else { there.get(at).map(|fields| field(fields, "EmployeeId")) };
        self.below(employee, manager).map(AttributeValue::S)
    }

    /// Moves a folder or employee below `parent`. It goes to the top if there is no parent, or if the parent is below
    /// it.
    fn below(&mut self, id: &str, parent: Option<String>) -> Option<String> {
        let mut above = parent.as_ref();
        while let Some(other) = above {
            if other == id {
                self.parents.remove(id);
                return None;
            }
            above = self.parents.get(other);
        }
        match &parent {
            Some(parent) => self.parents.insert(id.to_owned(), parent.clone()),
            None => self.parents.remove(id),
        };
        parent
    }

    // ---- Folders and files ----

    /// The next action. The numbers are out of 90.
    pub(super) fn of_files(&mut self) -> Drawn {
        let n = self.chance.random_range(0..90);
        let (Some(folder), true) = (self.any("Folder"), n > 19) else {
            let id = self.items.new_id("d");
            let attributes = self.place(&id, true, self.new_name("folder"));
            self.remember("Folder", &key([("FolderId", &id)]));
            return action(FOLDERS, [self.items.create("Folder", &key([("FolderId", &id)]), &attributes)]);
        };
        let id = field(&folder, "FolderId");
        match n {
            0..=34 => {
                let is_renamed = n <= 27;
                let name = if is_renamed { None } else { self.names.get(&id).cloned() };
                let name = name.unwrap_or_else(|| format!("{}, renamed", self.new_name("folder")));
                let attributes = self.place(&id, !is_renamed, name);
                action(FOLDERS, [self.items.update("Folder", &folder, &attributes)])
            }
            35..=39 => action(FOLDERS, [self.items.delete("Folder", &folder)]),
            _ => self.of_folder(n > 64, &id),
        }
    }

    /// The name and the parent of a folder, which are its key in an index. In one of six cases, a moved folder goes to
    /// the top.
    fn place(&mut self, id: &str, is_moved: bool, name: String) -> [Attribute; 2] {
        let parent = if is_moved {
            let to =
                if self.happens(1, 6) { None } else { self.any("Folder").map(|folder| field(&folder, "FolderId")) };
            self.below(id, to)
        } else {
            self.parents.get(id).cloned()
        };
        self.names.insert(id.to_owned(), name.clone());
        [text("Name", name), ("ParentId", parent.map(AttributeValue::S))]
    }

    /// Uploads a file to a folder, or moves, renames or deletes a file. A moved file has another key.
    fn of_folder(&mut self, is_change: bool, folder: &str) -> Drawn {
        let attributes = [
            text("Name", format!("{}.txt", self.new_name("file"))),
            number("SizeBytes", self.chance.random_range(0..5_000_000)),
        ];
        let known = if is_change { self.any("File") } else { None };
        let Some(file) = known else {
            let (id, now) = (self.items.new_id("f"), self.items.now());
            let fields = key([("FolderId", folder), ("UploadedAt", &now), ("FileId", &id)]);
            self.remember("File", &fields);
            return action(&id, [self.items.create("File", &fields, &attributes)]);
        };
        let (id, uploaded) = (field(&file, "FileId"), field(&file, "UploadedAt"));
        match self.chance.random_range(0..3) {
            0 => {
                let moved = key([("FolderId", folder), ("UploadedAt", &uploaded), ("FileId", &id)]);
                self.moved("File", &file, &moved);
                action(&id, [self.items.delete("File", &file), self.items.put("File", &moved, &attributes)])
            }
            1 => action(&id, [self.items.update("File", &file, &attributes)]),
            _ => action(&id, [self.items.delete("File", &file)]),
        }
    }

    // ---- Sensors ----

    /// One reading or several. In one of ten cases, another client corrects or removes an earlier one, which changes no
    /// roll-up.
    pub(super) fn of_readings(&mut self) -> Drawn {
        let sensor = format!("sensor-{}", self.chance.random_range(0..SENSORS));
        let n = match self.chance.random_range(0..10) {
            0..=5 => 1,
            6..=8 => self.chance.random_range(2..=12),
            _ => match self.any("Reading") {
                Some(reading) => return self.correct(&reading),
                None => 1,
            },
        };
        let mut steps = Vec::new();
        for at in 0..n {
            let at = time(BEGIN_MS + self.items.n_actions() * STEP_MS + at);
            let day = at.split('T').next().unwrap_or_default();
            let fields = key([("SensorId", &sensor), ("Day", day), ("At", &at)]);
            self.remember("Reading", &fields);
            let value = number("Value", self.chance.random_range(-20..40));
            steps.push(Step::Write(self.items.create("Reading", &fields, &[value])?));
        }
        Ok(AppAction { subject: sensor, steps })
    }

    fn correct(&mut self, reading: &KeyFields) -> Drawn {
        let value = number("Value", self.chance.random_range(-20..40));
        let write = if self.happens(1, 3) {
            self.items.delete("Reading", reading)
        } else {
            self.items.put("Reading", reading, &[value])
        };
        action(&field(reading, "SensorId"), [write])
    }
}
