//! The rules of the house style that clippy cannot check.
//!
//! Clippy checks the length of functions, the reasons of lints that are off, and calls that no crate may make: see
//! `clippy.toml`. Every rule here takes a file and returns violations. Each rule runs over the workspace, and over a
//! small bad sample that shows that it can fail.

use std::{collections::BTreeMap, fs, path::Path, sync::LazyLock};

use proc_macro2::{TokenStream, TokenTree};
use toml_edit::{DocumentMut, Item, TableLike};

/// Most lines of a source file without its `#[cfg(test)]` items. Source: the house style.
const FILE_LINES_MAX: usize = 600;

/// Most lines of a `main.rs`, which is wiring only. Source: the house style.
const MAIN_LINES_MAX: usize = 30;

/// Most lines of any source file, tests included. Source: the house style.
const SOURCE_LINES_MAX: usize = 1_200;

/// A source file of the workspace.
struct SourceFile {
    /// From the workspace's root, with `/`.
    path: String,
    n_lines: usize,
    /// All tokens with their lines, brackets included, without comments and doc comments.
    tokens: Vec<(usize, String)>,
    /// First and last line of each item that is compiled for tests only.
    test_items: Vec<(usize, usize)>,
}

impl SourceFile {
    fn new(path: &str, text: &str) -> Self {
        let mut tokens = Vec::new();
        flatten(text.parse().unwrap_or_else(|error| panic!("{path}: {error}")), &mut tokens);
        let n_lines = text.lines().count();
        let mut source = Self { path: path.to_owned(), n_lines, tokens, test_items: Vec::new() };
        let test_items = source.lines_of(&["#", "[", "cfg", "(", "test", ")", "]"]);
        source.test_items = test_items.into_iter().map(|(line, place)| (line, source.item_end(place + 7))).collect();
        source
    }

    /// The last line of the item that starts at a token.
    fn item_end(&self, start: usize) -> usize {
        let mut depth = 0_usize;
        for (line, token) in self.tokens.iter().skip(start) {
            match token.as_str() {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                _ => {}
            }
            if depth == 0 && [";", "}"].contains(&token.as_str()) {
                return *line;
            }
        }
        self.n_lines
    }

    fn at(&self, line: usize, what: &str) -> String {
        format!("{}:{line}: {what}", self.path)
    }

    fn is_shipped(&self) -> bool {
        let folder = ["examples/", "functions/", "shared/", "tools/"].iter().any(|it| self.path.starts_with(it));
        folder && self.path.contains("/src/") && !self.is_test()
    }

    fn is_test(&self) -> bool {
        self.path.starts_with("tests/") || self.path.contains("/tests/") || self.path.ends_with("/tests.rs")
    }

    fn is_test_line(&self, line: usize) -> bool {
        self.is_test() || self.test_items.iter().any(|(first, last)| (*first..=*last).contains(&line))
    }

    /// Lines at which these tokens follow each other, each with the place of its first token.
    fn lines_of(&self, wanted: &[&str]) -> Vec<(usize, usize)> {
        let windows = self.tokens.windows(wanted.len()).enumerate();
        let found = windows.filter(|(_, tokens)| tokens.iter().map(|(_, text)| text).eq(wanted));
        found.map(|(place, tokens)| (tokens[0].0, place)).collect()
    }

    /// The module behind each `crate::`, in an import and elsewhere, with its line. A visibility such as `pub(in
    /// crate::a)` is none.
    fn crate_paths(&self) -> Vec<(usize, &str)> {
        let mut paths = Vec::new();
        for (_, place) in self.lines_of(&["crate", ":", ":"]) {
            if place > 0 && self.tokens[place - 1].1 == "in" {
                continue;
            }
            let (mut depth, mut is_start) = (0_usize, true);
            for (line, token) in &self.tokens[place + 3..] {
                match token.as_str() {
                    "{" => depth += 1,
                    "}" => depth -= 1,
                    "," => is_start = depth == 1,
                    name if is_start => {
                        paths.push((*line, name));
                        is_start = false;
                    }
                    _ => {}
                }
                if depth == 0 {
                    break;
                }
            }
        }
        paths
    }
}

