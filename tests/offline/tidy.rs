//! The house style, as far as a machine can hold it.
//!
//! Every rule takes text and gives violations, each with file and line, so that it can be shown to fail: the tests at
//! the end run every rule over the workspace, and over a small bad sample.
//! The text is looked at as `rustfmt` leaves it, with comments and the insides of literals blanked, so that a sample in
//! a string, or a word in a comment, is no violation.

use std::{fs, path::Path};

/// Lines of a source file without its `#[cfg(test)]` module. Source: the house style.
const FILE_LINES_MAX: usize = 300;

/// Lines of a `main.rs`, which is wiring only. Source: the house style.
const MAIN_LINES_MAX: usize = 30;

/// Lines of a function. Source: the house style.
const FUNCTION_LINES_MAX: usize = 70;

/// Lines of any source file, tests included. Source: the house style.
const SOURCE_LINES_MAX: usize = 1_200;

/// A file of the workspace.
struct Source {
    /// From the workspace's root, with `/`.
    path: String,
    text: String,
    /// The text without comments, line by line.
    uncommented: Vec<String>,
    /// The text without comments and without the insides of literals, line by line.
    code: Vec<String>,
}

impl Source {
    fn new(path: &str, text: &str) -> Self {
        let lines = |literals| blanked(text, literals).lines().map(str::to_owned).collect();
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
            uncommented: lines(Literals::Kept),
            code: lines(Literals::Blanked),
        }
    }

    /// A violation at a line, counted from 0.
    fn at(&self, line: usize, what: &str) -> String {
        format!("{}:{}: {what}", self.path, line + 1)
    }

    fn is_shipped(&self) -> bool {
        ["examples/", "functions/", "shared/", "tools/"].iter().any(|folder| self.path.starts_with(folder))
            && self.path.contains("/src/")
    }

    fn is_test(&self) -> bool {
        self.path.starts_with("tests/") || self.path.contains("/tests/") || self.path.ends_with("/tests.rs")
    }

    /// For each line: is it in an item that is compiled for tests only?
    fn test_lines(&self) -> Vec<bool> {
        let mut marks = vec![self.is_test(); self.code.len()];
        for (start, line) in self.code.iter().enumerate() {
            if line.trim() == "#[cfg(test)]" {
                let end = self.item_end(start + 1);
                marks[start..=end].fill(true);
            }
        }
        marks
    }

    /// The last line of the item that starts here, with the attributes before it.
    fn item_end(&self, start: usize) -> usize {
        let last = self.code.len() - 1;
        let Some(head) = (start..=last).find(|&line| !self.code[line].trim_start().starts_with("#[")) else {
            return last;
        };
        let margin = indent(&self.code[head]);
        let mut in_body = false;
        for line in head..=last {
            let text = self.code[line].trim_end();
            let at_margin = line == head || indent(text) == margin && !text.is_empty();
            let ends = if at_margin { text.ends_with(['}', ';']) } else { text.ends_with(';') && !in_body };
            if ends {
                return line;
            }
            in_body |= text.ends_with('{');
        }
        last
    }
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

// ---- text without comments and literals ----

#[derive(Clone, Copy, PartialEq)]
enum Literals {
    Kept,
    Blanked,
}

/// The text with spaces for its comments and, where asked, for the insides of its literals; lines stay where they are.
fn blanked(text: &str, literals: Literals) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        let (len, kind) = token(rest, before);
        let (taken, after) = rest.split_at(len);
        if kind == Token::Code || kind == Token::Literal && literals == Literals::Kept {
            out.push_str(taken);
        } else {
            out.extend(taken.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        }
        before = if kind == Token::Code { first } else { ' ' };
        rest = after;
    }
    out
}

#[derive(Clone, Copy, PartialEq)]
enum Token {
    Code,
    Comment,
    Literal,
}

