//! Document paths: an attribute of an item, or a value inside one.
//!
//! A declaration names what it reads by a text: the name of an attribute, or a path, which contains a `.` or a `[`. The
//! names of declared attributes contain neither, so each text is unambiguous.

use std::{
    borrow::Cow,
    fmt::{self, Display, Formatter, Write as _},
    str::FromStr,
};

use keys::item::Item;
use serde_dynamo::AttributeValue;

use crate::expression::{
    ExpressionError, is_plain,
    parse::{Scanner, first},
};

/// An attribute, or a value inside one: `address.city`, `tags[0]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentPath {
    /// The attribute of the item.
    pub attribute: String,
    /// The steps into it.
    pub steps: Vec<PathStep>,
}

/// A step into a map or a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStep {
    /// The value of a map under this name.
    Name(String),
    /// The element of a list at this position, from 0.
    At(usize),
}

impl DocumentPath {
    /// Parses a declared name: a whole attribute, or a value inside one.
    #[must_use]
    pub fn of(name: &str) -> Self {
        let whole = || Self { attribute: name.to_owned(), steps: Vec::new() };
        if is_path(name) { name.parse().unwrap_or_else(|_| whole()) } else { whole() }
    }

    /// Its declared name: the name of the attribute as it is, or the path.
    #[must_use]
    pub fn name(&self) -> Cow<'_, str> {
        if self.steps.is_empty() { Cow::Borrowed(&self.attribute) } else { Cow::Owned(self.to_string()) }
    }

    /// The value in an item; `None` if a step leads into something that is not a map or list, or that lacks it.
    #[must_use]
    pub fn value<'a>(&self, item: &'a Item) -> Option<&'a AttributeValue> {
        let into = |value: &'a AttributeValue, step: &PathStep| match (value, step) {
            (AttributeValue::M(map), PathStep::Name(name)) => map.get(name),
            (AttributeValue::L(list), PathStep::At(at)) => list.get(*at),
            _ => None,
        };
        self.steps.iter().try_fold(item.get(&self.attribute)?, into)
    }
}

impl Display for DocumentPath {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        named(f, &self.attribute)?;
        for step in &self.steps {
            match step {
                PathStep::Name(name) => {
                    f.write_char('.')?;
                    named(f, name)?;
                }
                PathStep::At(at) => write!(f, "[{at}]")?,
            }
        }
        Ok(())
    }
}

fn named(f: &mut Formatter<'_>, name: &str) -> fmt::Result {
    if is_plain(name) { f.write_str(name) } else { write!(f, "\"{}\"", name.replace('"', "\"\"")) }
}

impl FromStr for DocumentPath {
    type Err = ExpressionError;

    fn from_str(text: &str) -> Result<Self, ExpressionError> {
        let mut scanner = Scanner::of(text);
        let path = scanner.path()?;
        match scanner.rest() {
            "" => Ok(path),
            rest => Err(scanner.wanted(&format!(
                "a dot, a bracket or the end is wanted before {}; a name with other characters than letters, digits and _ \
                 stands in double quotes",
                first(rest)
            ))),
        }
    }
}

/// True if a declared name is a path into an attribute.
#[must_use]
pub fn is_path(name: &str) -> bool {
    name.contains(['.', '['])
}

/// The attribute of a declared name.
#[must_use]
pub(crate) fn root(name: &str) -> Cow<'_, str> {
    if is_path(name) { Cow::Owned(DocumentPath::of(name).attribute) } else { Cow::Borrowed(name) }
}

/// The value of a declared name in an item.
#[must_use]
pub(crate) fn value<'a>(item: &'a Item, name: &str) -> Option<&'a AttributeValue> {
    if is_path(name) { DocumentPath::of(name).value(item) } else { item.get(name) }
}

#[cfg(test)]
mod tests {
    //! Derivations of every kind that read values inside attributes, by their paths.

    use std::{collections::BTreeMap, sync::Arc};

    use expect_test::expect;
    use keys::{counter, key::Key, layout::Layout};
    use proptest::{collection::vec, option, prelude::*};

