//! A description as the text of a manifest.

use std::fmt::Write as _;

use super::{
    description::{
        Calculation, CopyRule, CountRule, Description, DrawnTable, FieldOf, Found, KeyOf, KeyPart, LatestRule,
        MirrorRule, Piece, Ref, RollUpRule, Shown, UnreadRule, What, Where, WindowRule,
    },
    values::MARK,
};

pub(super) fn written(of: &Description) -> String {
    let mut text = String::new();
    for table in &of.tables {
        table_written(&mut text, table);
    }
    for (at, entity) in of.entities.iter().enumerate() {
        entity_written(&mut text, of, at);
        for key in &entity.index_keys {
            let index = &of.tables[entity.table].indexes[key.index];
            writeln!(text, "\n[entity.{}.index.{}]", entity.name, index.name).unwrap();
            writeln!(text, "partition-key = {:?}", form(&key.pk)).unwrap();
            if !index.sk.is_empty() {
                writeln!(text, "sort-key = {:?}", form(&key.sk)).unwrap();
            }
            if key.is_derived {
                text.push_str("derived = true\n");
            }
        }
    }
    for rule in &of.rules {
        writeln!(text, "\n[derivation.{}]", rule.name).unwrap();
        rule_written(&mut text, of, &rule.what);
    }
    text
}

fn table_written(text: &mut String, table: &DrawnTable) {
    let is_one = table.name.is_empty();
    let header = if is_one { "table".to_owned() } else { format!("tables.{}", table.name) };
    writeln!(text, "\n[{header}]\npartition-key = {}", part(&table.pk)).unwrap();
    if let Some(sk) = &table.sk {
        writeln!(text, "sort-key = {}", part(sk)).unwrap();
    }
    if let Some(name) = &table.type_attribute {
        writeln!(text, "type = {name:?}").unwrap();
    }
    if table.expires {
        text.push_str("time-to-live = \"ExpiresAt\"\n");
    }
    for index in &table.indexes {
        let header = if is_one { format!("index.{}", index.name) } else { format!("{header}.index.{}", index.name) };
        writeln!(text, "\n[{header}]\npartition-key = {}", parts(&index.pk)).unwrap();
        if !index.sk.is_empty() {
            writeln!(text, "sort-key = {}", parts(&index.sk)).unwrap();
        }
        if index.is_narrow {
            writeln!(text, "projection = {:?}", projection(table)).unwrap();
        }
    }
}

/// What an index must project: the type, or what derived items have instead. The items that it finds are the targets
/// themselves.
fn projection(table: &DrawnTable) -> Vec<String> {
    vec![table.type_attribute.clone().unwrap_or_else(|| MARK.to_owned())]
}

fn part(part: &KeyPart) -> String {
    match part.of {
        KeyOf::S => format!("{:?}", part.name),
        of => format!("{{ name = {:?}, type = \"{of:?}\" }}", part.name),
    }
}

fn parts(several: &[KeyPart]) -> String {
    match several {
        [one] => part(one),
        several => format!("[{}]", several.iter().map(part).collect::<Vec<_>>().join(", ")),
    }
}

fn entity_written(text: &mut String, of: &Description, at: usize) {
    let entity = &of.entities[at];
    let table = &of.tables[entity.table];
    writeln!(text, "\n[entity.{}]", entity.name).unwrap();
    if !table.name.is_empty() {
        writeln!(text, "table = {:?}", table.name).unwrap();
    }
    if table.has_forms {
        writeln!(text, "partition-key = {:?}", form(&entity.pk)).unwrap();
        if table.sk.is_some() {
            writeln!(text, "sort-key = {:?}", form(&entity.sk)).unwrap();
        }
    }
    let names: Vec<&String> = entity.attributes.iter().map(|it| &it.name).collect();
    if !names.is_empty() {
        writeln!(text, "attributes = {names:?}").unwrap();
    }
    let names: Vec<&String> = entity.derived.iter().map(|it| &it.name).collect();
    if !names.is_empty() {
        writeln!(text, "derived-attributes = {names:?}").unwrap();
    }
    if entity.is_derived {
        text.push_str("derived = true\n");
    }
}

fn form(pieces: &[Piece]) -> String {
    let piece = |piece: &Piece| match piece {
        Piece::Text(text) => text.clone(),
        Piece::Field(name, FieldOf::Padded(digits)) => format!("{{{name}:{digits}}}"),
        Piece::Field(name, FieldOf::Inverted(digits)) => format!("{{MAX-{name}:{digits}}}"),
        Piece::Field(name, _) => format!("{{{name}}}"),
    };
    pieces.iter().map(piece).collect()
}

fn pairs(pairs: &[(String, String)]) -> String {
    let pair = |(to, from): &(String, String)| format!("{to} = {from:?}");
    format!("{{ {} }}", pairs.iter().map(pair).collect::<Vec<_>>().join(", "))
}

