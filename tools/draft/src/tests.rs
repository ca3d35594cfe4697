//! Drafts of tables of items.

use std::collections::BTreeSet;

use expect_test::{Expect, expect, expect_file};
use keys::{
    item::Item,
    tables::{KeyAttribute, KeyType},
};
use serde_dynamo::AttributeValue;

use crate::{
    Draft, draft,
    shape::{Extent, IndexShape, Sample, SampledTable, TableShape},
};

fn key(text: &str) -> KeyAttribute {
    let (name, of) = text.split_once(':').unwrap_or((text, "S"));
    let of = match of {
        "N" => KeyType::N,
        "B" => KeyType::B,
        _ => KeyType::S,
    };
    KeyAttribute::plain(name, of)
}

/// A table, as `name pk sk`, where a type other than S is written `sk:N`, and its indexes the same way.
fn shape(text: &str, indexes: &[&str]) -> TableShape {
    let words: Vec<&str> = text.split(' ').collect();
    let index = |text: &&str| {
        let words: Vec<&str> = text.split(' ').collect();
        let sk = words.get(2).map(|word| key(word));
        IndexShape {
            name: words[0].to_owned(),
            pk: vec![key(words[1])],
            sk: sk.into_iter().collect(),
            projection: None,
        }
    };
    let indexes = indexes.iter().map(index).collect();
    TableShape { indexes, ..TableShape::of(words[0], key(words[1]), words.get(2).map(|word| key(word))) }
}

/// An item, as `name=value`; `N:` marks a number, and `L:` a list.
fn item(text: &str) -> Item {
    let pair = |word: &str| {
        let (name, value) = word.split_once('=').unwrap();
        let value = match value.split_once(':') {
            Some(("N", number)) => AttributeValue::N(number.to_owned()),
            Some(("L", _)) => AttributeValue::L(Vec::new()),
            Some(("BOOL", _)) => AttributeValue::Bool(true),
            _ => AttributeValue::S(value.to_owned()),
        };
        (name.to_owned(), value)
    };
    text.split_whitespace().map(pair).collect()
}

/// A whole table of these items.
fn table(shape: TableShape, items: impl IntoIterator<Item = String>) -> SampledTable {
    let mut sample = Sample { extent: Extent::Whole, ..Sample::default() };
    for text in items {
        sample.add(&shape, item(&text));
    }
    SampledTable::with_items(shape, sample)
}

