//! Tables that fit the declarations, and tables that do not.

use aws_sdk_dynamodb::{
    Client,
    operation::create_table::builders::CreateTableFluentBuilder,
    types::{
        AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, Projection, ProjectionType,
        ScalarAttributeType, StreamSpecification, StreamViewType,
    },
};

/// Creates a table with this key, of type S, and these settings.
///
/// # Panics
///
/// If it cannot be created.
pub async fn make(
    client: &Client,
    name: &str,
    [pk, sk]: [&str; 2],
    more: impl FnOnce(CreateTableFluentBuilder) -> CreateTableFluentBuilder,
) {
    let call = client.create_table().table_name(name).billing_mode(BillingMode::PayPerRequest);
    let call = call.set_key_schema(Some(key(pk, sk))).attribute_definitions(text(pk)).attribute_definitions(text(sk));
    more(call).send().await.unwrap();
}

/// Creates a table without a sort key, with a stream of both images.
///
/// # Panics
///
/// If it cannot be created.
pub async fn make_simple(client: &Client, name: &str, pk: &str) {
    let mut key = key(pk, pk);
    key.truncate(1);
    let call = client.create_table().table_name(name).billing_mode(BillingMode::PayPerRequest);
    let call = call.set_key_schema(Some(key)).attribute_definitions(text(pk));
    streamed(call, StreamViewType::NewAndOldImages).send().await.unwrap();
}

fn key(pk: &str, sk: &str) -> Vec<KeySchemaElement> {
    let element = |name: &str, part| KeySchemaElement::builder().attribute_name(name).key_type(part).build().unwrap();
    vec![element(pk, KeyType::Hash), element(sk, KeyType::Range)]
}

fn text(name: &str) -> AttributeDefinition {
    AttributeDefinition::builder().attribute_name(name).attribute_type(ScalarAttributeType::S).build().unwrap()
}

fn index(name: &str, pk: &str, sk: &str, projects: bool) -> GlobalSecondaryIndex {
    let of = if projects { ProjectionType::All } else { ProjectionType::KeysOnly };
    let projection = Projection::builder().projection_type(of).build();
    let index = GlobalSecondaryIndex::builder().index_name(name).set_key_schema(Some(key(pk, sk)));
    index.projection(projection).build().unwrap()
}

/// The shipped table's indexes. The first has this sort key, and projects all attributes or only keys.
#[must_use]
pub fn indexed(call: CreateTableFluentBuilder, sk: &str, projects: bool) -> CreateTableFluentBuilder {
    let call =
        ["GSI1PK", "GSI2PK", "GSI2SK"].into_iter().fold(call, |call, name| call.attribute_definitions(text(name)));
    let call = if sk == "SK" { call } else { call.attribute_definitions(text(sk)) };
    let call = call.global_secondary_indexes(index("GSI1", "GSI1PK", sk, projects));
    call.global_secondary_indexes(index("GSI2", "GSI2PK", "GSI2SK", true))
}

/// Adds a stream with this view type.
///
/// # Panics
///
/// Never: the specification is complete.
#[must_use]
pub fn streamed(call: CreateTableFluentBuilder, view: StreamViewType) -> CreateTableFluentBuilder {
    let stream = StreamSpecification::builder().stream_enabled(true).stream_view_type(view);
    call.stream_specification(stream.build().unwrap())
}
