//! Counted item: a derived item that exists while one of its counts is above zero.
//!
//! *Keeps true*: there is an item of the target's entity under a key exactly while a declared count of that key is above
//! zero. *From* a counter that changed *to* a refresh of its target; *from* such an item that any writer created, changed
//! or removed *to* a refresh of that item.
//!
//! It groups a count: an item for each counted value, such as one for each status of a user's orders. A count of these
//! items is the number of different values. [Displays](super::display) write the count into the item; the item itself
//! has its key, its type and its index keys.
//!
//! *Level-triggered.* The counters are read when the item is created or removed. Every change of a counter requests a
//! refresh, even with watermarks: a single item of a counter does not show whether the others cancel it out. If a
//! removal lands after the count has risen again, its record requests another refresh.
//!
//! *Example*: the first order of Ann is paid, so `USER#ann / STATUS#paid#COUNT#orders-by-status#00` becomes 1. Refresh
//! of `USER#ann / STATUS#paid`: it does not exist, so it is created, with its displays.

use std::{collections::BTreeSet, iter};

use keys::{
    counter::{COUNTER, CounterKey, DERIVATION, VALUE},
    entity::Definition,
    item::Item,
    key::Key,
};

use crate::{
    change::Sight,
    declaration::entity,
    derived::{Counts, Derived, Items},
    effect::Effect,
    kind::{Computed, Kind, Refresh, RefreshTarget, Shape},
    outline::Outline,
    part::{Part, PartOf, Reach},
    schema::{Image, Schema, Unreadable},
    sources::{Source, Sources, unreadable},
};

/// The declaration of items that exist while one of their counts is above zero.
#[derive(Clone, Debug)]
pub struct CountedItem {
    /// Names of the derivations that count.
    pub counts: Vec<String>,
    /// Entity of the items.
    pub target: String,
}

impl CountedItem {
    /// The target of a counter of these counts; `None` for any other item.
    fn counted(&self, schema: &Schema, image: &Image<'_>) -> Option<Key> {
        let is_ours = |name: &str| self.counts.iter().any(|count| count == name);
        if !image.is(COUNTER) || !image.key_fields().get(DERIVATION).is_some_and(is_ours) {
            return None;
        }
        let counter = CounterKey::parse(image.key).filter(|counter| is_ours(&counter.derivation))?;
        schema.entity(&self.target)?.key.parse_key(&counter.target).map(|_| counter.target)
    }

    /// The item without the attributes that other derivations write.
    fn made(schema: &Schema, target: &Definition, key: &Key) -> Option<Item> {
        let mut item = Item::new();
        let fields = target.key.parse_key(key)?;
        for (name, value) in target.index_attributes(&schema.layout, &fields) {
            item.extend(value.map(|value| (name, value)));
        }
        item.extend(schema.layout.mark_of(target));
        item.extend(schema.layout.key_item(key));
        Some(item)
    }

    /// True if a change of such an item differs in something that this kind writes.
    fn is_changed(&self, schema: &Schema, sight: &Sight<'_>) -> bool {
        let (old, new) = sight.entity(&self.target);
        let Some(target) = schema.entity(&self.target) else { return false };
        old.is_some() != new.is_some() || sight.differing().iter().any(|name| !target.derives(name))
    }
}

