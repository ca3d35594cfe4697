//! Cascade: deletes the dependent items of a removed item.
//!
//! *Keeps true*: when a cascade has ended, the dependent items of the removed item are gone, unless the item exists
//! again. *From* the removal of an item *to* a job, which deletes page by page what it finds.
//!
//! *Level-triggered, and strict.* Deleting the application's items is the one effect that cannot be corrected later. So
//! a removal starts one job, even if its record is redelivered or replayed. The job begins after a grace period longer
//! than the stream's retention, when everything written before the removal has been seen. It lists the dependent items,
//! waits for a second grace period, and deletes only items that are still as they were listed. Each deletion is a
//! transaction that checks that the owner is absent under every key that it had. Items that arrive later are ordinary
//! items.
//!
//! The stream records of the deletions update counts.
//!
//! *Example*: the Post of `p1` is removed, and with it its mirror `POST#p1 / METADATA`. A day later the job lists the
//! comments `POST#p1 / COMMENT#…`, and a day after that it deletes them, one transaction each.

use keys::{entity::Definition, key::Key};

use crate::{
    change::Sight,
    claims::claims,
    declaration::{Cascade, Fate, Hanging, Link, Way, entity, knows},
    derived::{Counts, Derived, Items},
    effect::{Effect, Ground, Removal},
    kind::{Kind, Shape},
    outline::Outline,
    part::{Part, Reach},
    schema::{Image, Schema, Unreadable},
};

impl Hanging {
    /// What happens to it, in words.
    fn words(&self) -> String {
        let entity = match &self.found {
            Way::Counters(name) => format!("{} of {name}", self.entity),
            Way::Named(_) => format!("{}, named by what was removed,", self.entity),
            Way::Found(_) => self.entity.clone(),
        };
        match &self.fate {
            Fate::Deleted => format!("{entity} deleted"),
            Fate::DeletedWhere { attribute, .. } => format!("{entity} deleted while its {attribute} is the owner's"),
            Fate::Set { attribute, text } => format!("{entity} {attribute} set to {text}"),
        }
    }
}

impl Cascade {
    /// The keys that the removed item itself names, each with the position of the dependent items in the declaration.
    fn named(&self, schema: &Schema, removed: &Image<'_>) -> Vec<(usize, Key)> {
        let named = |(at, hanging): (usize, &Hanging)| match &hanging.found {
            Way::Named(link) => Some((at, named(link, schema.entity(&hanging.entity)?, removed)?)),
            Way::Found(_) | Way::Counters(_) => None,
        };
        self.hanging.iter().enumerate().filter_map(named).collect()
    }

    /// All keys of the owner, as far as the removed item gives them.
    fn absent(schema: &Schema, owner: &Key, removed: &Image<'_>) -> Vec<Key> {
        let mut absent = vec![owner.clone(), removed.key.clone()];
        absent.extend(claims(schema, removed.item));
        absent.sort();
        absent.dedup();
        absent
    }
}

impl Kind for Cascade {
    fn name(&self) -> &'static str {
        "cascade"
    }

    fn shape(&self) -> Shape<'_> {
        Shape::Cascade(self)
    }

    /// It writes nothing that a derivation reads: its deletions lower counts and request refreshes like any removal.
    fn reach(&self, schema: &Schema) -> Result<Reach, String> {
        let owner = entity(schema, &self.owner)?;
        for (name, link) in &self.starts {
            link.check(owner, entity(schema, name)?)?;
        }
        for hanging in &self.hanging {
            let target = entity(schema, &hanging.entity)?;
            match &hanging.found {
                Way::Found(found) => {
                    let via = entity(schema, &found.via)?;
                    found.check_case(schema, owner)?;
                    let index = via.indexes.iter().find(|index| Some(&index.index) == found.index.as_ref());
                    let sort_key = index.map_or(&via.key.sk, |index| &index.key.sk);
                    if sort_key.is_open() && found.by.0.iter().any(|(field, _)| sort_key.holds(field)) {
                        return Err(format!(
                            "{} is found by the beginning of {sort_key}, which may be that of another {} too, since a value may \
                             contain the text that ends it: find it by an index or a mirror with `#` there",
                            target.name, target.name
                        ));
                    }
                    let fields = owner.key.field_names();
                    if let Some(name) = found.by.from_fields().find(|name| !fields.contains(name)) {
                        return Err(format!(
                            "the key of {} has no {name}, by which {} is found",
                            owner.name, target.name
                        ));
                    }
                }
                Way::Named(link) => {
                    for (name, _) in &self.starts {
                        link.check(target, entity(schema, name)?)?;
                    }
                }
                Way::Counters(_) => {}
            }
            match &hanging.fate {
                Fate::Deleted => {}
                Fate::DeletedWhere { attribute, .. } | Fate::Set { attribute, .. } => {
                    knows(target, [attribute.as_str()])?;
                }
            }
        }
        let reads = self.starts.iter().map(|(name, _)| Part::existence(name)).collect();
        Ok(Reach { reads, writes: Vec::new() })
    }

    fn outline(&self, schema: &Schema) -> Outline {
        let finds = self.hanging.iter().filter_map(|hanging| match &hanging.found {
            Way::Found(found) => found.shown(schema, &self.owner, &hanging.entity),
            Way::Counters(_) | Way::Named(_) => None,
        });
        Outline {
            from: self.starts.iter().map(|(name, _)| name.clone()).collect(),
            terms: vec![format!("removed, and no {} there", self.owner)],
            into: schema.entity(&self.owner).map(|owner| owner.key.to_string()),
            finds: finds.collect(),
            touches: self.hanging.iter().map(Hanging::words).collect(),
            ..Outline::default()
        }
    }

    fn entities(&self) -> Vec<&str> {
        self.starts.iter().map(|(name, _)| name.as_str()).collect()
    }

    fn plan(&self, schema: &Schema, sight: &Sight<'_>) -> Vec<Effect> {
        let started = |(name, link): &(String, Link)| {
            // An item that only changed its type still exists.
            let removed = sight.entity(name).0.filter(|_| sight.removes())?;
            let owner = link.key(schema.entity(&self.owner)?, removed).ok()??;
            let (absent, named) = (Self::absent(schema, &owner, removed), self.named(schema, removed));
            Some(Effect::Ground(Ground::Cascade(Removal { owner, absent, named })))
        };
        self.starts.iter().filter_map(started).collect()
    }

    fn unreadable(&self, _schema: &Schema, _image: &Image<'_>) -> Option<Unreadable> {
        None
    }

    fn derive(&self, _name: &str, _schema: &Schema, _items: &Items, _counts: &Counts) -> Vec<Derived> {
        Vec::new()
    }
}