    use super::*;
    use crate::{
        catalogue::Catalogue,
        change::{Change, Images, Sight},
        condition::Condition,
        declaration::{Count, FoundBy, Link, Mirror, Rollup},
        definition::definition,
        derivation::Derivation,
        derived::Derived,
        effect::{BucketForm, Effect},
        expression::{pairs, time::TimeSpan},
        family::Family,
        fixture::{TestTable, derived, ground, n, named, s},
        kinds::{copy::Copy, latest::Latest, path::TreePath},
        plan::plan,
        query::Order,
        schema::Schema,
        sources::Sources,
        tally::Tally,
        whole::{Whole, derive},
    };

    fn schema() -> Schema {
        let layout = Layout { entity_type: Some("EntityType".into()), ..Layout::of("PK", "SK") };
        let mut hours = derived("Hours", ("CITY#{CityId}", "{Grain}#{Bucket}"), &[]);
        hours.derived_attributes = ["Count", "Sum", "Min", "Max"].map(str::to_owned).to_vec();
        let entities = [
            ground("City", ("CITY#{CityId}", "CITY"), &["Info"], &[]),
            ground("Person", ("PERSON#{PersonId}", "PROFILE"), &["Address", "Orders", "Visit"], &["CityName"]),
            derived("Resident", ("CITY#{CityId}", "PERSON#{PersonId}"), &[]),
            ground("Room", ("ROOM#{RoomId}", "METADATA"), &[], &["LastBy", "LastAt"]),
            ground("Message", ("ROOM#{RoomId}", "MESSAGE#{At}"), &["By"], &[]),
            ground("Folder", ("FOLDER#{FolderId}", "METADATA"), &["Place"], &["Path"]),
            derived("Child", ("FOLDER#{ParentId}", "CHILD#{FolderId}"), &[]),
            hours,
            derived("Counter", (counter::PARTITION_KEY, counter::SORT_KEY), &[]),
        ];
        Schema::new(layout, entities)
    }

    fn count() -> Count {
        Count {
            source: "Person".into(),
            condition: "Address.kind <> 'old'".parse().unwrap(),
            target: "City".into(),
            link: Link::of(&[("CityId", "Address.city")]),
            sum: Some("Orders[0].total".into()),
            history: false,
            expired_stays: false,
            each: None,
        }
    }

    fn city_name() -> Copy {
        Copy {
            source: "City".into(),
            target: "Person".into(),
            link: Link::of(&[("CityId", "Address.city")]),
            condition: Condition::Always,
            attributes: pairs(&[("Info.name", "CityName")]),
            found: FoundBy { via: "Resident".into(), index: None, by: Link::of(&[("CityId", "CityId")]) },
        }
    }

    fn derivations() -> Vec<Derivation> {
        let resident = Link::of(&[("CityId", "Address.city"), ("PersonId", "PersonId")]);
        let mirror = |source: &str, target: &str, link: Link| Mirror {
            source: source.into(),
            target: target.into(),
            link,
            condition: Condition::Always,
            each: None,
            except: vec!["Address".into()],
        };
        let child = Link::of(&[("ParentId", "Place.parent"), ("FolderId", "FolderId")]);
        let [count_of, sum, min, max] = ["Count", "Sum", "Min", "Max"].map(str::to_owned);
        vec![
            named("resident", mirror("Person", "Resident", resident)),
            named("city-name", city_name()),
            named("residents", count()),
            named(
                "last-message",
                Latest {
                    source: "Message".into(),
                    target: "Room".into(),
                    link: Some(Link::of(&[("RoomId", "RoomId")])),
                    order: Order::Descending,
                    attributes: pairs(&[("By.name", "LastBy"), ("At", "LastAt")]),
                    list: None,
                },
            ),
            named("child", Mirror { except: Vec::new(), ..mirror("Folder", "Child", child) }),
            named(
                "folder-path",
                TreePath {
                    target: "Folder".into(),
                    parent: "Folder".into(),
                    link: Link::of(&[("FolderId", "Place.parent")]),
                    name: "Place.names[0]".into(),
                    attribute: "Path".into(),
                    depth_max: 4,
                    found: FoundBy { via: "Child".into(), index: None, by: Link::of(&[("ParentId", "FolderId")]) },
                },
            ),
            named(
                "visits",
                Rollup {
                    source: "Person".into(),
                    condition: Condition::Always,
                    time: "Visit.at".into(),
                    value: "Visit.paid[1]".into(),
                    grains: vec![TimeSpan::Hour, TimeSpan::Day],
                    link: Link::of(&[("CityId", "Visit.city")]),
                    grain: "Grain".into(),
                    bucket: "Bucket".into(),
                    form: Arc::new(BucketForm { entity: "Hours".into(), count: count_of, sum, min, max }),
                },
            ),
        ]
    }

