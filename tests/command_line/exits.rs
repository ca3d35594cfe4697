//! Exit codes by one rule: 0 in step, 1 failed, 2 usage, 3 findings.

use super::{commands, file, refuses, ripple};

#[test]
fn every_command_ends_with_two_for_wrong_usage_and_with_one_when_nothing_answers() {
    for command in commands().iter().filter(|command| command.runs()) {
        let mut arguments = command.arguments();
        let wrong = ripple(&[&arguments[..], &["--nonsense"]].concat());
        assert_eq!((wrong.code, wrong.stdout.as_str()), (Some(2), ""), "{arguments:?}");
        if !command.takes("--endpoint") {
            continue;
        }
        // Nothing listens on port 1.
        arguments.extend(["--endpoint", "http://127.0.0.1:1"]);
        let failed = ripple(&arguments);
        let line = "ripple: nothing responds at http://127.0.0.1:1: is a DynamoDB running there?\n";
        assert_eq!((failed.code, failed.stdout.as_str(), failed.stderr.as_str()), (Some(1), "", line), "{arguments:?}");
    }
}

#[test]
fn a_template_that_cannot_be_used_is_told_like_a_manifest() {
    let dev = |template: &str, line: &str| refuses(&["dev", "--port", "0", "--template", template], line);
    dev("no/template.yaml", "cannot read no/template.yaml: No such file or directory (os error 2)");
    let wrong = file("Resources:\n  Aggregate:\n    Type: AWS::Serverless::Function\n");
    let wrong = wrong.path().to_str().unwrap();
    let ended = ripple(&["dev", "--port", "0", "--template", wrong]);
    assert_eq!((ended.code, ended.stderr.lines().count()), (Some(2), 1), "{ended:?}");
    assert!(ended.stderr.starts_with(&format!("ripple: {wrong}:2: the template has no parameter ")), "{ended:?}");
    let none = file("Resources:\n  - a\n b: [\n");
    let none = none.path().to_str().unwrap();
    let ended = ripple(&["dev", "--port", "0", "--template", none]);
    assert!(ended.stderr.starts_with(&format!("ripple: {none}:3: the template is no YAML: ")), "{ended:?}");
    assert_eq!((ended.code, ended.stderr.lines().count()), (Some(2), 1), "{ended:?}");
}
