//! Paths in one form, whatever way they are written.
//!
//! Where a text may mean two paths (a tool may decode `%2e` or not), both forms are given, and a
//! guard denies when either is forbidden. Links are not followed: this is only about names.

use super::fold::folded;

/// How often a path may be encoded over itself.
const MAX_ROUNDS: usize = 4;
/// How long a path may be, in bytes.
pub(crate) const MAX_PATH: usize = 4096;

/// Why a path cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// It has a NUL, also an encoded one: what reads it may stop there.
    Nul,
    /// It is longer than any system takes.
    TooLong,
}

impl Unreadable {
    /// Why, without the path.
    pub(crate) const fn why(self) -> &'static str {
        match self {
            Self::Nul => "a path with a NUL character",
            Self::TooLong => "a path that is too long",
        }
    }
}

/// Every form that a path may be meant as; at least one.
pub(crate) fn forms(text: &str) -> Result<Vec<String>, Unreadable> {
    let mut forms = forms_as_written(text)?;
    if text.contains(['\t', '\n', '\r']) {
        // Readers of URIs drop these, wherever they stand.
        let dropped: String = text.chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')).collect();
        forms_as_written(&dropped)?.into_iter().for_each(|form| add(&mut forms, form));
    }
    Ok(forms)
}

fn forms_as_written(text: &str) -> Result<Vec<String>, Unreadable> {
    if text.len() > MAX_PATH {
        return Err(Unreadable::TooLong);
    }
    if is_plain(text) {
        return Ok(vec![text.to_owned()]);
    }
    let mut decoded = folded(text).into_owned();
    if text.contains('\0') {
        return Err(Unreadable::Nul);
    }
    for _ in 0..MAX_ROUNDS {
        let next = percent_decoded(&decoded);
        // Before it is folded, which takes out what cannot be seen.
        if next.contains('\0') {
            return Err(Unreadable::Nul);
        }
        let next = folded(&next).into_owned();
        if next == decoded {
            break;
        }
        decoded = next;
    }
    let mut forms = Vec::with_capacity(2);
    let (decoded, from_system) = system_form(decoded.trim());
    if !from_system {
        add(&mut forms, resolved(&home_form(text), false));
    }
    add(&mut forms, resolved(&home_form(&decoded), true));
    let more: Vec<String> = forms.iter().filter_map(|form| elsewhere(form)).collect();
    more.into_iter().for_each(|form| add(&mut forms, form));
    Ok(forms)
}

fn add(forms: &mut Vec<String>, form: String) {
    if !forms.contains(&form) {
        forms.push(form);
    }
}

/// Whether a path is in its one form already.
fn is_plain(text: &str) -> bool {
    let mut before = b'/';
    for (place, byte) in text.bytes().enumerate() {
        let fine =
            byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/' | b'@' | b'+');
        // Names that begin or end with a dot, doubled slashes, and what needs full normalization.
        let odd = match byte {
            b'/' => before == b'/' && place > 0 || before == b'.',
            b'.' => before == b'.',
            _ => false,
        };
        if !fine || odd {
            return false;
        }
        before = byte;
    }
    let begins = ["/proc/", "/private/", "/System/"].iter().any(|start| text.starts_with(start));
    !begins && !matches!(before, b'/' | b'.') && !text.is_empty()
}

