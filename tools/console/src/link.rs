//! Addresses of pages.

use keys::key::Key;
use maud::{Markup, html};

/// The page of an item.
pub(crate) fn of_item(key: &Key) -> String {
    address("/item", &[("pk", &key.pk), ("sk", &key.sk)])
}

/// What the page of an item shows, as JSON.
pub(crate) fn of_item_object(key: &Key, reads_stream: bool) -> String {
    let changes = if reads_stream { "true" } else { "false" };
    address("/item.json", &[("pk", &key.pk), ("sk", &key.sk), ("changes", changes)])
}

/// The page of the items under a partition key, of the table or of an index.
pub(crate) fn of_collection(index: Option<&str>, pk: &str) -> String {
    let mut named = vec![("pk", pk)];
    named.extend(index.map(|index| ("index", index)));
    address("/collection", &named)
}

/// The page of a change.
pub(crate) fn of_change(event: &str) -> String {
    address("/change", &[("event", event)])
}

/// The page of what a redrive would do.
pub(crate) fn of_try(event: &str) -> String {
    address("/parked/try", &[("id", event)])
}

/// The flow of an item.
pub(crate) fn of_item_flow(key: &Key) -> String {
    address("/flow", &[("key", &key.to_string())])
}

/// The flow of a derivation.
pub(crate) fn of_flow(derivation: &str) -> String {
    address("/flow", &[("derivation", derivation)])
}

fn address(page: &str, named: &[(&str, &str)]) -> String {
    // Texts have a form for an address, whatever they hold.
    let query = serde_urlencoded::to_string(named).unwrap_or_default();
    format!("{page}?{query}")
}

/// A key that leads to its item.
pub(crate) fn key(key: &Key) -> Markup {
    html! { a.key href=(of_item(key)) { (key) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_holds_any_key() {
        let key = Key::new("USER#å&b=c", "A+B %/?");
        let address = of_item(&key);
        assert_eq!(address, "/item?pk=USER%23%C3%A5%26b%3Dc&sk=A%2BB+%25%2F%3F");
        let read: Vec<(String, String)> = serde_urlencoded::from_str(address.split_once('?').unwrap().1).unwrap();
        assert_eq!(read, [("pk".to_owned(), key.pk), ("sk".to_owned(), key.sk)]);
    }
}
