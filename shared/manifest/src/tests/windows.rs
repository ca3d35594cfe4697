//! Windows and calculated attributes: what they read, and what a window adds up.

use super::{kinds::refused_example, *};

#[test]
fn a_window_is_over_the_last_hours_or_days_of_buckets() {
    let refused = |from: &str, to: &str, expect: &Expect| refused_example("window", from, to, expect);
    let last = "last = \"7 days\"";
    for (to, expect) in [
        (
            "",
            &expect![[r#"derivation.plays-this-week: last is missing: how long the window is, as in last = "7 days""#]],
        ),
        ("last = 7", &expect!["derivation.plays-this-week.last: is a whole number: write a text in quotes"]),
        (
            "last = \"7\"",
            &expect![[
                r#"derivation.plays-this-week.last: is a number of hours or days, as in "24 hours" or "7 days""#
            ]],
        ),
        (
            "last = \"a week\"",
            &expect![
                "derivation.plays-this-week.last: is in hours or days: write 7 days for a week, or 30 days for a month"
            ],
        ),
        (
            "last = \"1 week\"",
            &expect![
                "derivation.plays-this-week.last: is in hours or days: write 7 days for a week, or 30 days for a month"
            ],
        ),
        (
            "last = \"24 hours\"",
            &expect![
                "derivation.plays-this-week.last: the buckets of SongDay are by day, and last is by hour: make both the same"
            ],
        ),
        ("last = \"0 days\"", &expect!["derivation.plays-this-week.last: is from 1 to 400 hours or days"]),
        ("last = \"900 hours\"", &expect!["derivation.plays-this-week.last: is from 1 to 400 hours or days"]),
    ] {
        refused(last, to, expect);
    }
}

#[test]
fn the_parts_of_a_window_are_looked_up() {
    let refused = |from: &str, to: &str, expect: &Expect| refused_example("window", from, to, expect);
    refused(
        "sum = \"plays\"",
        "",
        &expect!["derivation.plays-this-week: sum is missing: the attribute of a bucket that is added up"],
    );
    refused(
        "sum = \"plays\"",
        "sum = \"play\"",
        &expect![[
            r#"derivation.plays-this-week.sum: SongDay has no field or attribute "play": did you mean "plays"?"#
        ]],
    );
    refused(
        "sum = \"plays\"",
        "sum = \"day\"",
        &expect!["derivation.plays-this-week.sum: day is S, and a number (N) is wanted: write number(day)"],
    );
}

#[test]
fn the_bucket_and_the_target_of_a_window_are_looked_up() {
    let refused = |from: &str, to: &str, expect: &Expect| refused_example("window", from, to, expect);
    refused(
        "bucket = \"day\"\n",
        "",
        &expect![
            "derivation.plays-this-week: bucket is missing: the field with which the sort key of SongDay ends, an hour or a day"
        ],
    );
    refused(
        "bucket = \"day\"",
        "bucket = \"date\"",
        &expect![[
            r#"derivation.plays-this-week.bucket: the key of SongDay has no field "date": there are day, songId"#
        ]],
    );
    refused(
        "bucket = \"day\"",
        "bucket = \"songId\"",
        &expect!["derivation.plays-this-week.bucket: the sort key of SongDay does not end with songId: DAY#{day}"],
    );
    refused(
        "bucket = \"day\"",
        "bucket = \"day\"\ngrain = \"span\"",
        &expect![[
            r#"derivation.plays-this-week.grain: the key of SongDay has no field "span": there are day, songId"#
        ]],
    );
    refused(
        "bucket = \"day\"",
        "bucket = \"day\"\nzero = \"write\"",
        &expect![[r#"derivation.plays-this-week.zero: there is no value "write": there are always, absent"#]],
    );
    refused(
        "bucket = \"day\"",
        "bucket = \"day\"\nwhere = \"plays > 1\"",
        &expect![
            "derivation.plays-this-week.where: the kind window takes no condition: mirror the items that meet it, and name the mirrors here"
        ],
    );
    refused(
        "into = \"Song.playsThisWeek\"",
        "into = \"Song\"",
        &expect![[
            r#"derivation.plays-this-week.into: names no attribute: the attribute that shows the sum, as in "Song.playsThisWeek""#
        ]],
    );
    refused(
        "into = \"Song.playsThisWeek\"",
        "into = \"Song.title\"",
        &expect![
            "derivation.plays-this-week.into: Song lists title in attributes, so the application writes it: name another attribute, or move it to derived-attributes"
        ],
    );
    refused(
        "from = \"SongDay\"",
        "from = \"Play\"",
        &expect![[
            r#"derivation.plays-this-week.sum: Play has no field or attribute "plays": there are at, userId, songId; one that your items have is declared in attributes"#
        ]],
    );
}

#[test]
fn a_window_over_a_roll_up_takes_its_fields_and_one_of_its_time_spans() {
    let window = |grains: &str, last: &str| {
        let readings = crate::kinds::descriptions().into_iter().find(|it| it.name == "roll-up").unwrap().example;
        let readings = readings.replace("value = \"value\"", &format!("value = \"value\"\n{grains}"));
        let sensor = "[entity.Sensor]\npartition-key = \"SENSOR#{sensorId}\"\nsort-key = \"SENSOR\"\n\
                      derived-attributes = [\"recent\"]";
        let window = format!(
            "[derivation.recent]\nkind = \"window\"\nfrom = \"ReadingTotals\"\ninto = \"Sensor.recent\"\nlast = \"{last}\"\n\
             sum = \"count\"\n"
        );
        load(&format!("{}{readings}{sensor}\n{window}", super::kinds::BASE))
    };
    let outline = |grains: &str, last: &str| {
        let (schema, catalogue) = window(grains, last).unwrap();
        let derivation = catalogue.derivations().find(|it| it.name == "recent").unwrap();
        derivation.kind.outline(&schema).terms.join("; ")
    };
    assert_eq!(outline("", "24 hours"), "sum of count of the last 24 hours in UTC, as recent");
    assert_eq!(outline("", "1 day"), "sum of count of the last 1 day in UTC, as recent");
    let refused = window("grains = [\"hour\"]", "7 days").map(drop).unwrap_err();
    expect![[r#"ReadingTotals has no buckets by day: add "day" to the grains of its roll-up"#]]
        .assert_eq(&refused.what);
}

#[test]
fn a_calculated_attribute_is_an_expression_over_its_own_item() {
    let refused = |from: &str, to: &str, expect: &Expect| refused_example("calculated", from, to, expect);
    let value = "value = \"100 * if_not_exists(doneCount, 0) / taskCount\"";
    for (to, expect) in [
        (
            "",
            &expect![[r#"derivation.percent-done: value is missing: what it is, as in "100 * doneCount / taskCount""#]],
        ),
        (
            "value = \"100\"",
            &expect![[
                r#"derivation.percent-done.value: Project has no field or attribute "100": there are projectId, name, budget, doneCount, taskCount, percentDone; one that your items have is declared in attributes"#
            ]],
        ),
        (
            "value = \"100 * doneCount / tasks\"",
            &expect![[
                r#"derivation.percent-done.value: Project has no field or attribute "tasks": there are projectId, name, budget, doneCount, taskCount, percentDone; one that your items have is declared in attributes; a text stands in single quotes"#
            ]],
        ),
        (
            "value = \"100 * doneCount / \"",
            &expect![
                "derivation.percent-done.value: is no name and no expression: at character 19: it ends where an attribute or a value is wanted"
            ],
        ),
        (
            "value = \"doneCount % taskCount\"",
            &expect![[
                r#"derivation.percent-done.value: is no name and no expression: at character 11: an operator (+, -, *, /, ||) or the end is wanted before "%""#
            ]],
        ),
        (
            "value = \"lower(budget * 2)\"",
            &expect![
                "derivation.percent-done.value: is no name and no expression: at character 1: lower(a) takes S, and budget * 2 is N: write text(…) for the text of a number"
            ],
        ),
        (
            "value = \"name / 2 + projectId\"",
            &expect![
                "derivation.percent-done.value: Project.projectId is in the key (S), and `name / 2 + projectId` takes N: write number(projectId) for a number that is stored as text"
            ],
        ),
        ("value = \"percentDone + 1\"", &expect!["derivation.percent-done: it reads what it writes"]),
        (
            "value = \"doneCount\"\nfrom = \"Project\"",
            &expect!["derivation.percent-done.from: there is no such key: there are kind, id, was, into, value"],
        ),
    ] {
        refused(value, to, expect);
    }
    refused(
        "into = \"Project.percentDone\"",
        "into = \"Project.name\"",
        &expect![
            "derivation.percent-done.into: Project lists name in attributes, so the application writes it: name another attribute, or move it to derived-attributes"
        ],
    );
    refused(
        "into = \"Project.percentDone\"",
        "into = \"percentDone\"",
        &expect![[
            r#"derivation.percent-done.into: names no attribute: the attribute that has the value, as in "Project.percentDone""#
        ]],
    );
}

#[test]
fn a_number_that_is_calculated_has_a_type() {
    let refused = |value: &str| {
        let text = format!(
            "{}[derivation.percent]\nkind = \"calculated\"\ninto = \"Project.percentDone\"\nvalue = \"{value}\"\n\
             [derivation.by]\nkind = \"mirror\"\nfrom = \"Project\"\nto = \"SongDay\"\n\
             link = {{ songId = \"percentDone\", day = \"projectId\" }}\n",
            super::kinds::BASE
        );
        load(&text).map(drop)
    };
    let number = refused("doneCount * 2").unwrap_err();
    expect!["derivation.by.link.songId: Project.percentDone shows what percent derives (N), and a link takes text (S): name an attribute of text"].assert_eq(&format!("{}: {}", number.key, number.what));
    assert_eq!(refused("lower(name)"), Ok(()));
}
