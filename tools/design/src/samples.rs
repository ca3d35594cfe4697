//! A sample item of each entity, for the page and for prices.
//!
//! An entity without a given sample has one made from its declaration, with placeholders such as `{UserId}` as values.
//! Its size is a guess: that of the names.

use std::collections::{BTreeMap, HashMap};

use derive::{
    catalogue::Catalogue,
    condition::{Condition, Test},
    declaration::{Count, Link, Mirror, Rollup},
    derivation::Derivation,
    expression::{
        Expression, Input,
        document_path::{DocumentPath, PathStep},
        function::Function,
        time::TimeSpan,
    },
    kind::Shape,
    schema::{Schema, Seen},
};
use keys::{
    entity::{Definition, KeyTemplate},
    fields::Fields,
    index_key::OnlyIf,
    item::Item,
    template::Template,
};
use serde_dynamo::AttributeValue;

/// A sample item of each entity, by the entity's name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    items: BTreeMap<String, Item>,
    /// Entities with a given sample.
    given: Vec<String>,
}

impl Samples {
    /// Samples made from the declarations alone.
    #[must_use]
    pub fn made_up(schema: &Schema) -> Self {
        let item = |definition: &Definition| Some((definition.name.clone(), made_up(schema, definition)?));
        Self { items: schema.entities().filter_map(item).collect(), given: Vec::new() }
    }

    /// These samples, and made-up ones for the other entities.
    #[must_use]
    pub fn of(schema: &Schema, items: Vec<Item>) -> Self {
        let mut samples = Self::made_up(schema);
        for item in items {
            let Some(key) = schema.layout.key(&item) else { continue };
            if let Seen::Known(image) = schema.see(&key, &item) {
                let name = image.definition.name.clone();
                samples.given.push(name.clone());
                samples.items.insert(name, item);
            }
        }
        samples
    }

    /// Adapts made-up samples to the derivations: a number for each summed attribute, a time for each roll-up, one member
    /// for each list whose members have mirrors or count, values that functions take, and values that meet the conditions,
    /// as far as one item can meet them all.
    #[must_use]
    pub fn as_read_by(mut self, schema: &Schema, catalogue: &Catalogue) -> Self {
        let mut of_keys: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
        for derivation in catalogue.derivations() {
            let (source, list, sum) = match derivation.kind.shape() {
                Shape::Mirror(Mirror { source, each, .. }) => (source, each.as_deref(), None),
                Shape::Count(Count { source, each, sum, .. }) => (source, each.as_deref(), sum.as_ref()),
                Shape::Rollup(Rollup { source, value, .. }) => (source, None, Some(value)),
                _ => continue,
            };
            let members = |list: &str| AttributeValue::L(vec![AttributeValue::S(format!("{{{list}}}"))]);
            let number = sum.and_then(|sum| Some((sum.name()?, AttributeValue::N("1".to_owned()))));
            for (name, value) in list.map(|list| (list, members(list))).into_iter().chain(number) {
                if !self.is_given(source)
                    && let Some(item) = self.items.get_mut(source).filter(|item| item.contains_key(name))
                {
                    item.insert(name.to_owned(), value);
                }
            }
        }
        self.number_mirrored(catalogue);
        let times = catalogue.derivations().filter_map(|derivation| match derivation.kind.shape() {
            Shape::Rollup(Rollup { source, time, .. }) => Some((source, time.expression())),
            _ => None,
        });
        for (source, time) in times {
            let time = Expression::Call(Function::Span(TimeSpan::Hour), vec![time.clone()]);
            self.make_takeable(source, &time, &mut of_keys);
        }
        for (source, expression) in catalogue.derivations().flat_map(calculated) {
            self.make_takeable(source, expression, &mut of_keys);
        }
        for (source, fields) in of_keys {
            self.refill(schema, &source, fields);
        }
        let mut met: Vec<(&str, &Condition)> = Vec::new();
        for (source, condition) in catalogue.derivations().filter_map(conditioned) {
            if self.is_given(source) {
                continue;
            }
            let keeps = |item: &Item| met.iter().all(|(of, other)| *of != source || other.holds(item) == Ok(true));
            if let Some(item) = self.items.get(source).and_then(|item| meeting(condition, item)).filter(keeps) {
                self.items.insert(source.to_owned(), item);
                met.push((source, condition));
            }
        }
        self
    }

