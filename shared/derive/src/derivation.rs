//! Derivations: declarations of what is derived from what, and what a kind of derivation must be able to say.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use keys::{item::Item, key::Key};

use crate::{
    bucket::Bucket,
    change::Sight,
    effect::{BucketForm, Effect, Find},
    flaw::Flaw,
    kinds::{cascade::Cascade, count::Count, mirror::Mirror},
    outline::Outline,
    refresh::Refresh,
    schema::{Image, Schema, Unreadable},
    tally::Tally,
    write::Wanted,
};

/// One declared rule.
#[derive(Clone, Debug)]
pub struct Derivation {
    /// Its row in the table's design, such as `D-03`.
    pub id: String,
    /// Its name, which stands in counter keys and metrics: stored, so it is stable.
    pub name: String,
    /// What it does.
    pub kind: Arc<dyn Kind>,
}

impl Derivation {
    /// A derivation of a kind.
    pub fn new(id: &str, name: &str, kind: impl Kind + 'static) -> Self {
        Self { id: id.to_owned(), name: name.to_owned(), kind: Arc::new(kind) }
    }
}

/// Why a kind's effects are right under repeats and reordering, and so which function runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Effects are differences that commute; the ledger counts each change once.
    Additive,
    /// Effects are bells; what to write is read when it is written.
    LevelTriggered,
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Additive => "additive",
            Self::LevelTriggered => "level-triggered",
        })
    }
}

/// A part of an entity's items.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Part {
    /// The entity.
    pub entity: String,
    /// Which part.
    pub of: PartOf,
}

/// Which part of an item.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PartOf {
    /// That it exists.
    Existence,
    /// One attribute.
    Attribute(String),
    /// All attributes but these.
    AllBut(BTreeSet<String>),
}

impl PartOf {
    /// Is this attribute in it?
    pub(crate) fn holds(&self, attribute: &str) -> bool {
        match self {
            Self::Existence => false,
            Self::Attribute(name) => name == attribute,
            Self::AllBut(but) => !but.contains(attribute),
        }
    }
}

impl Part {
    /// An attribute of an entity's items.
    #[must_use]
    pub fn attribute(entity: &str, name: &str) -> Self {
        Self { entity: entity.to_owned(), of: PartOf::Attribute(name.to_owned()) }
    }

    /// The existence of an entity's items.
    #[must_use]
    pub fn existence(entity: &str) -> Self {
        Self { entity: entity.to_owned(), of: PartOf::Existence }
    }

    /// Do these two parts have something in common?
    #[must_use]
    pub fn meets(&self, other: &Self) -> bool {
        self.entity == other.entity
            && match (&self.of, &other.of) {
                (PartOf::Attribute(name), PartOf::AllBut(but)) | (PartOf::AllBut(but), PartOf::Attribute(name)) => {
                    !but.contains(name)
                }
                (PartOf::AllBut(_), PartOf::AllBut(_)) => true,
                (a, b) => a == b,
            }
    }

    /// Does a change differ in this part?
    #[must_use]
    pub fn differs(&self, sight: &Sight<'_>) -> bool {
        let (old, new) = sight.entity(&self.entity);
        if old.is_some() != new.is_some() {
            return true;
        }
        if old.is_none() {
            return false;
        }
        match &self.of {
            PartOf::Existence => false,
            PartOf::Attribute(name) => sight.differs_in(name),
            PartOf::AllBut(but) => sight.differing().iter().any(|name| !but.contains(*name)),
        }
    }
}

/// What a derivation takes part in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// What its values depend on.
    pub reads: Vec<Part>,
    /// What it writes.
    pub writes: Vec<Part>,
}

