//! The crates that are compiled in: their licences, versions and sources are those of `deny.toml`, and every build that a
//! user is told to run takes the versions of `Cargo.lock`.
//!
//! The embedded database's SQLite is older than 3.50.2, so it has CVE-2025-6965: a statement with more aggregate terms than
//! it may have columns, at least 2,000, corrupts memory. Nobody can make it run one: all statements are texts in the
//! code, and none has more than two aggregates. `docs/limits.md` says why the version stays.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::LazyLock,
};

use proc_macro2::{TokenStream, TokenTree};
use serde_json::Value;
use toml_edit::DocumentMut;

use crate::infra::parsed;

/// The only registry. Source: Cargo's name of its default registry.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// What `cargo metadata` says about all packages, for every platform.
static METADATA: LazyLock<Value> = LazyLock::new(|| {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--locked", "--format-version", "1"]).current_dir(root());
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
});

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn text(path: impl AsRef<Path>) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// The packages that are not ours.
fn packages() -> impl Iterator<Item = &'static Value> {
    METADATA["packages"].as_array().unwrap().iter().filter(|package| !package["source"].is_null())
}

fn word<'a>(package: &'a Value, name: &str) -> &'a str {
    package[name].as_str().unwrap_or_default()
}

/// The strings of a list of `deny.toml`, or those below `member` in its tables.
fn denied(section: &str, list: &str, member: &str) -> BTreeSet<String> {
    let document: DocumentMut = text("deny.toml").parse().unwrap();
    let values = document[section][list].as_array().unwrap().iter();
    let string = |value: &toml_edit::Value| {
        let of_table = value.as_inline_table().and_then(|table| table.get(member)?.as_str());
        value.as_str().or(of_table).unwrap().to_owned()
    };
    values.map(string).collect()
}

/// Does this SPDX expression hold, if these licences are accepted? `/` is an old way to write `OR`.
fn is_accepted(expression: &str, accepted: &BTreeSet<String>) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    any(&mut words.as_slice(), accepted)
}

/// `OR` binds less than `AND`. All words are read, whatever the first ones say.
fn any(words: &mut &[&str], accepted: &BTreeSet<String>) -> bool {
    let mut holds = every(words, accepted);
    while let ["OR", rest @ ..] = *words {
        *words = rest;
        holds |= every(words, accepted);
    }
    holds
}

fn every(words: &mut &[&str], accepted: &BTreeSet<String>) -> bool {
    let mut holds = one(words, accepted);
    while let ["AND", rest @ ..] = *words {
        *words = rest;
        holds &= one(words, accepted);
    }
    holds
}

fn one(words: &mut &[&str], accepted: &BTreeSet<String>) -> bool {
    match *words {
        ["(", rest @ ..] => {
            *words = rest;
            let holds = any(words, accepted);
            *words = words.strip_prefix(&[")"]).unwrap();
            holds
        }
        // A licence with an exception is another licence.
        [_, "WITH", _, rest @ ..] => {
            *words = rest;
            false
        }
        [licence, rest @ ..] => {
            *words = rest;
            accepted.contains(*licence)
        }
        [] => false,
    }
}

#[test]
fn an_expression_of_licences_is_read_as_spdx_says() {
    let accepted = BTreeSet::from(["MIT".to_owned(), "ISC".to_owned()]);
    let accepts = |expression: &str| is_accepted(expression, &accepted);
    for expression in ["MIT", "Apache-2.0 OR MIT", "GPL-3.0/MIT", "ISC AND (GPL-3.0 OR MIT)", "GPL-3.0 OR MIT AND ISC"]
    {
        assert!(accepts(expression), "{expression}");
    }
    for expression in ["", "GPL-3.0", "MIT AND GPL-3.0", "(MIT OR ISC) AND GPL-3.0", "MIT WITH some-exception"] {
        assert!(!accepts(expression), "{expression}");
    }
}

#[test]
fn every_crate_has_an_accepted_licence_and_every_accepted_licence_is_needed() {
    let accepted = denied("licenses", "allow", "");
    for package in packages() {
        let licence = word(package, "license");
        assert!(is_accepted(licence, &accepted), "{} has the licence {licence:?}", package["id"]);
    }
    for licence in &accepted {
        let others: BTreeSet<String> = accepted.iter().filter(|other| *other != licence).cloned().collect();
        let needs = |package: &Value| !is_accepted(word(package, "license"), &others);
        assert!(packages().any(needs), "deny.toml accepts {licence}, and nothing needs it");
    }
}