    fn make_takeable(
        &mut self,
        source: &str,
        expression: &Expression,
        of_keys: &mut BTreeMap<String, Vec<(String, String)>>,
    ) {
        if !self.is_given(source)
            && let Some(item) = self.items.get_mut(source)
        {
            make_takeable(expression, item, of_keys.entry(source.to_owned()).or_default());
        }
    }

    /// Gives fields of a sample's keys other values, as far as its keys have these fields and take the values.
    fn refill(&mut self, schema: &Schema, entity: &str, values: Vec<(String, String)>) {
        let (layout, Some(definition), Some(item)) =
            (&schema.layout, schema.entity(entity), self.items.get_mut(entity))
        else {
            return;
        };
        let fields = layout.key(item).and_then(|key| definition.fields(&key, item));
        let Some(mut fields) = fields else { return };
        for (name, value) in values.into_iter().filter(|(name, _)| definition.key.holds(name)) {
            fields.insert(name, value);
        }
        if let Ok(key) = definition.build(&fields) {
            item.extend(layout.key_item(&key));
            let of_indexes = definition.index_attributes(layout, &fields);
            item.extend(of_indexes.into_iter().filter_map(|(name, value)| Some((name, value?))));
        }
    }

    /// Makes what is a number in a mirror's sample a number in the made-up sample that is mirrored, also through several
    /// mirrors.
    fn number_mirrored(&mut self, catalogue: &Catalogue) {
        let mirrors = catalogue.derivations().filter_map(|derivation| match derivation.kind.shape() {
            Shape::Mirror(Mirror { source, target, .. }) => Some((source, target)),
            _ => None,
        });
        let mirrors: Vec<_> = mirrors.filter(|(source, _)| !self.is_given(source)).collect();
        // A chain has no more mirrors than there are.
        for (source, target) in mirrors.iter().flat_map(|_| &mirrors) {
            let numbers = self.items.get(*target).into_iter().flatten();
            let numbers = numbers.filter(|(_, value)| matches!(value, AttributeValue::N(_)));
            let numbers: Vec<_> = numbers.map(|(name, value)| (name.to_owned(), value.clone())).collect();
            let Some(item) = self.items.get_mut(*source) else { continue };
            item.extend(numbers.into_iter().filter(|(name, _)| item.contains_key(name)).collect::<Vec<_>>());
        }
    }

    /// The sample of a derivation's source, changed so that it meets the derivation's condition. `None` if there is no
    /// sample, or if no change of it meets the condition.
    #[must_use]
    pub(crate) fn source_of(&self, derivation: &Derivation) -> Option<Item> {
        let (source, condition) = conditioned(derivation)?;
        meeting(condition, self.item(source)?)
    }

    /// The sample of an entity.
    #[must_use]
    pub fn item(&self, entity: &str) -> Option<&Item> {
        self.items.get(entity)
    }

    /// True if the sample was given, so that its size is meaningful.
    #[must_use]
    pub fn is_given(&self, entity: &str) -> bool {
        self.given.iter().any(|given| given == entity)
    }
}

/// The source of a derivation, and the condition that its items must meet.
fn conditioned(derivation: &Derivation) -> Option<(&str, &Condition)> {
    match derivation.kind.shape() {
        Shape::Count(count) => Some((&count.source, &count.condition)),
        Shape::Rollup(rollup) => Some((&rollup.source, &rollup.condition)),
        Shape::Mirror(mirror) => Some((&mirror.source, &mirror.condition)),
        Shape::Attributes(_) | Shape::Cascade(_) => None,
    }
}

