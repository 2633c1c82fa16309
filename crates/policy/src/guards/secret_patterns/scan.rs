//! Looks for secrets in a JSON value: as it is, joined from pieces, without disguise, decoded.

use std::ops::Range;

use chio_kernel::{Spent, Work};
use serde_json::Value;

use super::decode::{decoded, may_be_encoded};
use super::finder::{Finder, Severity};
use super::fold::{is_invisible, lookalike, plain};
use super::likely::is_placeholder;
use super::tree::{Cuts, Leaf, visit, without};

/// What was found in a value.
#[derive(Debug)]
pub(super) struct Found {
    /// The names of the kinds, each once, the worst first.
    pub(super) names: Vec<String>,
    /// The worst.
    pub(super) severity: Severity,
    /// The value without the secrets.
    pub(super) redacted: Value,
}

/// Names of members that have secrets for values.
const SECRET_MEMBERS: [&str; 16] = [
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "clientsecret",
    "secretkey",
    "apikey",
    "accesskey",
    "privatekey",
    "authtoken",
    "accesstoken",
    "refreshtoken",
    "bearertoken",
    "apitoken",
    "secretaccesskey",
];
/// Values of such members that only say what kind of value is meant.
const TYPE_WORDS: [&str; 8] =
    ["string", "text", "required", "optional", "none", "null", "true", "false"];
/// What the redaction of such a member is called.
const MEMBER_KIND: &str = "member";

/// How many steps it takes for each byte to look for anything that may be suspected.
const QUICK: usize = 2;
/// The same to look for what is suspected.
const CAREFUL: usize = 8;

/// The secrets of a value, if it has any. Plain values cost one walk and two quick looks.
pub(super) fn scan(finder: &Finder, value: &Value, work: &Work) -> Result<Option<Found>, Spent> {
    if !suspects(finder, value, work)? {
        return Ok(None);
    }
    let (mut leaves, mut bytes) = (Vec::new(), 0);
    visit(value, &mut |leaf| {
        bytes += leaf.text.len();
        leaves.push(leaf);
    });
    work.charge_each(bytes, CAREFUL)?;
    let mut hits = Hits::default();
    for (place, leaf) in leaves.iter().enumerate() {
        finder.find(&leaf.text, |kind, range| hits.add(kind, place, range));
        if may_be_encoded(&leaf.text) {
            for part in decoded(&leaf.text) {
                finder.find(&part.text, |kind, _| hits.add(kind, place, part.range.clone()));
            }
        }
        if leaf.name.is_some_and(is_secret_member) && is_value(&leaf.text) {
            hits.members.push((place, 0..leaf.text.len()));
        }
    }
    for group in leaves.chunk_by(|one, other| one.group == other.group) {
        // Groups are contiguous in the list, so that an offset is enough.
        let first = hits.group_begin;
        hits.group_begin += group.len();
        find_joined(finder, group, first, &mut hits);
    }
    Ok(hits.into_found(finder, value))
}

/// The quick look.
fn suspects(finder: &Finder, value: &Value, work: &Work) -> Result<bool, Spent> {
    let (mut raw, mut squeezed) = (String::new(), String::new());
    let (mut group, mut suspicious) = (usize::MAX, false);
    visit(value, &mut |leaf: Leaf<'_>| {
        suspicious |= matches!(leaf.text, std::borrow::Cow::Owned(_));
        suspicious |= may_be_encoded(&leaf.text);
        suspicious |= leaf.name.is_some_and(is_secret_member) && !leaf.text.is_empty();
        suspicious |= group == leaf.group && finder.has_written;
        raw.push_str(&leaf.text);
        raw.push('\n');
        if leaf.group != group {
            squeezed.push('\n');
            group = leaf.group;
        }
        if !leaf.text.is_ascii() {
            suspicious |= leaf.text.chars().any(|c| is_invisible(c) || seen_as(c) != c);
        }
        leaf.text.split(is_filler).for_each(|piece| squeezed.push_str(piece));
    });
    work.charge_each(raw.len(), QUICK)?;
    Ok(suspicious || finder.suspects(&raw) || finder.suspects_loose(&squeezed))
}

/// What stands between the pieces of a text that is put together: spaces, quotes, signs of code.
const fn is_filler(c: char) -> bool {
    c.is_whitespace()
        || matches!(c, '"' | '\'' | '`' | '+' | '\\' | ',' | '(' | ')' | '[' | ']' | '&' | ';')
}

fn seen_as(c: char) -> char {
    if c.is_ascii() {
        return c;
    }
    let c = plain(c);
    lookalike(c).unwrap_or(c)
}

fn is_value(text: &str) -> bool {
    !text.is_empty() && !is_placeholder(text) && !TYPE_WORDS.contains(&text)
}