/// Length in bytes and sort of what the text starts with, which is not empty.
fn token(text: &str, before: char) -> (usize, Token) {
    let first = text.chars().next().map_or(1, char::len_utf8);
    if text.starts_with("//") {
        return (text.find('\n').unwrap_or(text.len()), Token::Comment);
    }
    if text.starts_with("/*") {
        return (block_comment_len(text), Token::Comment);
    }
    if text.starts_with('"') {
        return (quoted_len(text, '"'), Token::Literal);
    }
    let word_before = before.is_alphanumeric() || before == '_';
    if !word_before && let Some(len) = raw_string_len(text) {
        return (len, Token::Literal);
    }
    // What follows a `'` tells a character from a lifetime.
    let mut following = text.chars().skip(1);
    match (text.starts_with('\''), following.next(), following.next()) {
        (true, Some('\\'), _) | (true, Some(_), Some('\'')) => (quoted_len(text, '\''), Token::Literal),
        _ => (first, Token::Code),
    }
}

fn block_comment_len(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        let step = if rest.starts_with(b"/*") || rest.starts_with(b"*/") { 2 } else { 1 };
        depth = if rest.starts_with(b"/*") { depth + 1 } else { depth };
        depth = if rest.starts_with(b"*/") { depth - 1 } else { depth };
        at += step;
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

fn quoted_len(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if c == quote && !escaped {
            return at + c.len_utf8();
        }
        escaped = c == '\\' && !escaped;
    }
    text.len()
}

fn raw_string_len(text: &str) -> Option<usize> {
    let body = ["r", "br", "cr"].iter().find_map(|mark| text.strip_prefix(mark))?;
    let unhashed = body.trim_start_matches('#');
    let hashes = "#".repeat(body.len() - unhashed.len());
    let inside = unhashed.strip_prefix('"')?;
    let end = format!("\"{hashes}");
    let opening_len = text.len() - inside.len();
    Some(inside.find(&end).map_or(text.len(), |at| opening_len + at + end.len()))
}

// ---- rules on one source ----

/// No file is longer than it may be.
fn file_lengths(source: &Source) -> Vec<String> {
    let n_lines = source.text.lines().count();
    let over = |limit: usize, n: usize, what: &str| {
        (n > limit).then(|| source.at(limit, &format!("{n} lines{what}; the limit is {limit}")))
    };
    let mut violations: Vec<String> = over(SOURCE_LINES_MAX, n_lines, " in all").into_iter().collect();
    if source.path.ends_with("/main.rs") && !source.path.starts_with("tests/") || source.path.contains("/src/bin/") {
        violations.extend(over(MAIN_LINES_MAX, n_lines, " of wiring"));
    }
    if source.is_shipped() && !source.is_test() {
        let n_shipped = source.test_lines().iter().filter(|&&test| !test).count();
        violations.extend(over(FILE_LINES_MAX, n_shipped, " without its tests"));
    }
    violations
}

/// No function is longer than it may be.
fn function_lengths(source: &Source) -> Vec<String> {
    let functions = source.code.iter().enumerate().filter_map(|(line, text)| Some((line, function_name(text)?)));
    let too_long = functions.filter_map(|(line, name)| {
        let n_lines = source.item_end(line) + 1 - line;
        let what = format!("function `{name}` has {n_lines} lines; the limit is {FUNCTION_LINES_MAX}");
        (n_lines > FUNCTION_LINES_MAX).then(|| source.at(line, &what))
    });
    too_long.collect()
}

/// The name of the function that starts on this line.
fn function_name(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let qualified = before.split_whitespace().all(|word| {
        ["pub", "async", "const", "unsafe", "extern", "default", "\""].contains(&word)
            || word.starts_with("pub(")
            || word.starts_with('"')
    });
    let name = after.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    (qualified && !name.is_empty()).then_some(name)
}