/// What a derivation calculates from its source.
fn calculated(derivation: &Derivation) -> Vec<(&str, &Expression)> {
    let (source, link, inputs): (&str, &Link, Vec<&Input>) = match derivation.kind.shape() {
        Shape::Count(count) => (&count.source, &count.link, count.sum.iter().collect()),
        Shape::Rollup(rollup) => (&rollup.source, &rollup.link, vec![&rollup.time, &rollup.value]),
        Shape::Mirror(mirror) => (&mirror.source, &mirror.link, Vec::new()),
        Shape::Attributes(_) | Shape::Cascade(_) => return Vec::new(),
    };
    let inputs = link.0.iter().map(|(_, from)| from).chain(inputs).map(Input::expression);
    let operands = conditioned(derivation).into_iter().flat_map(|(_, condition)| condition.operands());
    inputs.chain(operands).map(|expression| (source, expression)).collect()
}

/// Changes an item so that the functions of an expression take its values; those that its keys should have are added to
/// `of_keys`.
fn make_takeable(expression: &Expression, item: &mut Item, of_keys: &mut Vec<(String, String)>) {
    let Expression::Call(function, arguments) = expression else { return };
    let value = match function {
        Function::Add | Function::Subtract | Function::Multiply | Function::Number => AttributeValue::N("1".to_owned()),
        Function::Seconds | Function::Millis => AttributeValue::N("1705314600000".to_owned()),
        Function::Span(_) => AttributeValue::S("2024-01-15T10:30:00.000Z".to_owned()),
        _ => return arguments.iter().for_each(|argument| make_takeable(argument, item, of_keys)),
    };
    for argument in arguments {
        match (argument, &value) {
            (Expression::Path(path), _) if item.contains_key(&path.attribute) => set(item, path, Some(value.clone())),
            (Expression::Path(path), AttributeValue::S(text) | AttributeValue::N(text)) => {
                of_keys.push((path.attribute.clone(), text.clone()));
            }
            (argument, _) => make_takeable(argument, item, of_keys),
        }
    }
}

/// An item of an entity with all declared attributes; `None` if its key cannot be made up.
fn made_up(schema: &Schema, definition: &Definition) -> Option<Item> {
    let layout = &schema.layout;
    let mut values = key_values(&definition.key);
    let mut item = Item::new();
    for name in definition.attributes.iter().chain(&definition.derived_attributes) {
        let is_number = definition.indexes.iter().any(|index| index.key.holds_number(name));
        let value =
            if is_number { AttributeValue::N("1".to_owned()) } else { AttributeValue::S(format!("{{{name}}}")) };
        item.insert(name.clone(), value);
    }
    for index in &definition.indexes {
        for (name, value) in key_values(&index.key).iter() {
            if values.get(name).is_none() {
                values.insert(name, value);
            }
        }
        if let Some(OnlyIf::Is { attribute, any_of }) = &index.only_if
            && let Some(text) = any_of.first()
        {
            values.insert(attribute.clone(), text.clone());
            item.insert(attribute.clone(), AttributeValue::S(text.clone()));
        }
    }
    let key = definition.build(&values).ok()?;
    for index in &definition.indexes {
        if let (Some(names), Ok(Some(key))) = (layout.index(&index.index), definition.index_key(index, &values)) {
            item.insert(names.pk.clone(), AttributeValue::S(key.pk));
            item.insert(names.sk.clone(), AttributeValue::S(key.sk));
        }
    }
    item.extend(layout.key_item(&key));
    item.extend(layout.type_of(&definition.name));
    Some(item)
}

/// A value for each field of a key: a placeholder if the field accepts any text.
fn key_values(key: &KeyTemplate) -> Fields {
    let value = |name: &str, form: FieldForm| match form {
        FieldForm::Number => "1".to_owned(),
        FieldForm::Text | FieldForm::Spread | FieldForm::Other => format!("{{{name}}}"),
        FieldForm::Path => format!("/{{{name}}}"),
    };
    let all = fields(&key.pk).into_iter().chain(fields(&key.sk));
    all.map(|field| (field.name.clone(), value(&field.name, field.form))).collect()
}