fn flatten(stream: TokenStream, tokens: &mut Vec<(usize, String)>) {
    for tree in stream {
        let line = tree.span().start().line;
        let TokenTree::Group(group) = tree else {
            tokens.push((line, tree.to_string()));
            continue;
        };
        let inner: Vec<TokenTree> = group.stream().into_iter().collect();
        if matches!(inner.as_slice(), [TokenTree::Ident(name), _, TokenTree::Literal(_)] if *name == "doc") {
            continue;
        }
        let (open, close) = match group.delimiter() {
            proc_macro2::Delimiter::Brace => ("{", "}"),
            proc_macro2::Delimiter::Bracket => ("[", "]"),
            proc_macro2::Delimiter::Parenthesis | proc_macro2::Delimiter::None => ("(", ")"),
        };
        tokens.push((line, open.to_owned()));
        flatten(group.stream(), tokens);
        tokens.push((group.span_close().start().line, close.to_owned()));
    }
}

// ---- rules for one source ----

/// No file is too long.
fn file_lengths(source: &SourceFile) -> Vec<String> {
    let over = |limit: usize, n: usize, what: &str| {
        (n > limit).then(|| source.at(limit + 1, &format!("{n} lines{what}; the limit is {limit}")))
    };
    let is_main = source.path.ends_with("/src/main.rs") || source.path.contains("/src/bin/");
    let n_test_lines: usize = source.test_items.iter().map(|(first, last)| last + 1 - first).sum();
    [
        over(SOURCE_LINES_MAX, source.n_lines, " in all"),
        over(MAIN_LINES_MAX, source.n_lines, " of wiring").filter(|_| is_main),
        over(FILE_LINES_MAX, source.n_lines - n_test_lines, " without its tests").filter(|_| source.is_shipped()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A test on the wall clock.
const WALL_CLOCK: [&str; 5] = ["tokio", ":", ":", "test", "]"];

/// No test is switched off, expects a panic, or sleeps on the wall clock. A method `sleep` is that of a test's own
/// clock, so it is allowed; so is Tokio's timer in tests with virtual time.
fn tests(source: &SourceFile) -> Vec<String> {
    let has = |tokens: &[&str]| !source.lines_of(tokens).is_empty();
    let all_are_virtual = source.path.starts_with("tools/stream/src/tests/");
    let is_virtual = all_are_virtual || has(&["start_paused"]) && !has(&WALL_CLOCK);
    let is_call = |place: usize| place == 0 || ![".", "fn"].contains(&source.tokens[place - 1].1.as_str());
    let mut violations = Vec::new();
    let mut refuse = |tokens: &[&str], what| {
        for (line, place) in source.lines_of(tokens) {
            let is_other = tokens[0].starts_with("sleep") && !(source.is_test_line(line) && is_call(place));
            violations.extend((!is_other).then(|| source.at(line, what)));
        }
    };
    refuse(&["#", "[", "ignore"], "`#[ignore]`: a test runs or is not there");
    refuse(&["#", "[", "should_panic"], "`#[should_panic]`: return the error and look at it");
    if all_are_virtual {
        refuse(&WALL_CLOCK, "the time of this test is not virtual: `start_paused = true`");
    }
    if !is_virtual {
        refuse(&["sleep", "("], "a test sleeps: wait for what it waits for");
        refuse(&["sleep_until", "("], "a test sleeps: wait for what it waits for");
    }
    violations
}

/// No module, type or file has an empty name such as `Helper`.
fn names(source: &SourceFile) -> Vec<String> {
    let says_nothing = |name: &str| {
        let empty = ["manager", "managers", "helper", "helpers", "util", "utils", "utility", "utilities", "common"];
        name.split('_').any(|word| empty.contains(&word))
    };
    let ends_so =
        |name: &str| ["Manager", "Helper", "Helpers", "Util", "Utils", "Common"].iter().any(|it| name.ends_with(it));
    let file = source.path.trim_end_matches(".rs").split('/').find(|part| says_nothing(part));
    let file = file.map(|part| source.at(1, &format!("a file in `{part}`: name what it keeps")));
    let pairs = source.tokens.windows(2).filter_map(|pair| match pair {
        [(line, keyword), (_, name)] => Some((*line, keyword.as_str(), name)),
        _ => None,
    });
    let named = pairs.filter(|(_, keyword, name)| match *keyword {
        "mod" => says_nothing(name),
        "struct" | "enum" | "trait" | "type" => ends_so(name),
        _ => false,
    });
    let named = named.map(|(line, keyword, name)| source.at(line, &format!("`{keyword} {name}`: name what it is")));
    file.into_iter().chain(named).collect()
}

/// Only the guards make conditions, and only the store's client sends them.
fn conditions(source: &SourceFile) -> Vec<String> {
    // Concatenated, so that this file does not contain them.
    let texts =
        [concat!("attribute_", "exists("), concat!("attribute_not_", "exists("), concat!("condition_", "expression")];
    // The language of a manifest's conditions, and what evaluates a guard's text: they are never sent. A bench compares
    // the store with a call that is written by hand. What is printed for applications only reads.
    let language = [
        "benches/call.rs",
        "benches/wire/by_hand.rs",
        "shared/derive/src/access.rs",
        "shared/derive/src/condition.rs",
        "shared/manifest/src/",
        "tests/simulation/drawn/toml.rs",
        "tests/simulation/judge.rs",
        "tools/types/runtime/",
    ];
    let is_language = language.iter().any(|begin| source.path.starts_with(begin));
    if is_language || source.path == "shared/derive/src/guard.rs" || source.path.starts_with("shared/store/src/dynamo")
    {
        return Vec::new();
    }
    let found = source
        .tokens
        .iter()
        .flat_map(|(line, token)| texts.iter().filter(|text| token.contains(**text)).map(move |text| (line, text)));
    found
        .map(|(line, text)| source.at(*line, &format!("`{text}`: conditions are variants of the guard enum")))
        .collect()
}

/// Only the files `dynamo*` of the store name the SDK.
fn sdk_in_the_store(source: &SourceFile) -> Vec<String> {
    if !source.path.starts_with("shared/store/src/") || source.path.starts_with("shared/store/src/dynamo") {
        return Vec::new();
    }
    let naming = source.tokens.iter().filter(|(_, token)| token.starts_with("aws_sdk_"));
    naming.map(|(line, _)| source.at(*line, "names the SDK: only src/dynamo* may")).collect()
}

/// The parts of the engine in rows, the lowest first. A part may name the parts of the rows above its own in this list.
const ENGINE_PARTS: [&str; 15] = [
    "attribute clock limits protocol record",
    "backoff",
    "requests input ledger",
    "account corrections registry",
    "context",
    "loss park publishing reading",
    "plan",
    "count job",
    "look",
    "fan_out",
    "jobs",
    "batch",
    "redrive",
    "sweep",
    "bookkeeping inspect",
];

/// The parts of the engine depend one way. A part is a file of `src` with the folder of the same name.
fn engine_parts(source: &SourceFile) -> Vec<String> {
    let Some(path) = source.path.strip_prefix("shared/engine/src/").filter(|path| *path != "lib.rs") else {
        return Vec::new();
    };
    let row_of = |part: &str| ENGINE_PARTS.iter().position(|row| row.split(' ').any(|it| it == part));
    let part = path.split('/').next().unwrap_or_default().trim_end_matches(".rs");
    let Some(row) = row_of(part) else {
        return vec![source.at(1, &format!("the part `{part}` has no row in the order of the engine's parts"))];
    };
    let named = source.crate_paths().into_iter().filter(|(line, _)| !source.is_test_line(*line));
    let against = named.filter(|(_, other)| *other != part && row_of(other).is_none_or(|of_other| of_other >= row));
    against.map(|(line, other)| source.at(line, &format!("`{part}` must not depend on `{other}`"))).collect()
}

// ---- rules for one manifest ----

/// The crates of the workspace, each with the crates that it may depend on. `functions` is every crate in that folder.
const DIRECTION: [(&str, &str); 17] = [
    ("keys", ""),
    ("derive", "keys"),
    ("store", "derive keys"),
    ("engine", "store derive keys"),
    ("catalogue", "manifest derive"),
    ("manifest", "derive keys"),
    ("queries", "catalogue store derive keys"),
    ("table-design", "design catalogue queries store derive keys"),
    ("infra", "stream engine store derive keys"),
    ("design", "infra engine store derive keys"),
    ("stream", "keys"),
    ("types", "derive keys"),
    ("draft", "types manifest derive keys"),
    ("operate", "stream manifest engine store derive keys"),
    ("console", "operate design engine store derive keys"),
    ("functions", "manifest engine catalogue store derive keys"),
    ("cli", "console draft operate types stream functions design infra manifest engine catalogue store derive keys"),
];

/// The crates for any table. They never depend on the shipped manifest, not even in tests.
const MACHINERY: [&str; 5] = ["keys", "derive", "store", "engine", "manifest"];

/// The crates of the shipped table beside its manifest. They and tests alone may depend on these; the product knows its
/// example by the embedded manifest.
const EXAMPLE: [&str; 2] = ["queries", "table-design"];

/// A manifest of the workspace.
struct Manifest {
    /// From the workspace's root, with `/`.
    path: String,
    document: DocumentMut,
}

impl Manifest {
    fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), document: text.parse().unwrap_or_else(|error| panic!("{path}: {error}")) }
    }

    /// Names of its dependencies, and whether shipped code has them; otherwise only tests or the build have them.
    fn dependencies(&self) -> Vec<(String, bool)> {
        let mut tables: Vec<&dyn TableLike> = vec![self.document.as_table()];
        let targets = self.document.get("target").and_then(Item::as_table_like);
        tables.extend(targets.iter().flat_map(|targets| targets.iter()).filter_map(|(_, it)| it.as_table_like()));
        let mut found = Vec::new();
        for (section, kind) in tables.iter().flat_map(|table| table.iter()) {
            let listed = kind.as_table_like().filter(|_| section.ends_with("dependencies") && section != "workspace");
            for (alias, value) in listed.iter().flat_map(|listed| listed.iter()) {
                let package = value.get("package").and_then(Item::as_str);
                found.push((package.unwrap_or(alias).to_owned(), section == "dependencies"));
            }
        }
        found
    }
}