fn link(text: &mut String, link: &Ref) {
    writeln!(text, "link = {}", pairs(&link.pairs)).unwrap();
}

fn found(text: &mut String, of: &Description, found: &Found) {
    match found {
        Found::Partition => {}
        Found::Index(name) => writeln!(text, "found = {{ index = {name:?} }}").unwrap(),
        Found::Through(entity) => writeln!(text, "found = {:?}", of.entities[*entity].name).unwrap(),
    }
}

fn rule_written(text: &mut String, of: &Description, what: &What) {
    let name = |at: usize| of.entities[at].name.as_str();
    match what {
        What::Count(count) => count_written(text, of, count),
        What::Copy(CopyRule { from, to, link: by, condition, pairs: copied, found: way }) => {
            writeln!(text, "kind = \"copy\"\nfrom = {:?}\nto = {:?}", name(*from), name(*to)).unwrap();
            link(text, by);
            writeln!(text, "attributes = {}", pairs(copied)).unwrap();
            condition_written(text, condition.as_ref());
            found(text, of, way);
        }
        What::Latest(latest) => latest_written(text, of, latest),
        What::Extreme { from, to, link: by, field, into, is_max } => {
            writeln!(text, "kind = \"extreme\"\nfrom = {:?}\ninto = \"{}.{into}\"", name(*from), name(*to)).unwrap();
            link(text, by);
            writeln!(text, "{} = {field:?}", if *is_max { "max" } else { "min" }).unwrap();
        }
        What::Unread(unread) => unread_written(text, of, unread),
        What::Mirror(MirrorRule { from, to, pairs: by, condition, each, except }) => {
            writeln!(text, "kind = \"mirror\"\nfrom = {:?}\nto = {:?}", name(*from), name(*to)).unwrap();
            writeln!(text, "link = {}", pairs(by)).unwrap();
            condition_written(text, condition.as_ref());
            each_written(text, each.as_ref());
            if !except.is_empty() {
                writeln!(text, "except = {except:?}").unwrap();
            }
        }
        What::Path { of: entity, link: by, name: part, into, depth, found: way } => {
            writeln!(text, "kind = \"path\"\ninto = \"{}.{into}\"\nparent = {:?}", name(*entity), name(by.to)).unwrap();
            link(text, by);
            writeln!(text, "name = {part:?}\ndepth = {depth}").unwrap();
            found(text, of, way);
        }
        What::IndexKey { of: entity, index_key, number } => {
            let (entity, table) = (&of.entities[*entity], of.entities[*entity].table);
            let index = &of.tables[table].indexes[entity.index_keys[*index_key].index].name;
            writeln!(text, "kind = \"index-key\"\ninto = {:?}\nindex = {index:?}\nnumber = {number:?}", entity.name)
                .unwrap();
        }
        What::Calculated { of: entity, calculation, into } => {
            calculated_written(text, name(*entity), calculation, into);
        }
        What::Window(window) => window_written(text, of, window),
        What::RollUp(RollUpRule { from, to, link: by, condition, time, value }) => {
            writeln!(text, "kind = \"roll-up\"\nfrom = {:?}\ninto = {:?}", name(*from), name(*to)).unwrap();
            link(text, by);
            condition_written(text, condition.as_ref());
            writeln!(text, "time = {time:?}\nvalue = {value:?}\ngrain = \"grain\"\nbucket = \"bucket\"").unwrap();
            text.push_str("shows = { count = \"n\", sum = \"sum\", min = \"least\", max = \"greatest\" }\n");
        }
        What::Cascade { owner, hanging } => {
            writeln!(text, "kind = \"cascade\"\nowner = {:?}\nhanging = [", name(*owner)).unwrap();
            for it in hanging {
                let of_index = |index: &String| {
                    let (field, attribute) = &it.by[0];
                    format!(", index = {index:?}, only-if = {{ {attribute} = {field:?} }}")
                };
                let index = it.index.as_ref().map(of_index).unwrap_or_default();
                let by: Vec<(String, String)> = it.by.iter().map(|(to, from)| (from.clone(), to.clone())).collect();
                writeln!(text, "    {{ entity = {:?}{index}, by = {} }},", name(it.entity), pairs(&by)).unwrap();
            }
            text.push_str("]\n");
        }
    }
}

fn latest_written(text: &mut String, of: &Description, latest: &LatestRule) {
    let (from, to) = (&of.entities[latest.from].name, &of.entities[latest.to].name);
    writeln!(text, "kind = \"latest\"\nfrom = {from:?}").unwrap();
    match &latest.list {
        None => writeln!(text, "to = {to:?}").unwrap(),
        Some((into, n)) => writeln!(text, "into = \"{to}.{into}\"\nn = {n}").unwrap(),
    }
    link(text, &latest.link);
    writeln!(text, "attributes = {}", pairs(&latest.pairs)).unwrap();
    if latest.is_first {
        text.push_str("which = \"first\"\n");
    }
    if let Some(by) = &latest.by {
        writeln!(text, "by = {by:?}").unwrap();
    }
    condition_written(text, latest.condition.as_ref());
}