// ---- A sample that meets a condition, so that the conditional derivation has a price ----

/// The item, with other values in the attributes of a condition if it does not meet the condition yet. `None` if no
/// values that meet the condition are found.
pub(crate) fn meeting(condition: &Condition, item: &Item) -> Option<Item> {
    let is_met = |item: &Item| condition.holds(item) == Ok(true);
    if is_met(item) {
        return Some(item.clone());
    }
    let mut met = item.clone();
    make(condition, true, &mut met);
    is_met(&met).then_some(met)
}

/// Changes an item so that the condition has this answer, as far as one pass can.
fn make(condition: &Condition, answer: bool, item: &mut Item) {
    match condition {
        Condition::Always => {}
        Condition::Not(condition) => make(condition, !answer, item),
        Condition::And(all) | Condition::Or(all) => {
            let needs_all = matches!(condition, Condition::And(_)) == answer;
            all.iter().take(if needs_all { all.len() } else { 1 }).for_each(|condition| make(condition, answer, item));
        }
        Condition::Test(test, operands) => match operands.as_slice() {
            [Expression::Path(path)] => set(item, path, alone(*test, answer)),
            [Expression::Path(path), Expression::Literal(value), ..] => set(item, path, beside(*test, answer, value)),
            [Expression::Call(Function::Size, sized), Expression::Literal(size), ..] => {
                let size = beside(*test, answer, size);
                let n = size.as_ref().and_then(whole).and_then(|n| usize::try_from(n).ok());
                if let [Expression::Path(path)] = sized.as_slice() {
                    set(item, path, n.map(|n| AttributeValue::S("x".repeat(n))));
                }
            }
            _ => {}
        },
    }
}

/// A value for which a test without an operand has this answer; `None` stands for a missing value.
fn alone(test: Test, answer: bool) -> Option<AttributeValue> {
    ((test == Test::Exists) == answer).then(|| AttributeValue::S("x".to_owned()))
}

/// A value for which a test against `value` has this answer; `None` stands for a missing value, which passes only `<>`.
fn beside(test: Test, answer: bool, value: &AttributeValue) -> Option<AttributeValue> {
    match (test, answer) {
        (Test::Differs, false) => Some(value.clone()),
        (_, false) => None,
        (Test::Differs | Test::Above, true) => Some(moved(value, 1)),
        (Test::Below, true) => Some(moved(value, -1)),
        (Test::Type, true) => Some(of_type(value)),
        (Test::Contains, true) if !matches!(value, AttributeValue::S(_)) => {
            Some(AttributeValue::L(vec![value.clone()]))
        }
        _ => Some(value.clone()),
    }
}

/// A neighbouring value of the same type: the next number, or a longer or shorter text.
fn moved(value: &AttributeValue, by: i64) -> AttributeValue {
    match value {
        AttributeValue::N(_) => AttributeValue::N((whole(value).unwrap_or_default() + by).to_string()),
        AttributeValue::S(text) if by > 0 => AttributeValue::S(format!("{text}x")),
        AttributeValue::S(text) => {
            AttributeValue::S(text.chars().take(text.chars().count().saturating_sub(1)).collect())
        }
        AttributeValue::Bool(is) => AttributeValue::Bool(!is),
        other => other.clone(),
    }
}

/// The integer part of a number.
fn whole(value: &AttributeValue) -> Option<i64> {
    let AttributeValue::N(text) = value else { return None };
    text.split('.').next()?.parse().ok()
}

