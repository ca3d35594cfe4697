//! Writes the draft, and checks each part of it: a part with which the manifest is not valid becomes a comment.

use std::collections::{BTreeMap, BTreeSet};

use keys::tables::{KeyAttribute, KeyType};

use crate::{
    Draft,
    entities::{AttributeFacts, Found, IndexForms, TableKinds, all_as_they_are},
    names::{commented, entity, free, is_whole_name, key, list, percent, string, thousands, wrapped},
    proposals::{self, Proposal},
    shape::{Extent, IndexShape, SampledTable, TableShape},
    words::share,
};

/// Most attributes that an entity lists. A person cannot read more at once, and Ripple needs only those that a derivation
/// names.
const ATTRIBUTES_MAX: usize = 40;

/// An entity for checks of what comes before the first one, because a manifest without any is not valid.
const PROBE: [&str; 3] = ["[entity.Probe]", "partition-key = \"PROBE#{probeId}\"", "sort-key = \"PROBE\""];

/// A part of the draft.
enum Part<'a> {
    /// Lines as they are.
    Lines(Vec<String>),
    /// An entity, whose lines depend on the proposals, and the position of its table.
    Entity(usize, &'a Found<'a>),
}

/// Attributes of each entity that a proposal derives.
type Derived = BTreeMap<String, Vec<String>>;

/// The parts that are accepted so far.
struct Parts<'a> {
    tables: &'a [SampledTable],
    is_one: bool,
    /// Names of the attributes that only contain keys of an index with forms, by table.
    hidden: Vec<BTreeSet<String>>,
    all: Vec<Part<'a>>,
}

