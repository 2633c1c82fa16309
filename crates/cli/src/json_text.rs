//! JSON that people write, changed in one place: comments, order and blanks of all the rest stay.

use std::ops::Range;

use serde_json::{Value, json};

/// An object in a text.
struct Object {
    /// Where what is in it begins and ends.
    inside: Range<usize>,
    members: Vec<Member>,
}

/// A member of an object: where its name begins, and its value.
struct Member {
    name: String,
    start: usize,
    value: Range<usize>,
}

/// The value of a member of a member, as it is written; none where there is none.
///
/// # Errors
/// When the text is no object, or the member is none.
pub(crate) fn get<'a>(text: &'a str, section: &str, name: &str) -> Result<Option<&'a str>, String> {
    let Some(section) = section_of(text, section)? else { return Ok(None) };
    let member = section.members.iter().find(|member| member.name == name);
    Ok(member.and_then(|member| text.get(member.value.clone())))
}

/// The text with this value of a member of a member, in place of the one that is there.
///
/// # Errors
/// When the text is no object, or the member is none.
pub(crate) fn set(text: &str, section: &str, name: &str, value: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Ok(pretty(&json!({section: {name: parsed(value)}}), "") + "\n");
    }
    let Some(found) = section_of(text, section)? else {
        let value = pretty(&json!({name: parsed(value)}), &indent_of(&object(text, 0)?, text));
        return inserted(text, &object(text, 0)?, section, &value);
    };
    match found.members.iter().find(|member| member.name == name) {
        Some(member) => {
            let value = reindented(value, &indent_of(&found, text));
            Ok(replaced(text, member.value.clone(), &value))
        }
        None => {
            let value = reindented(value, &indent_of(&found, text));
            inserted(text, &found, name, &value)
        }
    }
}

/// The text with a value as it is written in the place of that of a member of a member.
///
/// # Errors
/// When the text is no object, or there is no such member.
pub(crate) fn replace(
    text: &str,
    section: &str,
    name: &str,
    written: &str,
) -> Result<String, String> {
    let found = section_of(text, section)?;
    let mut members = found.iter().flat_map(|section| &section.members);
    let member = members.find(|member| member.name == name);
    let member = member.ok_or_else(|| format!("expected the member `{name}`"))?;
    Ok(replaced(text, member.value.clone(), written))
}

/// The text without a member of a member.
///
/// # Errors
/// When the text is no object, or the member is none.
pub(crate) fn remove(text: &str, section: &str, name: &str) -> Result<String, String> {
    let Some(found) = section_of(text, section)? else { return Ok(text.to_owned()) };
    let Some(at) = found.members.iter().position(|member| member.name == name) else {
        return Ok(text.to_owned());
    };
    let before = at.checked_sub(1).and_then(|at| found.members.get(at));
    let (Some(member), behind) = (found.members.get(at), found.members.get(at + 1)) else {
        return Ok(text.to_owned());
    };
    let gone = match (before, behind) {
        (Some(before), _) => before.value.end..member.value.end,
        (None, Some(behind)) => member.start..behind.start,
        (None, None) => found.inside,
    };
    Ok(replaced(text, gone, ""))
}

fn parsed(value: &str) -> Value {
    serde_json::from_str(value).unwrap_or(Value::Null)
}

fn section_of(text: &str, name: &str) -> Result<Option<Object>, String> {
    let top = object(text, 0)?;
    if skipped(text, top.inside.end + 1)? < text.len() {
        return Err("expected nothing behind the object".to_owned());
    }
    let member = top.members.iter().find(|member| member.name == name);
    member.map(|member| object(text, member.value.start)).transpose()
}

