//! The texts of a JSON value, in an order of their own, and the value without some of them.
//!
//! The order puts the names of one object next to each other, then its texts, then what is below:
//! so that a secret in pieces is a secret again when neighbours are joined.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use serde_json::{Map, Value};

/// The fewest numbers that may spell a text.
const MIN_CODES: usize = 12;

/// A text of a value.
pub(crate) struct Leaf<'a> {
    pub(crate) text: Cow<'a, str>,
    /// The same for neighbours: names of one object, or texts of one object or list.
    pub(crate) group: usize,
    /// The name that it has in its object; none for names themselves and for items of lists.
    pub(crate) name: Option<&'a str>,
}

/// Shows every text of a value, in order, with its group and its name.
pub(crate) fn visit<'a>(value: &'a Value, see: &mut impl FnMut(Leaf<'a>)) {
    let mut groups = 0;
    visit_below(value, &mut groups, see);
}

fn visit_below<'a>(value: &'a Value, groups: &mut usize, see: &mut impl FnMut(Leaf<'a>)) {
    let group = *groups;
    *groups += 2;
    match value {
        Value::String(text) => see(Leaf { text: Cow::Borrowed(text), group, name: None }),
        Value::Array(items) => {
            if let Some(text) = spelled(items) {
                return see(Leaf { text: Cow::Owned(text), group, name: None });
            }
            let texts = items.iter().filter_map(Value::as_str);
            texts.for_each(|text| see(Leaf { text: Cow::Borrowed(text), group, name: None }));
            items
                .iter()
                .filter(|item| is_folder(item))
                .for_each(|item| visit_below(item, groups, see));
        }
        Value::Object(members) => {
            for name in members.keys() {
                see(Leaf { text: Cow::Borrowed(name), group: group + 1, name: None });
            }
            for (name, value) in members {
                if let Value::String(text) = value {
                    see(Leaf { text: Cow::Borrowed(text), group, name: Some(name) });
                }
            }
            let below = members.values().filter(|item| is_folder(item));
            below.for_each(|item| visit_below(item, groups, see));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

const fn is_folder(value: &Value) -> bool {
    matches!(value, Value::Array(_) | Value::Object(_))
}

/// The text that a list of character codes spells.
fn spelled(items: &[Value]) -> Option<String> {
    if items.len() < MIN_CODES || !items.first()?.is_u64() {
        return None;
    }
    let code = |item: &Value| {
        let code = item.as_u64().and_then(|code| u8::try_from(code).ok())?;
        matches!(code, b' '..=b'~' | b'\n' | b'\r' | b'\t').then(|| char::from(code))
    };
    items.iter().map(code).collect()
}

/// What is cut out of a text, and what replaces it.
pub(crate) type Cuts = HashMap<usize, Vec<(Range<usize>, String)>>;

/// The value without what is cut out of its texts, which are counted as [`visit`] shows them.
pub(crate) fn without(value: &Value, cuts: &Cuts) -> Value {
    let mut next = 0;
    without_below(value, cuts, &mut next)
}

fn without_below(value: &Value, cuts: &Cuts, next: &mut usize) -> Value {
    let mut less = |text: &str| {
        *next += 1;
        cut(text, cuts.get(&(*next - 1)))
    };
    match value {
        Value::String(text) => Value::String(less(text)),
        Value::Array(items) => {
            if let Some(text) = spelled(items) {
                let left = less(&text);
                return if left == text { value.clone() } else { Value::String(left) };
            }
            let flat: Vec<Option<String>> =
                items.iter().map(|item| item.as_str().map(&mut less)).collect();
            let items = items.iter().zip(flat);
            let item = |(item, flat): (&Value, Option<String>)| match flat {
                Some(text) => Value::String(text),
                None => without_below_folder(item, cuts, next),
            };
            Value::Array(items.map(item).collect())
        }
        Value::Object(members) => {
            let names: Vec<String> = members.keys().map(|name| less(name)).collect();
            let flat: Vec<Option<String>> =
                members.values().map(|item| item.as_str().map(&mut less)).collect();
            let mut left = Map::with_capacity(members.len());
            for ((name, flat), item) in names.into_iter().zip(flat).zip(members.values()) {
                let item = match flat {
                    Some(text) => Value::String(text),
                    None => without_below_folder(item, cuts, next),
                };
                left.insert(unused(&name, &left), item);
            }
            Value::Object(left)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn without_below_folder(value: &Value, cuts: &Cuts, next: &mut usize) -> Value {
    if is_folder(value) { without_below(value, cuts, next) } else { value.clone() }
}

/// A name that is not taken yet: two names may look the same without their secrets.
pub(crate) fn unused(name: &str, taken: &Map<String, Value>) -> String {
    if !taken.contains_key(name) {
        return name.to_owned();
    }
    // At most `taken.len()` names are taken, so that one of these is free; most often the first.
    let mut number = taken.len() + 1;
    loop {
        let free = format!("{name}#{number}");
        if !taken.contains_key(&free) {
            return free;
        }
        // Names that were chosen to be in the way are soon left behind.
        number = number.checked_mul(2).unwrap_or(number + 1);
    }
}

fn cut(text: &str, cuts: Option<&Vec<(Range<usize>, String)>>) -> String {
    let Some(cuts) = cuts else { return text.to_owned() };
    let mut cuts: Vec<&(Range<usize>, String)> = cuts.iter().collect();
    cuts.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
    let (mut left, mut done) = (String::with_capacity(text.len()), 0);
    for (range, instead) in cuts {
        if range.end <= done {
            continue;
        }
        // A cut that overlaps the one before it only makes it longer.
        if range.start >= done {
            left.push_str(text.get(done..range.start).unwrap_or_default());
            left.push_str(instead);
        }
        done = range.end;
    }
    left.push_str(text.get(done..).unwrap_or_default());
    left
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_are_cut_where_they_were_seen() {
        let value = json!({
            "a": "one", "b": ["two", {"three": "four"}, "five"], "c": 6, "d": {"seven": ["eight"]},
            "e": [72, 101, 108, 108, 111, 32, 119, 111, 114, 108, 100, 33],
        });
        let mut texts: Vec<String> = Vec::new();
        visit(&value, &mut |leaf| texts.push(leaf.text.into_owned()));
        assert_eq!(texts.len(), 13, "{texts:?}");
        for (place, text) in texts.iter().enumerate() {
            let cuts = Cuts::from([(place, vec![(0..text.len(), "-".to_owned())])]);
            let mut left: Vec<String> = Vec::new();
            visit(&without(&value, &cuts), &mut |leaf| left.push(leaf.text.into_owned()));
            let mut expected = texts.clone();
            expected[place] = "-".to_owned();
            left.sort();
            expected.sort();
            assert_eq!(left, expected, "{text}");
        }
        assert_eq!(without(&value, &Cuts::new()), value);
    }

    #[test]
    fn cuts_may_overlap_and_names_stay_apart() {
        let cuts = vec![(2..5, "X".to_owned()), (4..7, "Y".to_owned()), (2..3, "Z".to_owned())];
        assert_eq!(cut("0123456789", Some(&cuts)), "01X789");
        let all = |text: &str| vec![(0..text.len(), "x".to_owned())];
        let cuts = Cuts::from([(0, all("a")), (1, all("b"))]);
        assert_eq!(without(&json!({"a": 1, "b": 2}), &cuts), json!({"x": 1, "x#2": 2}));
    }
}
