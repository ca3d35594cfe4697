//! Which differences keep the marks of a possible loss.

use derive::family::Family;
use operate::{loss::keeps, verify::Finding};

#[test]
fn a_difference_keeps_the_marks_of_its_family_if_somebody_can_correct_it() {
    let catalogue = catalogue::catalogue(&catalogue::schema()).unwrap();
    let kept = |derivation: &str, flaw: Option<&str>| {
        let (pk, sk, flaw) = ("PK".to_owned(), "SK".to_owned(), flaw.map(str::to_owned));
        keeps(&catalogue, &Finding { derivation: derivation.to_owned(), pk, sk, stored: None, derived: None, flaw })
    };
    assert_eq!(kept("like-count", None), Some(Family::Additive));
    assert_eq!(kept("folder-path", None), Some(Family::LevelTriggered));
    assert_eq!(kept("folder-path", Some("it stands in itself")), None);
    assert_eq!(kept("readings-rollup", None), None, "the reading that the bucket lacks is gone");
    assert_eq!(kept("index keys", None), Some(Family::LevelTriggered));
    assert_eq!(kept("a derivation of another version", None), Some(Family::LevelTriggered));
}
