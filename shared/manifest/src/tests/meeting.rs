//! Entities that Ripple writes and whose keys could be equal.

use expect_test::expect;

use super::refused_whole;
use crate::load;

/// Two groups of items, and a derivation that creates an item for each.
fn manifest(kinds: [&str; 2], keys: [&str; 2], of_type: &str) -> String {
    let part = |at: usize| {
        let (kind, key, from) = (kinds[at], keys[at], ["Item", "Note"][at]);
        let declared = match kind {
            "count" => format!("kind = \"count\"\nfrom = \"{from}\"\ninto = \"Made{at}\"\ncreates = true"),
            kind => format!("kind = \"{kind}\"\nfrom = \"{from}\"\nto = \"Made{at}\""),
        };
        format!(
            "[entity.{from}]\npartition-key = \"{from}#{{id}}\"\nsort-key = \"{from}\"\nattributes = [\"category\"]\n\
             [entity.Made{at}]\npartition-key = \"{key}\"\nsort-key = \"MADE\"\nderived = true\n\
             derived-attributes = [\"Claims\"]\n[derivation.made-{at}]\n{declared}\n{}",
            if key.contains("{category}") { "link = { category = \"category\" }\n" } else { "link = {}\n" }
        )
    };
    format!("[table]\npartition-key = \"pk\"\nsort-key = \"sk\"\n{of_type}{}{}", part(0), part(1))
}

#[test]
fn two_entities_that_ripple_creates_have_no_key_in_common() {
    for of_type in ["", "type = \"Type\"\n"] {
        for kinds in [["count", "count"], ["mirror", "mirror"], ["count", "mirror"]] {
            let error = load(&manifest(kinds, ["CATEGORY#{category}", "CATEGORY#other"], of_type)).unwrap_err();
            assert_eq!(error.key, "entity.Made1", "{kinds:?}: {error}");
            load(&manifest(kinds, ["CATEGORY#{category}", "OTHER"], of_type)).unwrap();
        }
    }
    refused_whole(
        &manifest(["count", "count"], ["CATEGORY#{category}", "CATEGORY#other"], "type = \"Type\"\n"),
        &expect![
            "24:9: entity.Made1: an item of Made1 (CATEGORY#other / MADE) and one of Made0 (CATEGORY#{category} / MADE) can have the same key, such as CATEGORY#other / MADE, and Ripple would write the one over the other again and again: give one of them a key of another form, such as a prefix of its own"
        ],
    );
}

#[test]
fn two_entities_that_ripple_creates_have_no_key_in_common_in_a_table_of_any_form() {
    let of_table = |two: &str| {
        format!(
            r#"
            [tables.Post]
            partition-key = "id"
            [tables.Found]
            partition-key = "by"
            sort-key = "post"
            type = "Type"
            [entity.Post]
            table = "Post"
            attributes = ["tag", "author"]
            [entity.ByTag]
            table = "Found"
            partition-key = "TAG#{{tag}}"
            sort-key = "{{id}}"
            derived = true
            [entity.ByAuthor]
            table = "Found"
            partition-key = "{two}#{{author}}"
            sort-key = "{{id}}"
            derived = true
            [derivation.by-tag]
            kind = "mirror"
            from = "Post"
            to = "ByTag"
            link = {{ id = "id" }}
            [derivation.by-author]
            kind = "mirror"
            from = "Post"
            to = "ByAuthor"
            link = {{ id = "id" }}
            "#
        )
    };
    load(&of_table("AUTHOR")).unwrap();
    refused_whole(
        &of_table("TAG"),
        &expect![
            "16:21: entity.ByAuthor: an item of ByAuthor (Found#TAG#{author} / {id}) and one of ByTag (Found#TAG#{tag} / {id}) can have the same key, such as Found#TAG#x / x, and Ripple would write the one over the other again and again: give one of them a key of another form, such as a prefix of its own"
        ],
    );
}
