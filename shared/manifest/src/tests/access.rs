//! Access patterns, and mistakes in them.

use derive::{
    access::{AccessReads, AccessRequest},
    query::SortKeys,
};
use keys::fields::Fields;

use super::*;

/// A table with a sort key of each form.
const TABLE: &str = r##"
[table]
partition-key = "PK"
sort-key = "SK"
type = "type"

[index.byAuthor]
partition-key = "GSI1PK"
sort-key = "GSI1SK"
projection = ["status"]

[entity.Post]
partition-key = "POST#{postId}"
sort-key = "META"
attributes = ["title"]
derived-attributes = ["comments"]

[entity.Comment]
partition-key = "POST#{of}"
sort-key = "COMMENT#{kind}#{sentAt}#{commentId}"
attributes = ["status", "author", "text"]

[entity.Comment.index.byAuthor]
partition-key = "AUTHOR#{author%4}"
sort-key = "{sentAt}"

[entity.Mark]
partition-key = "POST#{post}"
sort-key = "{place}#MARK"

[entity.Folder]
partition-key = "DRIVE#{drive}"
sort-key = "AT#{path/}"

[entity.Open]
partition-key = "OPEN#{id}"
sort-key = "{left}.{right}"

[derivation.comments]
kind = "count"
from = "Comment"
into = "Post.comments"
link = { postId = "of" }
"##;

fn with(access: &str) -> Result<Schema, ManifestError> {
    load(&format!("{TABLE}\n[access.it]\n{access}\n")).map(|(schema, _)| schema)
}

/// The requests of a pattern, one a line.
fn requests(access: &str) -> String {
    let schema = with(access).unwrap_or_else(|error| panic!("{access}: {error}"));
    let requests = schema.accesses.iter().flat_map(|access| access.requests(&schema));
    let line = |request| match request {
        AccessRequest::Get(keys) => format!("get {keys:?}\n"),
        AccessRequest::Query(query) => {
            let (index, pk, sk) = (query.index.unwrap_or_else(|| "table".to_owned()), query.pk, query.sk);
            format!("{index} {pk} {sk:?} {:?} {:?} {:?}\n", query.order, query.limit, query.consistency)
        }
    };
    requests.map(line).collect()
}