/// No test is switched off or expects a panic, and no lint is allowed without a reason.
fn attributes(source: &Source) -> Vec<String> {
    let mut violations = Vec::new();
    for (line, text) in source.code.iter().enumerate() {
        let opens = |attribute: &str| {
            ["#[", "#!["].iter().any(|open| text.trim_start().starts_with(&format!("{open}{attribute}")))
        };
        if opens("ignore") {
            violations.push(source.at(line, "`#[ignore]`: a test runs or is not there"));
        }
        if opens("should_panic") {
            violations.push(source.at(line, "`#[should_panic]`: return the error and look at it"));
        }
        if opens("allow(") {
            let whole = source.code[line..].join("\n");
            let attribute = whole.split_once(']').map_or(whole.as_str(), |(attribute, _)| attribute);
            if !attribute.contains("reason =") {
                violations.push(source.at(line, "bare `#[allow(…)]`: `#[expect(…, reason = \"…\")]` instead"));
            }
        }
    }
    violations
}

/// No test sleeps by the wall clock. A method is the test's own clock and may; so may tokio's timer where time is
/// virtual.
fn sleeps(source: &Source, virtual_time: bool) -> Vec<String> {
    let marks = source.test_lines();
    let sleeping = source.code.iter().enumerate().filter(|(line, text)| {
        let by_the_wall_clock = !virtual_time || text.contains("thread::");
        marks[*line] && calls_sleep(text) && by_the_wall_clock
    });
    sleeping.map(|(line, _)| source.at(line, "a test sleeps: wait for what it waits for")).collect()
}

fn calls_sleep(line: &str) -> bool {
    ["sleep(", "sleep_until("].iter().any(|call| {
        line.match_indices(call).any(|(at, _)| {
            let before = &line[..at];
            let within_word = before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
            !within_word && !before.ends_with('.') && !before.ends_with("fn ")
        })
    })
}

/// Do the tests of this file, or where it has none those of its folder, all run with tokio's clock paused?
fn in_virtual_time(source: &Source, all: &[Source]) -> bool {
    let folder = |path: &str| path.rsplit_once('/').map(|(folder, _)| folder.to_owned());
    let tests = |source: &Source| -> Vec<bool> {
        let tests = source.code.iter().filter(|line| line.contains("#[tokio::test"));
        tests.map(|line| line.contains("start_paused = true")).collect()
    };
    let own = tests(source);
    let beside = all.iter().filter(|other| folder(&other.path) == folder(&source.path)).flat_map(tests);
    let tests = if own.is_empty() { beside.collect() } else { own };
    !tests.is_empty() && tests.into_iter().all(|paused| paused)
}

/// Nothing is called by a name that says nothing.
fn names(source: &Source) -> Vec<String> {
    let mut violations = Vec::new();
    let file = source.path.trim_end_matches(".rs").split('/').find(|part| is_empty_module_name(part));
    violations.extend(file.map(|part| source.at(0, &format!("a file in `{part}`: name what it keeps"))));
    for (line, text) in source.code.iter().enumerate() {
        let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        for pair in words.windows(2) {
            let empty = match pair[0] {
                "mod" => is_empty_module_name(pair[1]),
                "struct" | "enum" | "trait" | "type" | "union" => is_empty_type_name(pair[1]),
                _ => false,
            };
            if empty {
                violations.push(source.at(line, &format!("`{} {}`: name what it is", pair[0], pair[1])));
            }
        }
    }
    violations
}

fn is_empty_module_name(name: &str) -> bool {
    let empty = ["manager", "managers", "helper", "helpers", "util", "utils", "utility", "utilities", "common"];
    name.split('_').any(|word| empty.contains(&word))
}

fn is_empty_type_name(name: &str) -> bool {
    ["Manager", "Helper", "Helpers", "Util", "Utils", "Common"].iter().any(|word| name.ends_with(word))
}

