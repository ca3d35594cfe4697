//! Forms of keys as people and libraries have them: any text between two fields, values in one case, and entities that
//! only their forms tell apart.

use expect_test::{Expect, expect};
use keys::{item::Item, key::Key};
use serde_dynamo::AttributeValue;

use super::refused_whole;
use crate::load;

/// Accounts, their users under addresses in lower case, and what users write in rooms; a second table has votes.
const FORMS: &str = r#"
[tables.Main]
partition-key = "pk"
sort-key = "sk"

[tables.Main.index.byUser]
partition-key = "upk"
sort-key = "usk"
projection = ["email"]

[tables.Votes]
partition-key = "votedFor"

[entity.User]
table = "Main"
partition-key = "$app#user_{lower(email)}"
sort-key = "$user_1"
attributes = ["email", "name"]
derived-attributes = ["messageCount"]

[entity.Message]
table = "Main"
partition-key = "room-{roomId}"
sort-key = "{kind}:{sentAt*}"
attributes = ["email", "text"]
derived-attributes = ["userName"]

[entity.Message.index.byUser]
partition-key = "$app#user_{lower(email)}"
sort-key = "{sentAt}"

[entity.Vote]
table = "Votes"
partition-key = "{choice}.{shard}"
attributes = ["n"]

[entity.Room]
table = "Main"
partition-key = "room-{roomId}"
sort-key = "ROOM"
derived-attributes = ["messages"]

[derivation.messages-of-user]
kind = "count"
from = "Message"
into = "User.messageCount"

[derivation.messages-of-room]
kind = "count"
from = "Message"
into = "Room.messages"

[derivation.user-name]
kind = "copy"
from = "User"
to = "Message"
attributes = { name = "userName" }
found = { index = "byUser" }
"#;

#[track_caller]
fn refused(is: &str, instead: &str, mistake: &Expect) {
    assert_eq!(FORMS.matches(is).count(), 1, "{is} stands there once");
    refused_whole(&FORMS.replacen(is, instead, 1), mistake);
}

/// The manifest with these entities and derivations as well.
#[track_caller]
fn refused_with(more: &str, mistake: &Expect) {
    refused_whole(&format!("{FORMS}{more}"), mistake);
}

/// A mirror of the messages without these attributes.
fn mirror(except: &str) -> String {
    format!(
        "[entity.MessageOf]\ntable = \"Main\"\npartition-key = \"of-{{roomId}}\"\nsort-key = \"{{kind}}:{{sentAt*}}\"\n\
         derived = true\n[derivation.of]\nkind = \"mirror\"\nfrom = \"Message\"\nto = \"MessageOf\"\nexcept = [\"{except}\"]\n"
    )
}

fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

#[test]
fn entities_of_a_table_without_a_type_are_told_apart_by_their_forms() {
    let text = format!("{FORMS}{}", mirror("text"));
    let (schema, _) = load(&text).unwrap_or_else(|error| panic!("{error}"));
    let table = schema.layout.forms.as_ref().unwrap().named("Main").unwrap();
    let seen = |pk: &str, sk: &str, email: Option<&str>| {
        let mut stored = Item::from([("pk".to_owned(), s(pk)), ("sk".to_owned(), s(sk))]);
        stored.extend(email.map(|email| ("email".to_owned(), s(email))));
        let item = table.inward(stored.clone()).unwrap();
        assert_eq!(table.outward(&item), Some(stored), "{pk} {sk}");
        let key = schema.layout.key(&item).unwrap();
        let image = schema.image(&key, &item)?;
        let fields: Vec<String> = image.key_fields().iter().map(|(name, value)| format!("{name}={value}")).collect();
        Some(format!("{} {}", image.definition.name, fields.join(" ")))
    };
    let user = |email| seen("$app#user_ann@x.org", "$user_1", email);
    assert_eq!(user(Some("Ann@X.org")).as_deref(), Some("User email=Ann@X.org"), "the attribute has the text as it is");
    assert_eq!(user(Some("bob@x.org")).as_deref(), Some("User email=ann@x.org"), "the key is what leads to the item");
    assert_eq!(user(None).as_deref(), Some("User email=ann@x.org"));
    assert_eq!(seen("$app#user_Ann@x.org", "$user_1", None), None);
    let message = seen("room-a-b", "text:10:30:00Z", None);
    assert_eq!(message.as_deref(), Some("Message kind=text roomId=a-b sentAt=10:30:00Z"));
    assert_eq!(seen("room-a-b", "ROOM", None).as_deref(), Some("Room roomId=a-b"));
    assert_eq!(seen("elsewhere", "ROOM", None), None);
    assert_eq!(
        seen("of-a-b", "text:10:30:00Z", None),
        None,
        "an item that names no derived entity is the application's"
    );
}

