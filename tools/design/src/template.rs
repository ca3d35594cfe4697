//! The fields of key templates, and their forms.

use keys::template::Template;

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
    fn fields_are_known_by_their_form() {
        let template = Template::parse("A#{UserId}#{MAX-Total:14.2}#{Id%8}#{Path/}#{Path/last}").unwrap();
        let declared: Vec<String> =
            fields(&template).iter().map(|field| format!("{} {:?}", field.name, field.form)).collect();
        let wanted = ["UserId Text", "Total Number", "Id Spread", "Path Path", "Path Path"];
        assert_eq!(declared, wanted);
    }
}