/// Conditions are made in one place, and sent by one.
fn conditions(source: &Source) -> Vec<String> {
    // Put together, so that this file does not hold them.
    let texts =
        [concat!("attribute_", "exists("), concat!("attribute_not_", "exists("), concat!("condition_", "expression")];
    if source.path == "shared/derive/src/guard.rs" || source.path.starts_with("shared/store/src/dynamo") {
        return Vec::new();
    }
    let mut violations = Vec::new();
    for (line, text) in source.uncommented.iter().enumerate() {
        for found in texts.iter().filter(|condition| text.contains(**condition)) {
            violations.push(source.at(line, &format!("`{found}`: conditions are variants of the guard enum")));
        }
    }
    violations
}

/// The rest of the store knows no SDK.
fn sdk_in_the_store(source: &Source) -> Vec<String> {
    if !source.path.starts_with("shared/store/src/") || source.path.starts_with("shared/store/src/dynamo") {
        return Vec::new();
    }
    let naming = source.code.iter().enumerate().filter(|(_, text)| text.contains("aws_sdk_"));
    naming.map(|(line, _)| source.at(line, "names the SDK: only src/dynamo* may")).collect()
}

// ---- rules on one manifest ----

/// Crates of the workspace, and which of them each may depend on. `functions` is every crate in that folder.
const DIRECTION: [(&str, &[&str]); 12] = [
    ("keys", &[]),
    ("derive", &["keys"]),
    ("store", &["derive", "keys"]),
    ("engine", &["store", "derive", "keys"]),
    ("entities", &["keys"]),
    ("catalogue", &["derive", "entities", "keys"]),
    ("manifest", &["derive", "keys"]),
    ("queries", &["entities", "store", "derive", "keys"]),
    ("design", &["engine", "catalogue", "queries", "store", "derive", "entities", "keys"]),
    ("stream", &["engine", "catalogue", "queries", "store", "derive", "entities", "keys"]),
    ("functions", &["manifest", "engine", "catalogue", "queries", "store", "derive", "entities", "keys"]),
    (
        "cli",
        &[
            "stream",
            "functions",
            "design",
            "manifest",
            "engine",
            "catalogue",
            "queries",
            "store",
            "derive",
            "entities",
            "keys",
        ],
    ),
];

/// Machinery, which somebody else's table uses too: it names the shipped one nowhere, tests included.
const MACHINERY: [&str; 5] = ["keys", "derive", "store", "engine", "manifest"];

/// A dependency as a manifest names it.
#[derive(Debug, PartialEq)]
struct Dependency {
    /// Line of the manifest, counted from 0.
    line: usize,
    name: String,
    /// Is it in `[dependencies]`, rather than for tests or the build?
    shipped: bool,
}

/// A line scan, enough for manifests that are written by hand: `name.workspace = true`, `name = …`, and tables.
fn dependencies(source: &Source) -> Vec<Dependency> {
    let mut found = Vec::new();
    let mut section = "";
    for (line, text) in source.text.lines().enumerate() {
        let text = text.trim();
        if let Some(header) = text.strip_prefix('[') {
            section = header.trim_end_matches(']');
            if let Some((table, name)) = section.rsplit_once('.')
                && table.ends_with("dependencies")
            {
                let shipped = is_shipped_table(table);
                found.push(Dependency { line, name: name.trim_matches('"').to_owned(), shipped });
            }
            continue;
        }
        let Some((key, value)) = text.split_once('=').filter(|_| !text.starts_with('#')) else { continue };
        let renamed = value.split_once("package = \"").and_then(|(_, after)| after.split_once('"'));
        let alias = key.trim().split('.').next().unwrap_or_default().trim_matches('"');
        let name = renamed.map_or(alias, |(name, _)| name).to_owned();
        if section.ends_with("dependencies") {
            found.push(Dependency { line, name, shipped: is_shipped_table(section) });
        }
    }
    found
}

fn is_shipped_table(section: &str) -> bool {
    section == "dependencies" || section.starts_with("target.") && section.ends_with(".dependencies")
}