/// The crate of a manifest: its folder, or `functions` for every crate in that folder.
fn crate_of(path: &str) -> &str {
    let mut parts = path.split('/');
    match (parts.next(), parts.next()) {
        (Some("examples"), Some(_)) => parts.next().unwrap_or_default(),
        (Some("shared" | "tools"), Some(name)) => name,
        (Some(folder), _) => folder,
        (None, _) => "",
    }
}

/// Dependencies between the workspace's crates run one way.
fn direction(manifest: &Manifest, workspace: &[String]) -> Vec<String> {
    let name = crate_of(&manifest.path);
    if ["benches", "tests"].contains(&name) {
        return Vec::new();
    }
    let Some((_, allowed)) = DIRECTION.iter().find(|(crate_name, _)| *crate_name == name) else {
        return vec![format!("{}: the crate `{name}` has no place in the dependency direction", manifest.path)];
    };
    let ours = manifest.dependencies().into_iter().filter(|(dependency, _)| workspace.contains(dependency));
    let against = ours.filter(|(dependency, is_shipped)| {
        let is_of_example = EXAMPLE.contains(&dependency.as_str()) && !manifest.path.starts_with("examples/");
        let is_manifest = MACHINERY.contains(&name) && dependency == "catalogue";
        *is_shipped && !allowed.split(' ').any(|it| it == dependency) || is_of_example || is_manifest
    });
    against.map(|(it, _)| format!("{}: `{name}` must not depend on `{it}`", manifest.path)).collect()
}

