//! Globs over paths: `*`, `**`, `?`, `[…]` and `{a,b}`.

use regex::bytes::{RegexSet, RegexSetBuilder};

use super::fold::folded;

/// How a pattern is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// A pattern without a start matches in any folder, what is below a match matches too, and
    /// upper and lower case are the same: for what is forbidden.
    Wide,
    /// A pattern without a start matches in any folder, but only what it matches fully: for
    /// exceptions.
    Anywhere,
    /// As it is written: for what is allowed. Also in the letters that look like it.
    Exact,
}

/// Patterns in order.
#[derive(Debug)]
pub(crate) struct Globs {
    set: RegexSet,
}

impl Globs {
    /// The patterns, compiled; an error where they cannot be.
    pub(crate) fn new(patterns: &[String], reading: Reading) -> Result<Self, String> {
        let regexes = patterns.iter().map(|pattern| {
            let plain = regex_of(pattern, reading)?;
            // Paths are matched as written and as displayed; so are the patterns.
            let seen = folded(pattern);
            if seen == *pattern {
                Ok(plain)
            } else {
                Ok(format!("(?:{plain}|{})", regex_of(&seen, reading)?))
            }
        });
        let regexes: Vec<String> =
            regexes.collect::<Result<_, _>>().map_err(|why: &str| why.to_owned())?;
        let set = RegexSetBuilder::new(regexes)
            .unicode(false)
            .case_insensitive(reading == Reading::Wide)
            .dot_matches_new_line(true)
            .size_limit(16 << 20)
            .build();
        set.map(|set| Self { set }).map_err(|_| "the pattern is too large".to_owned())
    }

    /// The first pattern that a path matches, by its place.
    pub(crate) fn first_match(&self, path: &str) -> Option<usize> {
        if !self.set.is_match(path.as_bytes()) {
            return None;
        }
        self.set.matches(path.as_bytes()).iter().next()
    }

    /// Whether a path matches any.
    pub(crate) fn matches(&self, path: &str) -> bool {
        self.set.is_match(path.as_bytes())
    }
}

/// What is wrong with a pattern, if anything is.
pub(crate) fn problem(pattern: &str) -> Option<String> {
    Globs::new(&[pattern.to_owned()], Reading::Exact).err()
}

const HOMES: &str = "(?:~[^/]*|(?:/var)?/root|/(?:home|Users)/[^/]+|[A-Za-z]:/Users/[^/]+)";

fn regex_of(pattern: &str, reading: Reading) -> Result<String, &'static str> {
    let mut out = String::from("^");
    let mut rest = pattern.trim();
    let home = ["~", "$HOME", "${HOME}"].iter().find_map(|home| rest.strip_prefix(home));
    if let Some(after) = home.filter(|after| after.is_empty() || after.starts_with('/')) {
        out.push_str(HOMES);
        rest = after;
    } else if reading != Reading::Exact
        && !rest.starts_with('/')
        && !rest.starts_with("**")
        && !is_drive(rest)
    {
        out.push_str("(?:.*/)?");
        rest = rest.trim_start_matches("./");
    }
    let trimmed = rest.trim_end_matches('/');
    rest = if trimmed.is_empty() { rest } else { trimmed };
    translated(rest, &mut out)?;
    out.push_str(if reading == Reading::Wide && !out.ends_with(")?") { "(?:/.*)?$" } else { "$" });
    Ok(out)
}

fn is_drive(text: &str) -> bool {
    matches!(text.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic())
}

fn translated(pattern: &str, out: &mut String) -> Result<(), &'static str> {
    let mut chars = pattern.chars().peekable();
    let mut braces = 0_usize;
    while let Some(c) = chars.next() {
        match c {
            '*' => {
                let mut stars = 1;
                while chars.next_if_eq(&'*').is_some() {
                    stars += 1;
                }
                let after_slash = out.ends_with('/') || out.ends_with('^') || out.ends_with(")?");
                match (stars > 1 && after_slash, chars.peek()) {
                    (true, Some('/')) => {
                        chars.next();
                        out.push_str("(?:.*/)?");
                    }
                    // What is below a folder, and the folder itself.
                    (true, None) if out.ends_with('/') && out.len() > 2 => {
                        out.pop();
                        out.push_str("(?:/.*)?");
                    }
                    (true, _) => out.push_str(".*"),
                    (false, _) if stars > 1 => out.push_str(".*"),
                    (false, _) => out.push_str("[^/]*"),
                }
            }
            '?' => out.push_str("(?u:[^/])"),
            '[' => class(&mut chars, out)?,
            '{' => {
                braces += 1;
                out.push_str("(?:");
            }
            '}' if braces > 0 => {
                braces -= 1;
                out.push(')');
            }
            ',' if braces > 0 => out.push('|'),
            '\\' => {
                out.push_str(&regex::escape(&chars.next().ok_or("a `\\` ends it")?.to_string()))
            }
            c => out.push_str(&regex::escape(&c.to_string())),
        }
    }
    if braces > 0 { Err("a `{` has no `}`") } else { Ok(()) }
}

fn class(
    chars: &mut std::iter::Peekable<std::str::Chars<'_>>,
    out: &mut String,
) -> Result<(), &'static str> {
    let unfinished = "a `[` has no `]`";
    let negated = chars.next_if(|c| matches!(c, '!' | '^')).is_some();
    out.push_str(if negated { "(?u:[^/" } else { "(?u:[" });
    let mut first = true;
    loop {
        let c = chars.next().ok_or(unfinished)?;
        match c {
            ']' if !first => break,
            '/' => return Err("a `[…]` cannot match `/`"),
            '-' => out.push('-'),
            c => {
                out.push_str(&regex::escape(&c.to_string()).replace('&', "\\&").replace('~', "\\~"))
            }
        }
        first = false;
    }
    out.push_str("])");
    Ok(())
}

