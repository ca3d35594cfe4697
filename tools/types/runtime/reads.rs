
// ---- Reads, by the crate `aws-sdk-dynamodb` ----

use std::{collections::HashMap, future::Future, pin::Pin, task::Poll, time::Duration};

use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes};
use aws_sdk_dynamodb::{Client, config::AsyncSleep as _};

/// The attributes of an item.
pub type Item = HashMap<String, AttributeValue>;

/// A page of items. Without a cursor it is the last one, even if another has fewer items than its limit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    pub items: Vec<Item>,
    pub cursor: Option<String>,
}

/// What a caller may choose of a query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageOptions {
    /// The least value of the next field of the sort key.
    pub low: Option<String>,
    /// The greatest value of the next field of the sort key.
    pub high: Option<String>,
    pub limit: Option<u16>,
    pub cursor: Option<String>,
    pub descending: Option<bool>,
    pub consistent: Option<bool>,
}

/// The count and the sum of a derivation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    pub count: i64,
    /// The sum, a number as DynamoDB writes it.
    pub sum: Option<String>,
}

/// Why a read failed.
#[derive(Debug)]
pub enum ReadError {
    /// A value that the key cannot hold.
    Key(InvalidKey),
    /// The cursor is damaged, or of another query than this one.
    Cursor(&'static str),
    /// The limit of a page is from 1 to 1,000.
    Limit,
    /// The sum of this derivation has too many digits.
    Sum(String),
    /// DynamoDB has not processed the keys of a batch.
    Unprocessed(usize),
    /// DynamoDB refused the request, or gave no answer.
    Database(Box<aws_sdk_dynamodb::Error>),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Key(error) => error.fmt(f),
            ReadError::Cursor(of) => write!(f, "the cursor is damaged, or not one of {of} with these values"),
            ReadError::Limit => write!(f, "limit is from 1 to {LIMIT_MAX}"),
            ReadError::Sum(of) => write!(f, "the sum of {of} has more digits than DynamoDB takes"),
            ReadError::Unprocessed(keys) => write!(f, "DynamoDB has not processed {keys} keys"),
            ReadError::Database(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ReadError {}

impl From<InvalidKey> for ReadError {
    fn from(error: InvalidKey) -> Self {
        ReadError::Key(error)
    }
}

fn failed(error: impl Into<aws_sdk_dynamodb::Error>) -> ReadError {
    ReadError::Database(Box::new(error.into()))
}

/// Requests to a partition for a page. A page ends early if nearly all items are left out.
const ROUNDS_MAX: u32 = 10;
const LIMIT_MAX: u16 = 1_000;
/// Failures in a row until a batch of keys counts as failed.
const FAILURES_MAX: u32 = 8;

/// A read of the application.
#[derive(Clone, Copy, Debug)]
pub struct Read {
    pub name: &'static str,
    pub form: KeyForm,
    /// Key attributes of the table, and those that are numbers.
    pub table: &'static [&'static str],
    pub numbers: &'static [&'static str],
    /// The type attribute, and the entities of its items; or the forms of their keys; neither if all items are.
    pub entity_type: Option<&'static str>,
    pub entities: &'static [&'static str],
    pub forms: &'static [KeyForm],
    pub consistent: bool,
}

/// A query of the application.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    pub read: Read,
    pub fields: &'static [&'static str],
    /// The field that the caller may bound, or below which the items are.
    pub next: Option<(&'static str, bool)>,
    pub range: Option<(&'static str, &'static str)>,
    pub descending: bool,
    pub limit: u16,
    pub filter: Option<Filter>,
}

/// A filter of DynamoDB.
#[derive(Clone, Copy, Debug)]
pub struct Filter {
    pub text: &'static str,
    pub names: &'static [&'static str],
    pub values: &'static [FilterValue],
}

