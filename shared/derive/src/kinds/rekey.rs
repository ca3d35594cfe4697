//! Rekey: an item that stands under its parent's path moves when its parent is another, or is elsewhere.
//!
//! *Keeps true*: the path in an item's key is its parent's path and its own id; without a parent, its own id alone.
//! *From* an item that was made or names another parent, and from an item that left its key, *to* a look at the item,
//! or at those one level below the key that was left.
//!
//! *Level-triggered, and strict.* Where an item belongs is read when it is moved, so any order of bells ends right. A
//! move is one transaction: the old key is deleted only while every attribute that was read is unchanged, and the new
//! key is put only if nothing stands there, so an item is at every moment under exactly one key. What an application
//! added to the old item in between comes with the record of its removal, and is set where the new item lacks it.
//!
//! An item stays where it is while its parent does not exist or stands under two keys, while its place is taken, and
//! where its place would be below itself or deeper than the declaration allows. When an item of the id that is in the way
//! comes or goes, it is looked at again.
//!
//! *Example*: `ORG#o / EMP#/ceo/vp/dev` names the manager `cto`, who is at `EMP#/ceo/cto`. It becomes
//! `ORG#o / EMP#/ceo/cto/dev`; the record of the old key's removal looks at `EMP#/ceo/vp/dev/…`, one level down.

mod standing;

use std::collections::BTreeSet;

use keys::{entity::Definition, fields::Fields, key::Key, path::Path};
use serde_dynamo::AttributeValue;
use standing::Standing;

use crate::{
    change::{Change, Sight},
    derivation::{Counts, Derived, Family, Items, Kind, Part, Reach},
    effect::{Effect, Find, Ground},
    flaw::Flaw,
    kinds::{entity, knows},
    outline::Outline,
    query::Query,
    schema::{Image, Schema, Unreadable},
};

/// Why an item stays whose parents lead back to it.
const BELOW_ITSELF: &str = "its place would be below itself";

/// Why an item stays whose place has more segments than the declaration allows.
const TOO_DEEP: &str = "its place would be too deep";

/// The declaration of a rekey.
#[derive(Clone, Debug)]
pub struct Rekey {
    /// Entity of the items that move.
    pub entity: String,
    /// Field of their key that holds the path; its last segment is an item's id.
    pub path: String,
    /// Attribute of type S that holds the parent's id; an item without it stands at the top.
    pub parent: String,
    /// Index that finds an item by its id: the only field of its partition key is the path's last segment.
    pub index: String,
    /// Most segments of a path.
    pub depth_max: usize,
}

/// Where an item belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Under this key.
    At(Key),
    /// Where it is, for this reason.
    Stays(&'static str),
}

impl Rekey {
    fn path_of(&self, fields: &Fields) -> Option<Path> {
        fields.get(&self.path)?.parse().ok()
    }

    /// The id of an item: the last segment of its path.
    #[must_use]
    pub fn id_of(&self, fields: &Fields) -> Option<String> {
        self.path_of(fields)?.segments().last().cloned()
    }

    /// The parent's id; `None` at the top.
    ///
    /// # Errors
    ///
    /// [`Unreadable`] when it is no text, or empty.
    pub fn parent_of(&self, image: &Image<'_>) -> Result<Option<String>, Unreadable> {
        let unreadable = |why: &str| Unreadable { attribute: self.parent.clone(), why: why.to_owned() };
        match image.attribute(&self.parent) {
            None => Ok(None),
            Some(AttributeValue::S(text)) if text.is_empty() => Err(unreadable("is empty")),
            Some(AttributeValue::S(text)) => Ok(Some(text.clone())),
            Some(_) => Err(unreadable("is not of type S")),
        }
    }

    /// Is this reason why an item stays one that a person has to see to?
    #[must_use]
    pub fn is_flaw(&self, why: &str) -> bool {
        why == BELOW_ITSELF || why == TOO_DEEP
    }

    /// The query that finds an item by its id.
    #[must_use]
    pub fn by_id(&self, schema: &Schema, id: &str) -> Option<Query> {
        let index = schema.entity(&self.entity)?.indexes.iter().find(|index| index.index == self.index)?;
        let path = Path::new(vec![id.to_owned()]).ok()?.to_string();
        let field = |name: &str| (name == self.path).then_some(path.as_str());
        Some(Query::prefix(Some(&self.index), index.key.pk.build_of(field).ok()?, ""))
    }

