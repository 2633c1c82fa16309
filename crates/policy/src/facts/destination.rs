//! The destination that a text names, parsed as a browser parses it.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization as _;
use url::{Host, Url};

use super::fold::folded;
use super::{DestinationFact, has_word};

/// Schemes whose URLs a browser reads with any number and kind of slashes.
const SPECIAL: &[&str] = &["http", "https", "ws", "wss", "ftp"];

/// The destination of a text that has a scheme; none where it has none, names a file, or has no
/// place in the network.
pub(crate) fn of_url(text: &str) -> Option<DestinationFact> {
    if !text.contains(':') && text.is_ascii() {
        return None;
    }
    let clean = clean(text);
    let clean: &str = &clean;
    let (start, scheme) = scheme_of(clean)?;
    if scheme == "file" {
        return of_file(text, clean);
    }
    let url = clean.get(start..).unwrap_or(clean);
    Some(parsed(text, url, &scheme)).filter(|fact| fact.host.as_deref() != Some(""))
}

/// Whether readers of URLs (browsers, RFC 3986, `curl`) go to different places by this text, which
/// is then no place that can be judged. The text is a URL, or a host as [`of_place`] takes it.
pub(crate) fn is_ambiguous(text: &str) -> bool {
    let text = text.trim_matches(' ');
    let (rest, is_special) = match scheme_of(&clean(text)) {
        // Names that a server made up: it reads them in its own way.
        Some((_, scheme)) if !SPECIAL.contains(&scheme.as_str()) && !is_of_network(&scheme) => {
            return false;
        }
        Some((_, scheme)) => {
            let Some(end) = after_scheme(text, &scheme) else { return true };
            (text.get(end..).unwrap_or_default(), SPECIAL.contains(&scheme.as_str()))
        }
        None => (text, false),
    };
    let bare = rest.strip_prefix("//").unwrap_or(rest);
    // `http:host` and `http:///host` are paths to some.
    if is_special && (bare.len() == rest.len() || bare.starts_with(['/', '\\'])) {
        return true;
    }
    let end = bare.find(['/', '?', '#']).unwrap_or(bare.len());
    let (authority, after) = bare.split_at_checked(end).unwrap_or((bare, ""));
    // `http://one#@two/`: to some, a fragment does not end the host.
    let first = after.split('/').next().unwrap_or_default();
    let hidden = first.contains('@') && !first.contains('=');
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    hidden || user.contains('@') || authority.chars().any(divides) || is_odd_host(host)
}

/// Where a text goes on behind its scheme and the `:`; none where something unseen is between them.
fn after_scheme(text: &str, scheme: &str) -> Option<usize> {
    let end = text.find(':')?;
    if text.get(..end)?.eq_ignore_ascii_case(scheme) {
        return Some(end + 1);
    }
    // Behind what some formats put before it.
    let mark = format!(":{scheme}:");
    text.to_ascii_lowercase().find(&mark).map(|start| start + mark.len())
}

/// Whether a character of an authority ends it for some readers: a `\\`, what cannot be seen, and
/// what stands for `/`, `@` and the like.
fn divides(c: char) -> bool {
    const MARKS: [char; 10] = ['/', '\\', '?', '#', '@', ':', '[', ']', '%', ' '];
    if c.is_ascii() {
        return c == '\\' || c == ' ' || c.is_ascii_control();
    }
    c.is_whitespace() || c.is_control() || c.nfkc().any(|c| MARKS.contains(&c))
}

/// Whether readers take a host for different ones: it is encoded, a number that is no plain
/// address, or has letters that two standards for names read differently.
fn is_odd_host(host: &str) -> bool {
    if host.starts_with('[') || host.matches(':').count() > 1 {
        return host.contains('%');
    }
    let name = host.split(':').next().unwrap_or_default();
    if name.contains(['%', 'ß', 'ς', 'ẞ', '\u{200c}', '\u{200d}']) {
        return true;
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    let last = name.rsplit('.').next().unwrap_or_default();
    let hex = last.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("0x"));
    let number = hex || (!last.is_empty() && last.bytes().all(|b| b.is_ascii_digit()));
    number && name.parse::<std::net::Ipv4Addr>().is_err()
}

