//! What clients call the tools and prompts of several servers.
//!
//! With one server, names are its own. With several, each is `server__name`: a server that adds a
//! tool never takes a name away from another. What clients do not take in a name, such as the colon
//! of `a2a:host`, is a dash there. URIs stay as they are, but for one that several servers list: each
//! lists it as `chio://server/URI`.

use std::borrow::Cow;

/// Between a server's name and a tool's.
const SEPARATOR: &str = "__";
/// What a URI of one server among several begins with.
const SCHEME: &str = "chio://";

/// The servers that are offered, in order.
#[derive(Debug, Clone)]
pub(crate) struct Names(Vec<String>);

impl Names {
    pub(crate) const fn new(servers: Vec<String>) -> Self {
        Self(servers)
    }

    /// The servers, in order.
    pub(crate) fn servers(&self) -> &[String] {
        &self.0
    }

    /// Whether names carry their server's.
    pub(crate) fn is_qualified(&self) -> bool {
        self.0.len() > 1
    }

    /// What clients call something of a server.
    pub(crate) fn public(&self, server: &str, name: &str) -> String {
        if !self.is_qualified() {
            return name.to_owned();
        }
        format!("{}{SEPARATOR}{name}", server_prefix(server))
    }

    /// What clients call a URI that other servers list as well.
    pub(crate) fn public_uri(server: &str, uri: &str) -> String {
        format!("{SCHEME}{}/{uri}", server_prefix(server))
    }

    /// Whose a URI is that names its server, and what that calls it.
    pub(crate) fn resolve_uri<'a>(&'a self, public: &'a str) -> Option<(&'a str, &'a str)> {
        let (name, uri) = public.strip_prefix(SCHEME)?.split_once('/')?;
        let server = self.0.iter().find(|server| server_prefix(server) == name)?;
        Some((server, uri))
    }

    /// Whose it is, and what its server calls it. The longest server's name wins.
    pub(crate) fn resolve<'a>(&'a self, public: &'a str) -> Option<(&'a str, &'a str)> {
        if !self.is_qualified() {
            return self.0.first().map(|server| (server.as_str(), public));
        }
        let of = |server: &'a String| {
            let name = public.strip_prefix(&*server_prefix(server))?.strip_prefix(SEPARATOR)?;
            Some((server.as_str(), name))
        };
        self.0.iter().filter_map(of).max_by_key(|(server, _)| server.len())
    }
}

/// What a server is called before the names of its tools.
pub fn server_prefix(server: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if server.chars().all(plain) {
        return Cow::Borrowed(server);
    }
    Cow::Owned(server.chars().map(|c| if plain(c) { c } else { '-' }).collect())
}

#[cfg(test)]
mod tests {
    use super::Names;

    #[test]
    fn one_server_keeps_its_names_and_several_put_theirs_before() {
        let names =
            |servers: &[&str]| Names::new(servers.iter().map(|&it| it.to_owned()).collect());
        let one = names(&["files"]);
        assert_eq!(one.public("files", "read"), "read");
        assert_eq!(one.resolve("read"), Some(("files", "read")));
        let several = names(&["files", "git", "files__old"]);
        assert_eq!(several.public("git", "log"), "git__log");
        for (public, found) in [
            ("git__log", Some(("git", "log"))),
            ("files__old__read", Some(("files__old", "read"))),
            ("files__read", Some(("files", "read"))),
            ("log", None),
            ("git_log", None),
        ] {
            assert_eq!(several.resolve(public), found, "{public}");
        }
        assert_eq!(names(&[]).resolve("x"), None);
        let agents = names(&["git", "a2a:agent.example.com"]);
        let public = agents.public("a2a:agent.example.com", "research");
        assert_eq!(public, "a2a-agent.example.com__research");
        assert_eq!(agents.resolve(&public), Some(("a2a:agent.example.com", "research")));
    }

    #[test]
    fn a_uri_may_name_its_server() {
        let names = Names::new(vec!["notes".to_owned(), "a2a:host".to_owned()]);
        for (server, uri) in [("notes", "memo://insights"), ("a2a:host", "file:///a?b#c")] {
            let public = Names::public_uri(server, uri);
            assert_eq!(names.resolve_uri(&public), Some((server, uri)), "{public}");
        }
        assert_eq!(Names::public_uri("notes", "memo://a"), "chio://notes/memo://a");
        for other in ["memo://insights", "chio://other/memo://a", "chio://notes", "CHIO://notes/a"]
        {
            assert_eq!(names.resolve_uri(other), None, "{other}");
        }
    }
}