/// Drafts the tables, and checks that the draft is a valid manifest that declares the entities.
#[track_caller]
fn drafted(tables: &[SampledTable]) -> Draft {
    let draft = draft("a test", tables);
    // The example of an empty table is a comment, which a person uncomments.
    let mut lines: Vec<String> = draft.text.lines().map(str::to_owned).collect();
    let example = lines.iter().position(|line| line == "# [entity.User]").filter(|_| draft.entities.is_empty());
    for line in lines.iter_mut().skip(example.unwrap_or(usize::MAX)) {
        *line = line.trim_start_matches("# ").to_owned();
    }
    let text = lines.join("\n");
    let (schema, catalogue) = manifest::load(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(catalogue.derivations().count(), 0, "a draft derives nothing");
    for entity in &draft.entities {
        assert!(schema.entity(entity).is_some(), "{entity} is not declared:\n{}", draft.text);
    }
    draft
}

/// The end of a draft without proposals.
const NO_PROPOSALS: &str = "
# The sample shows no copy and no count that the application keeps by hand: at least 20 pairs of items have to
# agree. docs/own-table.md shows how to declare what you need.
";

/// The draft without its comments on how much was read, and without the end of one that has no proposals.
#[track_caller]
fn check(tables: &[SampledTable], expected: &Expect) {
    let draft = drafted(tables);
    let text = draft.text.split_once("--table").or_else(|| draft.text.split_once("--config ripple.toml")).unwrap().1;
    let without = text.strip_suffix(NO_PROPOSALS);
    assert_eq!(without.is_some(), draft.proposals.is_empty() && !draft.entities.is_empty(), "{text}");
    expected.assert_eq(without.unwrap_or(text));
}

// ---- The examples of the repository ----

fn shop() -> SampledTable {
    let indexes = ["byCustomer customerPk customerSk", "byProduct productPk productSk", "bestSellers bestPk bestSk"];
    let mut items = Vec::new();
    for n in 0..30 {
        items.push(format!(
            "pk=CUSTOMER#c{n} sk=PROFILE type=Customer name=name-{n} email=c{n}@example.org orderCount=N:{}",
            n % 6
        ));
        items.push(format!(
            "pk=PRODUCT#s{n} sk=PRODUCT type=Product name=product-{n} category=tools price=N:{n} unitsSold=N:1 bestPk=BEST#tools \
             bestSk=99999999{n}#s{n}"
        ));
        for m in 0..n % 6 {
            let (at, id) = (format!("2024-01-{:02}T10:00:00Z", n % 28 + 1), format!("o{n}-{m}"));
            items.push(format!(
                "pk=ORDER#{id} sk=ORDER type=Order customerId=c{n} orderedAt={at} status=paid customerName=name-{n} \
                 customerPk=CUSTOMER#c{n} customerSk=ORDER#{at}#{id}"
            ));
            items.push(format!(
                "pk=ORDER#{id} sk=LINE#s{m} type=Line quantity=N:1 amount=N:5 productName=product-{m} \
                 productPk=PRODUCT#s{m} productSk=LINE#{id}"
            ));
            items.push(format!("pk=PRODUCT#s{m} sk=MOVEMENT#{at}#m{n}-{m} type=Movement quantity=N:-1"));
        }
    }
    table(shape("shop pk sk", &indexes), items)
}

#[test]
fn the_shop_is_found_with_its_count_and_its_copies() {
    let draft = drafted(&[shop()]);
    assert_eq!(draft.entities, ["Customer", "Line", "Movement", "Order", "Product"]);
    expect_file!["tests/shop.toml"].assert_eq(&draft.text);
}

fn models() -> Vec<SampledTable> {
    let users = (0..30).map(|n| format!("id=u{n} name=name-{n}"));
    let posts = (0..60).map(|n| {
        let user = n % 25;
        format!("id=p{n} authorId=u{user} createdAt=N:{n} title=t{n} authorName=name-{user} likeCount=N:{}", n % 5)
    });
    let likes = (0..60).flat_map(|n| (0..n % 5).map(move |m| format!("postId=p{n} userId=u{m}")));
    vec![
        table(shape("User id", &[]), users),
        table(shape("Post id", &["byAuthor authorId createdAt:N"]), posts),
        table(shape("Like postId userId", &[]), likes),
    ]
}

#[test]
fn a_table_for_each_model_is_declared_by_its_attributes() {
    assert_eq!(drafted(&models()).entities, ["User", "Post", "Like"]);
    check(
        &models(),
        &expect![[r#"


            [tables.User]
            partition-key = "id"

            # 30 sampled items.
            [entity.User]
            table = "User"
            attributes = [
                "name",  # S
            ]

            [tables.Post]
            partition-key = "id"

            [tables.Post.index.byAuthor]
            partition-key = "authorId"
            sort-key = { name = "createdAt", type = "N" }

            # 60 sampled items.
            [entity.Post]
            table = "Post"
            attributes = [
                "authorId",   # S
                "createdAt",  # N
                "title",      # S
            ]
            # derived-attributes = ["likeCount", "authorName"]  # for the proposals below

            [tables.Like]
            partition-key = "postId"
            sort-key = "userId"

            # 120 sampled items.
            [entity.Like]
            table = "Like"

            # ---- Proposals ----
            #
            # The application seems to keep these values by hand. To have Ripple keep one, uncomment it and
            # `derived-attributes` of its entity, remove the code that writes the value, and run `ripple backfill` once it
            # is deployed.

            # Post.likeCount is within 2 % of the number of Like items with its postId in 60 of 60 sampled items.
            # [derivation.post-like-count]
            # kind = "count"
            # from = "Like"
            # into = "Post.likeCount"
            # link = { id = "postId" }

            # Post.authorName equals User.name by authorId in 60 of 60 sampled pairs (100 %).
            # [derivation.post-author-name]
            # kind = "copy"
            # from = "User"
            # to = "Post"
            # link = { id = "authorId" }
            # attributes = { name = "authorName" }
            # found = { index = "byAuthor" }
        "#]],
    );
}

fn own_table() -> SampledTable {
    let users = (0..9).map(|n| format!("pk=USER#u{n} sk=USER#u{n} Type=User userName=n{n}"));
    let follows = (1..9).map(|n| format!("pk=USER#u{n} sk=FOLLOWS#u0 Type=Follow since=2024"));
    let followed = (1..9).map(|n| format!("pk=USER#u0 sk=FOLLOWEDBY#u{n} Type=FollowedBy since=2024"));
    table(shape("own pk sk", &[]), users.chain(follows).chain(followed))
}

#[test]
fn a_key_that_repeats_a_field_has_one_name_for_it() {
    assert_eq!(drafted(&[own_table()]).entities, ["Follow", "FollowedBy", "User"]);
    check(
        &[own_table()],
        &expect![[r#"
         own

        [table]
        partition-key = "pk"
        sort-key = "sk"
        type = "Type"

        # 8 sampled items.
        [entity.Follow]
        partition-key = "USER#{userId}"
        sort-key = "FOLLOWS#{followsId}"
        attributes = [
            "since",  # S
        ]

        # 8 sampled items.
        [entity.FollowedBy]
        partition-key = "USER#{userId}"
        sort-key = "FOLLOWEDBY#{followedbyId}"
        attributes = [
            "since",  # S
        ]

        # 9 sampled items.
        [entity.User]
        partition-key = "USER#{userId}"
        sort-key = "USER#{userId}"
        attributes = [
            "userName",  # S
        ]
    "#]],
    );
}

fn chat() -> Vec<SampledTable> {
    let workspaces = (0..3).map(|n| format!("workspaceId=w{n} channelCount=N:1"));
    let channels =
        (0..9).map(|n| format!("pk=CHANNEL#c{n} sk=CHANNEL#c{n} type=Channel workspaceId=w{} name=n{n}", n % 3));
    let members = (0..9).map(|n| {
        format!(
            "pk=WORKSPACE#w{} sk=MEMBER#u{n} type=Member role=admin gsi1pk=USER#u{n} gsi1sk=WORKSPACE#w{}",
            n % 3,
            n % 3
        )
    });
    let messages = (0..9).map(|n| format!("channelId=c{n} sentAt=N:{n} authorId=u{n} text=t{n} size=N:2"));
    let users = (0..9).map(|n| format!("userId=u{n} name=n{n}"));
    vec![
        table(shape("Workspaces workspaceId", &[]), workspaces),
        table(shape("Rooms pk sk", &["byUser gsi1pk gsi1sk"]), channels.chain(members)),
        table(shape("Messages channelId sentAt:N", &["byAuthor authorId sentAt:N"]), messages),
        table(shape("Users userId", &[]), users),
    ]
}

#[test]
fn tables_with_forms_and_with_plain_keys_are_declared_together() {
    assert_eq!(drafted(&chat()).entities, ["Workspaces", "Channel", "Member", "Messages", "Users"]);
    check(
        &chat(),
        &expect![[r#"


        [tables.Workspaces]
        partition-key = "workspaceId"

        # 3 sampled items.
        [entity.Workspaces]
        table = "Workspaces"
        attributes = [
            "channelCount",  # N
        ]

        [tables.Rooms]
        partition-key = "pk"
        sort-key = "sk"
        type = "type"

        [tables.Rooms.index.byUser]
        partition-key = "gsi1pk"
        sort-key = "gsi1sk"

        # 9 sampled items.
        [entity.Channel]
        table = "Rooms"
        partition-key = "CHANNEL#{channelId}"
        sort-key = "CHANNEL#{channelId}"
        attributes = [
            "name",         # S
            "workspaceId",  # S
        ]

        # 9 sampled items.
        [entity.Member]
        table = "Rooms"
        partition-key = "WORKSPACE#{workspaceId}"
        sort-key = "MEMBER#{memberId}"
        attributes = [
            "role",  # S
        ]

        [entity.Member.index.byUser]
        partition-key = "USER#{memberId}"
        sort-key = "WORKSPACE#{workspaceId}"

        [tables.Messages]
        partition-key = "channelId"
        sort-key = { name = "sentAt", type = "N" }

        [tables.Messages.index.byAuthor]
        partition-key = "authorId"
        sort-key = { name = "sentAt", type = "N" }

        # 9 sampled items.
        [entity.Messages]
        table = "Messages"
        attributes = [
            "authorId",  # S
            "size",      # N
            "text",      # S
        ]

        [tables.Users]
        partition-key = "userId"

        # 9 sampled items.
        [entity.Users]
        table = "Users"
        attributes = [
            "name",  # S
        ]
    "#]],
    );
}

#[test]
fn without_a_type_the_forms_of_keys_tell_the_kinds_apart() {
    let mut untyped = shop();
    let mut items = std::mem::take(&mut untyped.sample.items);
    for item in &mut items {
        item.remove("type");
    }
    untyped.sample.items = items;
    assert_eq!(drafted(&[untyped]).entities, ["Customer", "Line", "Order", "Movement", "Product"]);
}

/// Items of every entity of an example with one table, with made-up values.
fn of_example(name: &str, text: &str) -> SampledTable {
    let (schema, _) = manifest::load(text).unwrap();
    let layout = &schema.layout;
    let index = |it: &keys::layout::Index| {
        let text = |name: &String| vec![KeyAttribute::plain(name, KeyType::S)];
        IndexShape { name: it.name.clone(), pk: text(&it.pk), sk: text(&it.sk), projection: it.projection.clone() }
    };
    let mut shape = shape(&format!("{name} {} {}", layout.pk, layout.sk), &[]);
    shape.indexes = layout.indexes.iter().map(index).collect();
    let mut sample = Sample { extent: Extent::Whole, ..Sample::default() };
    for entity in schema.entities().filter(|entity| entity.name != "Counter") {
        for n in 0..12 {
            let value = |name: &str| match name {
                name if entity.key.holds_number(name) => (n + 1).to_string(),
                name if name.ends_with("At") => format!("2024-01-{:02}T10:00:00.000Z", n + 1),
                "Path" => format!("/p{n}/q"),
                name => format!("{}{n}", name.to_lowercase()),
            };
            let names = entity.key.field_names().into_iter().chain(entity.index_fields());
            let names = names.chain(entity.attributes.iter().map(String::as_str));
            let fields: keys::fields::Fields = names.map(|name| (name.to_owned(), value(name))).collect();
            let mut item = layout.key_item(&entity.build(&fields).unwrap());
            let of_key = entity.key.field_names();
            let others = fields.iter().filter(|(name, _)| !of_key.contains(name));
            item.extend(others.map(|(name, value)| (name.to_owned(), AttributeValue::S(value.to_owned()))));
            item.extend(layout.type_of(&entity.name));
            let indexed = entity.index_attributes(layout, &fields).into_iter();
            item.extend(indexed.filter_map(|(name, value)| Some((name, value?))));
            sample.add(&shape, item);
        }
    }
    SampledTable::with_items(shape, sample)
}

/// The lines of an example's entities whose keys the draft has in another form.
fn differing(name: &str, text: &str) -> String {
    let draft = drafted(&[of_example(name, text)]);
    let (example, _) = manifest::load(text).unwrap();
    let (found, _) = manifest::load(&draft.text).unwrap();
    let form = |key: &keys::entity::KeyTemplate| {
        let text = format!("{} / {}", key.pk, key.sk);
        // Names of fields are guesses where the items do not have them.
        text.split('{').map(|part| part.split_once('}').map_or(part, |(_, rest)| rest)).collect::<Vec<_>>().join("{}")
    };
    let lines = example.entities().map(|entity| {
        let (here, there) = (form(&entity.key), found.entity(&entity.name).map(|it| form(&it.key)));
        (there.as_ref() != Some(&here)).then(|| format!("{}: {here} is {there:?}\n", entity.name))
    });
    lines.flatten().collect()
}

#[test]
fn every_entity_of_the_examples_is_found_with_the_form_of_its_key() {
    let social = include_str!("../../../examples/social/ripple.toml");
    expect![[""]].assert_eq(&differing("social", social));
    expect![[""]].assert_eq(&differing("shop", include_str!("../../../examples/shop/ripple.toml")));
    expect![[""]].assert_eq(&differing("own", include_str!("../../../examples/own-table/ripple.toml")));
}

// ---- What does not fit ----

#[test]
fn an_empty_table_has_an_example() {
    check(
        &[table(shape("empty PK SK", &["GSI1 GSI1PK GSI1SK", "byId id"]), [])],
        &expect![[r#"
             empty

            [table]
            partition-key = "PK"
            sort-key = "SK"

            [index.GSI1]
            partition-key = "GSI1PK"
            sort-key = "GSI1SK"

            # Not declared: in a table by [table], Ripple searches only indexes with one partition key and one sort key of
            # type S. byId has another key.
            # [index.byId]
            # partition-key = "id"

            # No item was read, so this is only an example: the forms of PK and SK are yours.
            # `ripple check` refuses the file until it declares an entity.
            # [entity.User]
            # partition-key = "USER#{userId}"  # PK
            # sort-key = "PROFILE"  # SK
            # attributes = ["name"]
        "#]],
    );
    check(
        &[table(shape("empty id", &["byTime id at:N"]), [])],
        &expect![[r#"


            [tables.empty]
            partition-key = "id"

            [tables.empty.index.byTime]
            partition-key = "id"
            sort-key = { name = "at", type = "N" }

            # No item was read. This is right if all items of the table are of one kind and its keys are plain.
            [entity.Empty]
            table = "empty"
            # attributes = ["name"]
        "#]],
    );
}

#[test]
fn one_item_is_enough_for_a_draft() {
    check(
        &[table(shape("one pk sk", &[]), ["pk=USER#ada sk=PROFILE name=Ada".to_owned()])],
        &expect![[r#"
         one

        [table]
        partition-key = "pk"
        sort-key = "sk"
        # No attribute names the kind of an item, so Ripple tells it by the form of its key.

        # 1 sampled item.
        [entity.User]
        partition-key = "USER#{userId}"
        sort-key = "PROFILE"
        attributes = [
            "name",  # S
        ]
    "#]],
    );
    check(
        &[table(shape("one id:N", &[]), ["id=N:5 name=Ada".to_owned()])],
        &expect![[r#"


        [tables.one]
        partition-key = { name = "id", type = "N" }

        # 1 sampled item.
        [entity.One]
        table = "one"
        attributes = [
            "name",  # S
        ]
    "#]],
    );
}

#[test]
fn items_without_a_common_form_are_one_entity_or_a_comment() {
    let mixed = ["pk=USER#1 sk=A type=User", "pk=USER#2#3 sk=A type=User", "pk=USER#3 sk=A type=User", "pk=x sk=B"];
    check(
        &[table(shape("mixed pk sk", &[]), mixed.map(str::to_owned))],
        &expect![[r#"
         mixed

        [table]
        partition-key = "pk"
        sort-key = "sk"
        # No attribute names the kind of an item, so Ripple tells it by the form of its key.

        # 1 sampled item.
        [entity.B]
        partition-key = "{id}"
        sort-key = "B"

        # 2 sampled items.
        [entity.UserA]
        partition-key = "USER#{userId}"
        sort-key = "A"
        attributes = [
            "type",  # S
        ]

        # 1 sampled item.
        [entity.UserA2]
        partition-key = "USER#{userId}#{userId2}"
        sort-key = "A"
        attributes = [
            "type",  # S
        ]
    "#]],
    );
    let single = ["id=USER#1", "id=USER#2", "id=ORDER#1", "id=5"];
    check(
        &[table(shape("single id", &[]), single.map(str::to_owned))],
        &expect![[r#"


        [tables.single]
        partition-key = "id"

        # The keys have 3 forms, and no attribute names the kind of an item, so all items are of one entity here.

        # 4 sampled items.
        [entity.Single]
        table = "single"
    "#]],
    );
}

#[test]
fn binary_keys_and_percent_signs_are_declared() {
    let item: Item = [("id", AttributeValue::B(vec![1, 2])), ("name", AttributeValue::S("a".to_owned()))].into();
    let mut binary = table(shape("binary id:B", &[]), []);
    binary.sample.items.push(item);
    check(
        &[binary],
        &expect![[r#"


        [tables.binary]
        partition-key = { name = "id", type = "B" }

        # 1 sampled item.
        [entity.Binary]
        table = "binary"
        attributes = [
            "name",  # S
        ]
    "#]],
    );
    let rates = (0..9).map(|n| format!("pk=RATE#r_{n}% sk=RATE"));
    check(
        &[table(shape("rates pk sk", &[]), rates)],
        &expect![[r#"
         rates

        [table]
        partition-key = "pk"
        sort-key = "sk"
        # No attribute names the kind of an item, so Ripple tells it by the form of its key.
        # Keys contain a `%` that is no escape, so they contain values as they are.
        escape = "none"

        # 9 sampled items.
        [entity.RateR]
        partition-key = "RATE#r_{rId}"
        sort-key = "RATE"
    "#]],
    );
}

#[test]
fn an_index_of_plain_attributes_keeps_its_entity() {
    let users = (0..9).map(|n| format!("pk=USER#u{n} sk=PROFILE type=User name=n{n}"));
    let posts = (0..9).map(|n| format!("pk=POST#p{n} sk=POST type=Post authorId=u{n} createdAt=2024-01-0{n}"));
    check(
        &[table(shape("blog pk sk", &["byAuthor authorId createdAt"]), users.chain(posts))],
        &expect![[r#"


        [tables.blog]
        partition-key = "pk"
        sort-key = "sk"
        type = "type"

        [tables.blog.index.byAuthor]
        partition-key = "authorId"
        sort-key = "createdAt"

        # 9 sampled items.
        [entity.Post]
        table = "blog"
        partition-key = "POST#{postId}"
        sort-key = "POST"
        attributes = [
            "authorId",   # S
            "createdAt",  # S
        ]

        # 9 sampled items.
        [entity.User]
        table = "blog"
        partition-key = "USER#{userId}"
        sort-key = "PROFILE"
        attributes = [
            "name",  # S
        ]
    "#]],
    );
}

#[test]
fn without_a_type_the_forms_of_keys_tell_the_kinds_of_several_tables_apart() {
    let users = (0..9).map(|n| format!("pk=USER#u{n} sk=PROFILE name=n{n}"));
    let posts = (0..9).map(|n| format!("pk=USER#u{n} sk=POST#p{n} title=t{n}"));
    let likes = (0..9).map(|n| format!("postId=p{n} userId=u{n}"));
    let tables = [table(shape("app pk sk", &[]), users.chain(posts)), table(shape("likes postId userId", &[]), likes)];
    assert_eq!(drafted(&tables).entities, ["Post", "User", "Likes"]);
}

#[test]
fn a_long_text_is_shortened_and_names_cannot_break_the_file() {
    let long = "x".repeat(400_000);
    let table = table(shape("long pk sk", &[]), [format!("pk=A#1 sk=B text={long} we\"ird.=1")]);
    assert!(drafted(&[table]).text.len() < 2_000);
    let kinds = BTreeSet::from(["a\"b", "c\\d", "e\u{7f}f"]);
    let items = kinds.iter().map(|kind| format!("pk=A#1 sk={kind} __typename={kind}"));
    let table = self::table(shape("odd pk sk", &[]), items);
    drafted(&[table]);
}

#[test]
fn no_keys_and_no_attributes_make_an_invalid_draft() {
    let texts = "USER#1|USER#2|USER|user#1|user_1|A|a|#|a#|##|%|%23|{x}|}{|\u{e9}#1|1|01|USER#1#COUNT#x#00|\"|\\|a\nb|-\
        |Counter|2024-01-01|/a/b| |\u{0}";
    let texts: Vec<&str> = texts.split('|').collect();
    let names =
        ["pk", "type", "__typename", "gpk", "gsk", "a.b", "a[0]", "", "aws:rep", "userId", "Name", "\"", "\u{e9}"];
    for seed in 0..400_usize {
        let mut state = seed;
        // A linear congruential generator: each seed has the same items in every run.
        let mut below = |n: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        let shapes = ["odd pk sk", "odd pk", "odd pk sk:N", "odd pk:N sk"];
        let shape = shape(shapes[below(4)], &["GSI gpk gsk", "byId userId"]);
        let mut sample = Sample { extent: Extent::Whole, ..Sample::default() };
        for _ in 0..below(30) {
            let mut item = Item::new();
            for _ in 0..below(5) {
                item.insert(names[below(names.len())], AttributeValue::S(texts[below(texts.len())].to_owned()));
            }
            for key in [Some(&shape.pk), shape.sk.as_ref()].into_iter().flatten() {
                let value = match key.of {
                    KeyType::N => AttributeValue::N(below(9).to_string()),
                    _ => AttributeValue::S(texts[below(texts.len())].to_owned()),
                };
                item.insert(key.name.clone(), value);
            }
            sample.add(&shape, item);
        }
        drafted(&[SampledTable::with_items(shape, sample)]);
    }
}

#[test]
fn a_reason_for_a_short_sample_is_in_the_draft() {
    let mut table = own_table();
    table.sample.extent = Extent::Ended("you pressed Ctrl-C".to_owned());
    table.shape.n_items = Some(9_000);
    let text = drafted(&[table]).text;
    assert!(text.contains("# own: only 25 items of about 9,000 were read, because you pressed Ctrl-C."), "{text}");
}

// ---- Proposals ----

/// Comments of users, with names that are right but for some, in one table.
fn comments(n_wrong: usize) -> SampledTable {
    let users = (0..40).map(|n| format!("pk=USER#u{n} sk=PROFILE type=User name=name-{n} city=c{}", n % 2));
    let comments = (0..100).map(move |n| {
        let name = if n < n_wrong { "old".to_owned() } else { format!("name-{}", n % 40) };
        format!("pk=POST#p{n} sk=COMMENT#c{n} type=Comment userId=u{} userName={name} userCity=c{} gpk=USER#u{} gsk=COMMENT#c{n}", n % 40, n % 2, n % 40)
    });
    table(shape("social pk sk", &["byUser gpk gsk"]), users.chain(comments))
}

#[test]
fn a_copy_is_proposed_up_to_ten_percent_of_wrong_values() {
    assert_eq!(drafted(&[comments(10)]).proposals, ["comment-user-name"]);
    assert_eq!(drafted(&[comments(11)]).proposals, [""; 0]);
    let text = drafted(&[comments(4)]).text;
    let proposal = text.split_once("# ---- Proposals ----").unwrap().1;
    expect![[r#"

        #
        # The application seems to keep these values by hand. To have Ripple keep one, uncomment it and
        # `derived-attributes` of its entity, remove the code that writes the value, and run `ripple backfill` once it
        # is deployed.

        # Comment.userName equals User.name by userId in 96 of 100 sampled pairs (96 %).
        # [derivation.comment-user-name]
        # kind = "copy"
        # from = "User"
        # to = "Comment"
        # attributes = { name = "userName" }
        # found = { index = "byUser" }
    "#]]
    .assert_eq(proposal);
    // As a person would take it.
    let taken = |line: &str| {
        let is_of_it = line.starts_with("# derived-attributes") || proposal.contains(line) && line.contains(" = ");
        let is_of_it = is_of_it || line.starts_with("# [derivation");
        line.strip_prefix("# ").filter(|_| is_of_it).unwrap_or(line).to_owned()
    };
    let taken: Vec<String> = text.lines().map(taken).collect();
    let (_, catalogue) = manifest::load(&taken.join("\n")).unwrap();
    assert_eq!(catalogue.derivations().count(), 1);
}

#[test]
fn a_count_is_compared_only_where_all_its_items_were_read() {
    let posts = |off: usize, name: &'static str| {
        (0..30).flat_map(move |n| {
            let count = n % 7 + usize::from(n < off);
            let likes = (0..n % 7).map(move |m| format!("pk=POST#p{n} sk=LIKE#u{m} type=Like"));
            let post = format!("pk=POST#p{n} sk=POST type=Post {name}=N:{count} version=N:1 title=t{n}");
            likes.chain([post])
        })
    };
    let make = |off, name| table(shape("blog pk sk", &[]), posts(off, name));
    assert_eq!(drafted(&[make(3, "hearts")]).proposals, ["post-hearts"]);
    assert_eq!(drafted(&[make(4, "hearts")]).proposals, [""; 0]);
    let mut part = make(4, "hearts");
    part.sample.extent = Extent::Part;
    part.sample.cut = BTreeSet::from(["POST#p0".to_owned(), "POST#p1".to_owned()]);
    assert_eq!(drafted(&[part]).proposals, ["post-hearts"]);
    // A wrong number is proposed by its name.
    let named = drafted(&[make(21, "likeCount")]);
    assert_eq!(named.proposals, ["post-like-count"]);
    let words = "in 9 of 30 sampled items; it is named after them, and off by 24 % in all.";
    assert!(named.text.replace("\n# ", " ").contains(words), "{}", named.text);
    assert_eq!(drafted(&[make(22, "likeCount")]).proposals, [""; 0]);
}