/// Schemes by which a server would go to the host that its URI names.
const OF_NETWORK: &str = "http https ws wss ftp ftps sftp ssh scp git git+ssh ssh+git git+https rsync smb nfs afp ldap \
    ldaps gopher telnet tcp udp tls ssl dns rtsp rtmp sip imap imaps smtp smtps pop3 nntp irc \
    postgres postgresql mysql mariadb mssql sqlserver oracle redis rediss mongodb mongodb+srv \
    amqp amqps mqtt mqtts nats kafka cassandra neo4j bolt clickhouse vnc rdp socks socks4 socks5 \
    unix jdbc odbc grpc webdav dav davs dict tftp s3 gs hdfs docker etcd consul zk memcached svn \
    svn+ssh hg bzr coap coaps stun turn whois finger wais prospero snmp syslog x11 vsock ipp \
    ipps";

/// Whether a server would go to the host that a URI of this scheme names. Other schemes are names
/// that servers have made up for what they have.
pub(crate) fn is_of_network(scheme: &str) -> bool {
    has_word(OF_NETWORK, scheme)
}

/// Whether a text is the URI of a file.
pub(crate) fn is_file(text: &str) -> bool {
    // Readers of URIs drop blanks before it, and tabs and line ends wherever they stand.
    let visible = text.trim_start().chars().filter(|c| !matches!(c, '\t' | '\n' | '\r'));
    visible.take(5).map(|c| c.to_ascii_lowercase()).eq("file:".chars())
}

/// The destination of a text that should be a URL or a host: also without a scheme, from one side
/// (`//host/x`), and as `git` writes it (`user@host:path`).
pub(crate) fn of_place(text: &str) -> Option<DestinationFact> {
    if let Some(fact) = of_url(text) {
        return Some(fact);
    }
    let clean = clean(text);
    if clean.is_empty() || scheme_of(&clean).is_some() {
        return None;
    }
    let bare = clean.trim_start_matches(['/', '\\']);
    if bare.len() + 1 == clean.len() || clean.starts_with(['.', '#', '?']) {
        // Relative to a URL that another argument names.
        return None;
    }
    let opaque = ["about:", "data:", "blob:", "mailto:", "javascript:"];
    if opaque
        .iter()
        .any(|scheme| bare.get(..scheme.len()).is_some_and(|it| it.eq_ignore_ascii_case(scheme)))
    {
        // A page of the browser's own: no place in the network.
        return None;
    }
    if let Some((host, port_or_path)) = bare.split_once(':')
        && !bare.starts_with('[')
        && !port_or_path.starts_with(|c: char| c.is_ascii_digit())
        && !port_or_path.is_empty()
        && !port_or_path.contains(':')
    {
        let host = host.rsplit('@').next().unwrap_or(host);
        return Some(parsed(text, &format!("ssh://{host}/"), "ssh"));
    }
    // An IPv6 address without its brackets.
    let bracketed = bare.parse::<std::net::Ipv6Addr>().is_ok().then(|| format!("[{bare}]"));
    let url = format!("http://{}", bracketed.as_deref().unwrap_or(bare));
    let mut fact = parsed(text, &url, "http");
    let tells_port = fact.port.is_some_and(|port| port != 80) || bare.contains(":80");
    fact.scheme = None;
    fact.port = fact.port.filter(|_| tells_port);
    Some(fact)
}

/// Whether a text without a scheme looks like a host: a name with dots, an address, `localhost`.
pub(crate) fn looks_like_host(text: &str) -> bool {
    let authority = text.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let authority = authority.rsplit('@').next().unwrap_or(authority);
    if authority.starts_with('[') || authority.parse::<std::net::Ipv6Addr>().is_ok() {
        return true;
    }
    let host = authority.split(':').next().unwrap_or_default().trim_end_matches('.');
    if host.eq_ignore_ascii_case("localhost") {
        return true;
    }
    let fine = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '。' | '．');
    let dotted = host.contains(['.', '。', '．']) && !host.starts_with('.');
    let hex = host.strip_prefix("0x").or_else(|| host.strip_prefix("0X"));
    let number = hex.map_or_else(
        || host.len() >= 8 && host.bytes().all(|b| b.is_ascii_digit()),
        |hex| hex.len() >= 6 && hex.bytes().all(|b| b.is_ascii_hexdigit()),
    );
    (dotted && host.chars().all(fine)) || number
}

