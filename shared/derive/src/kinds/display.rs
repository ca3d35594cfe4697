//! Display: a count, shown as an attribute of the item that it is about.
//!
//! *Keeps true*: the attribute of an existing target is the sum of its counter's shards; a sum of zero is no attribute.
//! *From* a counter that changed, or a target that was made or whose display changed, *to* a look at the target.
//!
//! *Level-triggered.* The counters are the authority and are read when the display is written, so any order of bells
//! ends at the newest sum, and a put over the target that takes the display away rings the bell that brings it back.
//!
//! *Example*: the counter `USER#bob / PROFILE#COUNT#follower-count#03` goes from 4 to 5. Look at `USER#bob / PROFILE`:
//! its shards add up to 12, `FollowerCount` is 11, so it becomes 12.

use keys::{
    counter::{self, COUNTER, CounterKey, VALUE},
    key::Key,
};

use crate::{
    change::Sight,
    derivation::{Counts, Derived, Family, Items, Kind, Part, Reach, Refresh},
    effect::{Bell, Effect},
    kinds::{declares, entity},
    refresh::{Computed, Source, Sources, Target, display_value},
    schema::{Image, Schema, Unreadable},
    value::whole_number,
    write::Wanted,
};

/// The declaration of a display.
#[derive(Clone, Debug)]
pub struct Display {
    /// Name of the derivation that counts.
    pub count: String,
    /// Entity of the items that show it.
    pub target: String,
    /// Attribute that shows it.
    pub attribute: String,
}

impl Display {
    fn wanted(&self, count: i64) -> Wanted {
        Wanted { name: self.attribute.clone(), value: display_value(count), zero_is_absent: true }
    }

    fn bell(&self, item: Key) -> Effect {
        Effect::Look(Bell { item, entity: self.target.clone(), named: Vec::new() })
    }

    /// The target of a changed counter, when it is this display's.
    fn counted(&self, schema: &Schema, sight: &Sight<'_>) -> Option<Key> {
        let (old, new) = sight.entity(COUNTER);
        let counter = self.counter(schema, new.or(old)?)?;
        sight.attribute_differs(old, new, VALUE).then_some(counter.target)
    }

    /// The key of a counter that this display shows; `None` for any other item.
    fn counter(&self, schema: &Schema, image: &Image<'_>) -> Option<CounterKey> {
        // Every display is asked about every counter, so most are turned away before a key is made.
        if !image.is(COUNTER) || image.key_fields().get(counter::DERIVATION) != Some(&self.count) {
            return None;
        }
        let counter = CounterKey::parse(image.key).filter(|counter| counter.derivation == self.count)?;
        schema.entity(&self.target)?.key.parse_key(&counter.target).is_some().then_some(counter)
    }
}

impl Kind for Display {
    fn kind(&self) -> &'static str {
        "display"
    }

    fn family(&self) -> Family {
        Family::LevelTriggered
    }

    fn reach(&self, schema: &Schema) -> Result<Reach, String> {
        declares(entity(schema, &self.target)?, [self.attribute.as_str()])?;
        entity(schema, COUNTER)?;
        Ok(Reach {
            reads: vec![Part::existence(&self.target), Part::attribute(COUNTER, &self.count)],
            writes: vec![Part::attribute(&self.target, &self.attribute)],
        })
    }

    fn entities(&self) -> Vec<&str> {
        vec![&self.target, COUNTER]
    }

    fn plan(&self, schema: &Schema, sight: &Sight<'_>) -> Vec<Effect> {
        let (old, new) = sight.entity(&self.target);
        if let Some(target) = self.counted(schema, sight) {
            return vec![self.bell(target)];
        }
        match new {
            Some(new) if old.is_none() || sight.attribute_differs(old, Some(new), &self.attribute) => {
                vec![self.bell(new.key.clone())]
            }
            _ => Vec::new(),
        }
    }

    fn unreadable(&self, schema: &Schema, image: &Image<'_>) -> Option<Unreadable> {
        if !image.is(COUNTER) || image.attribute(VALUE).and_then(whole_number).is_some() {
            return None;
        }
        self.counter(schema, image)
            .map(|_| Unreadable { attribute: VALUE.to_owned(), why: "is not a whole number of type N".to_owned() })
    }

    fn derive(&self, _name: &str, schema: &Schema, items: &Items, counts: &Counts) -> Vec<Derived> {
        let mut derived = Vec::new();
        for (key, item) in items {
            if schema.image(key, item).is_some_and(|image| image.is(&self.target)) {
                let count = counts.get(&(key.clone(), self.count.clone())).copied().unwrap_or(0);
                derived.push(Derived::Attributes { key: key.clone(), attributes: vec![self.wanted(count)] });
            }
        }
        derived
    }

    fn refresh(&self) -> Option<&dyn Refresh> {
        Some(self)
    }
}

