//! Unread: how many items of one range are behind an attribute of their target, up to a limit.
//!
//! *Keeps true*: an existing target has the number of the sources in its range that are behind its attribute, at most
//! the limit. A source is behind it if its sort key is greater than every sort key of the range that has the
//! attribute's value in the declared field. A target without the attribute has all of its range behind it. *From* a
//! source that was created or removed *to* a refresh of all targets of its range; *from* a target that was created, or
//! whose attribute, link or count changed, *to* a refresh of that target.
//!
//! The sources of a target are one range of one partition of the table, in the order of the field, so the refresh reads
//! what is behind the attribute with one consistent query, and at most as many items as the limit.
//!
//! *Level-triggered.* The range is read when the target is written, so nothing counts twice, in any order of requests.
//!
//! *Example*: `MEMBER#ann` of `ROOM#r` has read up to 10:00, and the message `ROOM#r / MSG#10:05#m` is put. The search
//! for the members of `ROOM#r` finds her, the query of `ROOM#r` behind `MSG#10:00#` finds one message, and her item
//! gets the number 1.

use std::borrow::Cow;

use keys::{
    entity::Definition,
    error::Problem,
    key::{Key, SORT_KEY_BYTES_MAX},
    template::{Piece, form::Form},
};
use serde_dynamo::AttributeValue;

use crate::{
    change::Sight,
    declaration::{FoundBy, Link, declares, entity, knows},
    derived::{Counts, Derived, Items},
    effect::{Effect, Find},
    kind::{Computed, Kind, Refresh, RefreshTarget, Shape},
    outline::Outline,
    part::{Part, Reach},
    query::{Query, SortKeys, first_behind, not_one_range, past},
    schema::{Image, Schema, Unreadable},
    sources::{FirstOf, Source, Sources, first_of},
    write::Wanted,
};

/// The declaration of an `unread` derivation.
#[derive(Clone, Debug)]
pub struct Unread {
    /// Entity of the items that are counted.
    pub source: String,
    /// Entity of the items that show the number.
    pub target: String,
    /// What gives the range: pairs of (field of the sources' key, what of the target gives it).
    pub link: Link,
    /// The field of the sources' sort key whose order decides.
    pub field: String,
    /// The attribute of the target with the last value of the field that does not count.
    pub after: String,
    /// The attribute of the target that shows the number.
    pub attribute: String,
    /// The greatest number.
    pub limit: u32,
    /// True if the attribute is absent in place of 0.
    pub zero_is_absent: bool,
    /// How the targets of a source are found.
    pub found: FoundBy,
}

impl Unread {
    /// The attributes of the target that decide its number.
    fn read(&self) -> impl Iterator<Item = &str> {
        self.link.from_fields().chain([self.after.as_str()])
    }

    /// The query for the sources behind a target's attribute; `None` if the target names no range.
    fn behind(&self, schema: &Schema, target: &Image<'_>) -> Result<Option<FirstOf>, Unreadable> {
        let Some(source) = schema.entity(&self.source) else { return Ok(None) };
        let Some(filled) = self.link.filled(source, target, None)? else { return Ok(None) };
        let given = |name: &str| filled.iter().rfind(|(field, _)| *field == name).map(|(_, value)| &**value);
        let pk = source.key.pk.build_of(given).map_err(|error| self.link.refused(error))?;
        let prefix = source.key.sk.prefix_of(given).map_err(|error| self.link.refused(error))?;
        let query = match self.last(source, target)? {
            Some(last) => {
                let value = |name: &str| given(name).or((name == self.field).then_some(&*last));
                Query::of(None, pk, self.sort_keys(source, &prefix, value)?)
            }
            None => Query::prefix(None, pk, prefix),
        };
        let query = Query { limit: Some(self.limit), ..query };
        Ok(Some(FirstOf { query, entity: self.source.clone(), is_counted: true }))
    }

    /// The value of the field up to which nothing counts, as the key takes it.
    fn last<'a>(&self, source: &Definition, target: &'a Image<'a>) -> Result<Option<Cow<'a, str>>, Unreadable> {
        match target.attribute(&self.after) {
            Some(AttributeValue::N(number)) if source.key.sk.holds_number(&self.field) => Ok(Some(number.into())),
            stored => Image::value_filling(&self.after, stored, &source.key, &self.field),
        }
    }

