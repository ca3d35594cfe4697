//! What answers the questions of the vectors in Rust. The test puts the printed file `keys.rs` beside it, and the list of
//! all forms.

use std::io::{self, BufRead as _};

#[path = "keys.rs"]
mod keys;

use keys::{InvalidKey, KeyForm};

fn forms() -> Vec<KeyForm> {
    vec![/* forms */]
}

fn text(hex: &str) -> String {
    let digits = &hex[1..];
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    String::from_utf8((0..digits.len()).step_by(2).map(byte).collect()).unwrap()
}

fn hex(text: &str) -> String {
    text.bytes().fold("x".to_owned(), |all, byte| format!("{all}{byte:02x}"))
}

fn answer(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let (entity, index) = (text(words[1]), text(words[2]));
    let is_it = |form: &KeyForm| form.entity == entity && form.index.unwrap_or("") == index;
    let form = forms().into_iter().find(is_it).unwrap();
    if words[0] == "parse" {
        return match form.parse(&text(words[3]), &text(words[4])) {
            Some(fields) => fields.iter().fold("fields".to_owned(), |all, (name, value)| {
                format!("{all} {}={}", hex(name), hex(value))
            }),
            None => "none".to_owned(),
        };
    }
    let pairs = words[3..].iter().map(|pair| pair.split_once('=').unwrap());
    let pairs: Vec<(String, String)> = pairs.map(|(name, value)| (text(name), text(value))).collect();
    let fields: Vec<(&str, Option<&str>)> = pairs.iter().map(|(name, value)| (&**name, Some(&**value))).collect();
    let answered: Result<String, InvalidKey> = match words[0] {
        "build" => form.build_if(&fields).map(|key| match key {
            Some(key) => format!("key {} {}", hex(&key.partition), hex(&key.sort)),
            None => "none".to_owned(),
        }),
        "partitions" => form.partition_keys(&fields).map(|keys| keys.iter().fold("keys".to_owned(), |all, key| all + " " + &hex(key))),
        _ => form.sort_key_prefix(&fields).map(|prefix| format!("key {}", hex(&prefix))),
    };
    answered.unwrap_or_else(|error| format!("error {}", hex(&error.to_string())))
}

fn main() {
    for line in io::stdin().lock().lines() {
        println!("{}", answer(&line.unwrap()));
    }
}