/// Names of members whose last word is one of these have secrets for values, too.
const SECRET_ENDS: [&str; 6] = ["password", "passwd", "passphrase", "secret", "apikey", "token"];
/// Tokens that are no secrets: cursors of lists.
const HARMLESS_TOKENS: [&str; 6] = ["page", "next", "continuation", "cursor", "sync", "pagination"];

/// Whether a name ends with a word for a secret: `db_password`, `githubToken`.
fn ends_with_secret(name: &str) -> bool {
    let letters = name.chars().filter(|c| c.is_ascii_alphanumeric());
    let plain: String = letters.map(|c| c.to_ascii_lowercase()).collect();
    let harmless = || HARMLESS_TOKENS.iter().any(|word| plain.contains(word));
    SECRET_ENDS.iter().any(|end| plain.ends_with(end)) && !(plain.ends_with("token") && harmless())
}

fn is_secret_member(name: &str) -> bool {
    if name.len() < 3 || name.len() > 40 {
        return false;
    }
    if ends_with_secret(name) {
        return true;
    }
    SECRET_MEMBERS.iter().any(|known| {
        let mut letters = name.bytes().filter(|byte| !matches!(byte, b'_' | b'-' | b' '));
        known
            .bytes()
            .all(|byte| letters.next().is_some_and(|letter| letter.eq_ignore_ascii_case(&byte)))
            && letters.next().is_none()
    })
}

/// Texts put together, with where each byte comes from.
#[derive(Default)]
struct Joined {
    text: String,
    /// For each byte: the text's place in the group, and where its character stands there.
    from: Vec<(usize, Range<usize>)>,
}

impl Joined {
    fn of(group: &[Leaf<'_>], keeps: impl Fn(char) -> bool) -> Self {
        let mut joined = Self::default();
        for (place, leaf) in group.iter().enumerate() {
            for (start, c) in leaf.text.char_indices() {
                let seen = seen_as(c);
                if !is_invisible(c) && keeps(seen) {
                    joined.text.push(seen);
                    let from = (place, start..start + c.len_utf8());
                    joined.from.extend(std::iter::repeat_n(from, seen.len_utf8()));
                }
            }
        }
        joined
    }

    /// Where a part of the whole stands in the single texts.
    fn origins(&self, range: Range<usize>) -> Vec<(usize, Range<usize>)> {
        let mut origins: Vec<(usize, Range<usize>)> = Vec::new();
        for (place, from) in self.from.get(range).unwrap_or_default() {
            match origins.last_mut() {
                Some((last, range)) if last == place => range.end = from.end,
                _ => origins.push((*place, from.clone())),
            }
        }
        origins
    }
}

/// Looks through neighbours as one text: without what is invisible, then also without spaces.
fn find_joined(finder: &Finder, group: &[Leaf<'_>], first: usize, hits: &mut Hits) {
    let is_plain = |leaf: &Leaf<'_>| leaf.text.is_ascii();
    let mut add = |joined: &Joined, kind, range| {
        for (place, range) in joined.origins(range) {
            hits.add(kind, first + place, range);
        }
    };
    if group.len() > 1 || !group.iter().all(is_plain) {
        let joined = Joined::of(group, |_| true);
        finder.find(&joined.text, |kind, range| add(&joined, kind, range));
    }
    let joined = Joined::of(group, |c| !is_filler(c));
    finder.find_loose(&joined.text, |kind, range| add(&joined, kind, range));
}

/// What was found, by the kinds' places and the texts' places.
#[derive(Default)]
struct Hits {
    kinds: Vec<(usize, usize, Range<usize>)>,
    members: Vec<(usize, Range<usize>)>,
    group_begin: usize,
}

impl Hits {
    fn add(&mut self, kind: usize, leaf: usize, range: Range<usize>) {
        self.kinds.push((kind, leaf, range));
    }

    fn into_found(mut self, finder: &Finder, value: &Value) -> Option<Found> {
        let mut cuts = Cuts::new();
        let mut names: Vec<(Severity, String)> = Vec::new();
        let mut take = |severity, name: &str, leaf: usize, range: Range<usize>| {
            cuts.entry(leaf).or_default().push((range, format!("[redacted:{name}]")));
            if !names.iter().any(|(_, known)| known == name) {
                names.push((severity, name.to_owned()));
            }
        };
        self.kinds.sort_by_key(|(kind, leaf, range)| (*leaf, range.start, *kind));
        for (kind, leaf, range) in self.kinds {
            if let Some(kind) = finder.kind(kind) {
                take(kind.severity, &kind.name, leaf, range);
            }
        }
        for (leaf, range) in self.members {
            take(Severity::Warn, MEMBER_KIND, leaf, range);
        }
        names.sort_by_key(|(severity, _)| std::cmp::Reverse(*severity));
        let severity = names.first()?.0;
        let names = names.into_iter().map(|(_, name)| name).collect();
        Some(Found { names, severity, redacted: without(value, &cuts) })
    }
}