/// Without what browsers take out of a URL: spaces around it, and line breaks and tabs in it.
fn clean(text: &str) -> Cow<'_, str> {
    let trimmed = text.trim_matches(|c: char| c.is_ascii_control() || c == ' ');
    if trimmed.bytes().all(|b| b.is_ascii() && !b.is_ascii_control()) {
        return Cow::Borrowed(trimmed);
    }
    let kept: String = trimmed.chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')).collect();
    let plain_scheme = kept.split_once(':').is_some_and(|(scheme, _)| scheme.is_ascii());
    if plain_scheme { Cow::Owned(kept) } else { Cow::Owned(folded(&kept).into_owned()) }
}

/// The scheme of a text and where it begins: behind what some formats put before it (`jdbc:`).
fn scheme_of(text: &str) -> Option<(usize, String)> {
    let first = text.get(..text.find(':')?).unwrap_or_default();
    let lower = first.to_ascii_lowercase();
    if SPECIAL.contains(&lower.as_str()) || lower == "file" {
        return Some((0, lower));
    }
    let end = ["://", ":\\\\", ":/\\", ":\\/"].iter().filter_map(|mark| text.find(mark)).min()?;
    let before = text.get(..end)?;
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    let start = before.rfind(|c| !is_scheme(c)).map_or(0, |place| place + 1);
    let scheme = before.get(start..)?;
    let prefix = before.get(..start)?;
    let fine = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && (prefix.is_empty() || prefix.ends_with(':'))
        && !prefix.contains(char::is_whitespace);
    fine.then(|| (start, scheme.to_ascii_lowercase()))
}

/// A file of another machine is a connection to it.
fn of_file(text: &str, clean: &str) -> Option<DestinationFact> {
    let url = Url::parse(clean).ok()?;
    let host = host_of(&url).filter(|host| !host.is_empty())?;
    Some(DestinationFact {
        text: text.to_owned(),
        host: Some(host),
        port: Some(445),
        scheme: Some("file".to_owned()),
    })
}

fn parsed(text: &str, url: &str, scheme: &str) -> DestinationFact {
    let special = SPECIAL.contains(&scheme);
    // Hosts of other schemes are read like those of the web, since most clients do.
    let read_as = if special { Cow::Borrowed(url) } else { Cow::Owned(as_web(url)) };
    let parsed = Url::parse(&read_as).ok();
    let bare = || Url::parse(url).ok().filter(|url| !url.has_host()).map(|_| String::new());
    let host = parsed.as_ref().and_then(host_of).filter(|host| !host.is_empty());
    let host = if special { host } else { host.or_else(bare) };
    let port = parsed
        .as_ref()
        .and_then(|url| if special { url.port_or_known_default() } else { url.port() });
    DestinationFact {
        text: text.to_owned(),
        host,
        port: port.or_else(|| usual_port(scheme)),
        scheme: Some(scheme.to_owned()),
    }
}

fn as_web(url: &str) -> String {
    let rest = url.split_once(':').map_or(url, |(_, rest)| rest);
    if rest.starts_with("///") { url.to_owned() } else { format!("http:{rest}") }
}

fn usual_port(scheme: &str) -> Option<u16> {
    Some(match scheme {
        "ssh" | "sftp" | "git+ssh" | "ssh+git" => 22,
        "postgres" | "postgresql" => 5432,
        "mysql" => 3306,
        "redis" => 6379,
        "mongodb" => 27017,
        "git" => 9418,
        "ldap" => 389,
        "gopher" => 70,
        _ => return None,
    })
}