    fn m<const N: usize>(pairs: [(&str, AttributeValue); N]) -> AttributeValue {
        AttributeValue::M(pairs.map(|(name, value)| (name.to_owned(), value)).into())
    }

    fn l<const N: usize>(values: [AttributeValue; N]) -> AttributeValue {
        AttributeValue::L(values.into())
    }

    /// An item of an entity, with its attributes.
    fn item(pk: &str, sk: &str, entity: &str, attributes: &[(&str, AttributeValue)]) -> (Key, Item) {
        let all = [("PK", s(pk)), ("SK", s(sk)), ("EntityType", s(entity))];
        let all = all.into_iter().chain(attributes.iter().cloned());
        (Key::new(pk, sk), all.map(|(name, value)| (name.to_owned(), value)).collect())
    }

    fn person(attributes: &[(&str, AttributeValue)]) -> (Key, Item) {
        item("PERSON#1", "PROFILE", "Person", attributes)
    }

    /// The effects of a change of an item.
    fn effects(old: Option<(Key, Item)>, new: (Key, Item)) -> String {
        let schema = schema();
        let catalogue = Catalogue::new(&schema, derivations()).unwrap();
        let images = match old {
            Some((_, old)) => Images::Modified { old, new: new.1 },
            None => Images::Inserted(new.1),
        };
        let change = Change { id: "1".into(), sequence_number: "1".into(), created_ms: None, key: new.0, images };
        let planned = plan(&schema, &catalogue, &[Family::Additive, Family::LevelTriggered], &change);
        let line = |(at, effect)| format!("{}: {effect}\n", catalogue.name(at));
        planned.effects.into_iter().map(line).collect()
    }

