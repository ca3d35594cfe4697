//! `[access.NAME]`: the reads of the application.

use derive::{
    access::{Access, AccessFilter, AccessQuery, AccessReads, NextField},
    catalogue::Catalogue,
    kind::Shape,
    query::{Consistency, Order},
    schema::Schema,
};
use keys::{
    entity::{Definition, KeyTemplate},
    tables::{IndexForm, KeyType, TableForm},
    template::{Piece, Template, form::Form},
};

use crate::{
    error::ManifestError,
    kinds,
    section::{Named, Section, TomlPlace},
    syntax::{
        KeySyntax,
        ValueSyntax::{OneOf, Text, TextOrTexts, Texts, Truth, WholeNumber},
    },
    tables,
};

/// Keys of `[access.NAME]`.
pub(crate) const ACCESS: [KeySyntax; 14] = [
    KeySyntax::optional("id", Text, "the name", "its row in the table's design; patterns can share one"),
    KeySyntax::optional("about", Text, "the name", "its purpose, in a few words"),
    KeySyntax::optional("get", Text, "", "an entity: one item, by all fields of its key (`GetItem`)"),
    KeySyntax::optional("batch-get", Text, "", "an entity: the items with these keys (`BatchGetItem`)"),
    KeySyntax::optional(
        "query",
        TextOrTexts,
        "",
        "an entity, or several whose items are in one partition: a range of items (`Query`), page by page. Several take no \
         `fields`, `between` and `below`, and a `where` on attributes that all declare",
    ),
    KeySyntax::optional(
        "counts",
        Text,
        "",
        "an entity: the exact counts and sums of an item, from its counters, up to what the stream has delivered",
    ),
    KeySyntax::optional("index", Text, "the table", "the index that is queried; it cannot be read consistently"),
    KeySyntax::optional(
        "fields",
        Texts,
        "none",
        "the first fields of the sort key, which the caller must give beside the fields of the partition key",
    ),
    KeySyntax::optional(
        "between",
        Text,
        "",
        "the next field of the sort key: the caller may give its least and its greatest value, `low` and `high`",
    ),
    KeySyntax::optional(
        "below",
        Text,
        "",
        "the next field of the sort key, a path: the items below it, at every level",
    ),
    KeySyntax::optional(
        "order",
        OneOf(&["ascending", "descending"]),
        "`\"ascending\"`",
        "the order of the sort key; the caller may ask for the other",
    ),
    KeySyntax::optional(
        "limit",
        WholeNumber(1, 1_000),
        "100",
        "most items of a page; the caller may ask for another number",
    ),
    KeySyntax::optional(
        "where",
        Text,
        "all",
        "which of the items, as a condition that DynamoDB decides; `:name`, of letters, digits and `_`, is a value that the caller gives. DynamoDB charges \
         what it leaves out, too",
    ),
    KeySyntax::optional(
        "consistent",
        Truth,
        "`false`; `true` for `counts`",
        "`true`: a strongly consistent read, for twice the read units",
    ),
];

/// Items of a page, unless the manifest or the caller says otherwise.
const LIMIT: u32 = 100;

/// What reads.
const READS: [&str; 4] = ["get", "batch-get", "query", "counts"];

/// Keys that only a query takes.
const OF_QUERY: [&str; 7] = ["index", "fields", "between", "below", "order", "limit", "where"];

/// The reads that a manifest declares.
pub(crate) fn read(root: &Section<'_>, schema: &Schema, catalogue: &Catalogue) -> Result<Vec<Access>, ManifestError> {
    let mut reads: Vec<Access> = Vec::new();
    for (name, section) in root.sections("access")? {
        let read = access(name, &section, schema, catalogue)?;
        if let Some(other) = reads.iter().find(|other| is_same_function(&other.name, name)) {
            let what = format!(
                "{name} and {} are the name of one function in some language: give one another name",
                other.name
            );
            return Err(section.place.wrong(what));
        }
        reads.push(read);
    }
    Ok(reads)
}

/// True if two names differ in case, `-` and `_` alone.
fn is_same_function(one: &str, other: &str) -> bool {
    let letters = |name: &str| name.replace(['-', '_'], "").to_lowercase();
    letters(one) == letters(other)
}