    /// The sort keys with this prefix behind all those that have these values.
    fn sort_keys<'a>(
        &self,
        source: &Definition,
        prefix: &str,
        value: impl Fn(&str) -> Option<&'a str>,
    ) -> Result<SortKeys, Unreadable> {
        let sort = &source.key.sk;
        let refused = |problem: Problem| Unreadable { attribute: self.after.clone(), why: problem.to_string() };
        let last = sort.prefix_of(&value).map_err(|error| refused(error.problem))?;
        let bytes = source.key.sort_key_bytes(&last);
        if bytes > SORT_KEY_BYTES_MAX {
            return Err(refused(Problem::TooLong { bytes, bytes_max: SORT_KEY_BYTES_MAX }));
        }
        let is_whole = sort.field_names().into_iter().all(|name| value(name).is_some());
        // No key continues the longest one.
        let is_continued = is_whole && bytes < SORT_KEY_BYTES_MAX;
        let behind = if is_continued { Some(format!("{last}\0")) } else { past(&last) };
        Ok(match (past(prefix), behind) {
            (Some(until), Some(behind)) => SortKeys::Between(behind, until),
            (None, Some(behind)) if !is_whole => SortKeys::After(behind),
            _ => SortKeys::After(last),
        })
    }

    fn wanted(&self, number: Option<usize>) -> Vec<Wanted> {
        let number = number.filter(|number| *number > 0 || !self.zero_is_absent);
        let value = number.map(|number| AttributeValue::N(number.to_string()));
        vec![Wanted { name: self.attribute.clone(), value, zero_is_absent: false }]
    }

    /// Checks that the sources of a target are one range of one partition, in the order of the field.
    ///
    /// # Errors
    ///
    /// A sentence with what to write instead.
    pub fn check_range(&self, source: &Definition) -> Result<(), String> {
        let given: Vec<&str> = self.link.0.iter().map(|(to, _)| to.as_str()).collect();
        let (name, field, sort) = (&source.name, &self.field, &source.key.sk);
        if let Some(fault) = not_one_range(source, &given, "the link") {
            return Err(format!("the items of {name} are not consecutive items of one partition: {fault}"));
        }
        if first_behind(sort, |name| given.contains(&name)) != Some(field) {
            return Err(format!(
                "{name} items are not in the order of {field}: their sort key is {sort}, and behind the fields of the link it must \
                 begin with {{{field}}}, as MSG#{{{field}}}#{{id}} does; mirror them under such a key, and count the mirrors"
            ));
        }
        let is_it = |piece: &&Piece| matches!(piece, Piece::Field { name, .. } if name == field);
        let ends = sort.pieces().last().is_some_and(|last| is_it(&last));
        let of = sort.pieces().iter().find(is_it);
        match of {
            Some(Piece::Field { form: Form::Inverted(_), .. }) => Err(format!(
                "{sort} of {name} has the greatest {field} first, so newer items are before the value: mirror them under a sort \
                 key without MAX-, and count the mirrors"
            )),
            Some(Piece::Field { form: Form::Padded(_) | Form::Number | Form::Bytes, .. }) => Ok(()),
            Some(Piece::Field { form: Form::Text | Form::Plain | Form::Cased(_), .. }) if !sort.is_open() => Ok(()),
            Some(Piece::Field { form: Form::Raw, .. }) if ends => Ok(()),
            Some(Piece::Field { form: Form::Text | Form::Plain | Form::Cased(_) | Form::Raw, .. }) => {
                Err(format!("a value of {field} may contain the text that ends it in {sort} of {name}: write # there"))
            }
            _ => Err(format!("{field} in {sort} of {name} is no value as it is: name a text or a number")),
        }
    }
}