    /// The place of an item below a parent, or at the top.
    #[must_use]
    pub fn place(&self, definition: &Definition, fields: &Fields, parent: Option<&Fields>) -> Place {
        let (Some(id), parent) = (self.id_of(fields), parent.map(|parent| self.path_of(parent))) else {
            return Place::Stays("its key holds no path");
        };
        let mut segments = match parent {
            None => Vec::new(),
            Some(Some(path)) => path.segments().to_vec(),
            Some(None) => return Place::Stays("its parent's key holds no path"),
        };
        if segments.contains(&id) {
            return Place::Stays(BELOW_ITSELF);
        }
        segments.push(id);
        if segments.len() > self.depth_max {
            return Place::Stays(TOO_DEEP);
        }
        let Ok(path) = Path::new(segments) else { return Place::Stays("its place is no path") };
        let mut fields = fields.clone();
        fields.insert(self.path.clone(), path.to_string());
        match definition.build(&fields) {
            Ok(key) => Place::At(key),
            Err(_) => Place::Stays("the key of its place would be too long"),
        }
    }

    /// The items one level below a key, as a query that finds those of all levels.
    fn below(&self, schema: &Schema, key: &Key) -> Option<Query> {
        let definition = schema.entity(&self.entity)?;
        definition.key.parse_key(key)?;
        Some(Query::prefix(None, &key.pk, format!("{}/", key.sk)))
    }

    /// Is this the key of an item one level below another?
    #[must_use]
    pub fn is_child(&self, above: &Key, key: &Key) -> bool {
        let rest = key.sk.strip_prefix(above.sk.as_str()).and_then(|rest| rest.strip_prefix('/'));
        above.pk == key.pk && rest.is_some_and(|rest| !rest.is_empty() && !rest.contains('/'))
    }
}