fn unread_written(text: &mut String, of: &Description, unread: &UnreadRule) {
    let UnreadRule { field, after, into, limit, .. } = unread;
    let (from, to) = (&of.entities[unread.from].name, &of.entities[unread.to].name);
    writeln!(text, "kind = \"unread\"\nfrom = {from:?}\ninto = \"{to}.{into}\"").unwrap();
    writeln!(text, "link = {}\nafter = {{ {field} = {after:?} }}\nlimit = {limit}", pairs(&unread.pairs)).unwrap();
    if unread.zero_is_absent {
        text.push_str("zero = \"absent\"\n");
    }
    found(text, of, &unread.found);
}

fn calculated_written(text: &mut String, entity: &str, calculation: &Calculation, into: &str) {
    let value = match calculation {
        Calculation::Sum(one, other) => format!("{one} + {other}"),
        Calculation::Percentage(one, other) => format!("100 * {one} / {other}"),
    };
    writeln!(text, "kind = \"calculated\"\ninto = \"{entity}.{into}\"\nvalue = {value:?}").unwrap();
}

fn window_written(text: &mut String, of: &Description, window: &WindowRule) {
    let (from, to) = (&of.entities[window.from].name, &of.entities[window.to].name);
    writeln!(text, "kind = \"window\"\nfrom = {from:?}\ninto = \"{to}.{}\"", window.into).unwrap();
    link(text, &window.link);
    let unit = if window.is_of_days { "days" } else { "hours" };
    writeln!(text, "last = \"{} {unit}\"\nsum = {:?}", window.length, window.sum).unwrap();
    if window.zero_is_absent {
        text.push_str("zero = \"absent\"\n");
    }
}

fn count_written(text: &mut String, of: &Description, count: &CountRule) {
    let (from, to) = (&of.entities[count.from].name, &of.entities[count.to].name);
    writeln!(text, "kind = \"count\"\nfrom = {from:?}").unwrap();
    match count.shows.as_slice() {
        [(Shown::Count, attribute)] if count.sum.is_none() => writeln!(text, "into = \"{to}.{attribute}\"").unwrap(),
        shows => {
            writeln!(text, "into = {to:?}").unwrap();
            let shown = |(what, attribute): &(Shown, String)| {
                let what = match what {
                    Shown::Count => "count",
                    Shown::Sum => "sum",
                    Shown::Average => "average",
                    Shown::Exists => "exists",
                };
                format!("{what} = {attribute:?}")
            };
            writeln!(text, "shows = {{ {} }}", shows.iter().map(shown).collect::<Vec<_>>().join(", ")).unwrap();
        }
    }
    link(text, &count.link);
    each_written(text, count.each.as_ref());
    condition_written(text, count.condition.as_ref());
    if let Some(sum) = &count.sum {
        writeln!(text, "sum = {sum:?}").unwrap();
    }
    if count.is_history {
        text.push_str("history = true\n");
    }
    if count.zero != "write" {
        writeln!(text, "zero = {:?}", count.zero).unwrap();
    }
    if count.creates {
        text.push_str("creates = true\n");
    }
}

fn each_written(text: &mut String, each: Option<&String>) {
    if let Some(each) = each {
        writeln!(text, "each = {each:?}").unwrap();
    }
}

fn condition_written(text: &mut String, condition: Option<&Where>) {
    match condition {
        None => {}
        Some(Where::Is(name, value)) => writeln!(text, "where = {{ {name} = {value:?} }}").unwrap(),
        Some(condition) => writeln!(text, "where = \"{}\"", where_of(condition)).unwrap(),
    }
}

fn where_of(condition: &Where) -> String {
    match condition {
        Where::Is(name, value) => format!("{name} = '{value}'"),
        Where::IsNot(name, value) => format!("{name} <> '{value}'"),
        Where::OneOf(name, values) => {
            format!("{name} IN ({})", values.iter().map(|it| format!("'{it}'")).collect::<Vec<_>>().join(", "))
        }
        Where::Above(name, number) => format!("{name} > {number}"),
        Where::Has(name) => format!("attribute_exists({name})"),
        Where::Lacks(name) => format!("attribute_not_exists({name})"),
        Where::Both(one, other) => format!("({} AND {})", where_of(one), where_of(other)),
        Where::Either(one, other) => format!("({} OR {})", where_of(one), where_of(other)),
        Where::Not(one) => format!("NOT ({})", where_of(one)),
    }
}