/// The crate of a manifest: its folder, or `functions` for all that are in there.
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
fn direction(manifest: &Source, workspace: &[String]) -> Vec<String> {
    let name = crate_of(&manifest.path);
    if ["benches", "tests"].contains(&name) {
        return Vec::new();
    }
    let Some((_, allowed)) = DIRECTION.iter().find(|(crate_name, _)| *crate_name == name) else {
        return vec![manifest.at(0, &format!("the crate `{name}` has no place in the dependency direction"))];
    };
    let ours = dependencies(manifest).into_iter().filter(|dependency| workspace.contains(&dependency.name));
    let against = ours.filter(|dependency| {
        let shipped_table = ["entities", "catalogue"].contains(&dependency.name.as_str());
        let against = dependency.shipped && !allowed.contains(&dependency.name.as_str());
        against || MACHINERY.contains(&name) && shipped_table
    });
    against.map(|it| manifest.at(it.line, &format!("`{name}` must not depend on `{}`", it.name))).collect()
}

/// The platform's crates stay at the edges.
fn platform(manifest: &Source) -> Vec<String> {
    let name = crate_of(&manifest.path);
    let mut violations = Vec::new();
    for dependency in dependencies(manifest).iter().filter(|dependency| dependency.shipped) {
        let crate_name = dependency.name.replace('_', "-");
        let aws = crate_name.starts_with("aws-") || crate_name == "lambda-runtime";
        if aws && !["store", "stream", "functions", "cli", "tests"].contains(&name) {
            let what = format!("`{name}` must not name the AWS crate `{}`", dependency.name);
            violations.push(manifest.at(dependency.line, &what));
        }
        if crate_name.starts_with("dynoxide") && !["cli", "tests"].contains(&name) {
            let what = format!("`{name}` must not name `{}`: it is for the command line and tests", dependency.name);
            violations.push(manifest.at(dependency.line, &what));
        }
    }
    violations
}

/// The release profile says that it unwinds. cargo-lambda builds with `panic = "abort"` where nothing is said, and then
/// one record that panics would take the environment and its whole batch along.
fn release_unwinds(manifest: &Source) -> Vec<String> {
    let section = manifest.text.lines().skip_while(|line| *line != "[profile.release]").skip(1);
    if section.take_while(|line| !line.starts_with('[')).any(|line| line == "panic = \"unwind\"") {
        return Vec::new();
    }
    vec![manifest.at(0, "`[profile.release]` must say `panic = \"unwind\"`, or cargo-lambda aborts")]
}

// ---- the workspace ----

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace holds this package")
}

/// The files below the workspace's crates whose name ends so.
fn files(ending: &str) -> Vec<Source> {
    let mut found = Vec::new();
    let mut folders: Vec<_> =
        ["benches", "examples", "functions", "shared", "tests", "tools"].map(|folder| root().join(folder)).to_vec();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the workspace") {
            let path = entry.expect("an entry of a folder").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                let text = fs::read_to_string(&path).expect("a source is text");
                let relative = path.strip_prefix(root()).expect("it is below the root");
                found.push(Source::new(&relative.to_string_lossy().replace('\\', "/"), &text));
            }
        }
    }
    found.retain(|source| !source.path.contains("/target/"));
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Names of the workspace's crates: their folders.
fn workspace(manifests: &[Source]) -> Vec<String> {
    manifests.iter().filter_map(|manifest| manifest.path.rsplit('/').nth(1)).map(str::to_owned).collect()
}

#[track_caller]
fn hold(files: &[Source], rule: impl Fn(&Source) -> Vec<String>) {
    assert!(files.len() > 5, "the workspace's files were not found");
    let violations: Vec<String> = files.iter().flat_map(rule).collect();
    assert!(violations.is_empty(), "{} violations:\n{}", violations.len(), violations.join("\n"));
}

#[test]
fn no_file_is_too_long() {
    hold(&files(".rs"), file_lengths);
}

#[test]
fn no_function_is_too_long() {
    hold(&files(".rs"), function_lengths);
}

#[test]
fn no_test_is_ignored_or_panics_and_no_lint_is_allowed_in_silence() {
    hold(&files(".rs"), attributes);
}

