//! What a drawn manifest says, as plain data: the generator fills it, and the oracle and the application read it.

/// The list of its sources that a mirror keeps whose key does not say them.
pub(crate) const CLAIMS: &str = "Claims";

#[derive(Clone, Debug, Default)]
pub(crate) struct Description {
    /// One without a name is `[table]`.
    pub(crate) tables: Vec<DrawnTable>,
    pub(crate) entities: Vec<DrawnEntity>,
    pub(crate) rules: Vec<Rule>,
    /// The texts that fields of keys have.
    pub(crate) texts: Vec<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct DrawnTable {
    /// Empty for `[table]`.
    pub(crate) name: String,
    pub(crate) pk: KeyPart,
    pub(crate) sk: Option<KeyPart>,
    /// Are its keys texts of forms, such as `E1#{a}`?
    pub(crate) has_forms: bool,
    /// The attribute that names an item's entity.
    pub(crate) type_attribute: Option<String>,
    pub(crate) expires: bool,
    pub(crate) indexes: Vec<DrawnIndex>,
}

/// An attribute of a key, with its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyPart {
    pub(crate) name: String,
    pub(crate) of: KeyOf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum KeyOf {
    S,
    N,
    B,
}

#[derive(Clone, Debug)]
pub(crate) struct DrawnIndex {
    pub(crate) name: String,
    pub(crate) pk: Vec<KeyPart>,
    pub(crate) sk: Vec<KeyPart>,
    pub(crate) has_forms: bool,
    /// Does it project only what Ripple needs?
    pub(crate) is_narrow: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct DrawnEntity {
    pub(crate) name: String,
    /// Position of its table.
    pub(crate) table: usize,
    pub(crate) pk: Vec<Piece>,
    /// Empty where the table has no sort key.
    pub(crate) sk: Vec<Piece>,
    pub(crate) attributes: Vec<DrawnAttribute>,
    pub(crate) derived: Vec<DerivedAttribute>,
    pub(crate) is_derived: bool,
    pub(crate) index_keys: Vec<DrawnIndexKey>,
    /// Ways to other items.
    pub(crate) refs: Vec<Ref>,
}

/// A piece of a key. A key that is a value as it is has one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    Field(String, FieldOf),
}

/// How a field stands in a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldOf {
    Text,
    /// A whole number of so many digits.
    Padded(usize),
    /// The same, the greatest first.
    Inverted(usize),
    Number,
    Bytes,
    /// A time, which is a text.
    Time,
}

/// An attribute of the application.
#[derive(Clone, Debug)]
pub(crate) struct DrawnAttribute {
    pub(crate) name: String,
    pub(crate) holds: Holds,
}

/// What an application means to write into an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holds {
    Word,
    Number,
    Time,
    /// A list or a set of texts.
    Members,
    /// What fills this field of another key.
    Id(FieldOf),
}

/// An attribute that Ripple writes.
#[derive(Clone, Debug)]
pub(crate) struct DerivedAttribute {
    pub(crate) name: String,
    pub(crate) is_number: bool,
}

/// A key in an index over texts of forms.
#[derive(Clone, Debug)]
pub(crate) struct DrawnIndexKey {
    /// Position in the table's indexes.
    pub(crate) index: usize,
    pub(crate) pk: Vec<Piece>,
    pub(crate) sk: Vec<Piece>,
    pub(crate) is_derived: bool,
}

/// How an item leads to another: the fields of that one's key, and what of the item gives them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ref {
    /// Position of the entity.
    pub(crate) to: usize,
    pub(crate) pairs: Vec<(String, String)>,
}

#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) name: String,
    pub(crate) what: What,
}

#[derive(Clone, Debug)]
pub(crate) enum What {
    Count(CountRule),
    Copy(CopyRule),
    Latest(LatestRule),
    Extreme { from: usize, to: usize, link: Ref, field: String, into: String, is_max: bool },
    Unread(UnreadRule),
    Mirror(MirrorRule),
    Path { of: usize, link: Ref, name: String, into: String, depth: usize, found: Found },
    IndexKey { of: usize, index_key: usize, number: String },
    RollUp(RollUpRule),
    Window(WindowRule),
    Calculated { of: usize, calculation: Calculation, into: String },
    Cascade { owner: usize, hanging: Vec<Hanging> },
}

