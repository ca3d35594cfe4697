//! The embedded database's SQLite is older than 3.50.2, so it has CVE-2025-6965: a statement with more aggregate terms than
//! it may have columns, at least 2,000, corrupts memory. Nobody can make it run one: all statements are texts in the
//! code, and none has more than two aggregates. `docs/limits.md` says why the version stays.

use std::{
    fs,
    path::{Path, PathBuf},
};

use proc_macro2::{TokenStream, TokenTree};

use crate::supply::packages;

/// SQLite's aggregate functions. Source: SQLite's documentation, "Built-in Aggregate Functions".
const AGGREGATES: [&str; 10] = [
    "avg(",
    "count(",
    "group_concat(",
    "json_group_array(",
    "json_group_object(",
    "max(",
    "min(",
    "string_agg(",
    "sum(",
    "total(",
];

/// Most aggregates of a statement.
const AGGREGATES_MAX: usize = 2;

/// The first version without the fault. Source: the CVE.
const MENDED: [u32; 3] = [3, 50, 2];

/// The folder of a package's source.
fn folder(name: &str) -> PathBuf {
    let package = packages().find(|package| package["name"] == name).unwrap();
    Path::new(package["manifest_path"].as_str().unwrap()).parent().unwrap().to_path_buf()
}

/// The string literals of a text, those inside macros included.
fn literals(tokens: TokenStream, found: &mut Vec<String>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => literals(group.stream(), found),
            TokenTree::Literal(literal) => {
                found.extend(syn::parse_str::<syn::LitStr>(&literal.to_string()).ok().map(|it| it.value()));
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
    }
}

fn sources(at: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(at).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn no_statement_of_the_embedded_database_has_more_than_two_aggregates() {
    let mut files = Vec::new();
    sources(&folder("dynoxide-rs").join("src"), &mut files);
    // PartiQL is parsed by the database's own code, and is no SQL for SQLite.
    files.retain(|path| !path.components().any(|part| part.as_os_str() == "partiql"));
    let mut n_statements = 0;
    for file in files {
        let mut found = Vec::new();
        literals(fs::read_to_string(&file).unwrap().parse().unwrap(), &mut found);
        for text in found {
            let lower = text.to_lowercase();
            let n_aggregates: usize = AGGREGATES.iter().map(|aggregate| lower.matches(aggregate).count()).sum();
            if n_aggregates == 0 || !lower.contains(" from ") {
                continue;
            }
            // A whole statement, and no part that a loop could repeat.
            assert!(lower.starts_with("select "), "{}: {text}", file.display());
            assert!(n_aggregates <= AGGREGATES_MAX, "{}: {text}", file.display());
            n_statements += 1;
        }
    }
    assert!(n_statements >= 10, "the texts are found");
}

#[test]
fn the_fault_is_looked_for_only_while_sqlite_has_it() {
    let header = fs::read_to_string(folder("libsqlite3-sys").join("sqlite3/sqlite3.h")).unwrap();
    let line = header.lines().find(|line| line.starts_with("#define SQLITE_VERSION ")).unwrap();
    let version: Vec<u32> = line.split('"').nth(1).unwrap().split('.').map(|part| part.parse().unwrap()).collect();
    assert!(
        version.as_slice() < MENDED.as_slice(),
        "{version:?} is mended: remove this file, and the line of docs/limits.md"
    );
}

#[test]
fn the_page_of_limits_names_the_versions_that_are_compiled_in() {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/limits.md")).unwrap();
    let version = |name: &str| {
        let package = packages().find(|package| package["name"] == name).unwrap();
        package["version"].as_str().unwrap().to_owned()
    };
    let minor = |name: &str| version(name).rsplit_once('.').unwrap().0.to_owned();
    let wanted = format!(
        "the newest `dynoxide-rs` is {}, which requires `rusqlite` {}, and `libsqlite3-sys` {} with this version",
        version("dynoxide-rs"),
        minor("rusqlite"),
        minor("libsqlite3-sys"),
    );
    assert!(page.contains(&wanted), "docs/limits.md does not say: {wanted}");
    let header = fs::read_to_string(folder("libsqlite3-sys").join("sqlite3/sqlite3.h")).unwrap();
    let line = header.lines().find(|line| line.starts_with("#define SQLITE_VERSION ")).unwrap();
    assert!(page.contains(&format!("**Its SQLite is {}**", line.split('"').nth(1).unwrap())));
}