/// Only the outer crates depend on AWS's crates and on the embedded database.
fn platform(manifest: &Manifest) -> Vec<String> {
    let name = crate_of(&manifest.path);
    let mut violations = Vec::new();
    for (dependency, _) in manifest.dependencies().iter().filter(|(_, is_shipped)| *is_shipped) {
        let crate_name = dependency.replace('_', "-");
        let aws = crate_name.starts_with("aws-") || crate_name == "lambda-runtime";
        if aws && !["store", "stream", "functions", "cli", "queries", "tests"].contains(&name) {
            violations.push(format!("{}: `{name}` must not name the AWS crate `{dependency}`", manifest.path));
        }
        if crate_name.starts_with("dynoxide") && !["cli", "tests"].contains(&name) {
            let why = "it is for the command line and tests";
            violations.push(format!("{}: `{name}` must not name `{dependency}`: {why}", manifest.path));
        }
    }
    violations
}

/// The release profile unwinds. cargo-lambda builds with `panic = "abort"` by default; one record that panics would
/// then end the environment and its whole batch.
fn release_unwinds(manifest: &Manifest) -> Vec<String> {
    let profile = manifest.document.get("profile").and_then(|profiles| profiles.get("release"));
    let panic = profile.and_then(|profile| profile.get("panic")).and_then(Item::as_str);
    let wrong = (panic != Some("unwind")).then(|| "`[profile.release]` must say `panic = \"unwind\"`".to_owned());
    wrong.into_iter().collect()
}

