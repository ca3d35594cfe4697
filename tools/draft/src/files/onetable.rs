//! A schema of `OneTable` as JSON. It has no items.
//!
//! `indexes` names the attributes of the keys, as `hash` and `sort`, and `models` has the properties of each entity. A
//! property with a `value`, as in `account#${id}`, is a key or another text that is built from properties; `map` names
//! the attribute that stores it. Each item has the name of its model in `_type`, or what `params.typeField` names.

use keys::tables::{KeyAttribute, KeyType};
use serde_json::{Map, Value};

use super::{FileError, form, required, text, texts};
use crate::shape::{Declared, DeclaredKind, IndexShape, KeyForm, SampledTable, TableShape};

/// Its table. The schema does not name it.
pub(super) fn table(file: &Value, models: &Map<String, Value>) -> Result<SampledTable, FileError> {
    let params = file.get("params").unwrap_or(&Value::Null);
    let type_field = text(params, "typeField").unwrap_or("_type");
    let mut all = Vec::new();
    for (name, model) in models {
        let none = || FileError::Table(format!("models.{name} is not an object"));
        all.push(Model { name, properties: model.as_object().ok_or_else(none)?, params, type_field });
    }
    if all.is_empty() {
        return Err(FileError::Table("models has no entity".to_owned()));
    }
    let key = |name: &str| {
        let is_number = |model: &Model<'_>| model.stored_as(name).is_some_and(|(_, of)| model.type_of(of) == "N");
        let of = if all.iter().any(is_number) { KeyType::N } else { KeyType::S };
        KeyAttribute { name: name.to_owned(), of, is_plain: true }
    };
    let indexes = file.get("indexes").unwrap_or(&Value::Null);
    let primary = indexes.get("primary").unwrap_or(&Value::Null);
    let pk = required(primary, "indexes.primary", "hash")?;
    let mut shape = TableShape {
        name: text(file, "name").unwrap_or("TABLE").to_owned(),
        pk: key(pk),
        sk: text(primary, "sort").map(key),
        indexes: Vec::new(),
        local_indexes: Vec::new(),
        time_to_live: all.iter().find_map(Model::time_to_live),
        n_items: None,
    };
    for (name, index) in indexes.as_object().into_iter().flatten().filter(|(name, _)| *name != "primary") {
        let path = format!("indexes.{name}");
        if index.get("hash").is_none() || text(index, "type") == Some("local") {
            shape.local_indexes.push(name.clone());
            continue;
        }
        let keys = [Some(required(index, &path, "hash")?), text(index, "sort")];
        let mut projected = texts(index, &path, "project")?;
        projected.retain(|it| !shape.is_own_key(it) && !keys.contains(&Some(it)));
        let projection = match text(index, "project") {
            Some("keys") => Some(Vec::new()),
            _ => index.get("project").filter(|it| it.is_array()).map(|_| projected),
        };
        let [pk, sk] = keys.map(|it| it.map(key).into_iter().collect());
        shape.indexes.push(IndexShape { name: name.clone(), pk, sk, projection });
    }
    let mut found = SampledTable::without_items(shape);
    let kinds = all.iter().map(|model| model.kind(&found.shape)).collect();
    if all.iter().any(Model::has_unique) {
        let note = "OneTable keeps an item of its own for each value that is `unique`. Ripple ignores it.";
        found.notes.push(note.to_owned());
    }
    found.declared = Some(Declared { type_attribute: Some(type_field.to_owned()), kinds });
    Ok(found)
}

/// A model of the schema.
struct Model<'v> {
    name: &'v str,
    properties: &'v Map<String, Value>,
    params: &'v Value,
    type_field: &'v str,
}

/// True if the option is set, as in `"ttl": true`.
fn is_set(property: &Value, option: &str) -> bool {
    property.get(option).is_some_and(|it| *it != Value::Bool(false) && !it.is_null())
}

/// The attribute that stores a property.
fn attribute_of<'v>(name: &'v str, property: &'v Value) -> &'v str {
    text(property, "map").map_or(name, |map| map.split('.').next().unwrap_or(map))
}