impl Kind for Rekey {
    fn kind(&self) -> &'static str {
        "rekey"
    }

    fn family(&self) -> Family {
        Family::LevelTriggered
    }

    /// It writes no attribute; a key that changes takes the item along, whole.
    fn reach(&self, schema: &Schema) -> Result<Reach, String> {
        let definition = entity(schema, &self.entity)?;
        knows(definition, [self.parent.as_str()])?;
        let holds_path = definition.key.sk.field_names() == [self.path.as_str()];
        if !holds_path || definition.key.pk.holds(&self.path) {
            return Err(format!(
                "the sort key of {} must hold {} alone, and its partition key not",
                self.entity, self.path
            ));
        }
        let index = definition.indexes.iter().find(|index| index.index == self.index);
        if index.is_none_or(|index| index.key.pk.field_names() != [self.path.as_str()]) {
            return Err(format!("the index {} does not find {} by the end of {}", self.index, self.entity, self.path));
        }
        let reads = vec![Part::existence(&self.entity), Part::attribute(&self.entity, &self.parent)];
        Ok(Reach { reads, writes: Vec::new() })
    }

    fn outline(&self, schema: &Schema) -> Outline {
        let find = |query| Find { query, via: self.entity.clone(), target: self.entity.clone() };
        let definition = schema.entity(&self.entity);
        let above = definition.map(|definition| Key::new(definition.key.pk.to_string(), definition.key.sk.to_string()));
        let below = above.map(|above| Query::prefix(None, above.pk, format!("{}/", above.sk)));
        Outline {
            terms: vec![format!("{} below that of the {} that {} names", self.path, self.entity, self.parent)],
            into: definition.map(|definition| format!("{} / {}", definition.key.pk, definition.key.sk)),
            finds: below.map(find).into_iter().collect(),
            depth_max: Some(self.depth_max),
            touches: vec![format!("{} deleted under the old key and put under the new one", self.entity)],
            ..Outline::from(&self.entity)
        }
    }

    fn entities(&self) -> Vec<&str> {
        vec![&self.entity]
    }

    fn plan(&self, schema: &Schema, sight: &Sight<'_>) -> Vec<Effect> {
        let (old, new) = sight.entity(&self.entity);
        let mut effects = Vec::new();
        match (old, new) {
            (None, Some(new)) => {
                effects.extend([Ground::Place(new.key.clone()), Ground::Awaited(new.key.clone())]);
            }
            (Some(_), Some(new)) if sight.differs_in(&self.parent) => effects.push(Ground::Place(new.key.clone())),
            (Some(old), None) => {
                effects.extend([Ground::Merge(old.key.clone()), Ground::Awaited(old.key.clone())]);
                effects.extend(
                    self.below(schema, old.key).map(|query| Ground::PlaceBelow { above: old.key.clone(), query }),
                );
            }
            _ => {}
        }
        effects.into_iter().map(Effect::Ground).collect()
    }

    fn freed(&self, schema: &Schema, change: &Change) -> Option<Effect> {
        let definition = schema.entity(&self.entity)?;
        let is_removed = change.new_image().is_none();
        let key = Some(&change.key).filter(|key| is_removed && definition.key.parse_key(key).is_some())?;
        let is_ours = change.old_image().and_then(|item| schema.image(key, item)).is_some_and(|i| i.is(&self.entity));
        (!is_ours).then(|| Effect::Ground(Ground::Awaited(key.clone())))
    }

    fn unreadable(&self, _schema: &Schema, image: &Image<'_>) -> Option<Unreadable> {
        if image.is(&self.entity) { self.parent_of(image).err() } else { None }
    }

    fn derive(&self, _name: &str, schema: &Schema, items: &Items, _counts: &Counts) -> Vec<Derived> {
        let Some(standing) = Standing::of(self, schema, items) else { return Vec::new() };
        let placed =
            |key: &Key| Derived::Placed { key: key.clone(), place: standing.key_of(key, &mut BTreeSet::new()) };
        standing.ours.keys().copied().map(placed).collect()
    }

    fn has_flaws(&self) -> bool {
        true
    }

    /// Items whose place is no place: below themselves, or deeper than there are any. Who waits for a parent, or for a
    /// place that is taken, is none of them.
    fn flaws(&self, schema: &Schema, items: &Items) -> Vec<Flaw> {
        let Some(standing) = Standing::of(self, schema, items) else { return Vec::new() };
        let flaw = |key: &Key| match standing.place_of(key, &mut BTreeSet::new()) {
            Place::Stays(why) if self.is_flaw(why) => Some(Flaw {
                key: key.clone(),
                attribute: self.parent.clone(),
                why: format!("it stays where it is: {why}"),
            }),
            _ => None,
        };
        standing.ours.keys().copied().filter_map(flaw).collect()
    }

    fn rekey(&self) -> Option<&Rekey> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use expect_test::{Expect, expect};
    use proptest::{collection::vec, option, prelude::*};

    use super::*;
    use crate::fixture::{effects, employee_move, inserted, item, key_of, modified, removed, schema};

    fn check(change: &crate::change::Change, wanted: &Expect) {
        wanted.assert_eq(&effects("rekey", change));
    }

    #[test]
    fn an_item_that_comes_changes_its_parent_or_goes_is_looked_at() {
        check(
            &inserted("ORG#o / EMP#/a Employee ManagerId=b"),
            &expect![[r#"
            employee-move: place ORG#o / EMP#/a
            employee-move: awaited ORG#o / EMP#/a
        "#]],
        );
        check(
            &modified("ORG#o / EMP#/a Employee ManagerId=b", "ORG#o / EMP#/a Employee ManagerId=c"),
            &expect![[r#"
            employee-move: place ORG#o / EMP#/a
        "#]],
        );
        check(
            &modified("ORG#o / EMP#/a Employee Name=x", "ORG#o / EMP#/a Employee Name=y"),
            &expect![[r#"
            nothing
        "#]],
        );
        check(
            &removed("ORG#o / EMP#/a Employee ManagerId=b"),
            &expect![[r#"
            employee-move: merge ORG#o / EMP#/a
            employee-move: awaited ORG#o / EMP#/a
            employee-move: place below ORG#o / EMP#/a: ORG#o / EMP#/a/…
        "#]],
        );
    }

    #[test]
    fn what_stood_in_the_way_frees_it_when_it_goes() {
        check(
            &removed("ORG#o / EMP#/a Gadget"),
            &expect![[r#"
            employee-move: awaited ORG#o / EMP#/a
        "#]],
        );
        check(
            &modified("ORG#o / EMP#/a Employee Name=x", "ORG#o / EMP#/a Gadget Name=x"),
            &expect![[r#"
            employee-move: merge ORG#o / EMP#/a
            employee-move: awaited ORG#o / EMP#/a
            employee-move: place below ORG#o / EMP#/a: ORG#o / EMP#/a/…
        "#]],
        );
        check(
            &removed("ORG#o / TEAM#a Gadget"),
            &expect![[r#"
            nothing
        "#]],
        );
    }

    fn items(texts: &[&str]) -> Items {
        texts.iter().map(|text| (key_of(&item(text)), item(text))).collect()
    }

    fn derived(items: &Items) -> BTreeMap<Key, Key> {
        let derived = employee_move().derive("employee-move", &schema(), items, &Counts::new());
        let placed = derived.into_iter().filter_map(|part| match part {
            Derived::Placed { key, place } => Some((key, place)),
            _ => None,
        });
        placed.collect()
    }

    /// Employees, written `path Manager`, beside anything else; and those who belong elsewhere.
    fn people_of(employees: &[&str]) -> Items {
        let text = |text: &&str| match text.split_once(' ') {
            Some((path, manager)) => format!("ORG#o / EMP#{path} Employee ManagerId={manager}"),
            None => format!("ORG#o / EMP#{text} Employee"),
        };
        let texts: Vec<String> = employees.iter().map(text).collect();
        items(&texts.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn check_places(employees: &[&str], wanted: &Expect) {
        let items = people_of(employees);
        let places = derived(&items).into_iter().filter(|(key, place)| key != place);
        let lines: Vec<String> = places.map(|(key, place)| format!("{} -> {}\n", key.sk, place.sk)).collect();
        wanted.assert_eq(&lines.concat());
    }

    #[test]
    fn everybody_belongs_below_their_manager_however_deep() {
        check_places(
            &["/a", "/b a", "/c b"],
            &expect![[r#"
            EMP#/b -> EMP#/a/b
            EMP#/c -> EMP#/a/b/c
        "#]],
        );
        check_places(
            &["/x/a"],
            &expect![[r#"
            EMP#/x/a -> EMP#/a
        "#]],
        );
    }

    #[test]
    fn an_id_that_needs_escapes_is_found_and_escaped() {
        check_places(
            &["/v%2Fp", "/d%23 v/p"],
            &expect![[r#"
            EMP#/d%23 -> EMP#/v%2Fp/d%23
        "#]],
        );
    }

    #[test]
    fn who_cannot_be_placed_stays() {
        // No manager; two of them; a loop; oneself.
        check_places(&["/b a"], &expect![[""]]);
        check_places(&["/a", "/x/a y", "/b a"], &expect![[""]]);
        check_places(&["/a b", "/b a"], &expect![[""]]);
        check_places(&["/a a"], &expect![[""]]);
        // A place that is taken; one that would be too deep.
        check_places(&["/a", "/a/b a", "/b a"], &expect![[""]]);
        check_places(&["/a", "/a/b a", "/a/b/c b", "/a/b/c/d c", "/e d"], &expect![[""]]);
        // The last ones follow nobody who stays.
        check_places(
            &["/b a", "/c b"],
            &expect![[r#"
            EMP#/c -> EMP#/b/c
        "#]],
        );
    }

    #[test]
    fn a_loop_and_a_place_that_is_too_deep_are_told_and_nothing_else_is() {
        let told = |people: &[&str]| {
            let (schema, items) = (schema(), people_of(people));
            let flaws = employee_move().flaws(&schema, &items).into_iter();
            let lines = flaws.map(|flaw| format!("{} {}: {}\n", flaw.key.sk, flaw.attribute, flaw.why));
            lines.collect::<Vec<_>>().concat()
        };
        expect![[r#"
            EMP#/a ManagerId: it stays where it is: its place would be below itself
            EMP#/b ManagerId: it stays where it is: its place would be below itself
        "#]]
        .assert_eq(&told(&["/a b", "/b a", "/c a"]));
        expect![[r#"
            EMP#/e ManagerId: it stays where it is: its place would be too deep
            EMP#/f ManagerId: it stays where it is: its place would be below itself
        "#]]
        .assert_eq(&told(&["/a", "/a/b a", "/a/b/c b", "/a/b/c/d c", "/e d", "/f f"]));
        // In place; nobody as manager; two of them; a place that is taken.
        assert_eq!(told(&["/a", "/a/b a", "/c nobody", "/d", "/a/d a", "/x d", "/b a"]), "");
    }

    #[test]
    fn a_place_that_anything_takes_is_taken() {
        let items =
            items(&["ORG#o / EMP#/a Employee", "ORG#o / EMP#/a/b Gadget", "ORG#o / EMP#/b Employee ManagerId=a"]);
        assert!(derived(&items).iter().all(|(key, place)| key == place));
    }

    #[test]
    fn a_parent_that_is_no_text_is_listed() {
        let (schema, item) = (schema(), item("ORG#o / EMP#/a Employee ManagerId=N:1"));
        let key = key_of(&item);
        let why = employee_move().unreadable(&schema, &schema.image(&key, &item).unwrap());
        assert_eq!(why.map(|why| why.to_string()), Some("ManagerId: is not of type S".to_owned()));
    }

    /// Puts an item where it belongs.
    fn put_at(items: &mut Items, key: &Key, place: &Key) {
        let mut item = items.remove(key).unwrap();
        item.extend(schema().layout.key_item(place));
        items.insert(place.clone(), item);
    }

    /// One look at one item, as the engine does it: with its parent where it stands now.
    fn looked(items: &Items, key: &Key) -> Option<Key> {
        let (schema, rekey) = (schema(), employee_move());
        let image = |key: &Key| schema.image(key, &items[key]).unwrap().key_fields().clone();
        let item = schema.image(key, &items[key]).unwrap();
        let above = match rekey.parent_of(&item).unwrap() {
            None => None,
            Some(parent) => {
                let named: Vec<&Key> =
                    items.keys().filter(|key| rekey.id_of(&image(key)).as_deref() == Some(&parent)).collect();
                match named.as_slice() {
                    [one] => Some(image(one)),
                    _ => return None,
                }
            }
        };
        match rekey.place(schema.entity("Employee").unwrap(), item.key_fields(), above.as_ref()) {
            Place::At(place) => Some(place).filter(|place| !items.contains_key(place)),
            Place::Stays(_) => None,
        }
    }

    fn graphs() -> impl Strategy<Value = Items> {
        let id = || prop::sample::select(vec!["a", "b", "c", "d", "e"]);
        let employee = (vec(id(), 0..2), id(), option::weighted(0.8, id()));
        vec(employee, 1..8).prop_map(|employees| {
            let text = |(above, id, manager): (Vec<&str>, &str, Option<&str>)| {
                let above: String = above.iter().flat_map(|id| ["/", id]).collect();
                let manager = manager.map(|manager| format!(" ManagerId={manager}")).unwrap_or_default();
                item(&format!("ORG#o / EMP#{above}/{id} Employee{manager}"))
            };
            employees.into_iter().map(text).map(|item| (key_of(&item), item)).collect()
        })
    }

    proptest! {
        #[test]
        fn where_no_look_moves_anybody_all_are_in_place(mut items in graphs()) {
            // Each look may bring somebody elsewhere; a loop may turn for a while, and ends.
            for _ in 0..200 {
                let moved = items.keys().find_map(|key| Some((key.clone(), looked(&items, key)?)));
                let Some((key, place)) = moved else { break };
                put_at(&mut items, &key, &place);
            }
            prop_assert!(items.keys().all(|key| looked(&items, key).is_none()), "the looks end");
            prop_assert!(derived(&items).iter().all(|(key, place)| key == place));
        }

        #[test]
        fn placing_everybody_ends_with_everybody_in_place(mut items in graphs()) {
            let n_items = items.len();
            for _ in 0..=n_items {
                for (key, place) in derived(&items) {
                    if key != place && !items.contains_key(&place) {
                        put_at(&mut items, &key, &place);
                    }
                }
            }
            prop_assert!(derived(&items).iter().all(|(key, place)| key == place));
            prop_assert_eq!(items.len(), n_items);
        }
    }
}