impl Kind for CountedItem {
    fn name(&self) -> &'static str {
        "counted item"
    }

    fn shape(&self) -> Shape<'_> {
        Shape::Attributes(self)
    }

    fn reach(&self, schema: &Schema) -> Result<Reach, String> {
        let target = entity(schema, &self.target)?;
        entity(schema, COUNTER)?;
        if !target.derived {
            return Err(format!("{} is not declared as derived", target.name));
        }
        let rest = PartOf::AllBut(target.derived_attributes.iter().cloned().collect());
        Ok(Reach {
            reads: self.counts.iter().map(|count| Part::attribute(COUNTER, count)).collect(),
            writes: vec![Part::existence(&self.target), Part { entity: self.target.clone(), of: rest }],
        })
    }

    fn outline(&self, schema: &Schema) -> Outline {
        Outline {
            terms: vec![format!("while {} is above zero", self.counts.join(" or "))],
            into: schema.entity(&self.target).map(|target| target.key.to_string()),
            ..Outline::from(COUNTER)
        }
    }

    fn entities(&self) -> Vec<&str> {
        vec![&self.target, COUNTER]
    }

    fn plan(&self, schema: &Schema, sight: &Sight<'_>) -> Vec<Effect> {
        let (old, new) = sight.entity(COUNTER);
        let is_moved = sight.attribute_differs(old, new, VALUE);
        let counter = new.or(old).filter(|_| is_moved).and_then(|image| self.counted(schema, image));
        let (old, new) = sight.entity(&self.target);
        let item = new.or(old).filter(|_| self.is_changed(schema, sight)).map(|image| image.key.clone());
        counter.into_iter().chain(item).map(|key| Effect::look(key, &self.target)).collect()
    }

    fn unreadable(&self, schema: &Schema, image: &Image<'_>) -> Option<Unreadable> {
        let counted = self.counted(schema, image)?;
        if let Some(why) = unreadable(VALUE, image.attribute(VALUE)) {
            return Some(Unreadable { attribute: VALUE.to_owned(), why: why.to_owned() });
        }
        let target = schema.entity(&self.target)?;
        let fields = target.key.parse_key(&counted)?;
        target.long_index_key(|name| fields.get(name)).map(Unreadable::long_index_key)
    }

    fn derive(&self, _name: &str, schema: &Schema, _items: &Items, counts: &Counts) -> Vec<Derived> {
        let Some(target) = schema.entity(&self.target) else { return Vec::new() };
        let ours = counts.iter().filter(|((_, count), tally)| self.counts.contains(count) && tally.count > 0);
        let keys: BTreeSet<&Key> = ours.map(|((key, _), _)| key).collect();
        let made = |key: &Key| Some(Derived::Item { key: key.clone(), item: Self::made(schema, target, key)? });
        keys.into_iter().filter_map(made).collect()
    }
}

impl Refresh for CountedItem {
    fn target(&self) -> &str {
        &self.target
    }

    fn makes_item(&self) -> bool {
        true
    }

    fn reads_counts(&self) -> Vec<&str> {
        self.counts.iter().map(String::as_str).collect()
    }

    fn sources(&self, _schema: &Schema, target: &RefreshTarget<'_>) -> Vec<Source> {
        iter::once(Source::Counters(target.key.clone())).collect()
    }

