//! DynamoDB's limits on tables and indexes.

use super::*;

/// Names of so many attributes, as a list of TOML.
fn attributes(number: usize) -> String {
    let name = |name| format!("\"a{name}\", ");
    (0..number).map(name).collect()
}

/// A table with indexes that project so many attributes each.
fn projecting(numbers: &[usize]) -> String {
    let index = |(at, number): (usize, &usize)| {
        let names = attributes(*number);
        format!("[tables.Post.index.by{at}x]\npartition-key = \"p\"\nprojection = [{names}]\n")
    };
    let indexes: String = numbers.iter().enumerate().map(index).collect();
    format!("[tables.Post]\npartition-key = \"id\"\n{indexes}[entity.Post]\ntable = \"Post\"\n")
}

/// The same as indexes of one table.
fn of_one_table(numbers: &[usize]) -> String {
    let index = |(at, number): (usize, &usize)| {
        let names = attributes(*number);
        format!("[index.by{at}x]\npartition-key = \"g{at}\"\nsort-key = \"sk\"\nprojection = [{names}]\n")
    };
    let indexes: String = numbers.iter().enumerate().map(index).collect();
    let table = "[table]\npartition-key = \"pk\"\nsort-key = \"sk\"\ntype = \"Type\"\n";
    format!("{table}{indexes}[entity.Post]\npartition-key = \"POST#{{id}}\"\nsort-key = \"POST\"\n")
}

fn refusal(text: &str) -> String {
    load(text).err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn an_index_projects_at_most_20_attributes_and_all_of_a_table_100() {
    for text in [projecting, of_one_table] {
        assert_eq!(refusal(&text(&[20, 20, 20, 20, 20])), "");
        let one = refusal(&text(&[1, 21]));
        assert!(
            one.contains("by1x: the index by1x projects 21 attributes, and DynamoDB allows 20: name fewer"),
            "{one}"
        );
        let all = refusal(&text(&[20, 20, 20, 20, 20, 1]));
        assert!(all.contains("by5x: the indexes project 101 attributes together, and DynamoDB allows 100"), "{all}");
    }
    let of_all = projecting(&[20, 20, 20, 20, 20, 0]).replace("projection = []\n", "");
    assert_eq!(refusal(&of_all), "", "an index that projects all counts none");
}

#[test]
fn the_names_of_tables_indexes_and_attributes_are_those_that_dynamodb_takes() {
    let text = projecting(&[1]);
    let long = "n".repeat(256);
    for (is, instead, why) in [
        ("by0x", "by", "the name of an index has 3 to 255 letters, digits, _, . and - only"),
        ("by0x", "\"by author\"", "the name of an index has 3 to 255"),
        ("by0x", long.as_str(), "the name of an index has 3 to 255"),
        ("tables.Post", "tables.Po", "the name of a table has 3 to 255 letters"),
        ("\"p\"", &format!("\"{long}\""), "the name of an attribute here has at most 255 bytes, and this one has 256"),
        ("\"a0\"", &format!("\"{long}\""), "the name of an attribute here has at most 255 bytes, and this one has 256"),
    ] {
        let mistake = refusal(&text.replace(is, instead));
        assert!(mistake.contains(why), "{instead}: {mistake}");
    }
    let one = of_one_table(&[1]);
    assert!(refusal(&one.replace("by0x", "by")).contains("index.by: the name of an index has 3 to 255"));
    let fits = "n".repeat(255);
    assert_eq!(refusal(&text.replace("by0x", &fits)), "");
}

#[test]
fn a_projection_names_attributes_that_no_key_has() {
    for (names, says) in [
        ("\"ALL\"", "ALL is no attribute: an index without `projection` projects all"),
        ("\"*\"", "* is no attribute: an index without `projection` projects all"),
        ("\"KEYS_ONLY\"", "KEYS_ONLY is no attribute: write projection = [] for the keys alone"),
        ("\"a\", \"id\"", "id is an attribute of a key, which the index projects anyway: leave it out"),
        ("\"tag\"", "tag is an attribute of a key, which the index projects anyway: leave it out"),
    ] {
        let several = "[tables.Post]\npartition-key = \"id\"\n[tables.Post.index.byTag]\npartition-key = \"tag\"\n";
        let one = "[table]\npartition-key = \"id\"\nsort-key = \"sk\"\n[index.byTag]\npartition-key = \"tag\"\nsort-key = \"s\"\n";
        for before in [several, one] {
            let error = load(&format!("{before}projection = [{names}]\n")).unwrap_err().to_string();
            assert!(error.ends_with(&format!("projection: {says}")), "{error}");
        }
    }
}