/// Writes the draft of these tables; `is_one` declares a single one by `[table]`.
pub(crate) fn render(origin: &str, tables: &[SampledTable], mut kinds: Vec<TableKinds<'_>>, is_one: bool) -> Draft {
    name_apart(&mut kinds);
    let mut notes = Vec::new();
    let indexed: Vec<Vec<EntityIndex>> =
        tables.iter().zip(&mut kinds).map(|(table, kinds)| place_in_indexes(&table.shape, kinds, is_one)).collect();
    let hidden = tables.iter().zip(&indexed).map(|(table, indexed)| hidden(&table.shape, indexed, is_one)).collect();
    let mut parts = Parts { tables, is_one, hidden, all: Vec::new() };
    let mut live: Vec<(usize, &Found<'_>)> = Vec::new();
    for (at, ((table, kinds), indexed)) in tables.iter().zip(&kinds).zip(&indexed).enumerate() {
        parts.add_table(table, kinds);
        for note in table.notes.iter().chain(&kinds.notes) {
            let lines = note.lines().flat_map(wrapped).collect();
            parts.all.push(Part::Lines([vec![String::new()], lines].concat()));
        }
        for found in &kinds.found {
            if parts.add_entity(at, found) {
                live.push((at, found));
                parts.add_entity_indexes(found, indexed);
            }
        }
        let has_any = live.iter().any(|(of, _)| *of == at);
        if !has_any && (is_one || kinds.found.is_empty() || kinds.type_attribute.is_none()) {
            parts.add_example(table);
        }
    }
    let (proposed, undecided) = proposals::find(tables, &live);
    let (accepted, derived) = parts.accept(proposed, &mut notes);
    notes.extend(undecided);
    let mut lines = head(origin, tables, is_one);
    lines.extend(parts.lines(&derived, false));
    lines.extend(proposal_lines(&accepted, &notes, tables));
    lines.extend(parts.access_lines(&live));
    // An empty table declares no entity yet, which is the one mistake that a person has to correct.
    let probe: &[&str] = if live.is_empty() && is_one { &PROBE } else { &[] };
    if let Err(why) = manifest::load(&[lines.join("\n").as_str(), &probe.join("\n")].join("\n")) {
        let note = wrapped(&format!("Ripple cannot declare this: {why}"));
        lines = [note, commented(&lines)].concat();
        live.clear();
    }
    Draft {
        text: lines.join("\n") + "\n",
        entities: live.iter().map(|(_, found)| found.name.clone()).collect(),
        proposals: accepted.into_iter().map(|(proposal, _)| proposal.name).collect(),
    }
}

/// Gives kinds of several tables different names, unless an attribute names them.
fn name_apart(kinds: &mut [TableKinds<'_>]) {
    let mut taken = BTreeSet::new();
    for table in kinds {
        let is_named = table.type_attribute.is_some();
        for found in &mut table.found {
            if !is_named {
                found.name = free(&found.name, |name| taken.contains(name));
            }
            taken.insert(found.name.clone());
        }
    }
}

// ---- Indexes ----

/// An index key of an entity's items.
struct EntityIndex {
    entity: String,
    index: String,
    forms: Result<IndexForms, String>,
    share: f64,
}

/// Finds which kinds are in which index. In a table by `[tables.NAME]`, forms are for keys with constant text only.
fn place_in_indexes(shape: &TableShape, kinds: &mut TableKinds<'_>, is_one: bool) -> Vec<EntityIndex> {
    let mut all = Vec::new();
    let type_attribute = kinds.type_attribute.clone();
    for index in &shape.indexes {
        let is_in = |found: &Found<'_>| {
            let has = |key: &KeyAttribute| found.items.iter().any(|item| item.contains_key(&key.name));
            index.pk.iter().chain(&index.sk).all(has)
        };
        let mut placed = Vec::new();
        for found in &mut kinds.found {
            if is_in(found) {
                found.indexes.push(index.name.clone());
            }
            let (forms, n) = match found.in_index((shape, type_attribute.as_deref()), index) {
                Ok(None) => continue,
                Ok(Some(forms)) => (Ok(forms.clone()), forms.n_items),
                Err(why) => (Err(why), 0),
            };
            let share = if found.declared.is_some() { 1.0 } else { share(n, found.items.len()) };
            placed.push(EntityIndex { entity: found.name.clone(), index: index.name.clone(), forms, share });
        }
        let is_declared = kinds.found.iter().any(|found| found.declared.is_some());
        let has_form = |it: &EntityIndex| match &it.forms {
            Ok(forms) => {
                forms.pk != all_as_they_are(&index.pk)
                    || forms.sk.as_ref().is_some_and(|form| *form != all_as_they_are(&index.sk))
            }
            Err(_) => is_declared,
        };
        if is_one || placed.iter().any(has_form) {
            all.extend(placed);
        }
    }
    all
}

/// The attributes that contain index keys of a form, which an entity does not list.
fn hidden(shape: &TableShape, indexed: &[EntityIndex], is_one: bool) -> BTreeSet<String> {
    let has_forms = |index: &&IndexShape| is_one || indexed.iter().any(|it| it.index == index.name && it.forms.is_ok());
    let keys = shape.indexes.iter().filter(has_forms).flat_map(|index| index.pk.iter().chain(&index.sk));
    let used: BTreeSet<&String> =
        indexed.iter().filter_map(|it| it.forms.as_ref().ok()).flat_map(|it| &it.fields).collect();
    keys.map(|key| key.name.clone()).filter(|name| !used.contains(name)).collect()
}

/// The declaration of a key attribute.
fn key_attribute(it: &KeyAttribute) -> String {
    match it.of {
        KeyType::S => string(&it.name),
        KeyType::N => format!("{{ name = {}, type = \"N\" }}", string(&it.name)),
        KeyType::B => format!("{{ name = {}, type = \"B\" }}", string(&it.name)),
    }
}

fn key_attributes(all: &[KeyAttribute]) -> String {
    match all {
        [one] => key_attribute(one),
        all => format!("[{}]", all.iter().map(key_attribute).collect::<Vec<_>>().join(", ")),
    }
}

fn index_lines(shape: &TableShape, index: &IndexShape, title: &str) -> Vec<String> {
    let mut lines = vec![title.to_owned(), format!("partition-key = {}", key_attributes(&index.pk))];
    if !index.sk.is_empty() {
        lines.push(format!("sort-key = {}", key_attributes(&index.sk)));
    }
    if let Some(names) = &index.projection {
        // A manifest names no keys here, which an index has anyway.
        let keys = || [&shape.pk].into_iter().chain(&shape.sk).chain(&index.pk).chain(&index.sk);
        let others = names.iter().filter(|name| !keys().any(|key| key.name == **name)).map(String::as_str);
        lines.push(format!("projection = {}", list(&others.collect::<Vec<_>>())));
    }
    lines
}

impl<'a> Parts<'a> {
    /// The lines of all parts; `is_active` declares the derived attributes too.
    fn lines(&self, derived: &Derived, is_active: bool) -> Vec<String> {
        let lines = self.all.iter().map(|part| match part {
            Part::Lines(lines) => lines.clone(),
            Part::Entity(table, found) => {
                let none = Vec::new();
                self.entity_lines(*table, found, derived.get(&found.name).unwrap_or(&none), is_active)
            }
        });
        lines.flatten().collect()
    }

    /// The reason why the manifest is not valid with these lines too.
    fn refusal(&self, more: &[String], derived: &Derived) -> Option<String> {
        let text = [self.lines(derived, true).as_slice(), more].concat().join("\n");
        let error = manifest::load(&text).err()?;
        // Its line is that of a text that nobody sees.
        Some(format!("{}: {}", error.key, error.what).trim_start_matches(": ").to_owned())
    }

    /// Adds lines, as a comment if they are not valid.
    fn add_checked(&mut self, lines: Vec<String>) {
        let has_entity = !self.is_one || self.all.iter().any(|part| matches!(part, Part::Entity(..)));
        let probe = PROBE.iter().filter(|_| !has_entity).map(|line| (*line).to_owned());
        let refusal = self.refusal(&lines.iter().cloned().chain(probe).collect::<Vec<_>>(), &Derived::new());
        let lines = match refusal {
            None => lines,
            Some(why) => [wrapped(&format!("Not possible: {why}")), commented(&lines)].concat(),
        };
        self.all.push(Part::Lines([vec![String::new()], lines].concat()));
    }

    fn add_table(&mut self, table: &SampledTable, kinds: &TableKinds<'_>) {
        let shape = &table.shape;
        let title = if self.is_one { "[table]".to_owned() } else { format!("[tables.{}]", key(&shape.name)) };
        let mut lines = vec![String::new(), title, format!("partition-key = {}", key_attribute(&shape.pk))];
        lines.extend(shape.sk.as_ref().map(|sk| format!("sort-key = {}", key_attribute(sk))));
        lines.extend(kinds.type_attribute.as_ref().map(|name| format!("type = {}", string(name))));
        if kinds.type_attribute.is_none() && self.is_one && !kinds.found.is_empty() {
            lines.extend(wrapped("No attribute names the kind of an item, so Ripple tells it by the form of its key."));
        }
        lines.extend(shape.time_to_live.as_ref().map(|name| format!("time-to-live = {}", string(name))));
        if kinds.is_unescaped && self.is_one {
            lines.push("# Keys contain a `%` that is no escape, so they contain values as they are.".to_owned());
            lines.push("escape = \"none\"".to_owned());
        }
        self.all.push(Part::Lines(lines));
        for index in &shape.indexes {
            self.add_index(shape, index);
        }
        if !shape.local_indexes.is_empty() {
            let names = shape.local_indexes.join(", ");
            let note =
                format!("Local secondary indexes are not declared, because Ripple does not search them: {names}.");
            self.all.push(Part::Lines([vec![String::new()], wrapped(&note)].concat()));
        }
    }

    fn add_index(&mut self, shape: &TableShape, index: &IndexShape) {
        if !self.is_one {
            let title = format!("[tables.{}.index.{}]", key(&shape.name), key(&index.name));
            // An untyped table is not valid before its entity, so its indexes are checked with it.
            let lines = index_lines(shape, index, &title);
            self.all.push(Part::Lines([vec![String::new()], lines].concat()));
            return;
        }
        let title = format!("[index.{}]", key(&index.name));
        if index.texts().is_none() {
            let why = format!(
                "Not declared: in a table by [table], Ripple searches only indexes with one partition key and one sort key \
                 of type S. {} has another key.",
                index.name
            );
            let lines = [wrapped(&why), commented(&index_lines(shape, index, &title))].concat();
            self.all.push(Part::Lines([vec![String::new()], lines].concat()));
            return;
        }
        self.add_checked(index_lines(shape, index, &title));
    }

    /// Adds an entity; false if it can only be a comment.
    fn add_entity(&mut self, table: usize, found: &'a Found<'a>) -> bool {
        let lines = self.entity_lines(table, found, &[], true);
        match self.refusal(&lines, &Derived::new()) {
            None => {
                self.all.push(Part::Entity(table, found));
                true
            }
            Some(why) => {
                let lines = [wrapped(&format!("Not possible: {why}")), commented(&lines)].concat();
                self.all.push(Part::Lines([vec![String::new()], lines].concat()));
                false
            }
        }
    }

    fn add_entity_indexes(&mut self, found: &Found<'_>, indexed: &[EntityIndex]) {
        for it in indexed.iter().filter(|it| it.entity == found.name) {
            let forms = match &it.forms {
                Ok(forms) => forms,
                Err(why) => {
                    let note = format!("{} in {}: not declared, because {why}.", found.name, it.index);
                    self.all.push(Part::Lines([vec![String::new()], wrapped(&note)].concat()));
                    continue;
                }
            };
            let mut lines = Vec::new();
            if it.share < 1.0 {
                let share = percent(it.share);
                lines.push(format!("# {share} of the sampled items are in it. `only-if` and `only-with` say which."));
            }
            lines.push(format!("[entity.{}.index.{}]", key(&found.name), key(&it.index)));
            lines.push(format!("partition-key = {}", string(&forms.pk)));
            lines.extend(forms.sk.as_ref().map(|form| format!("sort-key = {}", string(form))));
            self.add_checked(lines);
        }
    }

    /// Adds an entity of which no item was read.
    fn add_example(&mut self, table: &SampledTable) {
        let shape = &table.shape;
        let name = entity(&[&shape.name]);
        let why = if table.sample.items.is_empty() { "No item was read" } else { "No kind of items can be declared" };
        if !self.is_one {
            let lines = vec![
                format!("# {why}. This is right if all items of the table are of one kind and its keys are plain."),
                format!("[entity.{}]", key(&name)),
                format!("table = {}", string(&shape.name)),
                "# attributes = [\"name\"]".to_owned(),
            ];
            self.add_checked(lines);
            return;
        }
        let sk = shape.sk.as_ref().map_or("", |sk| sk.name.as_str());
        let lines = [
            format!("{why}, so this is only an example: the forms of {} and {sk} are yours.", shape.pk.name),
            "`ripple check` refuses the file until it declares an entity.".to_owned(),
            "[entity.User]".to_owned(),
            format!("partition-key = \"USER#{{userId}}\"  # {}", shape.pk.name),
            format!("sort-key = \"PROFILE\"  # {sk}"),
            "attributes = [\"name\"]".to_owned(),
        ];
        self.all.push(Part::Lines([vec![String::new()], commented(&lines)].concat()));
    }

    /// The lines of an entity. Attributes that a proposal derives are in `derived-attributes`.
    fn entity_lines(&self, table: usize, found: &Found<'_>, derived: &[String], is_active: bool) -> Vec<String> {
        let n = thousands(found.items.len());
        let mut lines = vec![String::new()];
        if found.declared.is_none() {
            lines.push(format!("# {n} sampled item{}.", if n == "1" { "" } else { "s" }));
        }
        if found.n_misfits > 0 {
            let note = format!(
                "{} more of this kind have a key of another form, or one with a `%` or `#` within a value: Ripple cannot \
                 read them, and `ripple preflight` lists them.",
                thousands(found.n_misfits)
            );
            lines.extend(wrapped(&note));
        }
        lines.push(format!("[entity.{}]", key(&found.name)));
        if !self.is_one {
            lines.extend(self.tables.get(table).map(|table| format!("table = {}", string(&table.shape.name))));
        }
        lines.extend(found.pk.as_ref().map(|form| format!("partition-key = {}", string(form))));
        lines.extend(found.sk.as_ref().map(|form| format!("sort-key = {}", string(form))));
        lines.extend(self.attribute_lines(table, found, derived));
        if !derived.is_empty() {
            let names: Vec<&str> = derived.iter().map(String::as_str).collect();
            let line = format!("derived-attributes = {}", list(&names));
            lines.push(if is_active { line } else { format!("# {line}  # for the proposals below") });
        }
        lines
    }

    fn attribute_lines(&self, table: usize, found: &Found<'_>, derived: &[String]) -> Vec<String> {
        let shape = self.tables.get(table).map(|table| &table.shape);
        let hidden = self.hidden.get(table);
        let is_listed = |name: &String| {
            let is_expiry = shape.is_some_and(|shape| shape.time_to_live.as_ref() == Some(name));
            !is_expiry && !derived.contains(name) && !hidden.is_some_and(|hidden| hidden.contains(name))
        };
        let (mut listed, rest): (Vec<_>, Vec<_>) =
            found.attributes.iter().filter(|it| is_listed(&it.name)).partition(|it| {
                shape.is_some_and(|shape| shape.is_key(&it.name)) || found.attributes.len() <= ATTRIBUTES_MAX
            });
        let n_free = ATTRIBUTES_MAX.saturating_sub(listed.len());
        listed.extend(rest.iter().take(n_free));
        if listed.is_empty() {
            return Vec::new();
        }
        listed.sort_by(|one, other| one.name.cmp(&other.name));
        let width = listed.iter().map(|it| string(&it.name).len()).max().unwrap_or_default() + 1;
        let line = |it: &&AttributeFacts| {
            let types = it.types.iter().copied().collect::<Vec<_>>().join(" or ");
            let part = share(it.n_items, found.items.len());
            let part =
                if part < 1.0 && found.declared.is_none() { format!(", in {}", percent(part)) } else { String::new() };
            if !is_whole_name(&it.name) {
                // The manifest reads it as a path.
                return commented(&[format!("{}  # {types}{part}; no derivation can name it", string(&it.name))])
                    .join(" ");
            }
            format!("    {:<width$}  # {types}{part}", string(&it.name) + ",")
        };
        let mut lines = vec!["attributes = [".to_owned()];
        lines.extend(listed.iter().map(line));
        if rest.len() > n_free {
            lines.push(format!("    # and {} more", rest.len() - n_free));
        }
        lines.push("]".to_owned());
        lines
    }

    /// The reads that a file declares, each as a comment if the manifest is not valid with it.
    fn access_lines(&self, live: &[(usize, &Found<'_>)]) -> Vec<String> {
        let sections = access_sections(live);
        let mut lines = Vec::new();
        if !sections.is_empty() {
            lines.extend([String::new(), "# ---- Access patterns ----".to_owned()]);
        }
        let mut accepted = Vec::new();
        for section in sections {
            lines.push(String::new());
            match self.refusal(&[accepted.as_slice(), &section].concat(), &Derived::new()) {
                None => {
                    lines.extend(section.iter().cloned());
                    accepted.extend(section);
                }
                Some(why) => {
                    lines.extend(wrapped(&format!("Not possible: {why}")));
                    lines.extend(commented(&section));
                }
            }
        }
        lines
    }

    /// The proposals with which the manifest is valid, each with its lines, and the attributes that they derive.
    fn accept(&self, proposed: Vec<Proposal>, notes: &mut Vec<String>) -> (Vec<(Proposal, Vec<String>)>, Derived) {
        let mut accepted: Vec<(Proposal, Vec<String>)> = Vec::new();
        let mut derived = Derived::new();
        for mut proposal in proposed {
            let name = free(&proposal.name, |name| accepted.iter().any(|(it, _)| it.name == name));
            let mut with = derived.clone();
            with.entry(proposal.entity.clone()).or_default().extend(proposal.derived.clone());
            let so_far: Vec<String> = accepted.iter().flat_map(|(_, lines)| lines.clone()).collect();
            let valid = proposal.forms.iter().find_map(|form| {
                let mut lines = form.clone();
                if let Some(title) = lines.first_mut() {
                    *title = format!("[derivation.{name}]");
                }
                self.refusal(&[so_far.as_slice(), &lines].concat(), &with).is_none().then_some(lines)
            });
            if let Some(lines) = valid {
                proposal.name = name;
                accepted.push((proposal, lines));
                derived = with;
            } else {
                let why = "Ripple cannot declare this yet, because it would not find the items when their source changes. It \
                           needs an index or a mirror: see `found` in docs/own-table.md.";
                notes.push(format!("{} {why}", proposal.evidence.join(" ")));
            }
        }
        (accepted, derived)
    }
}

// ---- Head and end ----

fn head(origin: &str, tables: &[SampledTable], is_one: bool) -> Vec<String> {
    let mut lines = wrapped(&format!("A draft by `ripple init`, from {origin}. It derives nothing yet."));
    if tables.iter().any(|table| table.declared.is_some()) {
        lines.extend(wrapped("Its entities are those that the file declares, and no item was read."));
    }
    for table in tables.iter().filter(|table| table.declared.is_none()) {
        lines.extend(wrapped(&read_of(table)));
        if table.sample.n_own > 0 {
            lines.extend(wrapped(&format!("{} of Ripple's own items are left out.", thousands(table.sample.n_own))));
        }
    }
    let guesses = "Names of fields, such as `userId` in USER#{userId}, are guesses unless an attribute has the same value: \
                   rename them as you like.";
    let guesses = if tables.iter().all(|table| table.declared.is_some()) { "" } else { guesses };
    lines.extend(wrapped(&format!("{guesses} docs/manifest.md explains every key.")));
    if !is_one {
        lines.extend(wrapped("Ripple's own items are in a table of their own: see docs/own-table.md."));
    }
    if tables.len() > 1 {
        lines.extend(wrapped("Delete the tables and entities that no derivation is to read."));
    }
    let table = tables.first().filter(|_| is_one).map(|it| format!(" --table {}", it.shape.name)).unwrap_or_default();
    lines.extend(commented(&[
        "Then: ripple check ripple.toml".to_owned(),
        format!("      ripple preflight --config ripple.toml{table}"),
    ]));
    lines
}

/// How much of a table was read, in a sentence.
fn read_of(table: &SampledTable) -> String {
    let (name, n) = (&table.shape.name, table.sample.items.len() + table.sample.n_own);
    let read = format!("{} item{}", thousands(n), if n == 1 { "" } else { "s" });
    let of = table.shape.n_items.filter(|all| *all > 0).map(|all| format!(" of about {}", thousands(all)));
    let of = of.unwrap_or_default();
    match &table.sample.extent {
        Extent::NoItems => format!("{name}: no items were read, so no entities could be found."),
        Extent::Whole if n == 0 => format!("{name}: the table has no items, so no entities could be found."),
        Extent::Whole if n == 1 => format!("{name}: its only item was read."),
        Extent::Whole => format!("{name}: all {read} were read."),
        Extent::Part => format!("{name}: {read}{of} were read. Kinds of items that are rare may be missing."),
        Extent::Ended(why) => format!("{name}: only {read}{of} were read, because {why}."),
    }
}

fn proposal_lines(accepted: &[(Proposal, Vec<String>)], notes: &[String], tables: &[SampledTable]) -> Vec<String> {
    if accepted.is_empty() && notes.is_empty() {
        let was_read = tables.iter().any(|table| !table.sample.items.is_empty());
        let none = "The sample shows no copy and no count that the application keeps by hand: at least 20 pairs of items have to \
                    agree. docs/own-table.md shows how to declare what you need.";
        return if was_read { [vec![String::new()], wrapped(none)].concat() } else { Vec::new() };
    }
    let mut lines = vec![String::new(), "# ---- Proposals ----".to_owned(), "#".to_owned()];
    if !accepted.is_empty() {
        lines.extend(wrapped(
            "The application seems to keep these values by hand. To have Ripple keep one, uncomment it and \
             `derived-attributes` of its entity, remove the code that writes the value, and run `ripple backfill` once \
             it is deployed.",
        ));
    }
    for (proposal, derivation) in accepted {
        lines.push(String::new());
        lines.extend(proposal.evidence.iter().flat_map(|why| wrapped(why)));
        lines.extend(commented(derivation));
    }
    for note in notes {
        lines.push(String::new());
        lines.extend(wrapped(note));
    }
    lines
}

/// The section of each pattern of these entities, each with the position of its table.
fn access_sections(live: &[(usize, &Found<'_>)]) -> Vec<Vec<String>> {
    let mut taken = BTreeSet::new();
    let mut sections = Vec::new();
    for (table, found) in live {
        for pattern in found.declared.iter().flat_map(|declared| &declared.patterns) {
            let name = free(&pattern.name, |name| taken.contains(name));
            let is_beside = |(other, it): &&(usize, &Found<'_>)| other == table && it.pk == found.pk;
            let beside: Vec<&str> = live.iter().filter(is_beside).map(|(_, it)| it.name.as_str()).collect();
            let read = match beside.as_slice() {
                several @ [_, _, ..] if pattern.is_of_partition => list(several),
                _ => string(&found.name),
            };
            let head = [format!("[access.{name}]"), format!("{} = {read}", pattern.reads)];
            sections.push(head.into_iter().chain(pattern.lines.iter().cloned()).collect());
            taken.insert(name);
        }
    }
    sections
}