#[test]
fn a_crate_has_one_version_unless_deny_toml_says_why_not() {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    // Ours too: one of another's name is a second version to `cargo deny`.
    for package in METADATA["packages"].as_array().unwrap() {
        versions.entry(word(package, "name")).or_default().insert(word(package, "version"));
    }
    let skipped = denied("bans", "skip", "crate");
    for (name, versions) in &versions {
        let unexplained = versions.iter().filter(|version| !skipped.contains(&format!("{name}@{version}")));
        assert!(unexplained.count() <= 1, "{name} has the versions {versions:?}: update one, or say why in deny.toml");
    }
    for entry in &skipped {
        let (name, version) = entry.split_once('@').unwrap();
        let is_double = versions.get(name).is_some_and(|versions| versions.len() > 1 && versions.contains(version));
        assert!(is_double, "deny.toml skips {entry}, which is no second version any more");
    }
}

#[test]
fn every_crate_is_of_the_registry_and_has_a_checksum() {
    let lock: DocumentMut = text("Cargo.lock").parse().unwrap();
    for package in lock["package"].as_array_of_tables().unwrap() {
        let member = |name: &str| package.get(name).and_then(|item| item.as_str());
        let Some(source) = member("source") else { continue };
        assert_eq!((source, member("checksum").map(str::len)), (REGISTRY, Some(64)), "{:?}", member("name"));
    }
}

/// Every build of a page's code blocks, and every build that makes something to deploy or install, wherever it stands.
#[test]
fn whatever_a_user_builds_takes_the_locked_versions() {
    let mut pages: Vec<PathBuf> =
        ["README.md", "CONTRIBUTING.md", "Dockerfile"].iter().map(|name| root().join(name)).collect();
    for folder in ["docs", "examples", "infra", ".github"] {
        under(&root().join(folder), &mut pages);
    }
    let mut n_builds = 0;
    for page in pages {
        let Ok(text) = fs::read_to_string(&page) else { continue };
        let mut is_code = page.extension().is_none_or(|extension| extension != "md");
        for line in text.lines() {
            is_code ^= line.trim_start().starts_with("```");
            let has = |commands: &[&str]| commands.iter().any(|command| line.contains(&format!("cargo {command}")));
            let is_build = has(&["build", "install", "lambda build", "zigbuild"]) || line.contains("--release -- ");
            // A comment of a script or a template is for who develops Ripple.
            let is_comment = line.trim_start().starts_with('#');
            if is_build || (is_code && !is_comment && has(&["run", "test", "bench"])) {
                assert!(line.contains("--locked"), "{}: {line}", page.display());
                n_builds += 1;
            }
        }
    }
    assert!(n_builds > 20, "the commands are found: {n_builds}");
}

fn under(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { under(&path, files) } else { files.push(path) }
    }
}

// ---- The workflows ----

/// The lines of the workflows and of the action, with their files.
fn workflow_lines() -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    for folder in [".github", "infra/action"] {
        under(&root().join(folder), &mut files);
    }
    files.push(root().join(".ci/run"));
    let lines = |file: PathBuf| {
        let text = fs::read_to_string(&file).unwrap().replace("\\\n", " ");
        text.lines().map(|line| (file.clone(), line.trim().to_owned())).collect::<Vec<_>>()
    };
    files.into_iter().flat_map(lines).collect()
}

