//! Paths that a pattern stands for, to compare with paths that are patterns themselves, such as
//! `.e*` in a command.

/// How many wildcards a path may have.
const MAX_WILD: usize = 32;

/// A path that a pattern stands for.
#[derive(Debug)]
pub(super) struct Sample {
    pattern: String,
    names: Vec<String>,
    absolute: bool,
}

impl Sample {
    /// The paths that a pattern stands for: one for each choice in its braces.
    pub(super) fn of(pattern: &str) -> Vec<Self> {
        let mut texts = vec![pattern.to_owned()];
        for _ in 0..4 {
            texts = texts.iter().flat_map(|text| first_choice(text)).take(32).collect();
        }
        texts
            .iter()
            .map(|text| Self::of_plain(pattern, text))
            .filter(|it| !it.names.is_empty())
            .collect()
    }

    fn of_plain(pattern: &str, text: &str) -> Self {
        let absolute = text.starts_with('/');
        let names =
            text.split('/').filter(|name| !name.is_empty() && *name != "**" && *name != "~");
        let names: Vec<String> = names.map(str::to_lowercase).collect();
        Self { pattern: pattern.to_owned(), names, absolute }
    }

    /// The pattern.
    pub(super) fn pattern(&self) -> &str {
        &self.pattern
    }

    /// The path.
    pub(super) fn path(&self) -> String {
        let start = match (self.absolute, self.pattern.starts_with("~/")) {
            (true, _) => "/",
            (false, true) => "~/",
            (false, false) => "",
        };
        let names: Vec<String> = self.names.iter().map(|name| plain(name)).collect();
        format!("{start}{}", names.join("/"))
    }

    /// Whether a path with `*`, `?` or `[…]` stands for this one too. A name that says next to
    /// nothing, such as `*`, does not count.
    pub(super) fn fits(&self, path: &str) -> bool {
        if path.bytes().filter(|byte| matches!(byte, b'*' | b'?' | b'[')).count() > MAX_WILD {
            // This many only hide something, or cost time.
            return true;
        }
        let names: Vec<String> =
            path.split('/').filter(|it| !it.is_empty()).map(str::to_lowercase).collect();
        let mut windows = names.windows(self.names.len());
        let fits = |window: &[String]| {
            let mut says = false;
            for (wanted, name) in window.iter().zip(&self.names) {
                // A shell's `*` does not stand for a name that begins with a dot.
                if name.starts_with('.') && wanted.starts_with(is_wild) || !meet(wanted, name) {
                    return false;
                }
                says |= says_something(wanted, name);
            }
            says
        };
        if self.absolute { windows.next().is_some_and(fits) } else { windows.any(fits) }
    }
}

fn is_wild(c: char) -> bool {
    matches!(c, '*' | '?' | '[' | ']')
}

/// A name that a pattern stands for.
fn plain(name: &str) -> String {
    let name = name.replace(['*', '?'], "x");
    name.split_once('[').map_or_else(|| name.clone(), |(start, _)| format!("{start}x"))
}

/// Whether a name is specific enough to count: `.e*` is, `*` and `*.json` are not.
fn says_something(wanted: &str, name: &str) -> bool {
    if !wanted.contains(is_wild) {
        return true;
    }
    let letters = |text: &str| text.chars().filter(|c| !is_wild(*c)).count();
    match wanted.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()) {
        _ if wanted.starts_with('.') && name.starts_with('.') => true,
        Some((stem, end)) => letters(stem) >= 2 || (end.contains(is_wild) && letters(end) > 0),
        None => letters(wanted) >= 2,
    }
}

/// Whether some name fits both patterns. A class counts as any character.
fn meet(one: &str, other: &str) -> bool {
    let (one, other) = (parts(one), parts(other));
    let width = other.len() + 1;
    // Whether what is before these two places can be the same.
    let mut reached = vec![false; (one.len() + 1) * width];
    if let Some(first) = reached.first_mut() {
        *first = true;
    }
    for row in 0..=one.len() {
        for column in 0..=other.len() {
            if reached.get(row * width + column) != Some(&true) {
                continue;
            }
            let (a, b) = (one.get(row), other.get(column));
            let star = |part: Option<&char>| part == Some(&'*');
            let alike = matches!((a, b), (Some(a), Some(b)) if a == b || *a == '?' || *b == '?');
            let steps = [
                (star(a), 1, 0),
                (star(b), 0, 1),
                (star(a) && b.is_some(), 0, 1),
                (star(b) && a.is_some(), 1, 0),
                (alike, 1, 1),
            ];
            for (_, down, right) in steps.into_iter().filter(|(goes, ..)| *goes) {
                if let Some(place) = reached.get_mut((row + down) * width + column + right) {
                    *place = true;
                }
            }
        }
    }
    reached.last() == Some(&true)
}

/// The characters of a pattern, with `?` for a class.
fn parts(pattern: &str) -> Vec<char> {
    let mut parts = Vec::new();
    let mut chars = pattern.chars().take(64);
    while let Some(c) = chars.next() {
        if c == '[' && chars.clone().skip(1).any(|c| c == ']') {
            chars.next();
            chars.find(|c| *c == ']');
            parts.push('?');
        } else {
            parts.push(c);
        }
    }
    parts
}

/// The text with each choice of its first braces.
fn first_choice(text: &str) -> Vec<String> {
    let parts = text.split_once('{').and_then(|(start, rest)| {
        let (choices, end) = rest.split_once('}')?;
        Some((start, choices, end))
    });
    let Some((start, choices, end)) = parts else { return vec![text.to_owned()] };
    choices.split(',').map(|choice| format!("{start}{choice}{end}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_a_pattern_stands_for_what_it_would_find() {
        for (pattern, path, expected) in [
            ("**/.env", ".e*", true),
            ("**/.env", "/srv/.??v", true),
            ("**/.env", ".*", true),
            ("**/.env", "*", false),
            ("**/.env", "src/*.rs", false),
            ("~/.ssh", "~/.s*/id_rsa", true),
            ("/etc/shadow", "/etc/sh?dow", true),
            ("/etc/shadow", "/e*/s*w", true),
            ("/etc/shadow", "/srv/etc/sh?dow", false),
            ("**/*.{pem,key}", "server.k?y", true),
            ("**/*.{pem,key}", "*.k[e]y", true),
            ("**/credentials.json", "cred*.json", true),
            ("**/credentials.json", "*.json", false),
            ("**/credentials.json", "*", false),
            ("**/*service-account*.json", "*.json", false),
            ("**/etc/passwd", "/etc/*", true),
            ("**/.env.*", ".env.?", true),
            ("**/id_rsa", "app/[id]/page.tsx", false),
            ("**/id_rsa", "src/**/*.test.ts", false),
        ] {
            let samples = Sample::of(pattern);
            assert_eq!(samples.iter().any(|it| it.fits(path)), expected, "{pattern} {path}");
        }
    }
}
