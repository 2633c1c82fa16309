//! The URL that agent cards name, below which everything of an agent is found.

use url::Url;

/// Reads such a URL, and writes it as cards do: without a slash at its end.
///
/// # Errors
/// With what was expected. What was found may have a password in it, and is not repeated.
pub(crate) fn read(text: &str) -> Result<String, String> {
    let url = Url::parse(text).ok().filter(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none()
    });
    let expected = || "expected an http or https URL without user, query and fragment".to_owned();
    Ok(url.ok_or_else(expected)?.as_str().trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_written_as_urls_are_or_refused() {
        for (text, expected) in [
            ("https://agents.example.com", Some("https://agents.example.com")),
            ("https://agents.example.com/a/", Some("https://agents.example.com/a")),
            ("https:agents.example.com\t/a", Some("https://agents.example.com/a")),
            ("http://127.0.0.1:8931", Some("http://127.0.0.1:8931")),
            ("agents.example.com", None),
            ("ftp://agents.example.com", None),
            ("https://bob:hunter2@agents.example.com", None),
            ("https://agents.example.com/?a=b", None),
            ("https://agents.example.com/#a", None),
        ] {
            let read = read(text);
            assert_eq!(read.as_deref().ok(), expected, "{text}");
            assert!(!read.is_err_and(|error| error.contains("hunter2")));
        }
    }
}