/// A value of a filter.
#[derive(Clone, Copy, Debug)]
pub enum FilterValue {
    Input(&'static str),
    Text(&'static str),
    Number(&'static str),
    Bool(bool),
    Null,
}

/// The fields of a key.
pub type Given<'a> = &'a [(&'static str, Option<&'a str>)];

/// The values of a filter.
pub type Inputs<'a> = &'a [(&'static str, &'a AttributeValue)];

impl Read {
    fn is_of(&self, item: &Item) -> bool {
        if let Some(name) = self.entity_type {
            return self.entities.contains(&text(item, name));
        }
        let is = |form: &KeyForm| {
            let [partition, sort] = form.names.map(|name| if name.is_empty() { "" } else { text(item, name) });
            form.parse(partition, sort).is_some()
        };
        self.forms.is_empty() || self.forms.iter().any(is)
    }

    fn typed(&self, name: &str, text: &str) -> AttributeValue {
        let text = text.to_owned();
        if self.numbers.contains(&name) { AttributeValue::N(text) } else { AttributeValue::S(text) }
    }

    /// The key attributes of an item, numbers in one spelling.
    fn spelled(&self, item: &Item) -> Vec<String> {
        let spelled = |name: &&str| {
            let text = text(item, name);
            self.numbers.contains(name).then(|| sum(text, "0")).flatten().unwrap_or_else(|| text.to_owned())
        };
        self.table.iter().map(spelled).collect()
    }

    /// The key attributes of these fields.
    pub fn key(&self, fields: Given<'_>) -> Result<Item, InvalidKey> {
        let key = self.form.build(fields)?;
        let parts = self.form.names.into_iter().zip([key.partition, key.sort]).filter(|(name, _)| !name.is_empty());
        Ok(parts.map(|(name, text)| (name.to_owned(), self.typed(name, &text))).collect())
    }

    /// The item; `None` if there is none.
    pub async fn get(
        &self,
        client: &Client,
        table: &str,
        fields: Given<'_>,
        consistent: Option<bool>,
    ) -> Result<Option<Item>, ReadError> {
        let request = client.get_item().table_name(table).set_key(Some(self.key(fields)?));
        let output = request.consistent_read(consistent.unwrap_or(self.consistent)).send().await.map_err(failed)?;
        Ok(output.item.filter(|item| self.is_of(item)))
    }

    /// The items with these keys in any order, and the positions of those that are not there. Each key is read once.
    pub async fn batch_get(
        &self,
        client: &Client,
        table: &str,
        all: impl Iterator<Item = Result<Item, InvalidKey>>,
        consistent: Option<bool>,
    ) -> Result<(Vec<Item>, Vec<usize>), ReadError> {
        let (mut missing, mut waiting): (BTreeMap<Vec<String>, usize>, Vec<Item>) = (BTreeMap::new(), Vec::new());
        for (at, key) in all.enumerate() {
            let key = key?;
            if missing.insert(self.spelled(&key), at).is_none() {
                waiting.push(key);
            }
        }
        let (mut items, mut n_failures) = (Vec::new(), 0);
        while !waiting.is_empty() {
            let keys: Vec<Item> = waiting.drain(..waiting.len().min(100)).collect();
            let n_keys = keys.len();
            let asked = KeysAndAttributes::builder().set_keys(Some(keys));
            let asked = asked.consistent_read(consistent.unwrap_or(self.consistent)).build();
            let asked = asked.expect("it has keys");
            let output = client.batch_get_item().request_items(table, asked).send().await.map_err(failed)?;
            for item in output.responses.unwrap_or_default().remove(table).unwrap_or_default() {
                if self.is_of(&item) && missing.remove(&self.spelled(&item)).is_some() {
                    items.push(item);
                }
            }
            let unprocessed = output.unprocessed_keys.unwrap_or_default().remove(table);
            let unprocessed = unprocessed.map(|asked| asked.keys).unwrap_or_default();
            n_failures = if unprocessed.len() == n_keys { n_failures + 1 } else { 0 };
            if n_failures > FAILURES_MAX {
                return Err(ReadError::Unprocessed(unprocessed.len() + waiting.len()));
            }
            if let (false, Some(clock)) = (unprocessed.is_empty(), client.config().sleep_impl()) {
                clock.sleep(Duration::from_millis(25 << n_failures)).await;
            }
            waiting.extend(unprocessed);
        }
        Ok((items, missing.into_values().collect()))
    }

    /// By the name of the derivation; one that never counted anything is absent.
    pub async fn counts(
        &self,
        client: &Client,
        table: &str,
        fields: Given<'_>,
    ) -> Result<BTreeMap<String, Counted>, ReadError> {
        let ([partition, sort], key) = (self.form.names, self.form.build(fields)?);
        let prefix = key.sort + "#COUNT#";
        let (mut counts, mut from) = (BTreeMap::<String, Counted>::new(), None);
        loop {
            let request = client.query().table_name(table).consistent_read(self.consistent).set_exclusive_start_key(from);
            let request = request.key_condition_expression("#p = :p AND begins_with(#s, :s)");
            let request = request.expression_attribute_names("#p", partition).expression_attribute_names("#s", sort);
            let request = request.expression_attribute_values(":p", AttributeValue::S(key.partition.clone()));
            let request = request.expression_attribute_values(":s", AttributeValue::S(prefix.clone()));
            let output = request.send().await.map_err(failed)?;
            for item in output.items.unwrap_or_default() {
                let counter = text(&item, sort).strip_prefix(&prefix).and_then(|rest| rest.split_once('#'));
                let is_number = |text: &str| text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
                let counter = counter.filter(|(_, number)| is_number(number) && self.is_of(&item));
                let Some((name, _)) = counter else { continue };
                let counted = counts.entry(name.to_owned()).or_default();
                counted.count += text(&item, "Value").parse::<i64>().unwrap_or(0);
                if item.contains_key("Sum") {
                    let sum = sum(counted.sum.as_deref().unwrap_or("0"), text(&item, "Sum"));
                    counted.sum = Some(sum.ok_or_else(|| ReadError::Sum(name.to_owned()))?);
                }
            }
            from = output.last_evaluated_key;
            if from.is_none() {
                return Ok(counts);
            }
        }
    }
}

/// A text or a number of an item; empty if it has none.
fn text<'a>(item: &'a Item, name: &str) -> &'a str {
    match item.get(name) {
        Some(AttributeValue::S(text) | AttributeValue::N(text)) => text,
        _ => "",
    }
}

fn texts(item: &Item, names: &[&str]) -> Vec<String> {
    names.iter().map(|name| text(item, name).to_owned()).collect()
}

/// The sum of two numbers; `None` if it has too many digits.
fn sum(one: &str, other: &str) -> Option<String> {
    let [one, other] = [decimal(one)?, decimal(other)?];
    let least = one.2.min(other.2);
    let scaled = |(is_negative, digits, power): (bool, String, i64)| {
        let unit = digits.parse::<i128>().ok().or(Some(0).filter(|_| digits.is_empty()))?;
        let scaled = unit.checked_mul(10_i128.checked_pow(u32::try_from(power - least).ok()?)?)?;
        Some(if is_negative { -scaled } else { scaled })
    };
    let total = scaled(one)?.checked_add(scaled(other)?)?;
    let sign = if total < 0 { "-" } else { "" };
    let digits = total.unsigned_abs().to_string();
    let zeros = "0".repeat(usize::try_from(least.max(0)).ok()?);
    Some(sign.to_owned() + &plain(&(digits + &zeros), usize::try_from((-least).max(0)).ok()?))
}

/// A partition that is queried.
struct Lane {
    partition: String,
    position: Position,
    ahead: std::collections::VecDeque<Item>,
    is_read: bool,
}

/// The position in a partition.
#[derive(Clone, PartialEq)]
enum Position {
    Start,
    Behind(Vec<String>),
    End,
}

/// The condition on a sort key.
enum SortKeys {
    All,
    Is(String),
    Prefix(String),
    From(String),
    To(String),
    Between(String, String),
}

impl Range {
    /// A page.
    pub async fn page(
        &self,
        client: &Client,
        table: &str,
        (fields, inputs): (Given<'_>, Inputs<'_>),
        options: &PageOptions,
    ) -> Result<Page, ReadError> {
        let limit = options.limit.unwrap_or(self.limit);
        if !(1..=LIMIT_MAX).contains(&limit) {
            return Err(ReadError::Limit);
        }
        let limit = usize::from(limit);
        let sort_keys = self.sort_keys(fields, options)?;
        let partitions = self.read.form.partition_keys(fields)?;
        let is_descending = options.descending.unwrap_or(self.descending);
        let scope = self.scope(&partitions, &sort_keys, inputs, is_descending);
        let positions = match &options.cursor {
            None => vec![Position::Start; partitions.len()],
            Some(cursor) => opened(cursor, &scope).ok_or(ReadError::Cursor(self.read.name))?,
        };
        let lane = |(partition, position)| {
            let is_read = position == Position::End;
            Lane { partition, position, ahead: Default::default(), is_read }
        };
        let mut lanes: Vec<Lane> = partitions.into_iter().zip(positions).map(lane).collect();
        let share = (2 * limit).div_ceil(lanes.len()).min(limit);
        let mut items = Vec::new();
        for round in 0..ROUNDS_MAX {
            let wanted = if lanes.len() > 1 { share } else { limit - items.len() };
            let wanted = (wanted << round).min(usize::from(LIMIT_MAX));
            let behind = lanes.iter_mut().filter(|lane| lane.ahead.is_empty() && !lane.is_read);
            let asked = (&sort_keys, inputs, is_descending, options);
            let fills = behind.map(|lane| self.fill(client, table, asked, lane, wanted));
            for filled in all(fills).await {
                filled?;
            }
            while items.len() < limit && lanes.iter().all(|lane| !lane.ahead.is_empty() || lane.is_read) {
                let Some(lane) = self.first(&mut lanes, is_descending) else {
                    return Ok(Page { items, cursor: None });
                };
                let Some(item) = lane.ahead.pop_front() else { break };
                lane.position = Position::Behind(texts(&item, &self.position_names()));
                if self.read.is_of(&item) {
                    items.push(item);
                }
            }
            if items.len() == limit {
                break;
            }
        }
        for lane in lanes.iter_mut().filter(|lane| lane.is_read && lane.ahead.is_empty()) {
            lane.position = Position::End;
        }
        let is_ended = lanes.iter().all(|lane| lane.position == Position::End);
        let cursor = (!is_ended).then(|| sealed(lanes.iter().map(|lane| &lane.position), &scope));
        Ok(Page { items, cursor })
    }

