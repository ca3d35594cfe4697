//! The same description with two derived entities whose keys meet.

use crate::drawn::description::{Description, DrawnEntity, FieldOf, Piece};

/// The description with a derived entity under keys of another one; `None` if no two of them fit.
pub(in crate::drawn) fn with_meeting_keys(of: &Description) -> Option<Description> {
    let derived: Vec<usize> = (0..of.entities.len()).filter(|at| of.entities[*at].is_derived).collect();
    for (n, one) in derived.iter().enumerate() {
        for other in derived.iter().skip(n + 1) {
            if let Some((pk, sk)) = under_keys_of(&of.entities[*one], &of.entities[*other]) {
                let mut meeting = of.clone();
                (meeting.entities[*other].pk, meeting.entities[*other].sk) = (pk, sk);
                return Some(meeting);
            }
        }
    }
    None
}

/// The key of the other entity with the texts of this one's, if a value of each of its fields can be one of this one's.
fn under_keys_of(one: &DrawnEntity, other: &DrawnEntity) -> Option<(Vec<Piece>, Vec<Piece>)> {
    let with_texts = |one: &[Piece], other: &[Piece]| -> Option<Vec<Piece>> {
        let piece = |(one, other): (&Piece, &Piece)| match (one, other) {
            (Piece::Text(text), Piece::Text(_)) => Some(Piece::Text(text.clone())),
            (Piece::Field(_, a), Piece::Field(_, b)) => is_alike(*a, *b).then(|| other.clone()),
            _ => None,
        };
        if one.len() != other.len() {
            return None;
        }
        one.iter().zip(other).map(piece).collect()
    };
    if one.table != other.table {
        return None;
    }
    Some((with_texts(&one.pk, &other.pk)?, with_texts(&one.sk, &other.sk)?))
}

/// Is a value in a field of the one form also one in a field of the other?
fn is_alike(one: FieldOf, other: FieldOf) -> bool {
    one == other || [one, other].iter().all(|of| matches!(of, FieldOf::Text | FieldOf::Time)) || {
        let is_padded = |of| matches!(of, FieldOf::Padded(_) | FieldOf::Inverted(_));
        (one == FieldOf::Text && is_padded(other)) || (other == FieldOf::Text && is_padded(one))
    }
}