    fn compute(&self, schema: &Schema, target: &RefreshTarget<'_>, sources: &Sources) -> Computed {
        let is_above = |count: &String| sources.tally(target.key, count).is_some_and(|tally| tally.count > 0);
        let is_counted = self.counts.iter().any(is_above);
        Computed::Item(is_counted.then(|| Self::made(schema, target.definition, target.key)).flatten())
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;
    use crate::{
        catalogue::Catalogue,
        change::Change,
        fixture::{TestTable, effects, inserted, item, key_of, modified, named, removed, schema},
    };

    fn check(change: &Change, wanted: &Expect) {
        wanted.assert_eq(&effects("counted item", change));
    }

    const COUNTER: &str = "DESK#d / STATUS#open#COUNT#tickets#00 Counter";
    const GROUP: &str = "DESK#d / STATUS#open StatusGroup Tickets=N:2";

    #[test]
    fn a_counter_whose_value_changed_rings_its_item() {
        let requested = || expect!["tickets-item: look DESK#d / STATUS#open (StatusGroup)\n"];
        check(&inserted(&format!("{COUNTER} Value=N:1")), &requested());
        check(
            &modified(&format!("{COUNTER} Value=N:4"), &format!("{COUNTER} Value=N:3 Shown=BOOL:true")),
            &requested(),
        );
        check(&removed(&format!("{COUNTER} Value=N:1")), &requested());
        check(
            &modified(&format!("{COUNTER} Value=N:4"), &format!("{COUNTER} Value=N:4.0 Note=x")),
            &expect!["nothing\n"],
        );
        check(&inserted("DESK#d / STATUS#open#COUNT#others#00 Counter Value=N:1"), &expect!["nothing\n"]);
        check(&inserted("DESK#d / METADATA#COUNT#statuses#00 Counter Value=N:1"), &expect!["nothing\n"]);
    }

    #[test]
    fn an_item_that_somebody_made_changed_or_removed_is_looked_at() {
        let requested = || expect!["tickets-item: look DESK#d / STATUS#open (StatusGroup)\n"];
        check(&inserted(GROUP), &requested());
        check(&removed(GROUP), &requested());
        check(&modified(GROUP, &format!("{GROUP} Note=x")), &requested());
        check(&modified(GROUP, "DESK#d / STATUS#open StatusGroup Tickets=N:3"), &expect!["nothing\n"]);
    }

    #[test]
    fn a_target_that_is_not_derived_is_refused() {
        let schema = schema();
        let kind = CountedItem { counts: vec!["tickets".to_owned()], target: "Desk".to_owned() };
        let error = Catalogue::new(&schema, vec![named("made", kind)]).unwrap_err().to_string();
        expect!["derivation made: Desk is not declared as derived"].assert_eq(&error);
    }

    #[test]
    fn an_item_exists_while_any_of_its_counts_is_above_zero() {
        let schema = schema();
        let counts = ["tickets", "returns"].map(str::to_owned).to_vec();
        let kind = CountedItem { counts, target: "StatusGroup".to_owned() };
        let key = |status: &str| Key::new("DESK#d", format!("STATUS#{status}"));
        let tallies =
            [("a", "tickets", 1), ("a", "returns", 2), ("b", "returns", 1), ("c", "tickets", 0), ("d", "other", 3)];
        let mut counts = Counts::new();
        for (status, count, n) in tallies {
            counts.insert((key(status), count.to_owned()), crate::tally::Tally::of(n));
        }
        let made = kind.derive("item", &schema, &Items::new(), &counts);
        let made: Vec<&Key> =
            made.iter().filter_map(|it| if let Derived::Item { key, .. } = it { Some(key) } else { None }).collect();
        assert_eq!(made, [&key("a"), &key("b")]);
        let counter = |count: &str| inserted(&format!("DESK#d / STATUS#b#COUNT#{count}#00 Counter Value=N:1"));
        let asks = |change: &Change| kind.plan(&schema, &Sight::of(&schema, change)).len();
        assert_eq!([asks(&counter("returns")), asks(&counter("tickets")), asks(&counter("other"))], [1, 1, 0]);
    }

    /// The groups of a table of these items, and the displays of the desk, when everything is handled.
    fn stored(items: &[&str]) -> String {
        let mut table = TestTable::new();
        for text in items {
            let item = item(text);
            table.replace(key_of(&item), Some(item));
            table.settle(&[0]);
        }
        assert_eq!(table.differing(), Vec::<String>::new());
        let shown = |(key, item): (&Key, &Item)| {
            let shown = ["Tickets", "Statuses"].into_iter().find_map(|name| item.get(name))?;
            Some(format!("{key} {}", crate::fixture::short(shown)))
        };
        table.items.iter().filter_map(shown).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn there_is_an_item_for_each_value_that_is_counted_and_a_count_of_them() {
        let [one, two] = ["DESK#d / TICKET#1 Ticket Status=open", "DESK#d / TICKET#2 Ticket Status=open"];
        let desk = "DESK#d / METADATA Desk";
        assert_eq!(stored(&[desk]), "");
        assert_eq!(stored(&[one, two, desk]), "DESK#d / METADATA N:1; DESK#d / STATUS#open N:2");
        let closed = "DESK#d / TICKET#1 Ticket Status=closed";
        assert_eq!(
            stored(&[one, two, closed, desk]),
            "DESK#d / METADATA N:2; DESK#d / STATUS#closed N:1; DESK#d / STATUS#open N:1"
        );
        assert_eq!(stored(&[one, closed, desk]), "DESK#d / METADATA N:1; DESK#d / STATUS#closed N:1");
        assert_eq!(stored(&[one, "DESK#d / TICKET#1 Ticket", desk]), "DESK#d / METADATA N:0");
    }

    const ITEMS: [&str; 14] = [
        "DESK#d / METADATA Desk",
        "DESK#d / METADATA Desk Statuses=N:7",
        "DESK#d / TICKET#1 Ticket Status=open",
        "DESK#d / TICKET#1 Ticket Status=closed",
        "DESK#d / TICKET#2 Ticket Status=open",
        "DESK#d / TICKET#2 Ticket",
        "DESK#d / STATUS#open StatusGroup Tickets=N:9 Note=x",
        "DESK#d / STATUS#late StatusGroup",
        "DESK#d / METADATA Desk Place=hall Clerks=SS:ann,bob",
        "DESK#d / METADATA Desk Place=hall Clerks=SS:bob,cid",
        "DESK#d / METADATA Desk Place=yard Clerks=SS:bob Closed=BOOL:true",
        "DESK#d / METADATA Desk Place=yard Clerks=bob Closed=maybe",
        "CLERK#cid / DESK#d Duty Place=moon",
        "CLERK#eve / DESK#d Duty",
    ];

    proptest! {
        #[test]
        fn any_order_of_records_and_late_writes_ends_as_defined(
            steps in prop::collection::vec((0usize..14, 0usize..6, any::<bool>()), 1..40),
            choices in prop::collection::vec(0usize..50, 1..30),
        ) {
            let mut table = TestTable::new();
            table.run(&ITEMS, steps, &choices);
            prop_assert_eq!(table.differing(), Vec::<String>::new());
        }
    }
}