    fn sort_keys(&self, fields: Given<'_>, options: &PageOptions) -> Result<SortKeys, InvalidKey> {
        if let Some((least, greatest)) = self.range {
            if least.is_empty() {
                return Ok(SortKeys::All);
            }
            return Ok(SortKeys::Between(least.to_owned(), greatest.to_owned()));
        }
        let form = &self.read.form;
        let given: Vec<(&str, Option<&str>)> = self.fields.iter().map(|name| (*name, value(name, fields))).collect();
        let with = |name: &'static str, bound: &str| form.sort_key_prefix(&[&given[..], &[(name, Some(bound))]].concat());
        let prefix = form.sort_key_prefix(&given)?;
        let begins = |prefix: String| if prefix.is_empty() { SortKeys::All } else { SortKeys::Prefix(prefix) };
        let is_given = |piece: &Piece| piece.name().is_none_or(|name| self.fields.contains(&name));
        let next = match self.next {
            None if form.sort.iter().all(is_given) && !prefix.is_empty() => return Ok(SortKeys::Is(prefix)),
            None => return Ok(begins(prefix)),
            Some((next, true)) => return Ok(SortKeys::Prefix(with(next, value(next, fields).unwrap_or_default())? + "/")),
            Some((next, false)) => next,
        };
        let is_inverted = form.sort.iter().any(|piece| matches!(piece, Piece::Inverted(name, ..) if *name == next));
        let (low, high) = (options.low.as_deref(), options.high.as_deref());
        let (from, to) = if is_inverted { (high, low) } else { (low, high) };
        let greatest = match to {
            None => past(&prefix),
            Some(to) if form.sort.last().and_then(Piece::name) == Some(next) => Some(with(next, to)?),
            Some(to) => past(&with(next, to)?),
        };
        let least = from.map_or(Ok(prefix.clone()), |from| with(next, from))?;
        Ok(match (greatest, least.is_empty()) {
            _ if from.is_none() && to.is_none() => begins(prefix),
            (None, _) => SortKeys::From(least),
            (Some(greatest), true) => SortKeys::To(greatest),
            (Some(greatest), false) if self.is_before(&greatest, &least) => {
                let problem = "has a low that is behind its high in the order of the key".to_owned();
                return Err(InvalidKey { entity: form.entity, attribute: next.to_owned(), problem });
            }
            (Some(greatest), false) => SortKeys::Between(least, greatest),
        })
    }