impl Refresh for Display {
    fn target(&self) -> &str {
        &self.target
    }

    fn sources(&self, _schema: &Schema, target: &Target<'_>) -> Vec<Source> {
        vec![Source::Counters(target.key.clone())]
    }

    fn compute(&self, _schema: &Schema, target: &Target<'_>, sources: &Sources) -> Computed {
        Computed::Attributes(vec![self.wanted(sources.count(target.key, &self.count))])
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use crate::{
        change::Change,
        fixture::{effects, inserted, modified, removed},
    };

    fn check(change: &Change, wanted: &Expect) {
        wanted.assert_eq(&effects("display", change));
    }

    const COUNTER: &str = "USER#bob / PROFILE#COUNT#follower-count#03 Counter";
    const BOB: &str = "USER#bob / PROFILE User FollowerCount=N:12";

    #[test]
    fn a_counter_that_changed_rings_its_target() {
        check(
            &modified(&format!("{COUNTER} Value=N:4"), &format!("{COUNTER} Value=N:5")),
            &expect![[r#"
            follower-shown: look USER#bob / PROFILE (User)
        "#]],
        );
        check(
            &inserted(&format!("{COUNTER} Value=N:1")),
            &expect![[r#"
            follower-shown: look USER#bob / PROFILE (User)
        "#]],
        );
        check(
            &removed(&format!("{COUNTER} Value=N:1")),
            &expect![[r#"
            follower-shown: look USER#bob / PROFILE (User)
        "#]],
        );
    }

    #[test]
    fn a_counter_whose_value_is_the_same_rings_nothing() {
        check(
            &modified(&format!("{COUNTER} Value=N:4"), &format!("{COUNTER} Value=N:4.0 Note=x")),
            &expect![[r#"
            nothing
        "#]],
        );
    }

    #[test]
    fn a_counter_of_another_derivation_rings_nothing() {
        check(
            &inserted("USER#bob / PROFILE#COUNT#writer-count#00 Counter Value=N:1"),
            &expect![[r#"
            nothing
        "#]],
        );
        check(
            &inserted("POST#p / METADATA#COUNT#view-count#00 Counter Value=N:1"),
            &expect![[r#"
            nothing
        "#]],
        );
    }

    #[test]
    fn a_target_that_is_made_rings_for_each_of_its_displays() {
        check(
            &inserted(BOB),
            &expect![[r#"
            follower-shown: look USER#bob / PROFILE (User)
            post-shown: look USER#bob / PROFILE (User)
        "#]],
        );
        check(
            &removed(BOB),
            &expect![[r#"
            nothing
        "#]],
        );
    }

    #[test]
    fn a_display_that_is_altered_or_dropped_rings() {
        check(
            &modified(BOB, "USER#bob / PROFILE User"),
            &expect![[r#"
            follower-shown: look USER#bob / PROFILE (User)
        "#]],
        );
        check(
            &modified(BOB, "USER#bob / PROFILE User FollowerCount=many"),
            &expect![[r#"
            follower-shown: look USER#bob / PROFILE (User)
        "#]],
        );
        check(
            &modified(BOB, &format!("{BOB} Name=Bob")),
            &expect![[r#"
            nothing
        "#]],
        );
    }

    #[test]
    fn a_counter_that_cannot_be_read_is_listed() {
        check(
            &inserted(&format!("{COUNTER} Value=many")),
            &expect![[r#"
            follower-shown: look USER#bob / PROFILE (User)
            follower-shown: list Value: is not a whole number of type N
        "#]],
        );
    }
}