/// The key that a removed item names.
fn named(link: &Link, to: &Definition, removed: &Image<'_>) -> Option<Key> {
    let plain = |name: &str| Some(removed.field(link.filling(name)?.name()?).ok()??.trim().to_lowercase());
    let fields: Option<Vec<(String, String)>> = link.0.iter().map(|(to, _)| Some((to.clone(), plain(to)?))).collect();
    to.build(&fields?.into_iter().collect()).ok()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use crate::{
        change::Change,
        fixture::{effects, inserted, modified, removed},
    };

    fn check(change: &Change, wanted: &Expect) {
        wanted.assert_eq(&effects("cascade", change));
    }

    #[test]
    fn a_removal_starts_a_job_and_names_what_the_removed_item_held() {
        check(
            &removed("USER#ann / PROFILE User Name=Ann"),
            &expect!["user-cascade: start USER#ann / PROFILE while absent USER#ann / PROFILE\n"],
        );
        check(
            &removed("USER#ann / PROFILE User Email=Ann@X.org"),
            &expect![[r#"
            user-cascade: start USER#ann / PROFILE while absent USER#ann / PROFILE, named EMAIL#ann@x.org / CLAIM as 0
        "#]],
        );
        check(
            &removed("USER#ann / PROFILE User Email=N:1"),
            &expect!["user-cascade: start USER#ann / PROFILE while absent USER#ann / PROFILE\n"],
        );
    }

    #[test]
    fn a_source_and_its_mirror_start_one_each_with_all_keys_that_are_known() {
        check(
            &removed("USER#ann / POST#2024#p Post Title=x"),
            &expect!["post-cascade: start POST#p / METADATA while absent POST#p / METADATA, USER#ann / POST#2024#p\n"],
        );
        let claims = "Claims=CLAIMS:USER#ann/POST#2024#p,USER#bob/POST#2025#p";
        check(
            &removed(&format!("POST#p / METADATA PostDetail {claims}")),
            &expect![[r#"
            post-cascade: start POST#p / METADATA while absent POST#p / METADATA, USER#ann / POST#2024#p, USER#bob / POST#2025#p
        "#]],
        );
    }

    #[test]
    fn nothing_else_starts_one() {
        check(&inserted("USER#ann / PROFILE User Name=Ann"), &expect!["nothing\n"]);
        check(
            &modified("USER#ann / PROFILE User Name=Ann", "USER#ann / PROFILE User Name=Anna"),
            &expect!["nothing\n"],
        );
        check(&removed("USER#ann / PROFILE Gadget"), &expect!["nothing\n"]);
        check(&removed("USER#ann / FOLLOWS#bob Follow"), &expect!["nothing\n"]);
    }

    #[test]
    fn an_item_of_which_only_the_type_changed_still_stands_there() {
        check(
            &modified("USER#ann / PROFILE User Name=Ann", "USER#ann / PROFILE Gadget Name=Ann"),
            &expect!["nothing\n"],
        );
    }
}