impl Kind for Unread {
    fn name(&self) -> &'static str {
        "unread"
    }

    fn shape(&self) -> Shape<'_> {
        Shape::Attributes(self)
    }

    fn reach(&self, schema: &Schema) -> Result<Reach, String> {
        let (source, target) = (entity(schema, &self.source)?, entity(schema, &self.target)?);
        self.link.check_given(source, target)?;
        self.check_range(source)?;
        knows(target, [self.after.as_str()])?;
        declares(target, [self.attribute.as_str()])?;
        self.found.check(schema, source, target)?;
        let mut reads = vec![Part::existence(&self.source), Part::existence(&self.target)];
        reads.extend(self.read().map(|name| Part::attribute(&self.target, name)));
        Ok(Reach { reads, writes: vec![Part::attribute(&self.target, &self.attribute)] })
    }

    fn outline(&self, schema: &Schema) -> Outline {
        let Self { source, field, after, limit, attribute, .. } = self;
        let absent = if self.zero_is_absent { ", absent for zero" } else { "" };
        let pairs: Vec<String> = self.link.0.iter().map(|(to, from)| format!("{to} is its {from}")).collect();
        let pairs = pairs.join(", ");
        Outline {
            terms: vec![format!(
                "those whose {field} is behind its {after}, up to {limit}, as {attribute}{absent}; {pairs}"
            )],
            says: Some(format!(
                "shows in {}.{attribute} the number of the {source} items whose {field} is after its {after}, up to \
                 {limit}{absent}; {pairs}",
                self.target
            )),
            into: schema.entity(&self.target).map(|target| target.key.to_string()),
            finds: self.found.shown(schema, &self.source, &self.target).into_iter().collect(),
            ..Outline::from(&self.source)
        }
    }

    fn entities(&self) -> Vec<&str> {
        vec![&self.source, &self.target, &self.found.via]
    }

    fn plan(&self, schema: &Schema, sight: &Sight<'_>) -> Vec<Effect> {
        let (old, new) = sight.entity(&self.source);
        let source = new.or(old).filter(|_| old.is_some() != new.is_some());
        let all = source.and_then(|source| self.found.find(schema, source, &self.target));
        let itself = sight.touched(&self.target, self.read().chain([self.attribute.as_str()]));
        let led = self.found.newly_led(schema, sight, &self.target);
        let items = itself.into_iter().chain(led);
        all.into_iter().chain(items.map(|item| Effect::look(item, &self.target))).collect()
    }

    fn unreadable(&self, schema: &Schema, image: &Image<'_>) -> Option<Unreadable> {
        image.is(&self.target).then(|| self.behind(schema, image).err()).flatten()
    }

    fn derive(&self, _name: &str, schema: &Schema, items: &Items, _counts: &Counts) -> Vec<Derived> {
        let number = |of: FirstOf| first_of(schema, &of, items.range(of.begin()..)).len();
        let of = |image: Image<'_>| {
            let behind = self.behind(schema, &image).ok().flatten();
            Derived::Attributes { key: image.key.clone(), attributes: self.wanted(behind.map(number)) }
        };
        schema.images(items, &self.target).map(of).collect()
    }
}

impl Refresh for Unread {
    fn target(&self) -> &str {
        &self.target
    }