impl<'v> Model<'v> {
    /// The property that is stored in this attribute.
    fn stored_as(&self, attribute: &str) -> Option<(&'v str, &'v Value)> {
        let mut all = self.properties.iter().map(|(name, property)| (name.as_str(), property));
        all.find(|(name, property)| attribute_of(name, property) == attribute)
    }

    fn time_to_live(&self) -> Option<String> {
        let found = self.properties.iter().find(|(_, property)| is_set(property, "ttl"));
        found.map(|(name, property)| attribute_of(name, property).to_owned())
    }

    fn has_unique(&self) -> bool {
        self.properties.values().any(|property| is_set(property, "unique"))
    }

    /// The type of a property's attribute, as DynamoDB names it.
    fn type_of(&self, property: &Value) -> &'static str {
        match text(property, "type").unwrap_or("string").to_lowercase().as_str() {
            "number" => "N",
            "date" if is_set(property, "ttl") || !is_set(self.params, "isoDates") => "N",
            "boolean" => "BOOL",
            "array" | "typed-array" => "L",
            "object" => "M",
            "set" => "SS",
            "binary" | "buffer" | "arraybuffer" => "B",
            _ => "S",
        }
    }

    /// The form of a key attribute; `None` if the model has no template for it.
    fn form(&self, attribute: &str) -> KeyForm {
        let (_, property) = self.stored_as(attribute)?;
        let field = |name: &str, width: Option<&str>| {
            if name == self.type_field {
                return self.name.to_owned();
            }
            // A part of an attribute has no name of its own, so it keeps the property's.
            let of = self.properties.get(name).filter(|of| text(of, "map").is_none_or(|map| !map.contains('.')));
            let name = of.map_or(name, |of| attribute_of(name, of));
            let width = width.map(|width| format!(":{}", width.strip_suffix(":0").unwrap_or(width)));
            format!("{{{name}{}}}", width.unwrap_or_default())
        };
        text(property, "value").map(|template| form(template, "${", field))
    }

    fn kind(&self, shape: &TableShape) -> DeclaredKind {
        let is_stored = |(name, of): &(&String, &Value)| !shape.is_key(attribute_of(name, of)) && !is_set(of, "encode");
        let attributes = self.properties.iter().filter(is_stored).map(|(name, of)| {
            let is_part = text(of, "map").is_some_and(|map| map.contains('.'));
            (attribute_of(name, of).to_owned(), if is_part { "M" } else { self.type_of(of) })
        });
        let times = [("create", "createdField", "created"), ("update", "updatedField", "updated")];
        let timestamps = self.params.get("timestamps");
        let is_on = |of: &str| timestamps.is_some_and(|on| *on == Value::Bool(true) || on.as_str() == Some(of));
        let times = times.into_iter().filter(|(of, ..)| is_on(of)).map(|(_, option, name)| {
            let of = if is_set(self.params, "isoDates") { "S" } else { "N" };
            (text(self.params, option).unwrap_or(name).to_owned(), of)
        });
        // An attribute of an index key that has no template is stored as it is.
        let plain = shape.indexes.iter().flat_map(|index| index.pk.iter().chain(&index.sk));
        let plain = plain.filter_map(|key| {
            let (_, of) = self.stored_as(&key.name).filter(|(_, of)| text(of, "value").is_none())?;
            Some((key.name.clone(), self.type_of(of)))
        });
        let indexes = shape.indexes.iter().filter_map(|index| {
            let has = |key: &KeyAttribute| self.stored_as(&key.name).is_some();
            index.pk.iter().chain(&index.sk).all(has).then(|| {
                let forms = |keys: &[KeyAttribute]| keys.iter().map(|key| self.form(&key.name)).collect();
                (index.name.clone(), [forms(&index.pk), forms(&index.sk)])
            })
        });
        DeclaredKind {
            name: self.name.to_owned(),
            pk: self.form(&shape.pk.name),
            sk: shape.sk.as_ref().and_then(|sk| self.form(&sk.name)),
            attributes: attributes.chain(times).chain(plain).collect(),
            indexes: indexes.collect(),
            patterns: Vec::new(),
        }
    }
}
