//! A small table for tests of the review.

use derive::{
    catalogue::Catalogue,
    derivation::Derivation,
    guard::{Guard, Purpose},
    kind::Kind,
    query::{Consistency, Query, SortKeys},
    schema::Schema,
    write::{Action, Table, Transaction, Write},
};
use expect_test::Expect;
use keys::{entity::Definition, index_key::IndexKey, item::Item, key::Key};
use serde_dynamo::AttributeValue;
use store::recording::Request;

use crate::{
    Design,
    asked::PatternRequests,
    review::{Check, FindingAnswer, Reviewed, review},
    samples::Samples,
};

/// A table to review.
#[derive(Clone)]
pub(super) struct Reviewing(Design);

impl Reviewing {
    /// The table of a manifest. The key names are added.
    pub(super) fn table(manifest: &str) -> Self {
        let names = "[table]\npartition-key = \"pk\"\nsort-key = \"sk\"\ntype = \"type\"\n";
        Self::of(&format!("{names}{manifest}"))
    }

    /// The table of a whole manifest.
    pub(super) fn of(manifest: &str) -> Self {
        let (schema, catalogue) = manifest::load(manifest).unwrap_or_else(|error| panic!("{error}"));
        Self(Design::declared(schema, catalogue))
    }

    /// Adds a sample of an entity, with its key and attributes.
    pub(super) fn sample(mut self, entity: &str, (pk, sk): (&str, &str), of: &[(&str, AttributeValue)]) -> Self {
        let layout = &self.0.schema.layout;
        let mut item: Item = of.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        item.extend(layout.key_item(&Key::new(pk, sk)));
        item.extend(layout.type_of(entity));
        self.0.samples = Samples::of(&self.0.schema, vec![item]);
        self
    }

    /// Adds a derived key of an entity in an index, which a manifest cannot declare.
    pub(super) fn placed(mut self, entity: &str, key: &IndexKey) -> Self {
        let definition = |definition: &Definition| {
            let own = (definition.name == entity).then(|| key.clone());
            Definition { indexes: definition.indexes.iter().cloned().chain(own).collect(), ..definition.clone() }
        };
        let definitions: Vec<Definition> = self.0.schema.entities().map(definition).collect();
        self.0.schema = Schema::new(self.0.schema.layout.clone(), definitions);
        self
    }

    /// Replaces all derivations by this one.
    pub(super) fn derives(mut self, name: &str, kind: impl Kind + 'static) -> Self {
        self.0.catalogue = Catalogue::new(&self.0.schema, vec![Derivation::new(name, name, kind)]).unwrap();
        self
    }

    pub(super) fn answer(mut self, answer: FindingAnswer) -> Self {
        self.0.answers.push(answer);
        self
    }

    /// Adds a pattern that gets an item.
    pub(super) fn gets(self, id: &str, pk: &str, sk: &str) -> Self {
        self.asks(id, Request::Read(Table::Main, vec![Key::new(pk, sk)], Consistency::Strong), None)
    }

    /// Adds a pattern that queries.
    pub(super) fn queries(self, id: &str, index: Option<&str>, pk: &str, sk: SortKeys) -> Self {
        self.asks(id, Request::Query(Table::Main, Query::of(index, pk, sk), None), None)
    }

    /// Adds a pattern that deletes these items in a transaction.
    pub(super) fn deletes(self, id: &str, keys: &[(&str, &str)], actions_max: Option<usize>) -> Self {
        let delete = |(pk, sk): &(&str, &str)| Write {
            table: Table::Main,
            key: Key::new(*pk, *sk),
            action: Action::Delete,
            guard: Some(Guard::present(Purpose::Update)),
        };
        let transaction = Transaction::new(keys.iter().map(delete).collect()).unwrap();
        self.asks(id, Request::Transact(transaction), actions_max)
    }

    /// Adds a pattern with this request.
    pub(super) fn asks(mut self, id: &str, request: Request, actions_max: Option<usize>) -> Self {
        self.0.patterns.push(PatternRequests {
            name: id.to_owned(),
            id: id.to_owned(),
            title: "a pattern".to_owned(),
            input: String::new(),
            result: String::new(),
            order: String::new(),
            requests: vec![request],
            filter: None,
            actions_max,
        });
        self
    }

    pub(super) fn reviewed(&self) -> Reviewed {
        review(&self.0)
    }

    /// Compares the findings of one check with a text: `subject: what`, one per line.
    pub(super) fn check(&self, check: Check, wanted: &Expect) {
        let reviewed = self.reviewed();
        let found = reviewed.findings.iter().filter(|(finding, _)| finding.check == check);
        let lines: Vec<String> = found.map(|(finding, _)| format!("{}: {}", finding.subject, finding.what)).collect();
        wanted.assert_eq(&lines.join("\n"));
    }
}
