//! Whether what looks like a secret is likely to be one.

/// Words of texts that only show where a secret would stand.
const PLACEHOLDERS: [&str; 22] = [
    "example",
    "placeholder",
    "changeme",
    "change_me",
    "change-me",
    "your_",
    "your-",
    "yourpass",
    "xxxx",
    "****",
    "....",
    "password",
    "passwd",
    "redacted",
    "dummy",
    "sample",
    "insert",
    "replace",
    "secret_here",
    "<",
    "00000000",
    "1234567890abcdef1234567890abcdef",
];

/// Whether it only shows where a secret would stand.
pub(super) fn is_placeholder(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    PLACEHOLDERS.iter().any(|word| lower.contains(word)) || distinct(text) < 4
}

fn distinct(text: &str) -> usize {
    let mut seen = [false; 256];
    let mut count = 0;
    for byte in text.bytes() {
        if let Some(seen) = seen.get_mut(usize::from(byte))
            && !*seen
        {
            *seen = true;
            count += 1;
        }
    }
    count
}

/// Bits per byte, by how often each byte occurs.
pub(super) fn entropy(text: &str) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in text.bytes() {
        if let Some(count) = counts.get_mut(usize::from(byte)) {
            *count += 1;
        }
    }
    let total = f64::from(u32::try_from(text.len()).unwrap_or(u32::MAX));
    let part = |count: &u32| {
        let share = f64::from(*count) / total;
        -share * share.log2()
    };
    counts.iter().filter(|count| **count > 0).map(part).sum()
}

/// A token of a known form: whatever its letters, unless it is one of an example.
pub(super) fn is_token(text: &str, _: Option<char>) -> bool {
    let body = text.rsplit(['_', '-', '.', '/']).find(|part| part.len() >= 8).unwrap_or(text);
    !is_placeholder(body) && entropy(body) >= 2.5
}

/// A key's block with something in it; its first line alone is none.
pub(super) fn is_long_block(text: &str, _: Option<char>) -> bool {
    text.len() >= 100 && !text.to_ascii_lowercase().contains("example")
}

/// User name and password of a URL: not the usual ones of services on a developer's machine.
pub(super) fn is_login(text: &str, _: Option<char>) -> bool {
    let Some((user, password)) = text.split_once(':') else { return false };
    let is_common = ["pass", "postgres", "root", "admin", "test", "guest", "user", "pwd", "token"];
    !(password == user
        || password.len() < 4
        || password.contains(['$', '{', '}', '*'])
        || is_common.contains(&password.to_ascii_lowercase().as_str())
        || is_placeholder(password))
}

/// A credential after `Bearer`: letters and digits in no order.
pub(super) fn is_credential(text: &str, _: Option<char>) -> bool {
    has_both(text) && !is_placeholder(text) && entropy(text) >= 3.3
}

/// A value after `password=`: no code, no path, no name of something else.
pub(super) fn is_assigned(text: &str, after: Option<char>) -> bool {
    let is_call = matches!(after, Some('(' | '[' | '{' | '<' | '$'));
    let is_place =
        text.starts_with(['/', '.', '~', '\\', '%', '@', '-', '*']) || text.contains("://");
    let least = if text.len() < 16 { 2.7 } else { 3.1 };
    !is_call
        && !is_place
        && has_both(text)
        && !is_name(text)
        && !is_placeholder(text)
        && entropy(text) >= least
}

fn has_both(text: &str) -> bool {
    let has = |kind: fn(&u8) -> bool| text.as_bytes().iter().any(kind);
    has(u8::is_ascii_alphabetic) && has(u8::is_ascii_digit)
}

/// Words of code and prose: `config.db.password2`, `page_token_2`, `my-secret-v1`.
fn is_name(text: &str) -> bool {
    let trimmed = text.trim_end_matches(['.', ':', '!', '?', '*', '\\']);
    let mut words = trimmed.split(['.', '_', '-', ':', '/']).peekable();
    let is_word = |word: &str| {
        let letters = word.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = word.len() - letters.len();
        let is_camel =
            letters.bytes().all(|byte| byte.is_ascii_alphabetic()) && is_plain_case(letters);
        is_camel && digits <= 4 && (digits <= 2 || letters.is_empty())
    };
    let several = trimmed.contains(['.', '_', '-', ':', '/']);
    several && words.all(is_word)
}

/// Letters as words have them: all of one case, or capitals only where words begin.
fn is_plain_case(letters: &str) -> bool {
    let upper = letters.bytes().filter(u8::is_ascii_uppercase).count();
    upper == letters.len() || upper * 3 <= letters.len()
}

#[cfg(test)]
mod tests {
    use super::{is_assigned, is_login, is_token};

    #[test]
    fn values_that_are_secrets_are_told_from_code_and_examples() {
        for text in
            ["Tr0ub4dor&3", "hK83nd0Wq2", "Summer2024!", "9f86d081884c7d659a2f", "p4ssw0rd-Xq9Z"]
        {
            assert!(is_assigned(text, None), "{text}");
        }
        for text in [
            "config.db.pass2",
            "user_token_1",
            "process.env.TOKEN2",
            "changeme123",
            "getSecret",
            "/run/secrets/db1",
            "12345678",
            "YOUR_API_KEY_1",
            "xxxxxxxx1",
            "my-secret-v2",
            "https://a.example/1",
        ] {
            assert!(!is_assigned(text, None), "{text}");
        }
        assert!(!is_assigned("readToken42x", Some('(')), "a call of a function");
    }

    #[test]
    fn logins_that_everybody_has_are_none() {
        for text in ["app:s3cr3t-9x", "root:Hunter22"] {
            assert!(is_login(text, None), "{text}");
        }
        for text in
            ["postgres:postgres", "user:password", "user:${PASS}", "root:root", "a:***", "u:pw"]
        {
            assert!(!is_login(text, None), "{text}");
        }
        assert!(!is_token(concat!("AKIA", "IOSFODNN7EXAMPLE"), None), "the one of the manuals");
    }
}