#[test]
fn a_pattern_is_the_requests_that_it_makes() {
    let asks = |access: &str, expect: &Expect| expect.assert_eq(&requests(access));
    asks(
        "get = \"Post\"",
        &expect![[r#"
        get [Key { pk: "POST#{postId}", sk: "META" }]
    "#]],
    );
    asks(
        "batch-get = \"Post\"\nconsistent = true",
        &expect![[r#"
        get [Key { pk: "POST#{postId}", sk: "META" }, Key { pk: "POST#{postId 2}", sk: "META" }]
    "#]],
    );
    asks(
        "counts = \"Post\"",
        &expect![[r#"
             table POST#{postId} Prefix("META#COUNT#") Ascending None Strong
        "#]],
    );
    asks(
        "query = \"Post\"",
        &expect![[r#"
             table POST#{postId} Between("META", "META") Ascending Some(100) Eventual
        "#]],
    );
    asks(
        "query = \"Comment\"\norder = \"descending\"\nlimit = 20",
        &expect![[r#"
             table POST#{of} Prefix("COMMENT#") Descending Some(20) Eventual
        "#]],
    );
    asks(
        "query = \"Comment\"\nfields = [\"kind\"]\nwhere = \"status = :status\"",
        &expect![[r#"
             table POST#{of} Prefix("COMMENT#{kind}#") Ascending Some(100) Eventual
        "#]],
    );
    asks(
        "query = \"Comment\"\nfields = [\"kind\"]\nbetween = \"sentAt\"",
        &expect![[r#"
             table POST#{of} Between("COMMENT#{kind}#{low}#", "COMMENT#{kind}#{high}$") Ascending Some(100) Eventual
        "#]],
    );
    asks(
        "query = [\"Post\", \"Comment\"]\nconsistent = true",
        &expect![[r#"
             table POST#{postId} Between("COMMENT#", "META") Ascending Some(100) Strong
        "#]],
    );
    asks(
        "query = [\"Post\", \"Mark\"]",
        &expect![[r#"
            table POST#{postId} All Ascending Some(100) Eventual
        "#]],
    );
    asks(
        "query = \"Comment\"\nindex = \"byAuthor\"\nbetween = \"sentAt\"",
        &expect![[r#"
        byAuthor AUTHOR#00 Between("{low}", "{high}") Ascending Some(50) Eventual
        byAuthor AUTHOR#01 Between("{low}", "{high}") Ascending Some(50) Eventual
        byAuthor AUTHOR#02 Between("{low}", "{high}") Ascending Some(50) Eventual
        byAuthor AUTHOR#03 Between("{low}", "{high}") Ascending Some(50) Eventual
    "#]],
    );
    asks(
        "query = \"Folder\"\nbelow = \"path\"",
        &expect![[r#"
             table DRIVE#{drive} Prefix("AT#{path}/") Ascending Some(100) Eventual
        "#]],
    );
}

#[track_caller]
fn refused(accesses: &[&str], wanted: &Expect) {
    let error = |access: &&str| with(access).map_err(|it| format!("{}: {}\n", it.key, it.what)).expect_err(access);
    wanted.assert_eq(&accesses.iter().map(error).collect::<String>());
}

#[test]
fn a_wrong_pattern_is_refused_with_what_to_do() {
    refused(
        &[
            "",
            "get = \"Post\"\nquery = \"Post\"",
            "get = \"Pots\"",
            "get = \"Counter\"",
            "get = \"Post\"\nlimit = 3",
            "query = \"Comment\"\nwhere = \"status = :low\"",
            "query = \"Comment\"\nwhere = \":a = :b\"",
            "query = \"Comment\"\nwhere = \"status = :\"",
            "query = \"Comment\"\nfields = [\"kind\", \"sentAt\", \"commentId\"]\nbetween = \"kind\"",
        ],
        &expect![[r#"
            access.it: takes one of get, batch-get, query and counts, with the entity that it reads
            access.it.query: a read has one of get and query: leave one out
            access.it.get: there is no entity "Pots": did you mean "Post"?
            access.it.get: items of Counter are Ripple's own: counts = "…" reads them, with the entity that is counted for
            access.it.limit: only query takes it, and this is get: leave it out
            access.it.where: :low is the name of a bound: give it another name
            access.it.where: is no filter: at character 1: it compares values that the caller gives, and no attribute
            access.it.where: is no filter: at character 10: a placeholder has a name of letters, digits and _, such as :status
            access.it.between: fields names the whole sort key COMMENT#{kind}#{sentAt}#{commentId} already: leave this out
        "#]],
    );
    let twice = format!("{TABLE}\n[access.a-post]\nget = \"Post\"\n[access.aPost]\nget = \"Post\"\n");
    expect!["aPost and a-post are the name of one function in some language: give one another name"]
        .assert_eq(&load(&twice).expect_err("one function").what);
    refused(
        &[
            "counts = \"Comment\"",
            "query = []",
            "query = [\"Post\", \"Folder\"]",
            "query = [\"Post\", \"Comment\"]\nbetween = \"sentAt\"",
            "query = \"Post\"\nindex = \"byAuthor\"",
            "query = \"Comment\"\nindex = \"byauthor\"",
            "query = \"Comment\"\nindex = \"byAuthor\"\nconsistent = true",
        ],
        &expect![[r#"
            access.it.counts: no derivation of the kind count counts into Comment
            access.it: query is an empty list: name an entity
            access.it.query: Post and Folder are in different partitions (POST#{postId} and DRIVE#{drive}): one query reads one partition
            access.it.between: a query of several entities takes all of them: leave it out, or query one entity
            access.it.index: Post is in no index "byAuthor": there is none
            access.it.index: Comment is in no index "byauthor": did you mean "byAuthor"?
            access.it.consistent: an index is never read consistently: leave it out, or query the table
        "#]],
    );
}

#[test]
fn wrong_fields_bounds_and_filters_are_refused() {
    refused(
        &[
            "query = \"Comment\"\nfields = [\"sentAt\"]",
            "query = \"Comment\"\nbetween = \"sentAt\"",
            "query = \"Comment\"\nbetween = \"kind\"\nbelow = \"kind\"",
            "query = \"Comment\"\nbelow = \"kind\"",
            "query = \"Open\"\nbetween = \"left\"",
            "query = \"Comment\"\norder = \"newest\"",
            "query = \"Comment\"\nlimit = 0",
            "query = \"Comment\"\nwhere = \"status = \"",
            "query = \"Comment\"\nwhere = \"upper(status) = :status\"",
            "query = \"Comment\"\nwhere = \"stats = :status\"",
            "query = \"Comment\"\nwhere = \"author = :of\"",
            "query = \"Comment\"\nwhere = \"PK = :of\"",
            "query = \"Comment\"\nindex = \"byAuthor\"\nwhere = \"text = :text\"",
        ],
        &expect![[r#"
            access.it.fields: the sort key is COMMENT#{kind}#{sentAt}#{commentId}: fields names its first fields, in their order; here comes kind
            access.it.between: the next field of the sort key COMMENT#{kind}#{sentAt}#{commentId} is kind: name it here, or in fields before
            access.it.below: between and below exclude each other: leave one out
            access.it.below: below takes a path at the end of the sort key, as in EMP#{Path/}, which kind is not
            access.it.between: a value in {left}.{right} may contain the text that ends it, so its beginning is no range: leave it out
            access.it.order: is "ascending" or "descending"
            access.it.limit: is 0: it is from 1 to 1000
            access.it.where: is no filter: at character 10: it ends where an attribute or a value is wanted
            access.it.where: is no filter: at character 1: DynamoDB does not calculate upper(status) in a filter: leave it out, and filter the items in your code
            access.it.where: Comment declares no attribute "stats": did you mean "status"?
            access.it.where: the caller gives of for the key: give :of another name
            access.it.where: PK is an attribute of the queried key, on which DynamoDB takes no filter
            access.it.where: the index byAuthor does not project text, so a filter never sees it
        "#]],
    );
    let name = load(&format!("{TABLE}\n[access.\"a b\"]\nget = \"Post\"\n")).expect_err("a name");
    expect!["45:9: access.a b: the name of a read is that of a function: it has only letters, digits, - and _, and begins with a letter"].assert_eq(&name.to_string());
}

#[test]
fn a_pattern_of_tables_names_stored_attributes() {
    let manifest = |access: &str| {
        load(&format!(
            r#"
[tables.Posts]
partition-key = "author"
sort-key = {{ name = "sentAt", type = "N" }}

[tables.Posts.index.byTag]
partition-key = ["tag", "author"]
sort-key = "title"

[entity.Post]
table = "Posts"
attributes = ["tag", "title"]
derived-attributes = ["n"]

[tables.Blobs]
partition-key = {{ name = "hash", type = "B" }}

[entity.Blob]
table = "Blobs"
attributes = ["author", "at"]

[derivation.n]
kind = "count"
from = "Blob"
into = "Post.n"
link = {{ author = "author", sentAt = "at" }}

[access.posts]
{access}
"#
        ))
    };
    let (schema, _) = manifest("query = \"Post\"\nbetween = \"sentAt\"\nwhere = \"title = :title\"").unwrap();
    let [access] = schema.accesses.as_slice() else { panic!("{:?}", schema.accesses) };
    let AccessReads::Query(query) = &access.reads else { panic!("{access:?}") };
    assert_eq!(query.partition_fields(&schema), ["author"]);
    let refused = |accesses: &[&str], wanted: &Expect| {
        let error = |access: &&str| format!("{}\n", manifest(access).unwrap_err());
        wanted.assert_eq(&accesses.iter().map(error).collect::<String>());
    };
    refused(
        &[
            "counts = \"Post\"",
            "get = \"Blob\"",
            "query = \"Post\"\nindex = \"byTag\"",
            "query = \"Post\"\nwhere = \"author = :author\"",
        ],
        &expect![[r#"
            29:1: access.posts.counts: with [tables.NAME] counters are in a table of their own: read the attribute that shows the count
            29:1: access.posts.get: a read takes no key of type B
            29:1: access.posts.query: a read takes no index with several attributes in a part of its key
            30:1: access.posts.where: author is an attribute of the queried key, on which DynamoDB takes no filter
        "#]],
    );
}

#[test]
fn values_take_the_place_of_fields_and_what_is_missing_is_refused() {
    let of = |access: &str, values: &[(&str, &str)]| {
        let schema = with(access).unwrap();
        let values: Fields = values.iter().copied().collect();
        schema.accesses[0].requests_of(&schema, &values).map_err(|error| error.to_string()).map(|mut requests| {
            let AccessRequest::Query(query) = requests.remove(0) else { panic!("a query") };
            (query.pk, query.sk)
        })
    };
    let between = |least: &str, greatest: &str| SortKeys::Between(least.to_owned(), greatest.to_owned());
    let comments = "query = \"Comment\"\nfields = [\"kind\"]\nbetween = \"sentAt\"";
    let given = [("of", "p#1"), ("kind", "k"), ("low", "2026")];
    let range = between("COMMENT#k#2026#", "COMMENT#k$");
    assert_eq!(of(comments, &given), Ok(("POST#p%231".to_owned(), range)));
    assert_eq!(of(comments, &given[..2]).unwrap().1, SortKeys::Prefix("COMMENT#k#".to_owned()));
    assert_eq!(of(comments, &given[..1]), Err("kind is missing; the key needs it".to_owned()));
    let below = "query = \"Folder\"\nbelow = \"path\"";
    assert_eq!(of(below, &[("drive", "d")]), Err("path is missing; the key needs it".to_owned()));

    let numbers = "[tables.Numbers]\npartition-key = \"p\"\nsort-key = { name = \"n\", type = \"N\" }\n[entity.E]\n\
                   [access.it]\nquery = \"E\"\nbetween = \"n\"\n";
    let (schema, _) = load(numbers).unwrap();
    for (low, high, found) in [(Some("2"), None, [false, true, true]), (None, Some("2"), [true, true, false])] {
        let bounds = [("low", low), ("high", high)].into_iter().filter_map(|(name, bound)| Some((name, bound?)));
        let values: Fields = bounds.chain([("p", "x")]).collect();
        let requests = schema.accesses[0].requests_of(&schema, &values).unwrap();
        let [AccessRequest::Query(query)] = requests.as_slice() else { panic!("{requests:?}") };
        let holds = ["-5", "2", "1E+90"].map(|number| query.sk.holds(&keys::number::sortable(number).unwrap()));
        assert_eq!(holds, found);
    }
}