    #[test]
    fn what_a_change_asks_for_follows_from_the_values_inside() {
        let address = |city, street| ("Address", m([("city", s(city)), ("street", s(street))]));
        let orders = |total| ("Orders", l([m([("total", n(total))])]));
        let visit = m([("at", s("2024-01-15T10:30:00Z")), ("city", s("b")), ("paid", l([n("1"), n("2.5")]))]);
        expect![[r#"
            resident: recomputes the Resident CITY#a / PERSON#1
            visits: adds the value 2.5 to CITY#b / HOUR#2024-01-15T10
            visits: adds the value 2.5 to CITY#b / DAY#2024-01-15
        "#]]
        .assert_eq(&effects(Some(person(&[address("a", "x")])), person(&[address("a", "x"), ("Visit", visit)])));
        expect![[r#"
            resident: recomputes the Resident CITY#a / PERSON#1
            resident: recomputes the Resident CITY#b / PERSON#1
            city-name: recomputes the Person PERSON#1 / PROFILE
            residents: adds -1 to the count and -1 to the sum of CITY#a / CITY
            residents: adds +1 to the count and 2.5 to the sum of CITY#b / CITY
        "#]]
        .assert_eq(&effects(
            Some(person(&[address("a", "x"), orders("1")])),
            person(&[address("b", "x"), orders("2.5")]),
        ));
        // The attribute differs, but not the part that is read.
        expect![""].assert_eq(&effects(Some(person(&[address("a", "x")])), person(&[address("a", "y")])));
    }

    #[test]
    fn a_value_of_a_wrong_type_is_told_with_its_whole_path_and_a_way_through_no_map_ends_nowhere() {
        let told = |attributes: &[(&str, AttributeValue)]| {
            let lines = effects(None, person(attributes));
            lines.lines().filter(|line| line.contains("unreadable")).fold(String::new(), |all, line| all + line + "\n")
        };
        expect![[r#"
            resident: lists the item as unreadable: Address.city is N, and `{CityId}` takes a text: store a text, or link by text(Address.city)
            city-name: lists the item as unreadable: Address.city is N, and `{CityId}` takes a text: store a text, or link by text(Address.city)
            residents: lists the item as unreadable: Address.city is N, and `{CityId}` takes a text: store a text, or link by text(Address.city)
        "#]]
        .assert_eq(&told(&[("Address", m([("city", n("7"))]))]));
        expect![[r#"
            residents: lists the item as unreadable: Orders[0].total is S, and N is wanted
            visits: lists the item as unreadable: Visit.paid[1] is S, and N is wanted
        "#]]
        .assert_eq(&told(&[
            ("Address", m([("city", s("a")), ("kind", l([]))])),
            ("Orders", l([m([("total", s("many"))])])),
            ("Visit", m([("at", n("1")), ("city", s("a")), ("paid", l([s("x"), s("y")]))])),
        ]));
        expect![""].assert_eq(&told(&[("Address", s("a")), ("Orders", m([])), ("Visit", l([]))]));
    }

    #[test]
    fn a_definition_says_the_whole_path() {
        let schema = schema();
        let lines: Vec<String> =
            derivations().iter().map(|it| format!("{} = {}", it.name, definition(it, &schema))).collect();
        expect![[r#"
            resident = mirror: Person (except Address) into CITY#{Address.city} / PERSON#{PersonId}; writes Resident
            city-name = copy: City (Info.name as CityName) into PERSON#{PersonId} / PROFILE; writes CityName; reads City.Info.name, Person.Address.city
            residents = count and sum: Person (where Address.kind <> 'old'; sum of Orders[0].total) into CITY#{Address.city} / CITY; reads Person.Address, Person.Address.city, Person.Orders[0].total
            last-message = latest: Message (the last: By.name as LastBy, At as LastAt) into ROOM#{RoomId} / METADATA; writes LastAt, LastBy; reads Message.At, Message.By.name
            child = mirror: Folder into FOLDER#{Place.parent} / CHILD#{FolderId}; writes Child
            folder-path = path: Folder (Place.names[0] below the Path of its Folder) into FOLDER#{FolderId} / METADATA, at most 4 deep; writes Path; reads Folder.Path, Folder.Place.names[0], Folder.Place.parent
            visits = roll-up: Person (Visit.paid[1] by HOUR and DAY of Visit.at in UTC; arrivals only) into CITY#{Visit.city} / {Grain}#{Bucket}; writes Count, Hours, Max, Min, Sum; reads Person.Visit.at, Person.Visit.city, Person.Visit.paid[1]
        "#]]
        .assert_eq(&(lines.join("\n") + "\n"));
    }

    #[test]
    fn a_copy_by_a_link_through_a_map_is_decided_by_the_item_alone() {
        let schema = schema();
        let (city, person) = (Key::new("CITY#a", "CITY"), Key::new("PERSON#1", "PROFILE"));
        let mut sources = Sources::default();
        sources.add_item(city.clone(), Some(item("CITY#a", "CITY", "City", &[("Info", m([("name", s("A"))]))]).1));
        let taken = crate::kind::Refresh::taken_from(&city_name(), &schema, &city, &person, &sources);
        assert!(taken.is_none(), "no condition can ask for a part of an attribute: {taken:?}");
    }

    #[test]
    fn a_path_whose_attribute_is_not_declared_is_refused() {
        let problem = |kind: &dyn crate::kind::Kind| kind.reach(&schema()).unwrap_err();
        let summed = Count { sum: Some("Order[0].total".into()), ..count() };
        expect!["Person has no attribute Order[0].total"].assert_eq(&problem(&summed));
        let linked = Count { link: Link::of(&[("CityId", "PersonId.city")]), ..count() };
        expect!["Person has no field or attribute PersonId.city"].assert_eq(&problem(&linked));
        let copied = Copy { attributes: pairs(&[("Infos.name", "CityName")]), ..city_name() };
        expect!["City has no attribute Infos.name"].assert_eq(&problem(&copied));
        assert_eq!(Condition::is("Address.city", "a"), "Address.city = 'a'".parse().unwrap());
    }

    /// A value with parts under the names that are read, of correct and wrong types.
    fn nested() -> impl Strategy<Value = AttributeValue> {
        let leaf = || prop_oneof![6 => prop::sample::select(vec!["1", "2", "old"]).prop_map(s), 1 => Just(n("5")), 1 => Just(s(""))];
        let names = prop_oneof![3 => vec(leaf(), 0..3).prop_map(AttributeValue::L), 1 => leaf()];
        let parts = (option::of(leaf()), option::of(leaf()), option::of(leaf()), option::of(leaf()), option::of(names));
        let map = parts.prop_map(|(city, kind, name, parent, names)| {
            let all = [("city", city), ("kind", kind), ("name", name), ("parent", parent), ("names", names)];
            let there = all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
            AttributeValue::M(there.collect())
        });
        prop_oneof![8 => map, 1 => leaf(), 1 => Just(AttributeValue::L(vec![s("1")]))]
    }

    fn orders() -> impl Strategy<Value = AttributeValue> {
        let total = prop_oneof![4 => (0..50_u32).prop_map(|total| n(&total.to_string())), 1 => Just(s("x"))];
        prop_oneof![4 => total.prop_map(|total| l([m([("total", total)])])), 1 => Just(l([])), 1 => Just(s("x"))]
    }

    /// A put of an item of one of the entities, or a removal.
    fn put() -> impl Strategy<Value = (Key, Option<Item>)> {
        let parts = (0..5_u8, 1..3_u8, option::weighted(0.85, (option::of(nested()), option::of(orders()))));
        parts.prop_map(|(which, id, attributes)| {
            let (pk, sk, entity, name) = match which {
                0 => (format!("CITY#{id}"), "CITY", "City", "Info"),
                1 => (format!("PERSON#{id}"), "PROFILE", "Person", "Address"),
                2 => ("ROOM#1".to_owned(), if id == 1 { "MESSAGE#1" } else { "MESSAGE#2" }, "Message", "By"),
                3 => ("ROOM#1".to_owned(), "METADATA", "Room", "Other"),
                _ => (format!("FOLDER#{id}"), "METADATA", "Folder", "Place"),
            };
            let put = attributes.map(|(value, orders)| {
                let all = value.map(|value| (name, value)).into_iter();
                let all = all.chain(orders.filter(|_| entity == "Person").map(|orders| ("Orders", orders)));
                item(&pk, sk, entity, &all.collect::<Vec<_>>()).1
            });
            (Key::new(pk, sk), put)
        })
    }

    /// The total of the additive effects of a table's changes so far, by target.
    fn added(table: &TestTable) -> BTreeMap<Key, Tally> {
        let mut added: BTreeMap<Key, Tally> = BTreeMap::new();
        for change in &table.records {
            for (_, effect) in plan(&table.schema, &table.catalogue, &[Family::Additive], change).effects {
                if let Effect::Add(add) = effect {
                    added.entry(add.target).or_default().add(&Tally { count: add.count, sum: add.sum });
                }
            }
        }
        added.retain(|_, tally| *tally != Tally::default());
        added
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn whatever_stands_inside_what_is_derived_ends_as_it_is_defined(
            script in vec((put(), any::<bool>()), 1..16),
            order in vec(any::<usize>(), 1..12),
        ) {
            let schema = schema();
            let catalogue = Catalogue::new(&schema, derivations()).unwrap();
            let mut table = TestTable { schema, catalogue, ..TestTable::new() };
            let mut puts = TestTable { schema: table.schema.clone(), catalogue: table.catalogue.clone(), ..TestTable::new() };
            for ((key, item), is_taken) in script {
                puts.replace(key.clone(), item.clone());
                table.replace(key, item);
                if is_taken {
                    table.take(order[0], false);
                }
            }
            table.settle(&order);
            let differing = table.differing();
            prop_assert!(differing.is_empty(), "{:#?}", differing);

            let Whole { by_derivation, .. } = derive(&puts.schema, &puts.catalogue, &puts.items);
            let counted = by_derivation.into_iter().flat_map(|(_, derived)| derived);
            let counted: BTreeMap<Key, Tally> = counted
                .filter_map(|derived| match derived {
                    Derived::Count { target, tally, .. } => Some((target, tally)),
                    _ => None,
                })
                .collect();
            prop_assert_eq!(added(&puts), counted);
        }

        #[test]
        fn a_part_of_an_attribute_differs_if_its_value_does(old in nested(), new in nested()) {
            let schema = schema();
            let (key, old) = person(&[("Address", old)]);
            let new = person(&[("Address", new)]).1;
            let city = |item: &Item| value(item, "Address.city").cloned();
            let differs = city(&old) != city(&new);
            let images = Images::Modified { old, new };
            let change = Change { id: "1".into(), sequence_number: "1".into(), created_ms: None, key, images };
            prop_assert_eq!(Sight::of(&schema, &change).differs_in("Address.city"), differs);
        }
    }
}