fn access(name: &str, section: &Section<'_>, schema: &Schema, catalogue: &Catalogue) -> Result<Access, ManifestError> {
    section.follows(&ACCESS)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.chars().all(is_plain) || !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        let what =
            "the name of a read is that of a function: it has only letters, digits, - and _, and begins with a letter";
        return Err(section.place.wrong(what));
    }
    let mut given = READS.iter().filter_map(|key| section.get(key));
    let reads = match (given.next(), given.next()) {
        (Some(reads), None) => reads,
        (Some(reads), Some(other)) => {
            return Err(other.place.wrong(format!("a read has one of {} and {}: leave one out", reads.key, other.key)));
        }
        (None, _) => {
            let what = "takes one of get, batch-get, query and counts, with the entity that it reads";
            return Err(section.place.wrong(what));
        }
    };
    if reads.key != "query"
        && let Some(entry) = section.entries().find(|entry| OF_QUERY.contains(&entry.key))
    {
        return Err(entry.place.wrong(format!("only query takes it, and this is {}: leave it out", reads.key)));
    }
    let entity = || {
        let named = reads.text()?;
        let entity = declared(schema, &named)?;
        plain_parts(table_of(schema, entity), None, &named.place)?;
        Ok::<String, ManifestError>(entity.name.clone())
    };
    let read = match reads.key {
        "get" => AccessReads::Get(entity()?),
        "batch-get" => AccessReads::BatchGet(entity()?),
        "counts" => AccessReads::Counts(counted(&reads.text()?, schema, catalogue)?),
        _ => {
            let entities = if reads.is_text() { vec![reads.text()?] } else { reads.texts()? };
            AccessReads::Query(query(section, schema, &entities)?)
        }
    };
    let text = |key: &str| section.get(key).map(|entry| Ok(entry.text()?.text.to_owned())).transpose();
    let consistent = section.get("consistent").map(|entry| Ok((entry.truth()?, entry.place))).transpose()?;
    if let (Some((true, place)), AccessReads::Query(AccessQuery { index: Some(_), .. })) = (&consistent, &read) {
        return Err(place.wrong("an index is never read consistently: leave it out, or query the table"));
    }
    let is_consistent = consistent.map_or(matches!(read, AccessReads::Counts(_)), |(is_consistent, _)| is_consistent);
    Ok(Access {
        name: name.to_owned(),
        id: text("id")?.unwrap_or_else(|| name.to_owned()),
        about: text("about")?.unwrap_or_else(|| name.replace(['-', '_'], " ")),
        reads: read,
        consistency: if is_consistent { Consistency::Strong } else { Consistency::Eventual },
    })
}

/// An entity whose key an application can build.
fn declared<'a>(schema: &'a Schema, named: &Named<'_>) -> Result<&'a Definition, ManifestError> {
    let entity = kinds::entity(schema, named)?;
    if entity.is_own() {
        return Err(named.place.wrong(format!(
            "items of {} are Ripple's own: counts = \"…\" reads them, with the entity that is counted for",
            entity.name
        )));
    }
    Ok(entity)
}

/// An entity with counters.
fn counted(named: &Named<'_>, schema: &Schema, catalogue: &Catalogue) -> Result<String, ManifestError> {
    let entity = declared(schema, named)?;
    if schema.layout.forms.is_some() {
        let what = "with [tables.NAME] counters are in a table of their own: read the attribute that shows the count";
        return Err(named.place.wrong(what));
    }
    let mut kinds = catalogue.derivations().map(|derivation| derivation.kind.shape());
    if !kinds.any(|shape| matches!(shape, Shape::Count(count) if count.target == entity.name)) {
        return Err(named.place.wrong(format!("no derivation of the kind count counts into {}", entity.name)));
    }
    Ok(entity.name.clone())
}

/// The queried key of an entity.
struct QueriedKey<'a> {
    entity: &'a Definition,
    key: &'a KeyTemplate,
}