#[test]
fn no_test_sleeps() {
    let files = files(".rs");
    hold(&files, |source| sleeps(source, in_virtual_time(source, &files)));
}

#[test]
fn no_name_says_nothing() {
    hold(&files(".rs"), names);
}

#[test]
fn conditions_are_made_by_the_guards_alone() {
    hold(&files(".rs"), conditions);
}

#[test]
fn the_store_names_the_sdk_in_one_place() {
    hold(&files(".rs"), sdk_in_the_store);
}

#[test]
fn dependencies_run_one_way() {
    let manifests = files("/Cargo.toml");
    let workspace = workspace(&manifests);
    hold(&manifests, |manifest| direction(manifest, &workspace));
}

#[test]
fn the_platforms_crates_stay_at_the_edges() {
    hold(&files("/Cargo.toml"), platform);
}

#[test]
fn what_is_deployed_unwinds() {
    let text = fs::read_to_string(root().join("Cargo.toml")).expect("the workspace has a manifest");
    assert_eq!(release_unwinds(&Source::new("Cargo.toml", &text)), Vec::<String>::new());
}

// ---- the rules themselves ----

/// The lines at which a rule finds something in a sample, counted from 1, with what it says.
#[track_caller]
fn check(rule: impl Fn(&Source) -> Vec<String>, path: &str, text: &str, violations: &[&str]) {
    let found = rule(&Source::new(path, text));
    let wanted: Vec<String> = violations.iter().map(|violation| format!("{path}:{violation}")).collect();
    assert_eq!(found, wanted, "{text}");
}

/// A line so many times.
fn lines(n: usize, line: &str) -> String {
    format!("{line}\n").repeat(n)
}

#[test]
fn the_rule_on_files_counts_without_tests() {
    let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", lines(400, "    const A: u8 = 1;"));
    let path = "shared/keys/src/a.rs";
    check(file_lengths, path, &(lines(300, "const A: u8 = 1;") + &tests), &[]);
    let too_long = ["301: 301 lines without its tests; the limit is 300"];
    check(file_lengths, path, &(lines(301, "const A: u8 = 1;") + &tests), &too_long);
    check(file_lengths, "tests/a.rs", &lines(1_200, "//"), &[]);
    check(file_lengths, "tests/a.rs", &lines(1_201, "//"), &["1201: 1201 lines in all; the limit is 1200"]);
    let main = "functions/src/bin/main.rs";
    check(file_lengths, main, &lines(31, "//"), &["31: 31 lines of wiring; the limit is 30"]);
}

#[test]
fn the_rule_on_functions_finds_where_each_ends() {
    let head = "impl A {\n    pub(crate) async fn f<T>(\n        a: T,\n    ) -> B\n    where\n        T: C,\n    {\n";
    let of = |n: usize| format!("{head}{}    }}\n}}\n", lines(n - 7, "        if a {}"));
    check(function_lengths, "tests/a.rs", &of(70), &[]);
    check(function_lengths, "tests/a.rs", &of(71), &["2: function `f` has 71 lines; the limit is 70"]);
    let others = format!(
        "trait A {{\n    fn a(&self) -> u8;\n    fn b(\n        c: u8,\n    );\n}}\nfn d() {{}}\n{}",
        lines(90, "const E: fn() = d;")
    );
    check(function_lengths, "tests/a.rs", &others, &[]);
    let text = format!("fn a() {{\n    b(r#\"\n}}\n{}\"#);\n}}\n", lines(70, "fn c() {"));
    check(function_lengths, "tests/a.rs", &text, &["1: function `a` has 75 lines; the limit is 70"]);
}