    async fn fill(
        &self,
        client: &Client,
        table: &str,
        (sort_keys, inputs, is_descending, options): (&SortKeys, Inputs<'_>, bool, &PageOptions),
        lane: &mut Lane,
        wanted: usize,
    ) -> Result<(), ReadError> {
        let [partition, sort] = self.read.form.names;
        let (condition, values) = match sort_keys {
            SortKeys::All => ("", [None, None]),
            SortKeys::Is(text) => (" AND #s = :l", [Some(text), None]),
            SortKeys::Prefix(text) => (" AND begins_with(#s, :l)", [Some(text), None]),
            SortKeys::From(text) => (" AND #s >= :l", [Some(text), None]),
            SortKeys::To(text) => (" AND #s <= :g", [None, Some(text)]),
            SortKeys::Between(least, greatest) => (" AND #s BETWEEN :l AND :g", [Some(least), Some(greatest)]),
        };
        let mut request = client
            .query()
            .table_name(table)
            .set_index_name(self.read.form.index.map(str::to_owned))
            .key_condition_expression(format!("#p = :p{condition}"))
            .expression_attribute_names("#p", partition)
            .expression_attribute_values(":p", self.read.typed(partition, &lane.partition))
            .scan_index_forward(!is_descending)
            .consistent_read(options.consistent.unwrap_or(self.read.consistent))
            .limit(i32::try_from(wanted).unwrap_or(i32::MAX));
        if !condition.is_empty() {
            request = request.expression_attribute_names("#s", sort);
        }
        for (name, text) in [":l", ":g"].into_iter().zip(values) {
            let Some(text) = text else { continue };
            request = request.expression_attribute_values(name, self.read.typed(sort, text));
        }
        if let Some(filter) = self.filter {
            request = request.filter_expression(filter.text);
            for (at, name) in filter.names.iter().enumerate() {
                request = request.expression_attribute_names(format!("#n{at}"), *name);
            }
            for (at, of) in filter.values.iter().enumerate() {
                let input = |name| inputs.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).clone());
                let value = match *of {
                    FilterValue::Input(name) => input(name).unwrap_or(AttributeValue::Null(true)),
                    FilterValue::Text(text) => AttributeValue::S(text.to_owned()),
                    FilterValue::Number(number) => AttributeValue::N(number.to_owned()),
                    FilterValue::Bool(truth) => AttributeValue::Bool(truth),
                    FilterValue::Null => AttributeValue::Null(true),
                };
                request = request.expression_attribute_values(format!(":v{at}"), value);
            }
        }
        if let Position::Behind(texts) = &lane.position {
            request = request.exclusive_start_key(partition, self.read.typed(partition, &lane.partition));
            for (name, text) in self.position_names().into_iter().zip(texts) {
                request = request.exclusive_start_key(name, self.read.typed(name, text));
            }
        }
        let output = request.send().await.map_err(failed)?;
        lane.ahead = output.items.unwrap_or_default().into();
        lane.is_read = output.last_evaluated_key.is_none();
        if let (true, Some(last)) = (lane.ahead.is_empty(), output.last_evaluated_key) {
            lane.position = Position::Behind(texts(&last, &self.position_names()));
        }
        Ok(())
    }

