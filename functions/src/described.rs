//! Translates the response of `DescribeTable` for the comparison by [`derive::fit`].

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::{
    AttributeDefinition, GlobalSecondaryIndexDescription, KeySchemaElement, KeyType, LocalSecondaryIndexDescription,
    ProjectionType, StreamViewType, TableDescription,
};
use derive::fit::{StoredIndex, StoredKey, StoredTable};

/// The parts of the description that the comparison needs.
#[must_use]
pub fn described(table: &TableDescription) -> StoredTable {
    let attributes = table.attribute_definitions();
    let stream = table.stream_specification().filter(|stream| stream.stream_enabled);
    StoredTable {
        name: table.table_name().unwrap_or_default().to_owned(),
        key: key(table.key_schema(), attributes),
        index_keys: index_keys(table),
        indexes: table.global_secondary_indexes().iter().map(|it| index(it, attributes)).collect(),
        has_stream: stream.is_some(),
        view: stream.and_then(|stream| stream.stream_view_type()).map(StreamViewType::as_str).map(str::to_owned),
    }
}

fn index_keys(table: &TableDescription) -> BTreeSet<String> {
    let global = table.global_secondary_indexes().iter().map(GlobalSecondaryIndexDescription::key_schema);
    let local = table.local_secondary_indexes().iter().map(LocalSecondaryIndexDescription::key_schema);
    global.chain(local).flatten().map(|element| element.attribute_name().to_owned()).collect()
}

fn key(key: &[KeySchemaElement], attributes: &[AttributeDefinition]) -> StoredKey {
    let of = |part: KeyType| key.iter().filter(move |element| *element.key_type() == part);
    let typed = of(KeyType::Hash).chain(of(KeyType::Range)).map(|element| {
        let name = element.attribute_name();
        let definition = attributes.iter().find(|attribute| attribute.attribute_name() == name);
        (name.to_owned(), definition.map_or("?", |definition| definition.attribute_type().as_str()).to_owned())
    });
    StoredKey(typed.collect())
}

fn index(index: &GlobalSecondaryIndexDescription, attributes: &[AttributeDefinition]) -> StoredIndex {
    let projection = index.projection();
    let is_all = projection.and_then(|it| it.projection_type()) == Some(&ProjectionType::All);
    let named: BTreeSet<String> =
        projection.map(|it| it.non_key_attributes().iter().cloned().collect()).unwrap_or_default();
    StoredIndex {
        name: index.index_name().unwrap_or_default().to_owned(),
        key: key(index.key_schema(), attributes),
        projection: (!is_all).then_some(named),
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::types::{Projection, ScalarAttributeType, StreamSpecification};

    use super::*;

    fn schema(pk: &str, sk: &str) -> Vec<KeySchemaElement> {
        let element =
            |name: &str, part| KeySchemaElement::builder().attribute_name(name).key_type(part).build().unwrap();
        // A description may have the other order.
        vec![element(sk, KeyType::Range), element(pk, KeyType::Hash)]
    }

    fn attribute(name: &str, of: ScalarAttributeType) -> AttributeDefinition {
        AttributeDefinition::builder().attribute_name(name).attribute_type(of).build().unwrap()
    }

    fn projecting(of: ProjectionType, names: &[&str]) -> GlobalSecondaryIndexDescription {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        let projection = Projection::builder().projection_type(of).set_non_key_attributes(Some(names)).build();
        let index = GlobalSecondaryIndexDescription::builder().index_name("by-b").projection(projection);
        index.set_key_schema(Some(schema("B", "C"))).build()
    }

    fn table(index: GlobalSecondaryIndexDescription, has_stream: bool) -> StoredTable {
        let stream = StreamSpecification::builder().stream_enabled(has_stream);
        let stream = stream.stream_view_type(StreamViewType::KeysOnly).build().unwrap();
        let description = TableDescription::builder().table_name("shop").set_key_schema(Some(schema("A", "B")));
        let description = description.attribute_definitions(attribute("A", ScalarAttributeType::S));
        let description = description.attribute_definitions(attribute("B", ScalarAttributeType::N));
        described(&description.global_secondary_indexes(index).stream_specification(stream).build())
    }

    #[test]
    fn keys_are_described_with_their_types() {
        let table = table(projecting(ProjectionType::All, &[]), true);
        assert_eq!((table.name.as_str(), table.key.to_string().as_str()), ("shop", "A (S) and B (N)"));
        assert_eq!(table.indexes[0].name, "by-b");
        assert_eq!(table.indexes[0].key.to_string(), "B (N) and C (?)");
    }

    #[test]
    fn a_projection_is_all_or_what_it_names() {
        let projection = |index| table(index, true).indexes.remove(0).projection;
        assert_eq!(projection(projecting(ProjectionType::All, &[])), None);
        assert_eq!(projection(projecting(ProjectionType::KeysOnly, &[])), Some(BTreeSet::new()));
        let named = Some(BTreeSet::from(["D".to_owned()]));
        assert_eq!(projection(projecting(ProjectionType::Include, &["D"])), named);
    }

    #[test]
    fn a_stream_that_is_off_is_none() {
        let stream = |has_stream| {
            let table = table(projecting(ProjectionType::All, &[]), has_stream);
            (table.has_stream, table.view)
        };
        assert_eq!(stream(true), (true, Some("KEYS_ONLY".to_owned())));
        assert_eq!(stream(false), (false, None));
    }
}