// ---- the workspace ----

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace holds this package")
}

/// Reads the files of the workspace's crates with this ending, in the order of their paths.
fn files<T>(ending: &str, read: impl Fn(&str, &str) -> T) -> Vec<T> {
    let mut found = BTreeMap::new();
    let mut folders: Vec<_> =
        ["benches", "examples", "functions", "shared", "tests", "tools"].map(|folder| root().join(folder)).to_vec();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the workspace") {
            let path = entry.expect("an entry of a folder").path();
            if path.is_dir() && !path.ends_with("target") {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                let text = fs::read_to_string(&path).expect("a source is text");
                let relative = path.strip_prefix(root()).expect("it is below the root");
                found.insert(relative.to_string_lossy().replace('\\', "/"), text);
            }
        }
    }
    assert!(found.len() > 5, "the workspace's files were not found");
    found.iter().map(|(path, text)| read(path, text)).collect()
}

#[track_caller]
fn none(violations: &[String]) {
    assert!(violations.is_empty(), "{} violations:\n{}", violations.len(), violations.join("\n"));
}

static SOURCES: LazyLock<Vec<SourceFile>> = LazyLock::new(|| files(".rs", SourceFile::new));

static MANIFESTS: LazyLock<Vec<Manifest>> = LazyLock::new(|| files("/Cargo.toml", Manifest::new));

#[track_caller]
fn hold(rule: impl Fn(&SourceFile) -> Vec<String>) {
    none(&SOURCES.iter().flat_map(rule).collect::<Vec<_>>());
}

#[test]
fn no_file_is_too_long() {
    hold(file_lengths);
}

#[test]
fn no_test_is_ignored_expects_a_panic_or_sleeps() {
    hold(tests);
}

#[test]
fn no_name_says_nothing() {
    hold(names);
}

#[test]
fn conditions_are_made_by_the_guards_alone() {
    hold(conditions);
}

#[test]
fn the_store_names_the_sdk_in_one_place() {
    hold(sdk_in_the_store);
}

#[test]
fn dependencies_run_one_way() {
    let names = MANIFESTS.iter().filter_map(|manifest| manifest.path.rsplit('/').nth(1)).map(str::to_owned);
    let workspace: Vec<String> = names.collect();
    none(&MANIFESTS.iter().flat_map(|manifest| direction(manifest, &workspace)).collect::<Vec<_>>());
    hold(engine_parts);
}

#[test]
fn the_platforms_crates_stay_at_the_edges() {
    none(&MANIFESTS.iter().flat_map(platform).collect::<Vec<_>>());
}