    /// True if a sort key is less than another.
    fn is_before(&self, one: &str, other: &str) -> bool {
        if !self.read.numbers.contains(&self.read.form.names[1]) {
            return one < other;
        }
        let negative = other.strip_prefix('-').map_or_else(|| format!("-{other}"), str::to_owned);
        sum(one, &negative).is_some_and(|difference| difference.starts_with('-'))
    }

    /// The lane with the next item of all; the first of equals.
    fn first<'a>(&self, lanes: &'a mut [Lane], is_descending: bool) -> Option<&'a mut Lane> {
        let sort = self.read.form.names[1];
        let is_before = |one: &Item, other: &Item| {
            let (one, other) = if is_descending { (other, one) } else { (one, other) };
            self.is_before(text(one, sort), text(other, sort))
        };
        let mut found: Option<(usize, &Item)> = None;
        for (at, lane) in lanes.iter().enumerate() {
            let Some(next) = lane.ahead.front() else { continue };
            if found.is_none_or(|(_, least)| is_before(next, least)) {
                found = Some((at, next));
            }
        }
        let (at, _) = found?;
        lanes.get_mut(at)
    }

    /// The key attributes of a position, without the partition key of the query, which the caller gives again.
    fn position_names(&self) -> Vec<&'static str> {
        let [partition, sort] = self.read.form.names;
        let others = self.read.table.iter().copied().filter(|name| *name != sort);
        [sort].into_iter().chain(others).filter(|name| !name.is_empty() && *name != partition).collect()
    }

    /// What a cursor belongs to.
    fn scope(&self, partitions: &[String], sort_keys: &SortKeys, inputs: Inputs<'_>, is_descending: bool) -> String {
        let (kind, least, greatest) = match sort_keys {
            SortKeys::All => (0, "", ""),
            SortKeys::Is(text) => (1, text.as_str(), ""),
            SortKeys::Prefix(text) => (2, text.as_str(), ""),
            SortKeys::From(text) => (3, text.as_str(), ""),
            SortKeys::To(text) => (4, "", text.as_str()),
            SortKeys::Between(least, greatest) => (5, least.as_str(), greatest.as_str()),
        };
        format!("{:?}", (self.read.name, partitions, kind, least, greatest, inputs, is_descending))
    }
}

