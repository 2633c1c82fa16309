//! Members as ProtoJSON reads them: either spelling, null for unset, names or numbers for enums.

use base64::Engine;
use base64::alphabet;
use base64::engine::general_purpose::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use chio_core::text::snake_case;
use serde_json::{Map, Value};

use crate::error::Fault;

const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const PLAIN: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// The members of an object, read one by one. Those that are not read are ignored.
pub(crate) struct Fields {
    members: Map<String, Value>,
    /// What the object is, for errors.
    what: &'static str,
}

impl Fields {
    pub(crate) const fn new(members: Map<String, Value>, what: &'static str) -> Self {
        Self { members, what }
    }

    /// The members of a value that must be an object.
    pub(crate) fn from_value(value: Value, what: &'static str) -> Result<Self, Fault> {
        match value {
            Value::Object(members) => Ok(Self::new(members, what)),
            _ => Err(Fault::params(format!("expected `{what}` to be an object"))),
        }
    }

    fn wrong(&self, name: &str, expected: &str) -> Fault {
        Fault::params(format!("expected `{}.{name}` to be {expected}", self.what))
    }

    /// A member under either of its spellings; null is unset.
    pub(crate) fn take(&mut self, name: &'static str) -> Result<Option<Value>, Fault> {
        let camel = self.members.remove(name);
        // The other spelling is made only where it can be there: it has an underscore.
        let may_be_snake = name.bytes().any(|byte| byte.is_ascii_uppercase())
            && self.members.keys().any(|found| found.contains('_'));
        let snake = may_be_snake.then(|| self.members.remove(&snake_case(name))).flatten();
        match (camel, snake) {
            (Some(_), Some(_)) => Err(self.wrong(name, "there in one spelling, found both")),
            (Some(Value::Null), None) | (None, Some(Value::Null)) | (None, None) => Ok(None),
            (found, None) | (None, found) => Ok(found),
        }
    }

    pub(crate) fn text(&mut self, name: &'static str) -> Result<Option<String>, Fault> {
        match self.take(name)? {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(name, "a string")),
        }
    }

    /// A text, where an empty one is unset.
    pub(crate) fn name(&mut self, name: &'static str) -> Result<Option<String>, Fault> {
        Ok(self.text(name)?.filter(|text| !text.is_empty()))
    }

    pub(crate) fn flag(&mut self, name: &'static str) -> Result<Option<bool>, Fault> {
        match self.take(name)? {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(_) => Err(self.wrong(name, "a boolean")),
        }
    }

    /// A whole number, which may also be written as text or with a fraction of zero.
    pub(crate) fn integer(&mut self, name: &'static str) -> Result<Option<i64>, Fault> {
        let Some(value) = self.take(name)? else { return Ok(None) };
        let number = match &value {
            Value::Number(number) => number.as_i64().or_else(|| number.as_f64().and_then(whole)),
            Value::String(text) => text.parse().ok(),
            _ => None,
        };
        number.map(Some).ok_or_else(|| self.wrong(name, "a whole number"))
    }

    pub(crate) fn object(
        &mut self,
        name: &'static str,
    ) -> Result<Option<Map<String, Value>>, Fault> {
        match self.take(name)? {
            None => Ok(None),
            Some(Value::Object(members)) => Ok(Some(members)),
            Some(_) => Err(self.wrong(name, "an object")),
        }
    }

    pub(crate) fn list(&mut self, name: &'static str) -> Result<Vec<Value>, Fault> {
        match self.take(name)? {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => Ok(items),
            Some(_) => Err(self.wrong(name, "an array")),
        }
    }

    pub(crate) fn texts(&mut self, name: &'static str) -> Result<Vec<String>, Fault> {
        let items = self.list(name)?.into_iter().map(|item| match item {
            Value::String(text) => Ok(text),
            _ => Err(self.wrong(name, "an array of strings")),
        });
        items.collect()
    }

    /// Bytes in either base64, as standard base64.
    pub(crate) fn bytes(&mut self, name: &'static str) -> Result<Option<String>, Fault> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let bytes = PLAIN.decode(&text).or_else(|_| URL_SAFE.decode(&text));
        let bytes = bytes.map_err(|_| self.wrong(name, "base64"))?;
        Ok(Some(STANDARD.encode(bytes)))
    }

    /// One of several names, or its number in the list of them.
    pub(crate) fn one_of(
        &mut self,
        name: &'static str,
        names: &[&'static str],
    ) -> Result<Option<&'static str>, Fault> {
        let Some(value) = self.take(name)? else { return Ok(None) };
        let known = match &value {
            Value::String(text) => names.iter().find(|name| *name == text),
            Value::Number(number) => number
                .as_u64()
                .and_then(|number| usize::try_from(number).ok())
                .and_then(|number| names.get(number)),
            _ => None,
        };
        known.map(|known| Some(*known)).ok_or_else(|| self.wrong(name, "a known name"))
    }
}

/// A float that is a whole number.
fn whole(number: f64) -> Option<i64> {
    // Within the range in which floats tell whole numbers apart.
    let fits = number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0;
    fits.then(|| format!("{number:.0}").parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(value: Value) -> Fields {
        Fields::from_value(value, "it").unwrap()
    }

    #[test]
    fn either_spelling_is_read_and_null_is_unset() {
        assert_eq!(fields(json!({"contextId": "c"})).text("contextId"), Ok(Some("c".to_owned())));
        assert_eq!(fields(json!({"context_id": "c"})).text("contextId"), Ok(Some("c".to_owned())));
        assert_eq!(fields(json!({"contextId": null})).text("contextId"), Ok(None));
        assert_eq!(fields(json!({"other": 1})).text("contextId"), Ok(None));
        assert_eq!(fields(json!({"id": ""})).name("id"), Ok(None));
        assert!(fields(json!({"contextId": "c", "context_id": "c"})).text("contextId").is_err());
        assert!(fields(json!({"contextId": 1})).text("contextId").is_err());
        assert!(Fields::from_value(json!([]), "it").is_err());
    }

    #[test]
    fn numbers_are_whole_however_they_are_written() {
        for (value, expected) in [
            (json!(7), Some(7)),
            (json!(7.0), Some(7)),
            (json!("7"), Some(7)),
            (json!(-1), Some(-1)),
            (json!(1.5), None),
            (json!("x"), None),
            (json!(true), None),
            (json!(1e300), None),
        ] {
            let found = fields(json!({"n": value})).integer("n").ok().flatten();
            assert_eq!(found, expected, "{value}");
        }
        assert_eq!(fields(json!({})).integer("n"), Ok(None));
    }

    #[test]
    fn bytes_come_in_either_base64_and_go_out_in_one() {
        for text in ["+/8=", "-_8=", "-_8", "+/8"] {
            assert_eq!(fields(json!({"raw": text})).bytes("raw"), Ok(Some("+/8=".to_owned())));
        }
        assert!(fields(json!({"raw": "*"})).bytes("raw").is_err());
    }

    #[test]
    fn enums_are_names_or_numbers() {
        let names = ["ZERO", "ONE"];
        for (value, expected) in [
            (json!("ONE"), Ok(Some("ONE"))),
            (json!(1), Ok(Some("ONE"))),
            (json!(0), Ok(Some("ZERO"))),
            (json!(null), Ok(None)),
        ] {
            assert_eq!(fields(json!({"e": value})).one_of("e", &names), expected);
        }
        for value in [json!("TWO"), json!(2), json!(-1), json!({})] {
            assert!(fields(json!({"e": value})).one_of("e", &names).is_err());
        }
    }
}