#[test]
fn a_key_that_can_be_read_in_two_ways_is_unreadable() {
    let (schema, _) = load(FORMS).unwrap();
    let item = Item::from([("RippleType", s("Vote"))]);
    let of = |key: &str| schema.unreadable(&Key::new(key, "-"), &item).map(|why| why.to_string());
    assert_eq!(of("Votes#RED.7"), None);
    expect![[r#"votedFor can be read in two ways as Votes#{choice}.{shard} / - of Vote: mark the field whose values hold the text between two fields with *, as in {name*}"#]]
        .assert_eq(&of("Votes#PCMR.2.7").unwrap());

    let untyped = "[table]\npartition-key = \"pk\"\nsort-key = \"sk\"\n[entity.Vote]\npartition-key = \"{a}.{b}\"\nsort-key = \"V\"\n";
    let (schema, _) = load(untyped).unwrap();
    let of = |key: &str| schema.unreadable(&Key::new(key, "V"), &Item::new()).map(|why| why.to_string());
    assert_eq!(of("RED.7"), None);
    expect![[r#"pk, sk can be read in two ways as {a}.{b} / V of Vote: mark the field whose values hold the text between two fields with *, as in {name*}"#]]
        .assert_eq(&of("a.b.c").unwrap());
}

#[test]
fn a_link_may_have_a_constant() {
    let total = "[entity.Total]\ntable = \"Main\"\npartition-key = \"total-{of}\"\nsort-key = \"TOTAL\"\nderived = true\n\
                 derived-attributes = [\"votes\"]\n[derivation.all]\nkind = \"count\"\nfrom = \"Vote\"\ninto = \"Total.votes\"\n\
                 creates = true\nlink = { of = \"'all'\" }\n";
    load(&format!("{FORMS}{total}")).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn a_form_that_cannot_be_read_is_refused() {
    refused(
        "{choice}.{shard}",
        "{choice*}.{shard*}",
        &expect![
            "34:1: entity.Vote.partition-key: key template `{choice*}.{shard*}`: one field of a key takes `*`: it takes as much of the key as it can"
        ],
    );
    refused(
        "{choice}.{shard}",
        "{choice}.{shard*}.{n}",
        &expect![
            "34:1: entity.Vote.partition-key: key template `{choice}.{shard*}.{n}`: a field with `*` is the first field of a key, or ends it"
        ],
    );
    refused(
        "{choice}.{shard}",
        "{choice}{shard}",
        &expect!["34:1: entity.Vote.partition-key: key template `{choice}{shard}`: two fields need text between them"],
    );
    refused(
        "{choice}.{shard}",
        "{trim(choice)}.{shard}",
        &expect![
            "34:1: entity.Vote.partition-key: key template `{trim(choice)}.{shard}`: a field of no known form; the forms are {name}, {lower(name)}, {upper(name)}, {name*}, {name:6}, {name:14.2}, {MAX-name:6}, {name/} and {name%8}, with at most 38 digits"
        ],
    );
    refused(
        "{choice}.{shard}",
        "{lower(choice}.{shard}",
        &expect![
            "34:1: entity.Vote.partition-key: key template `{lower(choice}.{shard}`: a field of no known form; the forms are {name}, {lower(name)}, {upper(name)}, {name*}, {name:6}, {name:14.2}, {MAX-name:6}, {name/} and {name%8}, with at most 38 digits"
        ],
    );
    refused(
        "partition-key = \"votedFor\"",
        "partition-key = \"votedFor\"\nescape = \"url\"",
        &expect![[r#"13:1: tables.Votes.escape: there is no value "url": there are percent, none"#]],
    );
}

#[test]
fn entities_that_can_have_the_same_key_are_refused_with_an_example() {
    let vote = |form: &str| format!("[entity.Poll]\ntable = \"Votes\"\npartition-key = \"{form}\"\n");
    refused_with(
        &vote("{poll}-{n}"),
        &expect![[
            r#"59:9: entity.Poll: an item of Poll (Votes#{poll}-{n} / -) and one of Vote (Votes#{choice}.{shard} / -) can have the same key, such as Votes#x-.x / -: name the attribute that tells them apart, as in [tables.Votes] type = "…""#
        ]],
    );
    load(&format!("{FORMS}{}", vote("poll#{poll}"))).unwrap_or_else(|error| panic!("{error}"));
    refused(
        "sort-key = \"ROOM\"",
        "sort-key = \"text:ROOM\"",
        &expect![[
            r#"37:9: entity.Room: an item of Room (Main#room-{roomId} / text:ROOM) and one of Message (Main#room-{roomId} / {kind}:{sentAt*}) can have the same key, such as Main#room-x / text:ROOM: name the attribute that tells them apart, as in [tables.Main] type = "…""#
        ]],
    );
    refused_with(
        "[entity.Other]\ntable = \"Main\"\npartition-key = \"room-{roomId}\"\nsort-key = \"{any}\"\nderived = true\n",
        &expect![[
            r#"59:9: entity.Other: an item of Other (Main#room-{roomId} / {any}) and one of Message (Main#room-{roomId} / {kind}:{sentAt*}) can have the same key, such as Main#room-x / x:x: name the attribute that tells them apart, as in [tables.Main] type = "…""#
        ]],
    );
    let values = "[tables.Plain]\npartition-key = \"id\"\n[entity.A]\ntable = \"Plain\"\n";
    refused_with(
        &format!("{values}[entity.B]\ntable = \"Plain\"\n"),
        &expect![[
            r#"63:9: entity.B: an item of B (Plain#{id} / -) and one of A (Plain#{id} / -) can have the same key, such as Plain#x / -: name the attribute that tells them apart, as in [tables.Plain] type = "…""#
        ]],
    );
    refused_with(
        &values.replace("\"id\"", "\"id\"\nescape = \"none\""),
        &expect!["61:1: tables.Plain.escape: its keys have no form, and are values as they are: leave this out"],
    );
    let counted = |form: &str| {
        format!(
            "[table]\npartition-key = \"pk\"\nsort-key = \"sk\"\n\
             [entity.Item]\npartition-key = \"{{a}}\"\nsort-key = \"{form}\"\nderived-attributes = [\"n\"]\n\
             [entity.Part]\npartition-key = \"{{a}}\"\nsort-key = \"PART#{{item}}\"\n\
             [derivation.parts]\nkind = \"count\"\nfrom = \"Part\"\ninto = \"Item.n\"\nlink = {{ b = \"item\" }}\n"
        )
    };
    load(&counted("SUB#{b}#SKU#{b}")).unwrap_or_else(|error| panic!("{error}"));
    refused_whole(
        &counted("SUB#{b*}"),
        &expect![[
            r#"4:9: entity.Item: an item of Item ({a} / SUB#{b*}) and one of Counter ({a} / SUB#{b*}#COUNT#parts#{Satellite:2}) can have the same key, such as x / SUB#x#COUNT#parts#00: name the attribute that tells them apart, as in [table] type = "…""#
        ]],
    );
}

#[test]
fn a_text_in_one_case_does_not_give_the_text_itself() {
    let newsletter = "[entity.Letter]\ntable = \"Main\"\npartition-key = \"letter-{email}\"\nsort-key = \"LETTER\"\n\
                      derived-attributes = [\"users\"]\n\
                      [derivation.letters]\nkind = \"count\"\nfrom = \"User\"\ninto = \"Letter.users\"\n";
    load(&format!("{FORMS}{newsletter}")).unwrap_or_else(|error| panic!("{error}"));
    let undeclared = FORMS.replace("[\"email\", \"name\"]", "[\"name\"]");
    refused_whole(
        &format!("{undeclared}{newsletter}"),
        &expect![
            "64:13: derivation.letters: the key of User has email in lower or upper case, and the key of Letter has email unchanged: add email to the attributes of User, if its items have it, or write {lower(email)} in the key of Letter"
        ],
    );
    refused(
        "[entity.Message.index.byUser]\npartition-key = \"$app#user_{lower(email)}\"",
        "[entity.Message.index.byUser]\npartition-key = \"$app#user_{email}\"",
        &expect![
            "53:13: derivation.user-name: the key of User has email in lower or upper case, and the key by which its Message items are found has email unchanged: write {lower(email)} there"
        ],
    );
    refused(
        "derived-attributes = [\"messageCount\"]",
        "derived-attributes = [\"messageCount\", \"email\"]",
        &expect![[r#"19:39: entity.User.derived-attributes: "email" is a field of the key: leave it out"#]],
    );
    let note = |key: &str| {
        format!(
            "[entity.Note]\ntable = \"Main\"\npartition-key = \"note-{key}\"\nsort-key = \"{{at}}\"\nattributes = [\"email\"]\n"
        )
    };
    refused_with(
        &format!(
            "{}[derivation.last]\nkind = \"latest\"\nfrom = \"Note\"\nto = \"User\"\nlink = {{ email = \"who\" }}\n\
             attributes = {{ at = \"messageCount\" }}\n",
            note("{who}")
        ),
        &expect![
            "64:13: derivation.last: name what orders the items, as in by = \"createdAt\": the key of User has email in lower or upper case, and the keys of the Note items have it unchanged"
        ],
    );
    refused_with(
        &format!(
            "{}[entity.NoteOf]\ntable = \"Main\"\npartition-key = \"of-{{lower(who)}}\"\nsort-key = \"{{at}}\"\nderived = true\n\
             [derivation.note-of]\nkind = \"mirror\"\nfrom = \"Note\"\nto = \"NoteOf\"\n",
            note("{who}")
        ),
        &expect![
            "69:13: derivation.note-of: the key of NoteOf has who in lower or upper case, so it does not give the key of its Note: write who unchanged in that key, and write {lower(…)} for an attribute of Note"
        ],
    );
}

#[test]
fn what_is_found_by_the_beginning_of_a_key_has_a_certain_end() {
    let part = "[entity.Part]\ntable = \"Main\"\npartition-key = \"part-{roomId}\"\nsort-key = \"{kind}.{n}\"\n\
                [entity.Kind]\ntable = \"Main\"\npartition-key = \"part-{roomId}\"\nsort-key = \"KIND#{kind}\"\n\
                derived-attributes = [\"last\"]\n";
    refused_with(
        &format!(
            "{part}[derivation.last]\nkind = \"latest\"\nfrom = \"Part\"\nto = \"Kind\"\nattributes = {{ n = \"last\" }}\n"
        ),
        &expect![
            "68:13: derivation.last: name what orders the items, as in by = \"createdAt\": the items of Part that lead to one Kind are not consecutive items of one partition: a value in {kind}.{n} may contain the text that ends it"
        ],
    );
    refused_with(
        &format!(
            "{part}[derivation.parts]\nkind = \"cascade\"\nowner = \"Kind\"\nhanging = [{{ entity = \"Part\" }}]\n"
        ),
        &expect![
            "68:13: derivation.parts: Part is found by the beginning of {kind}.{n}, which may be that of another Part too, since a value may contain the text that ends it: find it by an index or a mirror with `#` there"
        ],
    );
}

#[test]
fn a_mirror_may_leave_out_what_is_not_declared() {
    load(&format!("{FORMS}{}", mirror("picture"))).unwrap_or_else(|error| panic!("{error}"));
    refused_with(
        &mirror("txt"),
        &expect![[r#"68:11: derivation.of.except: Message has no attribute "txt": did you mean "text"?"#]],
    );
}