/// Percent escapes decoded once: `%2e`, `%u002e`, and the overlong forms of `.` and `/` that some
/// decoders take.
pub(crate) fn percent_decoded(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let (taken, next) = match (first, after) {
            (b'%', [b'u' | b'U', a, b, c, d, next @ ..]) => (wide(&[*a, *b, *c, *d]), next),
            (b'%', [high, low, next @ ..]) => (pair(*high, *low).map(|byte| vec![byte]), next),
            _ => (None, after),
        };
        match taken {
            Some(taken) => {
                bytes.extend(taken);
                rest = next;
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    lenient(&bytes)
}

fn pair(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

fn wide(digits: &[u8]) -> Option<Vec<u8>> {
    let digits = std::str::from_utf8(digits).ok()?;
    let c = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
    Some(c.to_string().into_bytes())
}

/// Text of bytes, where ASCII that is encoded too long is what it stands for.
fn lenient(bytes: &[u8]) -> String {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, after)) = rest.split_first() {
        let (byte, next) = match (first, after) {
            (0xc0 | 0xc1, [low, next @ ..]) => (((first & 1) << 6) | (low & 0x3f), next),
            (0xe0, [0x80 | 0x81, low, next @ ..]) => (low & 0x3f, next),
            _ => (*first, after),
        };
        out.push(byte);
        rest = next;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// URIs of files and the forms of Windows, with `/` between names; and whether it was such a form,
/// which no other system would take as it is written.
fn system_form(text: &str) -> (String, bool) {
    let trimmed = text.trim_matches(|c| c == '"' || c == '\'');
    let lower = trimmed.get(..5).unwrap_or_default().to_ascii_lowercase();
    if lower == "file:" {
        let rest = trimmed.get(5..).unwrap_or_default().replace('\\', "/");
        let Some(rest) = rest.strip_prefix("//") else { return (rest, true) };
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let local =
            matches!(host.to_ascii_lowercase().as_str(), "" | "localhost" | "127.0.0.1" | ".");
        let path = if local { format!("/{path}") } else { format!("//{host}/{path}") };
        return (without_drive_slash(&path), true);
    }
    if let Some(rest) = trimmed.strip_prefix(r"\\") {
        let rest = rest.replace('\\', "/");
        let rest = rest.strip_prefix("?/").or_else(|| rest.strip_prefix("./")).unwrap_or(&rest);
        let unc = rest.strip_prefix("UNC/").or_else(|| rest.strip_prefix("unc/"));
        if unc.is_none() && is_drive(rest) {
            return (rest.to_owned(), true);
        }
        return (share(unc.unwrap_or(rest)), true);
    }
    let slashed = trimmed.replace('\\', "/");
    let drive = is_drive(&slashed);
    (without_drive_slash(&slashed), drive)
}

/// A share of another machine; the hidden shares of this one are its drives.
fn share(rest: &str) -> String {
    let mut parts = rest.splitn(3, '/');
    let (host, name) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let path = parts.next().unwrap_or_default();
    let local =
        matches!(host.to_ascii_lowercase().as_str(), "localhost" | "127.0.0.1" | "." | "::1");
    match name.strip_suffix('$') {
        Some(drive) if local && drive.len() == 1 => format!("{drive}:/{path}"),
        _ => format!("//{rest}"),
    }
}

fn is_drive(text: &str) -> bool {
    matches!(text.as_bytes(), [letter, b':', b'/', ..] if letter.is_ascii_alphabetic())
}

/// `C:/…` of `/C:/…`.
fn without_drive_slash(text: &str) -> String {
    let inner = text.strip_prefix('/').filter(|rest| is_drive(rest));
    inner.unwrap_or(text).to_owned()
}

/// The ways to write the home folder, as `~`.
const HOMES: &[(&str, &str)] = &[
    ("$HOME", "~"),
    ("${HOME}", "~"),
    ("$env:USERPROFILE", "~"),
    ("$env:HOME", "~"),
    ("%USERPROFILE%", "~"),
    ("%HOMEDRIVE%%HOMEPATH%", "~"),
    ("%HOMEPATH%", "~"),
    ("%HOME%", "~"),
    ("%APPDATA%", "~/AppData/Roaming"),
    ("%LOCALAPPDATA%", "~/AppData/Local"),
    ("$XDG_CONFIG_HOME", "~/.config"),
    ("$PWD", "."),
    ("${PWD}", "."),
    ("~+", "."),
];

fn home_form(text: &str) -> String {
    if !text.starts_with(['$', '%', '~']) {
        return text.to_owned();
    }
    for (start, stands_for) in HOMES {
        let begins = text.get(..start.len()).is_some_and(|it| it.eq_ignore_ascii_case(start));
        let rest = text.get(start.len()..).unwrap_or_default();
        if begins && (rest.is_empty() || rest.starts_with(['/', '\\'])) {
            return format!("{stands_for}{rest}");
        }
    }
    text.to_owned()
}

/// Without `.`, `..` and doubled `/`. `loosely` as Windows takes names: a final dot or space and
/// the names of streams do not count.
fn resolved(text: &str, loosely: bool) -> String {
    let unc = loosely && text.starts_with("//");
    let drive = text.get(..2).filter(|_| is_drive(text) && loosely);
    let rest = drive.map_or(text, |_| text.get(2..).unwrap_or_default());
    let mut absolute = rest.starts_with('/');
    let mut names: Vec<&str> = Vec::new();
    for name in rest.split('/') {
        let name = if loosely { loose_name(name) } else { name };
        match name {
            "" | "." => continue,
            ".." => match names.last() {
                Some(&"..") => names.push(".."),
                // What is above a home folder is where the homes are.
                Some(first) if !absolute && names.len() == 1 && first.starts_with('~') => {
                    names = vec!["home"];
                    absolute = true;
                }
                Some(_) => {
                    names.pop();
                }
                None if absolute => {}
                None => names.push(".."),
            },
            name => names.push(name),
        }
        if let (true, Some(is_root)) = (absolute, through_process(&names)) {
            names.clear();
            absolute = is_root;
        }
    }
    let start = match (drive, absolute) {
        (Some(drive), _) => format!("{drive}/"),
        (None, true) if unc && !names.is_empty() => "//".to_owned(),
        (None, true) => "/".to_owned(),
        (None, false) if names.is_empty() => ".".to_owned(),
        (None, false) => String::new(),
    };
    start + &names.join("/")
}

/// Whether this is another way to the root (`/proc/self/root`) or to the working folder of a
/// process (`/proc/self/cwd`).
fn through_process(names: &[&str]) -> Option<bool> {
    match names {
        ["proc", _, end @ ("root" | "cwd")] | ["proc", _, "task", _, end @ ("root" | "cwd")] => {
            Some(*end == "root")
        }
        _ => None,
    }
}

fn loose_name(name: &str) -> &str {
    let stream = name.find("::$").or_else(|| name.find(":$"));
    let name = stream.and_then(|place| name.get(..place)).unwrap_or(name).trim();
    if name.trim_matches('.').is_empty() {
        return name;
    }
    name.trim_end_matches(['.', ' '])
}

/// Where the same path is also found: from the root, for one that climbs out of the working
/// folder; without the prefixes that macOS has for what is elsewhere.
fn elsewhere(form: &str) -> Option<String> {
    let mut rest = form;
    while let Some(after) = rest.strip_prefix("../") {
        rest = after;
    }
    if rest.len() < form.len() {
        // One that only climbs ends at the root.
        return Some(format!("/{}", if rest == ".." { "" } else { rest }));
    }
    let prefixes = ["/private/", "/System/Volumes/Data/"];
    let inner = prefixes.iter().find_map(|prefix| form.strip_prefix(prefix));
    inner.map(|inner| format!("/{inner}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_write_a_path_ends_in_one_form() {
        for (text, expected) in [
            ("/etc/shadow", "/etc/shadow"),
            ("/etc//./shadow/", "/etc/shadow"),
            ("/workspace/../etc/shadow", "/etc/shadow"),
            ("/../../etc/shadow", "/etc/shadow"),
            ("../../etc/shadow", "/etc/shadow"),
            ("../..", "/"),
            ("%2fetc%2fshadow", "/etc/shadow"),
            ("%252e%252e%252fetc/shadow", "/etc/shadow"),
            ("..%c0%af..%c0%afetc/shadow", "/etc/shadow"),
            ("%u002e%u002e/etc/shadow", "/etc/shadow"),
            ("..\\..\\etc\\shadow", "/etc/shadow"),
            ("／etc／shadow", "/etc/shadow"),
            ("\u{2025}/etc/shadow", "/etc/shadow"),
            ("/etc/sh\u{200b}adow", "/etc/shadow"),
            ("/proc/self/root/etc/shadow", "/etc/shadow"),
            ("/proc/1/task/1/root/../etc/shadow", "/etc/shadow"),
            ("/proc/self/cwd/.env", ".env"),
            ("/private/etc/shadow", "/etc/shadow"),
            ("file:///etc/shadow", "/etc/shadow"),
            ("file:///etc/sha\tdow", "/etc/shadow"),
            ("fi\nle:///etc/.\t./etc/shadow", "/etc/shadow"),
            ("FILE://localhost/etc/%73hadow", "/etc/shadow"),
            ("~/.ssh/id_rsa", "~/.ssh/id_rsa"),
            ("$HOME/.ssh/id_rsa", "~/.ssh/id_rsa"),
            ("${HOME}//.ssh/id_rsa", "~/.ssh/id_rsa"),
            ("%USERPROFILE%\\.ssh\\id_rsa", "~/.ssh/id_rsa"),
            ("~/../../etc/shadow", "/etc/shadow"),
            (".env.", ".env"),
            (".env ", ".env"),
            (".env::$DATA", ".env"),
            ("C:\\Users\\me\\..\\x", "C:/Users/x"),
            ("\\\\?\\C:\\x", "C:/x"),
            ("\\\\localhost\\c$\\x", "c:/x"),
            ("\\\\server\\share\\x", "//server/share/x"),
            ("file:///C:/x", "C:/x"),
            (".", "."),
            ("/", "/"),
            ("a/..", "."),
        ] {
            let forms = forms(text).unwrap();
            assert!(forms.iter().any(|form| form == expected), "{text}: {forms:?}");
        }
    }

    #[test]
    fn a_plain_path_has_one_form() {
        for text in
            ["src/main.rs", "/workspace/a-b/c_d.txt", ".env", "a/.github/x.yml", "Cargo.toml"]
        {
            assert_eq!(forms(text).unwrap(), [text]);
        }
        for text in ["a b/c", "/tmp/ü", "app/[id]/page.tsx"] {
            assert_eq!(forms(text).unwrap().len(), 1, "{text}");
        }
    }

    #[test]
    fn a_nul_and_an_endless_path_cannot_be_read() {
        assert_eq!(forms("/a\0b"), Err(Unreadable::Nul));
        assert_eq!(forms("/a%00.txt"), Err(Unreadable::Nul));
        assert_eq!(forms("/a%2500.txt"), Err(Unreadable::Nul));
        assert_eq!(forms(&"a".repeat(5000)), Err(Unreadable::TooLong));
    }
}
