//! Stored forms of keys, writes and queries, for tables of [other forms](keys::tables).

use derive::{
    guard::{Ask, Guard},
    query::{Query, SortKeys},
    write::{Action, Table, Update, Write},
};
use keys::{
    counter, entry,
    item::Item,
    key::Key,
    layout::Layout,
    tables::{EntityBy, IndexForm, KeyAttribute, KeyRange, Place, TYPE, TableForm},
};
use serde_dynamo::AttributeValue;

/// The form of the table of the item with this key; `None` if it is stored as in the layout.
pub(crate) fn form<'a>(layout: &'a Layout, table: Table, key: &Key) -> Option<&'a TableForm> {
    match layout.forms.as_ref().filter(|_| table == Table::Main)?.place(key) {
        Place::Table(form) => Some(form),
        Place::Own => None,
    }
}

/// The form of a query's table, and of its index.
pub(crate) fn queried<'a>(
    layout: &'a Layout,
    table: Table,
    query: &Query,
) -> (Option<&'a TableForm>, Option<&'a IndexForm>) {
    let forms = layout.forms.as_ref().filter(|_| table == Table::Main);
    if let Some((form, index)) = forms.zip(query.index.as_ref()).and_then(|(forms, name)| forms.index(name)) {
        return (Some(form), Some(index));
    }
    // The counters and entries of an item are in the table of Ripple's own items, although their keys begin with the item's.
    let is_own = |prefix: &str| prefix.contains(counter::MARK) || prefix.contains(entry::MARK);
    if matches!(&query.sk, SortKeys::Prefix(prefix) if is_own(prefix)) {
        return (None, None);
    }
    (form(layout, table, &Key::new(&query.pk, query.sk.first())), None)
}

/// A query's conditions on its key attributes; `None` if no item can match.
pub(crate) fn ranges(layout: &Layout, table: Table, query: &Query) -> Option<(KeyRange, KeyRange)> {
    let inside = query.index.as_deref().and_then(|name| layout.index(name));
    let names = inside.map_or((&layout.pk, &layout.sk), |index| (&index.pk, &index.sk));
    let (pk, sk, text) = match queried(layout, table, query) {
        (_, Some(index)) => (index.pk.clone(), index.sk.clone(), query.pk.as_str()),
        (Some(form), None) => {
            let pk = query.pk.strip_prefix(&form.name)?.strip_prefix('#')?;
            (vec![form.pk.clone()], form.sk.iter().cloned().collect(), pk)
        }
        (None, None) => (vec![KeyAttribute::of_form(names.0)], vec![KeyAttribute::of_form(names.1)], query.pk.as_str()),
    };
    let range = match &query.sk {
        SortKeys::All => KeyRange::default(),
        SortKeys::Prefix(prefix) => KeyRange::prefix(&sk, prefix),
        SortKeys::Between(first, last) => KeyRange::between(&sk, first, last),
        SortKeys::After(text) => KeyRange::after(&sk, text),
    };
    Some((KeyRange::partition(&pk, text)?, range))
}

/// A write with the table's attributes; `None` if no stored item can have its key.
pub(crate) fn outward(form: &TableForm, write: &Write) -> Option<Write> {
    let action = match &write.action {
        Action::Put(item) => Action::Put(form.outward(item)?),
        Action::Update(Update { set, remove, add, delete, count_from }) => Action::Update(Update {
            set: form.stored(set),
            remove: remove.iter().filter_map(|name| form.stored_name(name).map(str::to_owned)).collect(),
            add: form.stored(add),
            delete: form.stored(delete),
            count_from: form.stored(count_from),
        }),
        Action::Delete | Action::Check => write.action.clone(),
    };
    Some(Write { action, guard: write.guard.as_ref().map(|guard| asked(form, &write.key, guard)), ..write.clone() })
}

/// A guard of the item with this key, with the table's attributes.
fn asked(form: &TableForm, key: &Key, guard: &Guard) -> Guard {
    let asks = guard.asks.iter().flat_map(|ask| asked_of(form, key, &guard.asks, ask));
    Guard { purpose: guard.purpose, asks: asks.collect() }
}