#[test]
fn what_is_deployed_unwinds() {
    let text = fs::read_to_string(root().join("Cargo.toml")).expect("the workspace has a manifest");
    none(&release_unwinds(&Manifest::new("Cargo.toml", &text)));
}

// ---- tests of the rules ----

/// Compares the violations in a sample with these, which have no path.
#[track_caller]
fn check(rule: impl Fn(&SourceFile) -> Vec<String>, path: &str, text: &str, violations: &[&str]) {
    let wanted: Vec<String> = violations.iter().map(|violation| format!("{path}:{violation}")).collect();
    assert_eq!(rule(&SourceFile::new(path, text)), wanted, "{text}");
}

#[test]
fn the_rule_on_files_counts_without_tests() {
    let lines = |n: usize| "const A: u8 = 1;\n".repeat(n);
    let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", lines(400));
    let path = "shared/keys/src/a.rs";
    check(file_lengths, path, &(lines(600) + &tests), &[]);
    let too_long = ["601: 601 lines without its tests; the limit is 600"];
    check(file_lengths, path, &(lines(601) + &tests), &too_long);
    check(file_lengths, "tests/a.rs", &lines(1_200), &[]);
    check(file_lengths, "tests/a.rs", &lines(1_201), &["1201: 1201 lines in all; the limit is 1200"]);
    check(file_lengths, "functions/src/bin/main.rs", &lines(31), &["31: 31 lines of wiring; the limit is 30"]);
}

#[test]
fn the_rule_on_tests_finds_what_is_off_and_what_sleeps() {
    let text = "#[ignore]\nfn a() {}\nproptest! {\n#[should_panic(expected = \"x\")]\nfn b() {}\n}\n// #[ignore]\n";
    let off = ["1: `#[ignore]`: a test runs or is not there", "4: `#[should_panic]`: return the error and look at it"];
    check(tests, "shared/keys/src/a.rs", text, &off);

    let text = "fn a() {\n    sleep(b);\n}\n#[cfg(test)]\nmod tests {\n    fn sleep(c: D) {\n        \
        tokio::time::sleep(b).await;\n        clock.sleep(b);\n    }\n}\n#[tokio::test]\nfn e() { sleep(f) }\n";
    let sleeps = [2, 7, 12].map(|line| format!("{line}: a test sleeps: wait for what it waits for"));
    let [first, second, third] = sleeps.each_ref().map(String::as_str);
    check(tests, "shared/keys/src/a.rs", text, &[second]);
    check(tests, "tests/a.rs", text, &[first, second, third]);
    check(tests, "tests/a.rs", &text.replace("test]", "test(start_paused = true)]"), &[]);
    check(
        tests,
        "tests/a.rs",
        &format!("{text}#[tokio::test(start_paused = true)]\nfn g() {{}}\n"),
        &[first, second, third],
    );
    check(
        tests,
        "tools/stream/src/tests/a.rs",
        text,
        &["11: the time of this test is not virtual: `start_paused = true`"],
    );
}

#[test]
fn the_rules_on_names_find_modules_types_and_files() {
    let text = "mod common;\npub struct LaneManager {\n    manager_id: u8,\n}\nmod test_helpers {}\ntype Utils = u8;\n\
        struct CommonPrefix;\n";
    let found = ["1: `mod common`", "2: `struct LaneManager`", "5: `mod test_helpers`", "6: `type Utils`"];
    let found = found.map(|it| format!("{it}: name what it is"));
    check(names, "shared/keys/src/a.rs", text, &found.each_ref().map(String::as_str));
    check(names, "tests/common/a.rs", "", &["1: a file in `common`: name what it keeps"]);
}

#[test]
fn the_rules_on_places_let_the_guards_and_the_sdks_own_files_pass() {
    let exists = concat!("attribute_", "exists(");
    let text = format!("/// {exists}\nfn a() {{\n    format!(\"{exists}PK)\"); // {exists}\n}}\n");
    let violation = format!("3: `{exists}`: conditions are variants of the guard enum");
    check(conditions, "shared/engine/src/a.rs", &text, &[&violation]);
    check(conditions, "shared/derive/src/guard.rs", &text, &[]);
    check(conditions, "shared/store/src/dynamo/write.rs", &text, &[]);

    let text = "use aws_sdk_dynamodb::Client;\n";
    check(sdk_in_the_store, "shared/store/src/memory.rs", text, &["1: names the SDK: only src/dynamo* may"]);
    check(sdk_in_the_store, "shared/store/src/dynamo.rs", text, &[]);
    check(sdk_in_the_store, "tools/stream/src/a.rs", text, &[]);
}

