//! Reading a host out of a string, and matching host patterns.

/// The host in a string.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// It names this host.
    Host(String),
    /// It is a URL, but its host has no plain form.
    Unreadable,
    /// It names none.
    Nothing,
}

/// The form in which hosts are compared.
pub(super) fn normal(host: &str) -> String {
    host.trim().trim_matches('.').to_lowercase()
}

/// Schemes whose URLs browsers complete when slashes are missing.
const WEB_SCHEMES: [&str; 6] = ["http", "https", "ws", "wss", "ftp", "file"];

/// The host of a URL or of a bare `host[:port][/path]`.
pub(super) fn extract(text: &str) -> Found {
    let text = text.trim();
    // SECURITY: browsers take these out before they read a URL.
    if !is_url(text) && is_url(&text.replace(['\t', '\n', '\r'], "")) {
        return Found::Unreadable;
    }
    let (is_url, rest) = match text.split_once("://") {
        Some((_, rest)) => (true, rest),
        // SECURITY: browsers read `https:evil.example` and `//evil.example` as URLs too.
        None if has_web_scheme(text) => return Found::Unreadable,
        None => match text.strip_prefix("//").or_else(|| text.strip_prefix("\\\\")) {
            Some(rest) => (true, rest),
            None => (false, text),
        },
    };
    // SECURITY: the authority ends before user names are looked for, so that
    // `https://evil.example#@good.example` is evil's.
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    // SECURITY: some readers end it at a backslash and some do not, so `good\@evil` is either's.
    let authority = match authority.split_once('\\') {
        Some((_, after)) if is_url && after.contains('@') => return Found::Unreadable,
        Some((before, _)) => before,
        None => authority,
    };
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = normal(host.split(':').next().unwrap_or_default());
    let plain =
        host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'));
    if plain && (host.contains('.') || host == "localhost") {
        Found::Host(host)
    } else if is_url {
        Found::Unreadable
    } else {
        Found::Nothing
    }
}

fn is_url(text: &str) -> bool {
    text.contains("://") || has_web_scheme(text) || text.starts_with("//")
}

fn has_web_scheme(text: &str) -> bool {
    let scheme = text.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
    scheme.is_some_and(|scheme| WEB_SCHEMES.contains(&scheme.as_str()))
}

/// Whether `host` matches a pattern in which `*` stands for any run of characters.
pub(super) fn glob(pattern: &str, host: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(rest) = host.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    let Some(mut rest) = rest.strip_suffix(last) else { return false };
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    true
}
