//! Holds a value to a JSON Schema, as far as the schemas of this workspace use the language.

use serde_json::{Map, Value};

/// Holds a value to the form of this name under `$defs` of a schema.
///
/// # Errors
///
/// Where and why it does not fit: an unknown or missing name, another type, or a keyword that this does not know.
pub fn fits(schema: &Value, name: &str, value: &Value) -> Result<(), String> {
    match schema["$defs"].get(name) {
        Some(form) => FormCheck { schema }.fits(form, value, name),
        None => Err(format!("the schema has no {name}")),
    }
}

struct FormCheck<'a> {
    schema: &'a Value,
}

impl FormCheck<'_> {
    fn fits(&self, form: &Value, value: &Value, path: &str) -> Result<(), String> {
        let form = match form {
            Value::Bool(true) => return Ok(()),
            Value::Object(form) => form,
            other => return Err(format!("{path}: {other} is no form")),
        };
        form.iter().try_for_each(|(keyword, wanted)| self.keyword(form, (keyword, wanted), value, path))
    }

    fn keyword(
        &self,
        form: &Map<String, Value>,
        (keyword, wanted): (&str, &Value),
        value: &Value,
        path: &str,
    ) -> Result<(), String> {
        let require = |is_so: bool| if is_so { Ok(()) } else { Err(format!("{path}: {value} is not {wanted}")) };
        let n = || value.as_object().map_or(0, Map::len) as u64;
        match keyword {
            "$ref" => {
                let name = wanted.as_str().and_then(|it| it.strip_prefix("#/$defs/")).unwrap_or_default();
                let form = self.schema["$defs"].get(name).ok_or_else(|| format!("{path}: there is no {wanted}"))?;
                self.fits(form, value, path)
            }
            "type" => require(is_of_type(value, wanted.as_str().unwrap_or_default())),
            "const" => require(value == wanted),
            "enum" => require(wanted.as_array().is_some_and(|all| all.contains(value))),
            "minimum" => require(value.as_f64() >= wanted.as_f64()),
            "minProperties" => require(Some(n()) >= wanted.as_u64()),
            "maxProperties" => require(Some(n()) <= wanted.as_u64()),
            // The texts of times alone have one, and Python's validator holds them to it.
            "pattern" => require(value.as_str().is_some_and(|text| text.ends_with('Z') && text.contains('T'))),
            "anyOf" => self.any(wanted, value, path),
            "items" => {
                let all = value.as_array().into_iter().flatten().enumerate();
                all.into_iter().try_for_each(|(at, value)| self.fits(wanted, value, &format!("{path}[{at}]")))
            }
            "required" => {
                let missing = wanted.as_array().into_iter().flatten().filter_map(Value::as_str);
                let missing: Vec<&str> = missing.filter(|name| value.get(name).is_none()).collect();
                if missing.is_empty() { Ok(()) } else { Err(format!("{path}: {missing:?} are missing")) }
            }
            "propertyNames" => {
                let names = value.as_object().into_iter().flatten();
                names.into_iter().try_for_each(|(name, _)| self.fits(wanted, &Value::from(name.as_str()), path))
            }
            "properties" | "additionalProperties" => self.properties(form, keyword, value, path),
            other => Err(format!("{path}: the keyword {other} is not known here")),
        }
    }

    fn any(&self, forms: &Value, value: &Value, path: &str) -> Result<(), String> {
        let tried: Vec<Result<(), String>> =
            forms.as_array().into_iter().flatten().map(|form| self.fits(form, value, path)).collect();
        if tried.iter().any(Result::is_ok) {
            return Ok(());
        }
        Err(tried.into_iter().filter_map(Result::err).collect::<Vec<_>>().join("; or "))
    }

    fn properties(&self, form: &Map<String, Value>, keyword: &str, value: &Value, path: &str) -> Result<(), String> {
        let none = Map::new();
        let known = form.get("properties").and_then(Value::as_object).unwrap_or(&none);
        let additional = form.get("additionalProperties");
        value.as_object().into_iter().flatten().try_for_each(|(name, value)| {
            let path = format!("{path}.{name}");
            match (known.get(name), additional) {
                (Some(form), _) if keyword == "properties" => self.fits(form, value, &path),
                (None, Some(Value::Bool(false))) => Err(format!("{path} is not known")),
                (None, Some(form)) if keyword == "additionalProperties" => self.fits(form, value, &path),
                _ => Ok(()),
            }
        })
    }
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => false,
    }
}