    fn gives(&self) -> Option<&'static str> {
        Some("N")
    }

    fn found(&self) -> Option<&FoundBy> {
        Some(&self.found)
    }

    fn sources(&self, schema: &Schema, target: &RefreshTarget<'_>) -> Vec<Source> {
        let behind = target.image(schema).and_then(|image| self.behind(schema, &image).ok().flatten());
        behind.map(Source::First).into_iter().collect()
    }

    fn compute(&self, schema: &Schema, target: &RefreshTarget<'_>, sources: &Sources) -> Computed {
        let behind = target.image(schema).and_then(|image| self.behind(schema, &image).ok().flatten());
        Computed::Attributes(self.wanted(behind.map(|of| sources.first(schema, &of).len())))
    }

    fn find_from(&self, schema: &Schema, source: &Key) -> Option<Find> {
        self.found.find_from(schema, &self.source, source, &self.target)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use keys::{
        entity::StoredForm,
        layout::Layout,
        tables::{KeyAttribute, KeyType},
    };
    use proptest::prelude::*;

    use super::*;
    use crate::{
        catalogue::Catalogue,
        change::Change,
        fixture::{
            TestTable, derived, effects, ground, inserted, item, key_of, modified, named, removed, schema, short,
            unread,
        },
    };

    fn check(change: &Change, wanted: &Expect) {
        wanted.assert_eq(&effects("unread", change));
    }

    const MEMBER: &str = "ROOM#r / USER#ann Member ReadAt=2";
    const MESSAGE: &str = "ROOM#r / MESSAGE#1 Message By=bob";

    #[test]
    fn a_source_that_comes_or_goes_finds_all_targets_of_its_range_and_one_that_changes_none() {
        let all = expect!["unread-messages: find table ROOM#r / USER#… via Member -> Member\n"];
        check(&inserted(MESSAGE), &all);
        check(&removed(MESSAGE), &all);
        check(&modified(MESSAGE, "ROOM#r / MESSAGE#1 Gadget"), &all);
        check(&modified(MESSAGE, "ROOM#r / MESSAGE#1 Message By=cat"), &expect!["nothing\n"]);
    }

    #[test]
    fn a_target_that_is_made_that_reads_or_whose_number_was_changed_is_refreshed() {
        let itself = expect!["unread-messages: look ROOM#r / USER#ann (Member)\n"];
        check(&inserted(MEMBER), &itself);
        check(&modified(MEMBER, "ROOM#r / USER#ann Member ReadAt=3"), &itself);
        check(&modified(MEMBER, "ROOM#r / USER#ann Member"), &itself);
        check(&modified(MEMBER, &format!("{MEMBER} Unread=N:7")), &itself);
        check(&modified(MEMBER, &format!("{MEMBER} Note=x")), &expect!["nothing\n"]);
        check(&removed(MEMBER), &expect!["nothing\n"]);
    }

    /// The number of a member with this attribute, in a room with these messages.
    fn number(read_at: &str, messages: &[&str]) -> String {
        let mut table = TestTable::new();
        let member = item(&format!("ROOM#r / USER#ann Member{read_at}"));
        let texts = messages.iter().map(|rest| item(&format!("ROOM#r / MESSAGE#{rest}")));
        for item in texts.chain([member.clone(), item("ROOM#q / MESSAGE#9 Message")]) {
            table.replace(key_of(&item), Some(item));
        }
        table.settle(&[0]);
        assert_eq!(table.differing(), Vec::<String>::new());
        table.items[&key_of(&member)].get("Unread").map_or("none".to_owned(), short)
    }

    #[test]
    fn what_is_behind_the_attribute_is_counted_up_to_the_limit() {
        let messages = ["1 Message", "2 Message", "2#PIN Pin", "2%23x Message", "3 Message", "4 Gadget"];
        for (read_at, wanted) in [
            ("", "N:3"),
            (" ReadAt=0", "N:3"),
            (" ReadAt=1", "N:3"),
            (" ReadAt=2", "N:2"),
            (" ReadAt=2#x", "N:1"),
            (" ReadAt=20", "N:1"),
            (" ReadAt=3", "N:0"),
            (" ReadAt=9", "N:0"),
            (" ReadAt=N:1", "none"),
            (" ReadAt=", "none"),
        ] {
            assert_eq!(number(read_at, &messages), wanted, "{read_at}");
        }
        assert_eq!(number("", &["5#PIN Pin"]), "N:0");
        let long = format!(" ReadAt={}", "x".repeat(1_025));
        assert_eq!(number(&long, &messages), "none", "no key is so long");
    }

    /// A schema in which a room's items have such a sort key, and a member reads up to an attribute.
    fn schema_of(sk: &str) -> (Schema, Unread) {
        let member = ground("Member", ("USER#{UserId}", "ROOM#{RoomId}"), &["ReadAt", "Topic"], &["Unread"]);
        let seat = derived("Seat", ("ROOM#{RoomId}", "SEAT#{UserId}"), &[]);
        let all: [Definition; 3] = [ground("Message", ("ROOM#{RoomId}", sk), &["By"], &[]), member, seat];
        let layout = Layout { entity_type: Some("EntityType".into()), ..Layout::of("PK", "SK") };
        let found = FoundBy { via: "Seat".into(), index: None, by: Link::of(&[("RoomId", "RoomId")]) };
        (Schema::new(layout, all), Unread { found, ..unread() })
    }

    /// The range behind an attribute.
    fn behind(sk: &str, kind: impl FnOnce(Unread) -> Unread, rest: &str) -> Result<SortKeys, String> {
        let (schema, unread) = schema_of(sk);
        let member = item(&format!("USER#ann / ROOM#r Member{rest}"));
        let key = key_of(&member);
        let image = schema.image(&key, &member).unwrap();
        let of = kind(unread).behind(&schema, &image).map_err(|error| error.to_string())?.unwrap();
        assert_eq!((of.query.pk.as_str(), of.query.limit), ("ROOM#r", Some(3)));
        Ok(of.query.sk)
    }

    #[test]
    fn the_range_begins_behind_every_key_with_the_value() {
        let between = |first: &str, last: &str| Ok(SortKeys::Between(first.to_owned(), last.to_owned()));
        let after = |text: &str| Ok(SortKeys::After(text.to_owned()));
        let same = |unread| unread;
        for (sk, rest, wanted) in [
            ("MSG#{At}#{Id}", "", Ok(SortKeys::Prefix("MSG#".to_owned()))),
            ("MSG#{At}#{Id}", " ReadAt=2024", between("MSG#2024$", "MSG$")),
            ("MSG#{At}#{Id}", " ReadAt=a#b", between("MSG#a%23b$", "MSG$")),
            ("MSG#{At}", " ReadAt=2024", between("MSG#2024\0", "MSG$")),
            ("MSG#{At}#END", " ReadAt=2024", between("MSG#2024#END\0", "MSG$")),
            ("MSG#{At:6}#{Id}", " ReadAt=N:42", between("MSG#000042$", "MSG$")),
            ("MSG#{At:6}.{Id}", " ReadAt=N:42", between("MSG#000042/", "MSG$")),
            ("MSG#{At:6}#{Id}", " ReadAt=42", between("MSG#000042$", "MSG$")),
            ("MSG#{At:6.2}", " ReadAt=N:1.5", between("MSG#000150\0", "MSG$")),
            ("MSG#{upper(At)}#{Id}", " ReadAt=ab", between("MSG#AB$", "MSG$")),
            ("{At}#{Id}", " ReadAt=2024", after("2024$")),
            ("{At}", " ReadAt=2024", after("2024")),
            ("{At}", "", Ok(SortKeys::All)),
            ("MSG#{At:6}", " ReadAt=N:1.5", Err("ReadAt is not a whole number from 0 up".to_owned())),
            ("MSG#{At:6}", " ReadAt=N:1234567", Err("ReadAt does not fit in 6 digits".to_owned())),
            ("MSG#{At}", " ReadAt=N:7", Err("ReadAt is N, and S is wanted".to_owned())),
        ] {
            assert_eq!(behind(sk, same, rest), wanted, "{sk}{rest}");
        }
        let longest = "x".repeat(1_020);
        let behind_longest = between(&format!("MSG#{}y", "x".repeat(1_019)), "MSG$");
        assert_eq!(behind("MSG#{At}", same, &format!(" ReadAt={longest}")), behind_longest, "no key is longer");
        let of_topic = |unread| Unread { link: Link::of(&[("RoomId", "RoomId"), ("Topic", "Topic")]), ..unread };
        let topic = "T#{Topic}#{At}#{Id}";
        assert_eq!(behind(topic, of_topic, " Topic=tea"), Ok(SortKeys::Prefix("T#tea#".to_owned())));
        assert_eq!(behind(topic, of_topic, " Topic=tea ReadAt=5"), between("T#tea#5$", "T#tea$"));
    }

    /// Of a table whose keys are values as they are, the text of a key is longer than the stored value.
    #[test]
    fn a_value_is_too_long_by_its_stored_bytes() {
        let (schema, unread) = schema_of("{At}");
        let mut source = schema.entity("Message").unwrap().clone();
        let attribute = KeyAttribute { name: "At".into(), of: KeyType::S, is_plain: true };
        source.key.stored = StoredForm::Values { prefix: String::new(), pk: Vec::new(), sk: vec![attribute] };
        let behind = |n_bytes: usize| {
            let value = format!("#{}", "x".repeat(n_bytes - 1));
            unread.sort_keys(&source, "", |_| Some(&value)).map_err(|error| error.why)
        };
        assert!(matches!(behind(1_024), Ok(SortKeys::After(_))));
        assert_eq!(behind(1_025).unwrap_err(), Problem::TooLong { bytes: 1_025, bytes_max: 1_024 }.to_string());
    }

    #[test]
    fn a_target_whose_link_leads_nowhere_has_no_number_and_zero_may_be_absent() {
        let (schema, kind) = schema_of("T#{Topic}#{At}");
        let link = Link::of(&[("RoomId", "RoomId"), ("Topic", "Topic")]);
        let derived = |kind: Unread, rest: &str| {
            let member = item(&format!("USER#ann / ROOM#r Member{rest}"));
            let items = [(key_of(&member), member)].into();
            format!("{:?}", kind.derive("unread", &schema, &items, &Counts::default()))
        };
        let kind = Unread { link, ..kind };
        assert!(derived(kind.clone(), "").contains("value: None"));
        assert!(derived(kind.clone(), " Topic=tea").contains(r#"value: Some(N("0"))"#));
        assert!(derived(Unread { zero_is_absent: true, ..kind }, " Topic=tea").contains("value: None"));
    }

    #[test]
    fn sources_that_are_no_range_in_the_order_of_the_field_are_refused() {
        let refused = |sk: &str, change: &dyn Fn(Unread) -> Unread| {
            let (schema, unread) = schema_of(sk);
            format!("{}\n", Catalogue::new(&schema, vec![named("unread", change(unread))]).unwrap_err())
        };
        let same = |unread| unread;
        let (none, of_by) = (Link::of(&[]), Link::of(&[("RoomId", "RoomId"), ("Id", "UserId")]));
        let shown = [
            refused("MSG#{At}#{Id}", &|unread| Unread { link: none.clone(), ..unread }),
            refused("MSG#{At}#{Id}", &|unread| Unread { link: of_by.clone(), ..unread }),
            refused("MSG#{Id}#{At}", &same),
            refused("MSG#{MAX-At:12}", &same),
            refused("MSG#{At}.{Id}", &same),
            refused("{At*}#{Id}", &same),
            refused("MSG#{At/}", &same),
            refused("MSG#{At}", &|unread| Unread { after: "Read".into(), ..unread }),
            refused("MSG#{At}", &|unread| Unread { attribute: "Topic".into(), ..unread }),
            refused("MSG#{At}", &|unread| Unread { found: FoundBy { via: "Member".into(), ..unread.found }, ..unread }),
        ];
        expect![[r#"
            derivation unread: the items of Message are not consecutive items of one partition: the link does not give RoomId of their partition key
            derivation unread: the items of Message are not consecutive items of one partition: Id is not at the beginning of their key
            derivation unread: Message items are not in the order of At: their sort key is MSG#{Id}#{At}, and behind the fields of the link it must begin with {At}, as MSG#{At}#{id} does; mirror them under such a key, and count the mirrors
            derivation unread: MSG#{MAX-At:12} of Message has the greatest At first, so newer items are before the value: mirror them under a sort key without MAX-, and count the mirrors
            derivation unread: a value of At may contain the text that ends it in MSG#{At}.{Id} of Message: write # there
            derivation unread: a value of At may contain the text that ends it in {At*}#{Id} of Message: write # there
            derivation unread: At in MSG#{At/} of Message is no value as it is: name a text or a number
            derivation unread: Member has no attribute Read
            derivation unread: Member does not declare Topic as derived
            derivation unread: nothing gives UserId of the key by which the targets are found
        "#]].assert_eq(&shown.concat());
    }

    /// Changes of a small domain.
    fn steps() -> impl Strategy<Value = Vec<(usize, usize, bool)>> {
        prop::collection::vec((0usize..10, 0usize..6, any::<bool>()), 1..40)
    }

    const ITEMS: [&str; 10] = [
        "ROOM#r / USER#ann Member",
        "ROOM#r / USER#ann Member ReadAt=2 Unread=N:9",
        "ROOM#r / USER#bob Member ReadAt=1",
        "ROOM#r / USER#bob Member ReadAt=N:1",
        "ROOM#r / MESSAGE#1 Message By=ann",
        "ROOM#r / MESSAGE#2 Message By=cat",
        "ROOM#r / MESSAGE#2#PIN Pin By=dan",
        "ROOM#r / MESSAGE#3 Message",
        "ROOM#r / MESSAGE#3 Gadget By=eve",
        "ROOM#q / MESSAGE#3 Message By=eve",
    ];

    proptest! {
        #[test]
        fn any_order_of_records_and_late_writes_ends_as_defined(steps in steps(), choices in prop::collection::vec(0usize..50, 1..30)) {
            let mut table = TestTable::new();
            table.run(&ITEMS, steps, &choices);
            prop_assert_eq!(table.differing(), Vec::<String>::new());
        }
    }

    #[test]
    fn a_target_that_cannot_be_read_is_reported_and_others_are_not() {
        let unreadable = |text: &str| {
            let (schema, item) = (schema(), item(text));
            let key = key_of(&item);
            let image = schema.image(&key, &item).unwrap();
            unread().unreadable(&schema, &image).map(|why| why.to_string())
        };
        assert_eq!(unreadable(MEMBER), None);
        assert_eq!(unreadable("ROOM#r / USER#ann Member"), None);
        assert_eq!(unreadable(MESSAGE), None);
        let why = unreadable("ROOM#r / USER#ann Member ReadAt=N:1");
        assert_eq!(why.as_deref(), Some("ReadAt is N, and S is wanted"));
    }
}