#[derive(Clone, Debug)]
pub(crate) struct CountRule {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) link: Ref,
    /// The attribute for whose members an item counts, once for each.
    pub(crate) each: Option<String>,
    pub(crate) condition: Option<Where>,
    pub(crate) sum: Option<String>,
    pub(crate) shows: Vec<(Shown, String)>,
    pub(crate) is_history: bool,
    /// What stands for zero, as the manifest says it.
    pub(crate) zero: &'static str,
    /// Does the target exist while anything is counted for it?
    pub(crate) creates: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct CopyRule {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) link: Ref,
    pub(crate) condition: Option<Where>,
    pub(crate) pairs: Vec<(String, String)>,
    pub(crate) found: Found,
}

#[derive(Clone, Debug)]
pub(crate) struct LatestRule {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) link: Ref,
    /// What is taken, and the attribute of the target or of an entry of the list.
    pub(crate) pairs: Vec<(String, String)>,
    /// The target's list, and how many entries it has at most.
    pub(crate) list: Option<(String, usize)>,
    /// What orders the items instead of their sort keys; then they are stored anywhere.
    pub(crate) by: Option<String>,
    pub(crate) condition: Option<Where>,
    pub(crate) is_first: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct UnreadRule {
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// Fields of the partition key of what is counted, and what of the target gives them.
    pub(crate) pairs: Vec<(String, String)>,
    /// The first field of the sort key, and the attribute of the target that it lies behind.
    pub(crate) field: String,
    pub(crate) after: String,
    pub(crate) into: String,
    pub(crate) limit: usize,
    pub(crate) zero_is_absent: bool,
    pub(crate) found: Found,
}

#[derive(Clone, Debug)]
pub(crate) struct MirrorRule {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) pairs: Vec<(String, String)>,
    pub(crate) condition: Option<Where>,
    /// The attribute whose members have a mirror each.
    pub(crate) each: Option<String>,
    pub(crate) except: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    Count,
    Sum,
    Average,
    Exists,
}

#[derive(Clone, Debug)]
pub(crate) struct RollUpRule {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) link: Ref,
    pub(crate) condition: Option<Where>,
    pub(crate) time: String,
    pub(crate) value: String,
}

/// The sum over the buckets of the last hours or days.
#[derive(Clone, Debug)]
pub(crate) struct WindowRule {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) link: Ref,
    pub(crate) is_of_days: bool,
    pub(crate) length: usize,
    pub(crate) sum: String,
    pub(crate) into: String,
    pub(crate) zero_is_absent: bool,
}

/// What is calculated from two numbers of an item.
#[derive(Clone, Debug)]
pub(crate) enum Calculation {
    /// `a + b`
    Sum(String, String),
    /// `100 * a / b`
    Percentage(String, String),
}

#[derive(Clone, Debug)]
pub(crate) enum Where {
    Is(String, String),
    IsNot(String, String),
    OneOf(String, Vec<String>),
    Above(String, i64),
    Has(String),
    Lacks(String),
    Both(Box<Where>, Box<Where>),
    Either(Box<Where>, Box<Where>),
    Not(Box<Where>),
}

/// How the items that carry something are found.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    /// In the source's own partition.
    Partition,
    /// By an index of this name.
    Index(String),
    /// By items of this entity, in the source's partition.
    Through(usize),
}

/// What goes with a removed owner.
#[derive(Clone, Debug)]
pub(crate) struct Hanging {
    pub(crate) entity: usize,
    pub(crate) index: Option<String>,
    /// Fields of the owner's key, and what of the item gives them.
    pub(crate) by: Vec<(String, String)>,
}

impl Description {
    pub(crate) fn is_one_table(&self) -> bool {
        self.tables[0].name.is_empty()
    }
}

impl DrawnEntity {
    /// The fields of its key, each once.
    pub(crate) fn fields(&self) -> Vec<(&str, FieldOf)> {
        let mut fields: Vec<(&str, FieldOf)> = Vec::new();
        for piece in self.pk.iter().chain(&self.sk) {
            if let Piece::Field(name, of) = piece
                && !fields.iter().any(|(other, _)| other == name)
            {
                fields.push((name, *of));
            }
        }
        fields
    }

    pub(crate) fn field(&self, name: &str) -> Option<FieldOf> {
        self.fields().into_iter().find(|(other, _)| *other == name).map(|(_, of)| of)
    }

    pub(crate) fn attribute(&self, name: &str) -> Option<&DrawnAttribute> {
        self.attributes.iter().find(|attribute| attribute.name == name)
    }

    pub(crate) fn derives(&self, name: &str) -> bool {
        self.derived.iter().any(|attribute| attribute.name == name)
    }
}