#[test]
fn the_rule_on_attributes_finds_them_and_lets_a_reason_pass() {
    let text = "#[ignore]\n#[ignore = \"slow\"]\n#[should_panic(expected = \"x\")]\n#![allow(dead_code)]\n\
        #[allow(\n    unused,\n)]\n#[allow(unused, reason = \"x\")]\n#[expect(unused, reason = \"x\")]\n// #[ignore]\n";
    let ignored = "`#[ignore]`: a test runs or is not there";
    let allowed = "bare `#[allow(…)]`: `#[expect(…, reason = \"…\")]` instead";
    check(
        attributes,
        "shared/keys/src/a.rs",
        text,
        &[
            &format!("1: {ignored}"),
            &format!("2: {ignored}"),
            "3: `#[should_panic]`: return the error and look at it",
            &format!("4: {allowed}"),
            &format!("5: {allowed}"),
        ],
    );
}

#[test]
fn the_rule_on_sleeps_looks_at_tests_alone() {
    let text = "fn a() {\n    sleep(b);\n}\n\n#[cfg(test)]\nmod tests {\n    fn a() {\n        \
        tokio::time::sleep(b).await;\n        clock.sleep(b);\n    }\n}\n\nfn c() {\n    sleep(d);\n}\n";
    let what = "a test sleeps: wait for what it waits for";
    let by_the_wall_clock = |source: &Source| sleeps(source, false);
    check(by_the_wall_clock, "shared/keys/src/a.rs", text, &[&format!("8: {what}")]);
    let lines = [2, 8, 14].map(|line| format!("{line}: {what}"));
    check(by_the_wall_clock, "tests/a.rs", text, &lines.each_ref().map(String::as_str));
}

#[test]
fn the_rule_on_sleeps_lets_virtual_time_pass() {
    let source = |path, text| Source::new(path, text);
    let paused = source("shared/a/src/tests/b.rs", "#[tokio::test(start_paused = true)]\n");
    let beside = source("shared/a/src/tests/c.rs", "tokio::time::sleep(d).await;\nstd::thread::sleep(d);\n");
    let wall = source("shared/a/src/tests/d.rs", "#[tokio::test]\n");
    assert!(!in_virtual_time(&wall, &[]));
    assert_eq!(sleeps(&beside, true), ["shared/a/src/tests/c.rs:2: a test sleeps: wait for what it waits for"]);
    let mut all = vec![paused, beside];
    assert!(all.iter().all(|source| in_virtual_time(source, &all)));
    all.push(wall);
    assert_eq!(all.iter().map(|source| in_virtual_time(source, &all)).collect::<Vec<_>>(), [true, false, false]);
}

#[test]
fn the_rule_on_names_finds_modules_types_and_files() {
    let text = "mod common;\npub struct LaneManager {\n    manager_id: u8,\n}\nmod test_helpers {}\ntype Utils = u8;\n\
        struct CommonPrefix;\n";
    check(
        names,
        "shared/keys/src/a.rs",
        text,
        &[
            "1: `mod common`: name what it is",
            "2: `struct LaneManager`: name what it is",
            "5: `mod test_helpers`: name what it is",
            "6: `type Utils`: name what it is",
        ],
    );
    check(names, "tests/common/a.rs", "", &["1: a file in `common`: name what it keeps"]);
}

#[test]
fn the_rule_on_conditions_lets_the_guards_and_the_sdk_pass() {
    let exists = concat!("attribute_", "exists(");
    let text = format!("fn a() {{\n    b(\"{exists}PK)\"); // {exists}\n    // {exists}\n}}\n");
    let violation = format!("2: `{exists}`: conditions are variants of the guard enum");
    check(conditions, "shared/engine/src/a.rs", &text, &[&violation]);
    check(conditions, "shared/derive/src/guard.rs", &text, &[]);
    check(conditions, "shared/store/src/dynamo/write.rs", &text, &[]);
}

#[test]
fn the_rule_on_the_sdk_lets_its_own_files_pass() {
    let text = "use aws_sdk_dynamodb::Client;\n";
    let violation = "1: names the SDK: only src/dynamo* may";
    check(sdk_in_the_store, "shared/store/src/memory.rs", text, &[violation]);
    check(sdk_in_the_store, "shared/store/src/dynamo.rs", text, &[]);
    check(sdk_in_the_store, "tools/stream/src/a.rs", text, &[]);
}