/// Whether a name fits a pattern of a shell: `*`, `?`, `[…]`. A pattern that is wrong fits nothing.
pub(crate) fn matches_name(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().take(64).collect();
    let name: Vec<char> = name.chars().take(64).collect();
    fits(&pattern, &name)
}

/// Goes back to the last star only, so that it takes no longer than both are long.
fn fits(mut pattern: &[char], mut name: &[char]) -> bool {
    let mut star: Option<(&[char], &[char])> = None;
    loop {
        if let Some(('*', rest)) = pattern.split_first() {
            star = Some((rest, name));
            pattern = rest;
            continue;
        }
        let step = match name.split_first() {
            None => return pattern.is_empty(),
            Some((c, after)) => one_fits(pattern, *c).map(|rest| (rest, after)),
        };
        if let Some(step) = step {
            (pattern, name) = step;
            continue;
        }
        let Some((rest, (_, shorter))) =
            star.and_then(|(rest, from)| Some((rest, from.split_first()?)))
        else {
            return false;
        };
        star = Some((rest, shorter));
        (pattern, name) = (rest, shorter);
    }
}

/// What is left of a pattern whose first part fits this character.
fn one_fits(pattern: &[char], c: char) -> Option<&[char]> {
    let (first, rest) = pattern.split_first()?;
    match first {
        '?' => Some(rest),
        '[' => {
            let end = rest.iter().skip(1).position(|c| *c == ']')? + 1;
            let (members, rest) = rest.split_at(end);
            let negated = matches!(members.first(), Some('!' | '^'));
            let members = members.get(usize::from(negated)..).unwrap_or_default();
            (in_class(members, c) != negated).then(|| rest.get(1..).unwrap_or_default())
        }
        first => (*first == c).then_some(rest),
    }
}

fn in_class(members: &[char], c: char) -> bool {
    let range =
        members.windows(3).any(|it| matches!(it, [from, '-', to] if (*from..=*to).contains(&c)));
    range || members.contains(&c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_forbidden_is_matched_widely() {
        for (pattern, path, expected) in [
            ("**/.env", ".env", true),
            ("**/.env", "/a/b/.ENV", true),
            ("**/.env", ".env/x", true),
            ("**/.env", "/a/b.env", false),
            ("**/.env", ".env.example", false),
            (".env", "/a/.env", true),
            ("**/.ssh/**", "~/.ssh", true),
            ("**/.ssh/**", "/Users/u/.ssh/id_rsa", true),
            ("**/.ssh/**", "/Users/u/.sshx", false),
            ("~/.aws", concat!("/", "home/u/.aws/credentials"), true),
            ("~/.aws", concat!("/", "root/.aws"), true),
            ("~/.aws", "~bob/.aws/config", true),
            ("~/.aws", "/srv/.aws", false),
            ("/etc/shadow", "/etc/shadow", true),
            ("/etc/shadow", "/a/etc/shadow", false),
            ("*.pem", "/x/y.pem", true),
            ("**/id_{rsa,ed25519}", "x/id_ed25519", true),
            ("**/file?.[ch]", "/file1.c", true),
            ("**/file?.[!ch]", "/file1.c", false),
            ("**", "anything", true),
        ] {
            let globs = Globs::new(&[pattern.to_owned()], Reading::Wide).unwrap();
            assert_eq!(globs.matches(path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn what_is_allowed_is_matched_as_it_is_written() {
        for (pattern, path, expected) in [
            ("/workspace/**", "/workspace/a/b", true),
            ("/workspace/**", "/workspace", true),
            ("/workspace/**", "/workspacex/a", false),
            ("/workspace/**", "workspace/a", false),
            ("/workspace/*", "/workspace/a/b", false),
            ("/workspace", "/workspace/a", false),
            ("src/**", "src/a", true),
            ("src/**", "/x/src/a", false),
            ("/WORKSPACE/**", "/workspace/a", false),
            ("**", "/a", true),
            ("/**", "/a", true),
            ("/**", "a", false),
            ("~/work/**", "~/work/x", true),
            ("/a/\u{fc}?", "/a/\u{fc}\u{fc}", true),
        ] {
            let globs = Globs::new(&[pattern.to_owned()], Reading::Exact).unwrap();
            assert_eq!(globs.matches(path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn a_pattern_that_is_wrong_says_why() {
        for pattern in ["a{b", "a[b", "a\\", "[a/b]"] {
            assert!(problem(pattern).is_some(), "{pattern}");
        }
        assert_eq!(problem("/workspace/**"), None);
    }

    #[test]
    fn names_fit_patterns_of_shells() {
        for (pattern, name, expected) in [
            ("r?", "rm", true),
            ("r[a-n]", "rm", true),
            ("[!a-m]m", "rm", true),
            ("*", "rm", true),
            ("b*h", "bash", true),
            ("*a*s*", "bash", true),
            ("*a*z*", "bash", false),
            ("r?", "ruby", false),
            ("r[", "rm", false),
        ] {
            assert_eq!(matches_name(pattern, name), expected, "{pattern}");
        }
    }
}