fn of_type(name: &AttributeValue) -> AttributeValue {
    let text = || "x".to_owned();
    match name {
        AttributeValue::S(name) => match name.as_str() {
            "N" => AttributeValue::N("1".to_owned()),
            "B" => AttributeValue::B(vec![0]),
            "BOOL" => AttributeValue::Bool(true),
            "NULL" => AttributeValue::Null(true),
            "L" => AttributeValue::L(Vec::new()),
            "M" => AttributeValue::M(HashMap::new()),
            "SS" => AttributeValue::Ss(vec![text()]),
            "NS" => AttributeValue::Ns(vec!["1".to_owned()]),
            "BS" => AttributeValue::Bs(vec![vec![0]]),
            _ => AttributeValue::S(text()),
        },
        _ => AttributeValue::S(text()),
    }
}

/// Sets the value at a path, and creates the maps and lists on the way. Without a value, removes the whole attribute.
fn set(item: &mut Item, path: &DocumentPath, value: Option<AttributeValue>) {
    let stored = item.remove(&path.attribute);
    if let Some(value) = value {
        item.insert(path.attribute.clone(), placed(stored, &path.steps, value));
    }
}

/// The current value `stored`, with the new value at the end of the steps.
fn placed(stored: Option<AttributeValue>, steps: &[PathStep], value: AttributeValue) -> AttributeValue {
    match steps.split_first() {
        None => value,
        Some((PathStep::Name(name), rest)) => {
            let mut map = if let Some(AttributeValue::M(map)) = stored { map } else { HashMap::new() };
            let inner = placed(map.remove(name), rest, value);
            map.insert(name.clone(), inner);
            AttributeValue::M(map)
        }
        Some((PathStep::At(at), rest)) => {
            let mut list = if let Some(AttributeValue::L(list)) = stored { list } else { Vec::new() };
            list.resize(list.len().max(at + 1), AttributeValue::Null(true));
            let inner = placed(list.get(*at).cloned(), rest, value);
            list.splice(*at..=*at, [inner]);
            AttributeValue::L(list)
        }
    }
}

// ---- The fields of key templates, and their forms ----

/// A field of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) form: FieldForm,
}

/// How a field appears in a key, as far as the review needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldForm {
    /// As its text.
    Text,
    /// As a number of a fixed width.
    Number,
    /// As a suffix that spreads the key.
    Spread,
    /// As a path, or as the end of one.
    Path,
    /// In another form.
    Other,
}

/// The fields of a template, in their order.
pub(crate) fn fields(template: &Template) -> Vec<Field> {
    let text = template.to_string();
    let inside = text.split('{').skip(1).filter_map(|part| part.split_once('}')).map(|(inside, _)| inside);
    inside.map(field).collect()
}