fn query(section: &Section<'_>, schema: &Schema, entities: &[Named<'_>]) -> Result<AccessQuery, ManifestError> {
    let index = section.text("index")?;
    let mut keys = Vec::new();
    for named in entities {
        let entity = declared(schema, named)?;
        keys.push(queried(schema, entity, index.as_ref())?);
    }
    let (Some(first), Some((QueriedKey { entity, key }, others))) = (entities.first(), keys.split_first()) else {
        return Err(section.place.wrong("query is an empty list: name an entity"));
    };
    plain_parts(table_of(schema, entity), index.as_ref(), &first.place)?;
    for (other, named) in others.iter().zip(entities.iter().skip(1)) {
        if !is_alike(&key.pk, &other.key.pk) {
            return Err(named.place.wrong(format!(
                "{} and {} are in different partitions ({} and {}): one query reads one partition",
                entity.name, other.entity.name, key.pk, other.key.pk
            )));
        }
    }
    let inner = index.as_ref().map(|index| tables::inside(schema, entity, index.text));
    let (fields, next) = sort_fields(section, &key.sk, !others.is_empty())?;
    let filter = section.text("where")?;
    let filter = filter.map(|text| {
        let filter =
            AccessFilter::parse(text.text).map_err(|error| text.place.wrong(format!("is no filter: {error}")))?;
        for QueriedKey { entity, .. } in &keys {
            filtered(&filter, entity, (schema, index.as_ref()), &text)?;
        }
        let inputs = filter.inputs();
        if let Some(bound) = inputs.iter().find(|input| ["low", "high"].contains(input)) {
            return Err(text.place.wrong(format!(":{bound} is the name of a bound: give it another name")));
        }
        let is_twice = |field: &&str| inputs.contains(field);
        if let Some(field) = key.pk.field_names().into_iter().chain(fields.iter().map(String::as_str)).find(is_twice) {
            return Err(text.place.wrong(format!("the caller gives {field} for the key: give :{field} another name")));
        }
        Ok(filter)
    });
    let order = section.text("order")?;
    let order = match order.as_ref().map(|order| order.text) {
        None | Some("ascending") => Order::Ascending,
        Some("descending") => Order::Descending,
        Some(_) => {
            let place = order.map_or_else(|| section.place.clone(), |order| order.place);
            return Err(place.wrong("is \"ascending\" or \"descending\""));
        }
    };
    let limit = section.get("limit").map_or(Ok(LIMIT), |entry| entry.whole_number(1..1_001))?;
    Ok(AccessQuery {
        entities: keys.iter().map(|key| key.entity.name.clone()).collect(),
        index: inner,
        fields,
        next,
        order,
        limit,
        filter: filter.transpose()?,
    })
}

/// The key of an entity in the table, or in an index.
fn queried<'a>(
    schema: &'a Schema,
    entity: &'a Definition,
    index: Option<&Named<'_>>,
) -> Result<QueriedKey<'a>, ManifestError> {
    let Some(index) = index else { return Ok(QueriedKey { entity, key: &entity.key }) };
    let inner = tables::inside(schema, entity, index.text);
    if let Some(found) = entity.indexes.iter().find(|it| it.index == inner) {
        return Ok(QueriedKey { entity, key: &found.key });
    }
    if let Some(lacking) = tables::lacking(schema, entity, index.text) {
        let what = format!("{} has no attribute {lacking}, which this index has in its key: declare it", entity.name);
        return Err(index.place.wrong(what));
    }
    let table = table_of(schema, entity);
    let prefix = table.map(|table| table.inside("")).unwrap_or_default();
    let names = entity.indexes.iter().map(|it| it.index.strip_prefix(&prefix).unwrap_or(&it.index));
    Err(index.unknown(&format!("{} is in no index", entity.name), names))
}

/// The table of an entity, if the manifest has `[tables.NAME]`.
fn table_of<'a>(schema: &'a Schema, entity: &Definition) -> Option<&'a TableForm> {
    schema.layout.forms.as_ref()?.of_entity(entity)
}

/// Refuses what the functions cannot read: parts of a key with several attributes, and bytes.
fn plain_parts(
    table: Option<&TableForm>,
    index: Option<&Named<'_>>,
    place: &TomlPlace<'_>,
) -> Result<(), ManifestError> {
    let Some(table) = table else { return Ok(()) };
    let mut of_table = [Some(&table.pk), table.sk.as_ref()].into_iter().flatten();
    let form = index.and_then(|index| table.indexes.iter().find(|form| form.name == index.text));
    if form.is_some_and(|form| form.pk.len() > 1 || form.sk.len() > 1) {
        return Err(place.wrong("a read takes no index with several attributes in a part of its key"));
    }
    let mut parts = form.into_iter().flat_map(IndexForm::parts);
    if parts.any(|part| part.of == KeyType::B) || of_table.any(|part| part.of == KeyType::B) {
        return Err(place.wrong("a read takes no key of type B"));
    }
    Ok(())
}

/// True if the keys of two forms are in one partition: only the names of their fields may differ.
fn is_alike(one: &Template, other: &Template) -> bool {
    let form = |piece: &Piece| match piece {
        Piece::Literal(text) => (text.clone(), None),
        Piece::Field { form, .. } => (String::new(), Some(*form)),
    };
    one.pieces().iter().map(form).eq(other.pieces().iter().map(form))
}

