//! Paths that a pattern stands for, to compare with paths that are patterns themselves, such as
//! `.e*` in a command.

use crate::facts::glob::matches_name;

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
        texts.iter().map(|text| Self::of_plain(pattern, text)).filter(|it| !it.names.is_empty()).collect()
    }

    fn of_plain(pattern: &str, text: &str) -> Self {
        let absolute = text.starts_with('/');
        let names = text.split('/').filter(|name| !name.is_empty() && *name != "**" && *name != "~");
        let plain = |name: &str| {
            let name = name.replace('*', "x").replace('?', "x");
            name.split_once('[').map_or(name.clone(), |(start, _)| format!("{start}x"))
        };
        let names: Vec<String> = names.map(plain).map(|name| name.to_lowercase()).collect();
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
        format!("{start}{}", self.names.join("/"))
    }

    /// Whether a path with `*`, `?` or `[…]` stands for this one too. A name that says next to
    /// nothing, such as `*`, does not count.
    pub(super) fn fits(&self, path: &str) -> bool {
        let names: Vec<String> = path.split('/').filter(|it| !it.is_empty()).map(str::to_lowercase).collect();
        let mut windows = names.windows(self.names.len());
        let fits = |window: &[String]| {
            let mut says = false;
            for (wanted, name) in window.iter().zip(&self.names) {
                let is_pattern = wanted.contains(['*', '?', '[']);
                if is_pattern && !matches_name(wanted, name) || !is_pattern && wanted != name {
                    return false;
                }
                says |= wanted.starts_with('.') && name.starts_with('.')
                    || wanted.chars().filter(|c| !matches!(c, '*' | '?' | '[' | ']')).count() >= 2;
            }
            says
        };
        if self.absolute { windows.next().is_some_and(fits) } else { windows.any(fits) }
    }
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
            ("**/.env", "/work/.??v", true),
            ("**/.env", ".*", true),
            ("**/.env", "*", false),
            ("**/.env", "src/*.rs", false),
            ("~/.ssh", "~/.s*/id_rsa", true),
            ("/etc/shadow", "/etc/sh?dow", true),
            ("/etc/shadow", "/e*/s*w", true),
            ("/etc/shadow", "/work/etc/sh?dow", false),
            ("**/*.{pem,key}", "server.k?y", true),
            ("**/id_rsa", "app/[id]/page.tsx", false),
            ("**/id_rsa", "src/**/*.test.ts", false),
        ] {
            let samples = Sample::of(pattern);
            assert_eq!(samples.iter().any(|it| it.fits(path)), expected, "{pattern} {path}");
        }
    }
}