/// The equivalent test on the stored item. A value that follows from the key, from the table or from other attributes
/// is tested by whether the item exists; a test that never holds becomes a contradiction.
fn asked_of(form: &TableForm, key: &Key, all: &[Ask], ask: &Ask) -> Vec<Ask> {
    let Some(attribute) = ask.attribute() else { return vec![ask.clone()] };
    let entity = match &form.entity {
        EntityBy::Table(entity) => Some(entity),
        EntityBy::Forms(_) => form.by_form(key).filter(|it| !it.derived).map(|it| &it.entity),
        EntityBy::Attribute(_) => None,
    };
    let entity = entity.filter(|_| attribute == TYPE);
    if let Some(stored) = form.stored_name(attribute).filter(|_| entity.is_none()) {
        return vec![ask.asked_of(stored)];
    }
    // The existing item under this key, as far as it is known. For an index over plain attributes, these are tested
    // themselves, so the key has the tested value.
    let mut item = Item::new();
    if let Some(entity) = entity {
        item.insert(TYPE, AttributeValue::S(entity.clone()));
    } else {
        let equal = all.iter().filter(|ask| ask.attribute() == Some(attribute)).find_map(Ask::value);
        item.extend(equal.map(|(name, value)| (name.to_owned(), value.clone())));
    }
    match (ask.holds(Some(&item)), ask.holds(None)) {
        (true, true) => Vec::new(),
        (true, false) => vec![Ask::Present],
        (false, true) => vec![Ask::Absent],
        (false, false) => vec![Ask::Absent, Ask::Present],
    }
}

#[cfg(test)]
mod tests {
    use derive::guard::Purpose;
    use keys::{
        entity::KeyTemplate,
        tables::{EntityForm, KeyType, PK, SK, TableForms},
    };

    use super::*;

    fn form(entity: EntityBy) -> TableForm {
        let attribute = KeyAttribute::plain;
        let index = IndexForm {
            name: "byAuthor".to_owned(),
            pk: vec![attribute("authorId", KeyType::S)],
            sk: Vec::new(),
            projection: None,
            entities: vec!["Post".to_owned()],
        };
        TableForm {
            name: "Posts".to_owned(),
            called: "Posts".to_owned(),
            pk: attribute("id", KeyType::S),
            sk: None,
            entity,
            time_to_live: None,
            indexes: vec![index],
        }
    }

    fn asked_in(form: &TableForm, guard: &Guard) -> Guard {
        asked(form, &Key::new("Posts#a", "-"), guard)
    }

    #[test]
    fn a_query_of_counters_or_entries_is_of_ripples_own_table() {
        let layout = TableForms(vec![form(EntityBy::Table("Post".to_owned()))]).layout();
        let own = |prefix: &str| queried(&layout, Table::Main, &Query::prefix(None, "Posts#a", prefix)).0.is_none();
        assert!(own("-#COUNT#likes#") && own("-#RIPPLE#last#"));
        assert!(!own("-") && !own(""));
    }

    #[test]
    fn a_guard_of_a_table_without_a_type_asks_for_the_type_of_derived_items_alone() {
        let entity = |entity: &str, derived| EntityForm {
            entity: entity.to_owned(),
            key: KeyTemplate::parse(&format!("Posts#{entity}-{{id}}"), "-").unwrap(),
            derived,
        };
        let form = form(EntityBy::Forms(vec![entity("Post", false), entity("Mirror", true)]));
        let of = |key: &str, entity: &str| {
            let asks = vec![Ask::Equal(TYPE.to_owned(), AttributeValue::S(entity.to_owned()))];
            asked(&form, &Key::new(key, "-"), &Guard { purpose: Purpose::MirrorType, asks }).asks
        };
        assert_eq!(of("Posts#Post-a", "Post"), [Ask::Present]);
        assert_eq!(of("Posts#Post-a", "Mirror"), [Ask::Absent, Ask::Present]);
        let named = Ask::Equal(TYPE.to_owned(), AttributeValue::S("Mirror".to_owned()));
        assert_eq!(of("Posts#Mirror-a", "Mirror"), [named]);
    }

    #[test]
    fn a_guard_asks_what_the_table_has() {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let guard = Guard {
            purpose: Purpose::MirrorType,
            asks: vec![
                Ask::Equal(PK.to_owned(), text("Posts#a")),
                Ask::Equal(TYPE.to_owned(), text("Post")),
                Ask::Equal("Posts/byAuthor/pk".to_owned(), text("ann")),
                Ask::Lacks("title".to_owned()),
            ],
        };
        let of_table = asked_in(&form(EntityBy::Table("Post".to_owned())), &guard);
        let present = || Ask::Present;
        assert_eq!(of_table.asks, [present(), present(), present(), Ask::Lacks("title".to_owned())]);
        let by_type = asked_in(&form(EntityBy::Attribute("__typename".to_owned())), &guard);
        let equal = Ask::Equal("__typename".to_owned(), text("Post"));
        assert_eq!(by_type.asks, [present(), equal, present(), Ask::Lacks("title".to_owned())]);
        let of_another = Guard { asks: vec![Ask::Equal(TYPE.to_owned(), text("User"))], ..guard.clone() };
        assert_eq!(asked_in(&form(EntityBy::Table("Post".to_owned())), &of_another).asks, [Ask::Absent, Ask::Present]);
        let of_key = Guard { asks: vec![Ask::Equal(SK.to_owned(), text("-"))], ..guard };
        assert_eq!(asked_in(&form(EntityBy::Table("Post".to_owned())), &of_key).asks, [Ask::Present]);
    }
}