/// A tag or a branch can be moved to other code. Ours is pinned by whoever uses it, and a file beside needs no pin.
#[test]
fn every_action_is_pinned_by_its_commit() {
    let mut n_pinned = 0;
    for (file, line) in workflow_lines() {
        let Some(used) = line.trim_start_matches("- ").strip_prefix("uses: ") else { continue };
        let (action, comment) = used.split_once(" # ").unwrap_or((used, ""));
        let commit = action.rsplit_once('@').map(|(_, commit)| commit);
        let is_commit = commit.is_some_and(|it| it.len() == 40 && it.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let is_ours = action.starts_with("./") || action == "OWNER/ripple/infra/action@COMMIT";
        assert!(is_ours || (is_commit && comment.starts_with('v')), "{}: {line}", file.display());
        n_pinned += usize::from(is_commit);
    }
    assert!(n_pinned > 8, "the actions are found: {n_pinned}");
}

/// A package has the files that its hashes name, and pip asks for no other, whatever has been published since.
#[test]
fn every_package_that_pip_installs_has_its_hashes() {
    let installs: Vec<_> = workflow_lines().into_iter().filter(|(_, line)| line.contains("pip\" install")).collect();
    assert_eq!(installs.len(), 4, "{installs:?}");
    let mut files = BTreeSet::new();
    for (file, line) in installs {
        assert!(line.contains("--no-deps --require-hashes"), "{}: {line}", file.display());
        let words: Vec<&str> = line.split_whitespace().collect();
        files.extend(words.windows(2).filter(|pair| pair[0] == "-r").map(|pair| pair[1].to_owned()));
        assert!(!line.contains("=="), "a version stands in infra/requirements alone: {}: {line}", file.display());
    }
    assert_eq!(files.len(), 3, "{files:?}");
    for name in files {
        let compiled = text(&name);
        let packages = compiled.lines().filter(|line| !line.starts_with([' ', '#']) && line.contains("=="));
        assert!(packages.clone().count() > 2 && packages.clone().all(|line| line.ends_with(" \\")), "{name}");
        let pinned: BTreeSet<&str> = packages.filter_map(|line| line.split([' ', ';']).next()).collect();
        let asked = text(name.replace(".txt", ".in"));
        for package in asked.lines().filter(|line| !line.starts_with('#')) {
            let (plain, version) = package.split_once("==").unwrap();
            let plain = plain.split('[').next().unwrap();
            assert!(
                pinned.contains(format!("{plain}=={version}").as_str()),
                "{name} lacks {package}: compile it again"
            );
        }
    }
}

/// `publish` waits for the workflow that runs `.ci/run` and `cargo deny`, and attests the files before it publishes them.
#[test]
fn a_release_is_published_after_the_tests_and_the_advisories_with_its_provenance() {
    let workflow = |name: &str| parsed(&text(format!(".github/workflows/{name}")));
    let (ci, release) = (workflow("ci.yml"), workflow("release.yml"));
    let runs = |job: &Value, command: &str| {
        let steps = job["steps"].as_array().unwrap().iter();
        steps.filter_map(|step| step["run"].as_str()).any(|run| run.contains(command))
    };
    assert!(runs(&ci["jobs"]["tests"], "bash .ci/run"), "{ci:#}");
    assert!(runs(&ci["jobs"]["supply-chain"], "cargo deny --locked check"), "{ci:#}");
    let on: Vec<&str> = ci["on"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(on, ["pull_request", "push", "schedule", "workflow_call"]);
    // A condition of the job would skip it, and a job that is skipped holds up no other.
    assert!(ci["jobs"]["supply-chain"]["if"].is_null(), "the advisories are checked every time");
    assert_eq!(ci["jobs"]["tests"]["if"], "github.event_name != 'schedule'");

    let jobs = &release["jobs"];
    assert_eq!(jobs["checks"]["uses"], "./.github/workflows/ci.yml");
    let (publish, others) = (&jobs["publish"], jobs.as_object().unwrap().keys().filter(|name| *name != "publish"));
    let needs: BTreeSet<&str> = publish["needs"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(needs, others.map(String::as_str).collect(), "it waits for every other job");
    let steps = publish["steps"].as_array().unwrap();
    let at = |is: &dyn Fn(&Value) -> bool| steps.iter().position(is).unwrap();
    let attested = at(&|step| word(step, "uses").starts_with("actions/attest-build-provenance@"));
    let published = at(&|step| word(step, "run").starts_with("gh release create"));
    assert!(attested < published, "{publish:#}");
    assert_eq!(steps[attested]["with"]["subject-path"], "target/release-files/*");
    for permission in ["attestations", "contents", "id-token"] {
        assert_eq!(publish["permissions"][permission], "write", "{permission}");
    }
}

// ---- The embedded database's SQLite ----

/// SQLite's aggregate functions. Source: SQLite's documentation, "Built-in Aggregate Functions".
#[rustfmt::skip]
const AGGREGATES: [&str; 10] = [
    "avg(", "count(", "group_concat(", "json_group_array(", "json_group_object(", "max(", "min(", "string_agg(", "sum(",
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

/// The version of SQLite that is compiled in.
fn sqlite_version() -> String {
    let header = fs::read_to_string(folder("libsqlite3-sys").join("sqlite3/sqlite3.h")).unwrap();
    let line = header.lines().find(|line| line.starts_with("#define SQLITE_VERSION ")).unwrap();
    line.split('"').nth(1).unwrap().to_owned()
}

#[test]
fn no_statement_of_the_embedded_database_has_more_than_two_aggregates() {
    let mut files = Vec::new();
    under(&folder("dynoxide-rs").join("src"), &mut files);
    files.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
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
    let version: Vec<u32> = sqlite_version().split('.').map(|part| part.parse().unwrap()).collect();
    assert!(
        version.as_slice() < MENDED.as_slice(),
        "{version:?} is mended: remove these tests, and the line of docs/limits.md"
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
    assert!(page.contains(&format!("**Its SQLite is {}**", sqlite_version())));
}