/// The least text that is greater than every text with this prefix; `None` if there is none.
fn past(prefix: &str) -> Option<String> {
    let mut text = prefix.to_owned();
    while let Some(last) = text.pop() {
        if let Some(next) = (last..=char::MAX).nth(1) {
            text.push(next);
            return Some(text);
        }
    }
    None
}

/// The outputs of futures that run side by side, in order.
async fn all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut running: Vec<(Pin<Box<F>>, Option<F::Output>)> = futures.map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(|context| {
        for (future, output) in running.iter_mut().filter(|(_, output)| output.is_none()) {
            if let Poll::Ready(ready) = future.as_mut().poll(context) {
                *output = Some(ready);
            }
        }
        if running.iter().all(|(_, output)| output.is_some()) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    running.into_iter().filter_map(|(_, output)| output).collect()
}

/// Positions as a text for the caller: fields by `#`, positions by `##`, with a checksum of them and their scope.
fn sealed<'a>(positions: impl Iterator<Item = &'a Position>, scope: &str) -> String {
    let position = |position: &Position| match position {
        Position::Start => "0".to_owned(),
        Position::End => "1".to_owned(),
        Position::Behind(texts) => texts.iter().fold("2".to_owned(), |all, text| all + "#" + &escaped(text)),
    };
    let text = positions.map(position).collect::<Vec<_>>().join("##");
    let sealed = format!("{}##{text}", crc32(&(scope.to_owned() + &text)));
    sealed.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn opened(cursor: &str, scope: &str) -> Option<Vec<Position>> {
    let byte = |at: usize| u8::from_str_radix(cursor.get(at..at + 2)?, 16).ok();
    let sealed = String::from_utf8((0..cursor.len()).step_by(2).map(byte).collect::<Option<_>>()?).ok()?;
    let (checksum, text) = sealed.split_once("##")?;
    if checksum.parse() != Ok(crc32(&(scope.to_owned() + text))) {
        return None;
    }
    let position = |text: &str| match text {
        "0" => Position::Start,
        "1" => Position::End,
        _ => Position::Behind(text.split('#').skip(1).map(restored).collect()),
    };
    Some(text.split("##").map(position).collect())
}