#[test]
fn the_rule_on_the_engines_parts_finds_arrows_that_run_up() {
    let text = "use crate::{\n    batch::Engine,\n    context::{Context, plan},\n    look::{Looker, listing::{self}},\n};\n\
        pub(in crate::sweep) fn a() -> crate::count::Counter {\n    crate::job::Job\n}\n\
        #[cfg(test)]\nmod tests {\n    use crate::redrive;\n}\n";
    let not = |line: usize, part: &str| format!("{line}: `count` must not depend on `{part}`");
    let found = [not(2, "batch"), not(4, "look"), not(7, "job")];
    check(engine_parts, "shared/engine/src/count/a.rs", text, &found.each_ref().map(String::as_str));
    check(engine_parts, "shared/engine/src/inspect.rs", text, &[]);
    check(engine_parts, "shared/store/src/count.rs", text, &[]);
    let unknown = ["1: the part `misc` has no row in the order of the engine's parts"];
    check(engine_parts, "shared/engine/src/misc.rs", text, &unknown);
}

#[test]
fn the_rules_on_manifests_read_every_form_of_a_dependency() {
    let workspace = ["keys", "derive", "store", "engine", "queries", "catalogue", "stream"].map(str::to_owned);
    let against = |path, text| direction(&Manifest::new(path, text), &workspace);
    let text = "[package]\nname = \"derive\"\n\n[dependencies]\nkeys.workspace = true\nserde = \"1\"\n\
        store = { path = \"../store\" }\nx = { package = \"engine\", path = \"../engine\" }\n\n\
        [dependencies.catalogue]\nworkspace = true\n\n[dev-dependencies]\nqueries.workspace = true\n\
        stream.workspace = true\n\n[target.'cfg(unix)'.dependencies]\nstream.workspace = true\n";
    let path = "shared/derive/Cargo.toml";
    let not = |name| format!("{path}: `derive` must not depend on `{name}`");
    assert_eq!(against(path, text), ["store", "engine", "catalogue", "queries", "stream"].map(not));
    let functions = "[dependencies]\nengine.workspace = true\nstream.workspace = true\n";
    let violation = "functions/Cargo.toml: `functions` must not depend on `stream`";
    assert_eq!(against("functions/Cargo.toml", functions), [violation]);
    let violation = "tools/cli/Cargo.toml: `cli` must not depend on `queries`";
    assert_eq!(against("tools/cli/Cargo.toml", "[dev-dependencies]\nqueries.workspace = true\n"), [violation]);
    let violation = "shared/misc/Cargo.toml: the crate `misc` has no place in the dependency direction";
    assert_eq!(against("shared/misc/Cargo.toml", ""), [violation]);

    let text = "[dependencies]\naws-config.workspace = true\naws_lambda_events = \"1\"\nlambda_runtime = \"1\"\n\
        dynoxide-rs = \"3\"\n\n[dev-dependencies]\naws-sdk-dynamodb.workspace = true\n";
    let found = |path| platform(&Manifest::new(path, text)).len();
    assert_eq!(["shared/engine/Cargo.toml", "functions/Cargo.toml", "tools/cli/Cargo.toml"].map(found), [4, 1, 0]);

    let aborts = |text| release_unwinds(&Manifest::new("Cargo.toml", text)).len();
    assert_eq!(aborts("[profile.release]\nstrip = true\npanic = \"unwind\"\n"), 0);
    assert_eq!(aborts("[profile.release]\npanic = \"abort\"\n"), 1);
    assert_eq!(aborts("[profile.release]\n[profile.dev]\npanic = \"unwind\"\n"), 1);
}