/// Reads the object that begins here, behind blanks and comments.
fn object(text: &str, at: usize) -> Result<Object, String> {
    let open = skipped(text, at)?;
    if byte(text, open) != Some(b'{') {
        return Err("expected an object".to_owned());
    }
    let mut members = Vec::new();
    let mut at = skipped(text, open + 1)?;
    while byte(text, at) != Some(b'}') {
        let start = at;
        let end = value_end(text, start)?;
        let name = text.get(start..end).and_then(|name| serde_json::from_str(name).ok());
        let name = name.ok_or("expected the name of a member in quotes")?;
        let colon = skipped(text, end)?;
        if byte(text, colon) != Some(b':') {
            return Err("expected `:` behind the name of a member".to_owned());
        }
        let begin = skipped(text, colon + 1)?;
        let value = begin..value_end(text, begin)?;
        at = skipped(text, value.end)?;
        let member = Member { name, start, value };
        // SECURITY: readers differ in which of two they take, and one may not start through us.
        if members.iter().any(|other: &Member| other.name == member.name) {
            return Err(format!("expected the member `{}` once, found it twice", member.name));
        }
        members.push(member);
        match byte(text, at) {
            Some(b',') => at = skipped(text, at + 1)?,
            Some(b'}') => {}
            _ => return Err("expected `,` or `}` behind a member".to_owned()),
        }
    }
    Ok(Object { inside: open + 1..at, members })
}

fn byte(text: &str, at: usize) -> Option<u8> {
    text.as_bytes().get(at).copied()
}

fn find(text: &str, from: usize, what: &str) -> Option<usize> {
    text.get(from..)?.find(what).map(|at| from + at)
}

/// The next place that is no blank and no comment.
fn skipped(text: &str, mut at: usize) -> Result<usize, String> {
    loop {
        match (byte(text, at), byte(text, at + 1)) {
            (Some(b'/'), Some(b'/')) => at = find(text, at, "\n").unwrap_or(text.len()),
            (Some(b'/'), Some(b'*')) => {
                at = find(text, at + 2, "*/").ok_or("expected the end of a comment")? + 2;
            }
            (Some(byte), _) if byte.is_ascii_whitespace() => at += 1,
            _ => return Ok(at),
        }
    }
}

/// Where the value ends that begins here.
fn value_end(text: &str, start: usize) -> Result<usize, String> {
    match byte(text, start) {
        Some(b'"') => string_end(text, start),
        Some(b'{' | b'[') => nested_end(text, start),
        _ => {
            let ends = |byte: u8| byte.is_ascii_whitespace() || b",]}/:".contains(&byte);
            let rest = text.as_bytes().get(start..).unwrap_or_default();
            match rest.iter().position(|byte| ends(*byte)).unwrap_or(rest.len()) {
                0 => Err("expected a value".to_owned()),
                length => Ok(start + length),
            }
        }
    }
}

fn string_end(text: &str, start: usize) -> Result<usize, String> {
    let mut at = start + 1;
    loop {
        match byte(text, at) {
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') => at += 2,
            Some(_) => at += 1,
            None => return Err("expected the end of a string".to_owned()),
        }
    }
}

fn nested_end(text: &str, start: usize) -> Result<usize, String> {
    let (mut at, mut depth) = (start, 0_usize);
    loop {
        at = skipped(text, at)?;
        match byte(text, at) {
            Some(b'"') => at = string_end(text, at)?,
            Some(b'{' | b'[') => (depth, at) = (depth + 1, at + 1),
            Some(b'}' | b']') => {
                (depth, at) = (depth.saturating_sub(1), at + 1);
                if depth == 0 {
                    return Ok(at);
                }
            }
            Some(_) => at += 1,
            None => return Err("expected the end of an object or list".to_owned()),
        }
    }
}

/// What stands before the members of an object on their lines.
fn indent_of(object: &Object, text: &str) -> String {
    let line_of = |at: usize| {
        let before = text.get(..at).unwrap_or_default();
        before.rsplit('\n').next().unwrap_or_default()
    };
    let blanks = |line: &str| line.chars().take_while(|c| c.is_whitespace()).collect::<String>();
    match object.members.first() {
        Some(first) => blanks(line_of(first.start)),
        None => blanks(line_of(object.inside.start)) + "  ",
    }
}