/// A derived item, or part of one, as the definition says it should be.
#[derive(Clone, Debug, PartialEq)]
pub enum Derived {
    /// A count of a target.
    Count {
        /// The target.
        target: Key,
        /// How many, and what they come to.
        tally: Tally,
        /// Is it a lower bound only, since the sources may be gone?
        at_least: bool,
    },
    /// A bucket of a roll-up, as far as the ground shows it.
    Bucket {
        /// Its key.
        key: Key,
        /// What the values that are there come to.
        bucket: Bucket,
        /// What it looks like.
        form: Arc<BucketForm>,
    },
    /// A whole item.
    Item {
        /// Its key.
        key: Key,
        /// Its attributes, those of other derivations left out.
        item: Item,
    },
    /// Attributes of an item that exists.
    Attributes {
        /// The item's key.
        key: Key,
        /// The attributes.
        attributes: Vec<Wanted>,
    },
}

/// All items of a table by key, in the definition's hands.
pub type Items = BTreeMap<Key, Item>;

/// Tallies by target and derivation, in the definition's hands.
pub type Counts = BTreeMap<(Key, String), Tally>;

/// The code behind a family of derivations.
///
/// It says one thing twice: [`plan`](Kind::plan) incrementally, one change in, effects out; [`derive`](Kind::derive)
/// whole, by the dullest loop that can be written. Neither calls the other, and they must agree.
pub trait Kind: fmt::Debug + Send + Sync {
    /// The kind's name.
    fn kind(&self) -> &'static str;

    /// Which family it is of.
    fn family(&self) -> Family;

    /// Can its derived values not be told from the ground alone?
    fn is_history(&self) -> bool {
        false
    }

    /// What the buckets look like that it takes values up into; `None` where it counts in counters, or not at all.
    fn buckets(&self) -> Option<&BucketForm> {
        None
    }

    /// Do its counters hold a sum beside the count?
    fn sums(&self) -> bool {
        false
    }

    /// Does it read, of other items of the entity that it writes into, what it writes? Then it ends at a depth of its
    /// own, whatever the items name.
    fn recurs(&self) -> bool {
        false
    }

    /// What it reads and writes.
    ///
    /// # Errors
    ///
    /// A sentence that says which declared name the schema does not have.
    fn reach(&self, schema: &Schema) -> Result<Reach, String>;

    /// What it declares, for people.
    fn outline(&self, schema: &Schema) -> Outline {
        let _: &Schema = schema;
        Outline { from: self.entities().into_iter().map(str::to_owned).collect(), ..Outline::default() }
    }

    /// The entities whose items it looks at in a change. The change of an item of any other asks nothing of it, and
    /// such an item is none that it cannot interpret: it is not even asked.
    fn entities(&self) -> Vec<&str>;

    /// What a change asks for.
    fn plan(&self, schema: &Schema, sight: &Sight<'_>) -> Vec<Effect>;

    /// Can the item, as it is now, not be interpreted?
    fn unreadable(&self, schema: &Schema, image: &Image<'_>) -> Option<Unreadable>;

    /// What all of its derived data should be. `items` holds the ground, and what derivations before it derived.
    fn derive(&self, name: &str, schema: &Schema, items: &Items, counts: &Counts) -> Vec<Derived>;

    /// Its declaration, where it counts.
    fn count(&self) -> Option<&Count> {
        None
    }

    /// Its declaration, where it mirrors items.
    fn mirror(&self) -> Option<&Mirror> {
        None
    }

    /// Its declaration, where it deletes what hangs on a removed item.
    fn cascade(&self) -> Option<&Cascade> {
        None
    }

    /// May there be items that can be read, and of which it derives nothing?
    fn has_flaws(&self) -> bool {
        false
    }

    /// Where it derives nothing though every item can be read, and a person should know. `items` are those that
    /// [`derive`](Kind::derive) is given.
    fn flaws(&self, schema: &Schema, items: &Items) -> Vec<Flaw> {
        let (_, _) = (schema, items);
        Vec::new()
    }

    /// The search for all items that follow from a source of this key, where it has one; the same as a change of the
    /// source asks for.
    fn find_from(&self, schema: &Schema, source: &Key) -> Option<Find> {
        let (_, _) = (schema, source);
        None
    }

    /// How to look at an item; only the level-triggered do.
    fn refresh(&self) -> Option<&dyn Refresh> {
        None
    }
}