fn host_of(url: &Url) -> Option<String> {
    Some(match url.host()? {
        Host::Domain(name) => name.trim_end_matches('.').to_ascii_lowercase(),
        Host::Ipv4(address) => address.to_string(),
        Host::Ipv6(address) => address.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(fact: Option<DestinationFact>) -> String {
        let Some(fact) = fact else { return "none".to_owned() };
        let port = fact.port.map_or_else(String::new, |port| format!(" {port}"));
        let scheme = fact.scheme.map_or_else(String::new, |scheme| format!("{scheme} "));
        format!("{scheme}{}{port}", fact.host.as_deref().unwrap_or("?"))
    }

    #[test]
    fn a_url_is_read_as_browsers_read_it() {
        for (text, expected) in [
            ("https://api.example.com/x", "https api.example.com 443"),
            ("http://good.com@evil.com/", "http evil.com 80"),
            ("http:\\\\evil.com\\x", "http evil.com 80"),
            ("http:/evil.com", "http evil.com 80"),
            ("http:evil.com", "http evil.com 80"),
            (" \thttp://evil.com", "http evil.com 80"),
            ("ht\ntp://evil.com", "http evil.com 80"),
            ("HTTP://EVIL.com.:8080", "http evil.com 8080"),
            ("http://2130706433/", "http 127.0.0.1 80"),
            ("http://0x7f.1/", "http 127.0.0.1 80"),
            ("http://0177.0.0.1/", "http 127.0.0.1 80"),
            ("http://[::ffff:127.0.0.1]/", "http ::ffff:127.0.0.1 80"),
            ("http://１２７.0.0.1/", "http 127.0.0.1 80"),
            ("http://bücher.example/", "http xn--bcher-kva.example 80"),
            ("http://exa mple/", "http ?"),
            ("http://", "http ?"),
            ("postgres://u:p@10.0.0.1/db", "postgres 10.0.0.1 5432"),
            ("jdbc:postgresql://2130706433:5432/db", "postgresql 127.0.0.1 5432"),
            ("gopher://127.0.0.1:6379/_x", "gopher 127.0.0.1 6379"),
            ("note:///1", "none"),
            ("file:///etc/passwd", "none"),
            ("file://evil/share", "file evil 445"),
            ("data:text/plain,x", "none"),
            ("plain text", "none"),
            ("see http://x.y for more", "none"),
            ("12:30", "none"),
        ] {
            assert_eq!(shown(of_url(text)), expected, "{text}");
        }
    }

    #[test]
    fn a_place_needs_no_scheme() {
        for (text, expected) in [
            ("evil.com", "evil.com"),
            ("evil.com:8080/x", "evil.com 8080"),
            ("//evil.com/x", "evil.com"),
            ("169.254.169.254/latest", "169.254.169.254"),
            ("2852039166", "169.254.169.254"),
            ("::1", "::1"),
            ("[::1]:80", "::1 80"),
            ("git@github.com:a/b.git", "ssh github.com 22"),
            ("/v1/users", "none"),
            ("", "none"),
        ] {
            assert_eq!(shown(of_place(text)), expected, "{text}");
        }
    }

    #[test]
    fn what_readers_take_for_different_places_is_ambiguous() {
        for text in [
            "http://example.com\\@127.0.0.1/",
            "http:\\\\example.com\\x",
            "http://a@b@127.0.0.1/",
            "http://example.com#@127.0.0.1/",
            "http://example.com?@127.0.0.1/",
            "http://127.0.0.1\t.example.com/",
            "http://127.0.0.1 @example.com/",
            "ht\ntp://example.com/",
            "http:example.com",
            "http:/example.com/x",
            "http:///example.com/x",
            "http://127%2e0.0.1/",
            "http://010.8.8.8/",
            "http://0x7f.1/",
            "http://2130706433/",
            "http://127.1/",
            "http://example.com\u{ff0f}@127.0.0.1/",
            "http://\u{2100}@127.0.0.1/",
            "http://fa\u{df}.example/",
            "http://[fe80::1%25eth0]/",
            "jdbc:postgresql://a\\@10.0.0.1/db",
            "example.com\\@127.0.0.1",
            "0177.0.0.1",
        ] {
            assert!(is_ambiguous(text), "{text:?}");
        }
        for text in [
            "http://example.com/a\\b@c",
            " https://example.com/x ",
            "https://user:p%40ss@example.com:8443/x",
            "https://example.com/@name?mail=a@b.c#@x",
            "https://example.com?mail=a@b.c",
            "http://127.0.0.1:80/",
            "http://[::1]:80/",
            "http://1.2.3.4.example/",
            "http://b\u{fc}cher.example/",
            "HTTPS://EXAMPLE.COM./",
            "git@github.com:a/b.git",
            "//example.com/x",
            "example.com:8080",
            "::1",
            "fe80::1",
            "postgres://u:p@10.0.0.1/db",
            "jdbc:postgresql://10.0.0.1:5432/db",
            "notes://a@b@c",
        ] {
            assert!(!is_ambiguous(text), "{text:?}");
        }
    }

    #[test]
    fn hosts_are_told_from_words() {
        for text in
            ["a.b", "localhost:3000", "10.0.0.1", "2130706433", "0x7f000001", "[::1]:80", "u@h.c/x"]
        {
            assert!(looks_like_host(text), "{text}");
        }
        for text in ["finance", "POST", "8080", ".env", "a b.c", ""] {
            assert!(!looks_like_host(text), "{text}");
        }
    }
}