fn field(inside: &str) -> Field {
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let unsigned = inside.strip_prefix("MAX-").unwrap_or(inside);
    let end = unsigned.find(|c| !is_name(c)).unwrap_or(unsigned.len());
    let (name, form) = unsigned.split_at(end);
    let form = match form.chars().next() {
        None | Some('!') => FieldForm::Text,
        Some(':') => FieldForm::Number,
        Some('%') => FieldForm::Spread,
        Some('/') => FieldForm::Path,
        Some(_) => FieldForm::Other,
    };
    Field { name: name.to_owned(), form }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_meets_each_test_of_a_condition() {
        let sample = Item::from([("status".to_owned(), AttributeValue::S("{status}".to_owned()))]);
        let exists = "attribute_exists";
        for condition in [
            "status = 'paid'",
            "status <> '{status}'",
            "status IN ('sent', 'paid') AND total > 0",
            "total < 10 AND NOT archived = true",
            "total BETWEEN 5 AND 7 OR status = 'x'",
            &format!("{exists}(paidOn) AND NOT {exists}(status)"),
            "begins_with(address.zip, '10') AND address.city = 'Bern'",
            "size(tags) > 2",
            "contains(tags, 7) AND lines[1].sku = 'a'",
            "attribute_type(total, 'N') AND total >= 3.5",
            &format!("NOT (status <> 'paid' OR {exists}(total))"),
        ] {
            let condition: Condition = condition.parse().unwrap();
            let met = meeting(&condition, &sample).unwrap_or_else(|| panic!("{condition}"));
            assert_eq!(condition.holds(&met), Ok(true), "{condition}");
        }
        let never: Condition = "status = 'a' AND status = 'b'".parse().unwrap();
        assert_eq!(meeting(&never, &sample), None);
    }

    #[test]
    fn what_a_mirror_sums_is_a_number_in_its_source() {
        let manifest = r#"
            [table]
            partition-key = "PK"
            sort-key = "SK"
            type = "type"
            [entity.Patient]
            partition-key = "PATIENT#{patientId}"
            sort-key = "PATIENT"
            derived-attributes = ["total"]
            [entity.Payment]
            partition-key = "VISIT#{visitId}"
            sort-key = "PAY#{paymentId}"
            attributes = ["patientId", "amount"]
            [entity.PaymentOfPatient]
            partition-key = "PATIENT#{patientId}"
            sort-key = "PAY#{visitId}#{paymentId}"
            derived = true
            attributes = ["amount"]
            [derivation.payment-of-patient]
            kind = "mirror"
            from = "Payment"
            to = "PaymentOfPatient"
            [derivation.paid]
            kind = "count"
            from = "PaymentOfPatient"
            into = "Patient"
            sum = "amount"
            shows = { sum = "total" }
            "#;
        let (schema, catalogue) = manifest::load(manifest).unwrap();
        let samples = Samples::made_up(&schema).as_read_by(&schema, &catalogue);
        let amount = samples.item("Payment").unwrap().get("amount");
        assert_eq!(amount, Some(&AttributeValue::N("1".to_owned())));
    }

    #[test]
    fn the_source_of_a_roll_up_has_a_time_and_a_number() {
        let manifest = |sort_key: &str, time: &str| {
            let text = format!(
                "[table]\npartition-key = \"PK\"\nsort-key = \"SK\"\ntype = \"type\"\n[entity.Read]\npartition-key = \
                 \"S#{{s}}\"\nsort-key = \"{sort_key}\"\nattributes = [\"v\", \"at\"]\n[entity.Stat]\npartition-key = \
                 \"S#{{s}}\"\nsort-key = \"STAT#{{grain}}#{{bucket}}\"\nderived = true\nderived-attributes = [\"n\", \"sum\", \
                 \"least\", \"most\"]\n[derivation.stats]\nkind = \"roll-up\"\nfrom = \"Read\"\ninto = \"Stat\"\ntime = \
                 \"{time}\"\nvalue = \"v\"\ngrain = \"grain\"\nbucket = \"bucket\"\nshows = {{ count = \"n\", sum = \"sum\", \
                 min = \"least\", max = \"most\" }}\n"
            );
            manifest::load(&text).unwrap()
        };
        for (sort_key, time) in [("R#{id}", "at"), ("R#{id}", "millis(at)"), ("R#{when}#{id}", "when")] {
            let (schema, catalogue) = manifest(sort_key, time);
            let samples = Samples::made_up(&schema).as_read_by(&schema, &catalogue);
            let item = samples.item("Read").unwrap();
            let key = schema.layout.key(item).unwrap();
            let image = schema.image(&key, item).unwrap();
            let unreadable = catalogue.derivations().filter_map(|it| it.unreadable(&schema, &image));
            assert_eq!(unreadable.count(), 0, "{time}: {item:?}");
        }
    }

    #[test]
    fn fields_are_known_by_their_form() {
        let template = Template::parse("A#{UserId}#{MAX-Total:14.2}#{Id%8}#{Path/}#{Path/last}").unwrap();
        let declared: Vec<String> =
            fields(&template).iter().map(|field| format!("{} {:?}", field.name, field.form)).collect();
        let wanted = ["UserId Text", "Total Number", "Id Spread", "Path Path", "Path Path"];
        assert_eq!(declared, wanted);
    }
}