#[test]
fn the_rule_on_direction_reads_every_form_of_a_dependency() {
    let workspace = ["keys", "derive", "store", "engine", "entities", "catalogue", "stream"];
    let workspace = workspace.map(str::to_owned);
    let rule = |manifest: &Source| direction(manifest, &workspace);
    let text = "[package]\nname = \"derive\"\n\n[dependencies]\nkeys.workspace = true\nserde = \"1\"\n\
        store = { path = \"../store\" }\nx = { package = \"engine\", path = \"../engine\" }\n\n\
        [dependencies.catalogue]\nworkspace = true\n\n[dev-dependencies]\nentities.workspace = true\n\
        stream.workspace = true\n";
    let not = |line: usize, name: &str| format!("{line}: `derive` must not depend on `{name}`");
    let wanted = [not(7, "store"), not(8, "engine"), not(10, "catalogue"), not(14, "entities")];
    check(rule, "shared/derive/Cargo.toml", text, &wanted.each_ref().map(String::as_str));
    let functions = "[dependencies]\nengine.workspace = true\nstream.workspace = true\n";
    let violation = "3: `functions` must not depend on `stream`";
    check(rule, "functions/Cargo.toml", functions, &[violation]);
    let violation = "1: the crate `misc` has no place in the dependency direction";
    check(rule, "shared/misc/Cargo.toml", "", &[violation]);
}

#[test]
fn the_rule_on_the_platform_looks_at_what_is_shipped() {
    let text = "[dependencies]\naws-config.workspace = true\naws_lambda_events = \"1\"\nlambda_runtime = \"1\"\n\
        dynoxide-rs = \"3\"\n\n[dev-dependencies]\naws-sdk-dynamodb.workspace = true\n";
    let not = |line: usize, name: &str| format!("{line}: `engine` must not name the AWS crate `{name}`");
    let aws = [not(2, "aws-config"), not(3, "aws_lambda_events"), not(4, "lambda_runtime")];
    let dynoxide =
        |name: &str| format!("5: `{name}` must not name `dynoxide-rs`: it is for the command line and tests");
    let [a, b, c] = aws.each_ref().map(String::as_str);
    check(platform, "shared/engine/Cargo.toml", text, &[a, b, c, &dynoxide("engine")]);
    check(platform, "functions/Cargo.toml", text, &[&dynoxide("functions")]);
    check(platform, "tools/cli/Cargo.toml", text, &[]);
}

#[test]
fn comments_and_literals_are_blanked_and_lines_stay() {
    let text = "a /* b /* c */\n*/ 'd' '\\'' &'e f \"g\\\"h\" r#\"i\"j\"# br\"k\" r#l // \"m\nn 'é'";
    let blank = |n: usize| " ".repeat(n);
    let wanted = format!(
        "a {}\n{} {} {} &'e f {} {} {} r#l {}\nn {}",
        blank(12),
        blank(2),
        blank(3),
        blank(4),
        blank(6),
        blank(8),
        blank(5),
        blank(5),
        blank(3)
    );
    assert_eq!(blanked(text, Literals::Blanked), wanted);
    assert_eq!(blanked("b(\"// c\") // d", Literals::Kept), "b(\"// c\")     ");
}

#[test]
fn the_rule_on_unwinding_looks_at_the_release_profile_alone() {
    let aborts = ["1: `[profile.release]` must say `panic = \"unwind\"`, or cargo-lambda aborts"];
    check(release_unwinds, "Cargo.toml", "[profile.release]\nstrip = true\npanic = \"unwind\"\n", &[]);
    check(release_unwinds, "Cargo.toml", "[profile.release]\npanic = \"abort\"\n", &aborts);
    check(release_unwinds, "Cargo.toml", "[profile.release]\n[profile.dev]\npanic = \"unwind\"\n", &aborts);
}