/// The text with another member at the end of an object.
fn inserted(text: &str, object: &Object, name: &str, value: &str) -> Result<String, String> {
    let indent = indent_of(object, text);
    let member = format!("{}: {value}", json!(name));
    let Some(last) = object.members.last() else {
        let outer = indent.strip_suffix("  ").unwrap_or_default();
        let inside = text.get(object.inside.clone()).unwrap_or_default().trim();
        let before = if inside.is_empty() { String::new() } else { format!("\n{indent}{inside}") };
        let new = format!("{before}\n{indent}{member}\n{outer}");
        return Ok(replaced(text, object.inside.clone(), &new));
    };
    // A comma behind the last member stays there.
    let comma = skipped(text, last.value.end)?;
    let (at, new) = match byte(text, comma) {
        Some(b',') => (comma + 1, format!("\n{indent}{member},")),
        _ => (last.value.end, format!(",\n{indent}{member}")),
    };
    Ok(replaced(text, at..at, &new))
}

fn replaced(text: &str, range: Range<usize>, new: &str) -> String {
    let before = text.get(..range.start).unwrap_or_default();
    let behind = text.get(range.end..).unwrap_or_default();
    format!("{before}{new}{behind}")
}

/// A document over several lines, all but the first of which begin so.
fn pretty(value: &Value, indent: &str) -> String {
    reindented(&serde_json::to_string_pretty(value).unwrap_or_default(), indent)
}

fn reindented(text: &str, indent: &str) -> String {
    text.replace('\n', &format!("\n{indent}"))
}

#[cfg(test)]
mod tests {
    use super::{get, remove, replace, set};

    #[test]
    fn a_member_is_put_in_and_taken_out_and_the_rest_stays_as_it_is_written() {
        for (before, after) in [
            (
                "{\n  // mine\n  \"a\": 1,\n  \"s\": {\n    \"x\": {\"u\": \"//\"}\n  }\n}\n",
                "{\n  // mine\n  \"a\": 1,\n  \"s\": {\n    \"x\": {\"u\": \"//\"},\n    \"n\": 7\n  }\n}\n",
            ),
            ("{\"s\": {\"x\": 1,}, /* b */}", "{\"s\": {\"x\": 1,\n\"n\": 7,}, /* b */}"),
            ("{\n  \"s\": {}\n}", "{\n  \"s\": {\n    \"n\": 7\n  }\n}"),
        ] {
            let found = set(before, "s", "n", "7").unwrap();
            assert_eq!(found, after, "{before}");
            assert_eq!(get(&found, "s", "n").unwrap(), Some("7"));
            assert_eq!(get(&found, "s", "other").unwrap(), None);
            let gone = remove(&found, "s", "n").unwrap();
            assert_eq!(get(&gone, "s", "n").unwrap(), None, "{gone}");
            assert_eq!(get(&gone, "s", "x"), get(before, "s", "x"));
        }
        // Readers differ in which of two they take.
        for twice in ["{\"s\": {\"n\": 1, \"n\": 2}}", "{\"s\": {}, \"s\": {}}"] {
            let problem = set(twice, "s", "n", "7").unwrap_err();
            assert!(problem.contains("once, found it twice"), "{problem}");
        }
        let original = "{\"s\": {\n    \"n\": {\n      \"a\": 1\n    }\n}}";
        let wrapped = set(original, "s", "n", "{\n  \"b\": 2\n}").unwrap();
        assert_eq!(wrapped, original.replace("\"a\": 1", "\"b\": 2"));
        let written = get(original, "s", "n").unwrap().unwrap();
        assert_eq!(replace(&wrapped, "s", "n", written).unwrap(), original);
        assert_eq!(set("", "s", "n", "7").unwrap(), "{\n  \"s\": {\n    \"n\": 7\n  }\n}\n");
        let added = set("{\n  \"a\": 1\n}\n", "s", "n", "7").unwrap();
        assert_eq!(added, "{\n  \"a\": 1,\n  \"s\": {\n    \"n\": 7\n  }\n}\n");
        assert_eq!(
            set("{\"s\": {\"n\": [1, 2], \"m\": 3}}", "s", "n", "7").unwrap(),
            "{\"s\": {\"n\": 7, \"m\": 3}}"
        );
        assert_eq!(
            remove("{\"s\": {\"n\": 7, \"m\": 3}}", "s", "n").unwrap(),
            "{\"s\": {\"m\": 3}}"
        );
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for text in ["[]", "{", "{\"s\": 1}", "{\"s\" {}}", "{s: {}}", "{} x", "{\"s\": \"", "/* "]
        {
            assert!(set(text, "s", "n", "7").is_err(), "{text}");
        }
    }
}