/// The fields of the sort key that the caller gives, and what it may say of the next one.
fn sort_fields(
    section: &Section<'_>,
    sort: &Template,
    is_of_several: bool,
) -> Result<(Vec<String>, NextField), ManifestError> {
    let said = ["fields", "between", "below"].iter().find_map(|key| section.get(key));
    let Some(said) = said else { return Ok((Vec::new(), NextField::Any)) };
    if is_of_several {
        return Err(said
            .place
            .wrong("a query of several entities takes all of them: leave it out, or query one entity"));
    }
    if sort.is_open() {
        let what =
            format!("a value in {sort} may contain the text that ends it, so its beginning is no range: leave it out");
        return Err(said.place.wrong(what));
    }
    let fields = section.texts("fields")?;
    let names = sort.field_names();
    for (at, field) in fields.iter().enumerate() {
        if names.get(at) != Some(&field.text) {
            return Err(field.place.wrong(format!(
                "the sort key is {sort}: fields names its first fields, in their order{}",
                names.get(at).map(|name| format!("; here comes {name}")).unwrap_or_default()
            )));
        }
    }
    let next = names.get(fields.len());
    let (between, below) = (section.get("between"), section.get("below"));
    let entry = match (&between, &below) {
        (None, None) => return Ok((texts(&fields), NextField::Any)),
        (Some(_), Some(below)) => return Err(below.place.wrong("between and below exclude each other: leave one out")),
        (Some(entry), None) | (None, Some(entry)) => entry,
    };
    let named = entry.text()?;
    if next != Some(&named.text) {
        return Err(named.place.wrong(match next {
            Some(next) => format!("the next field of the sort key {sort} is {next}: name it here, or in fields before"),
            None => format!("fields names the whole sort key {sort} already: leave this out"),
        }));
    }
    let is_of = |form: fn(&Form) -> bool| {
        let mut pieces = sort.pieces().iter();
        pieces.any(|piece| matches!(piece, Piece::Field { name, form: it } if name == named.text && form(it)))
    };
    let is_path = is_of(|form| matches!(form, Form::Path));
    if between.is_some() {
        if is_of(|form| matches!(form, Form::Spread { .. } | Form::LastSegment)) {
            return Err(named.place.wrong(format!("{} is not in the key as it is, so it has no bounds", named.text)));
        }
        return Ok((texts(&fields), NextField::Between(named.text.to_owned())));
    }
    let is_last = matches!(sort.pieces().last(), Some(Piece::Field { name, .. }) if name == named.text);
    if !is_path || !is_last {
        return Err(named.place.wrong(format!(
            "below takes a path at the end of the sort key, as in EMP#{{Path/}}, which {} is not",
            named.text
        )));
    }
    Ok((texts(&fields), NextField::Below(named.text.to_owned())))
}

fn texts(fields: &[Named<'_>]) -> Vec<String> {
    fields.iter().map(|field| field.text.to_owned()).collect()
}

/// Refuses a filter on what an entity does not have, on a key, and on what an index does not project.
fn filtered(
    filter: &AccessFilter,
    entity: &Definition,
    (schema, index): (&Schema, Option<&Named<'_>>),
    text: &Named<'_>,
) -> Result<(), ManifestError> {
    let table = table_of(schema, entity);
    for path in filter.paths() {
        let name = path.attribute.as_str();
        let is_key = match (table, index) {
            (Some(table), None) => table.is_of_key(name),
            (Some(table), Some(index)) => {
                let form = table.indexes.iter().find(|form| form.name == index.text);
                form.is_some_and(|form| form.parts().any(|part| part.name == name))
            }
            (None, _) => schema.layout.is_key(name),
        };
        let mut declared = entity.attributes.iter().chain(&entity.derived_attributes);
        if is_key {
            return Err(text
                .place
                .wrong(format!("{name} is an attribute of the queried key, on which DynamoDB takes no filter")));
        }
        if !declared.any(|other| other == name) {
            let declared = entity.attributes.iter().chain(&entity.derived_attributes).map(String::as_str);
            let named = Named { text: name, place: text.place.clone() };
            return Err(named.unknown(&format!("{} declares no attribute", entity.name), declared));
        }
        let inner = index.map(|index| tables::inside(schema, entity, index.text));
        let inner = inner.and_then(|inner| schema.layout.index(&inner));
        let is_projected = inner.is_none_or(|inner| schema.layout.stored_in(inner, name).is_some());
        if let (false, Some(index)) = (is_projected, index) {
            return Err(text
                .place
                .wrong(format!("the index {} does not project {name}, so a filter never sees it", index.text)));
        }
    }
    Ok(())
}
