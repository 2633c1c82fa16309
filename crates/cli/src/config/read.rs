//! From text to what is to be run.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use chio_core::crypto::PublicKey;
use chio_edge::{Carrier, EdgeKind, Endpoint, Form, SettingValue, Settings};
use chio_kernel::store::StoreError;
use chio_store::{Location, StoreUrl};
use chio_yaml::{Key, NodeKind, Problem, Problems, Section, listed, parse};

use super::access::{JWT, TOKEN, access, pages};
use super::{Config, DEFAULT_LISTEN, default_edges, default_listeners};
use crate::edges::EDGES;
use crate::listeners::{Admits, ListenerConfig, Transport};
use crate::policies::DEFAULT;
use crate::runtime::EdgeConfig;
use crate::servers::{self, Paths, ToolServer, texts};
use crate::store_args::DEFAULT_FOLDER;

static TOP: LazyLock<&'static [Key]> = LazyLock::new(|| {
    Vec::leak(vec![
        Key::new(
            "store",
            "a folder, `sqlite:FOLDER` or `memory:`",
            "in the data directory",
            "where receipts and all that processes share are kept",
        ),
        Key::new(
            "data",
            "a folder",
            "the store's folder, or .chio",
            "the data directory: keys, sockets and tokens",
        ),
        Key::new("policy", "a file or a name", "default", "the policy that judges calls"),
        Key::new("shadow_policy", "a file or a name", "none", "a policy that is only tried"),
        Key::new("servers", "a list of maps with `id`", "required", "what has tools")
            .of(*servers::KEYS),
        Key::new(
            "trusted_kernels",
            "a list of public keys",
            "[]",
            "who may say where calls come from",
        ),
        Key::new("listeners", "a map of maps", "`http` and `socket`", "where clients connect"),
        Key::new("edges", "a map", "all", "what is spoken, and on which listener").of(*EDGE_KEYS),
    ])
});
const LISTENER: &[Key] = &[
    Key::new("listen", "ADDRESS:PORT", "127.0.0.1:9090", "the address of an HTTP listener"),
    Key::new("socket", "a path", "none", "the Unix socket of a listener for byte streams"),
    Key::new(
        "tokens",
        "a list of maps with `name` and `file`",
        "[]",
        "the bearer tokens that are accepted",
    )
    .of(TOKEN),
    Key::new("jwt", "a map", "none", "the authorization server whose tokens are accepted").of(JWT),
    Key::new(
        "anonymous",
        "`default` or a file",
        "none",
        "what clients without a credential may do",
    ),
    Key::new("origins", "a list of texts", "[]", "web pages of other servers that may call"),
];
/// The key of every edge that names its listener.
const LISTENER_KEY: &str = "listener";

/// The keys of `edges`, from the list of edges.
static EDGE_KEYS: LazyLock<&'static [Key]> = LazyLock::new(|| {
    let edge = |kind: &&EdgeKind| {
        let listener =
            Key::new(LISTENER_KEY, "a name", kind.default_listener, "where it is served");
        let settings = kind.settings.iter().map(|setting| {
            Key::new(setting.name, setting.form.describe(), setting.default, setting.help)
        });
        let keys = std::iter::once(listener).chain(settings).collect();
        Key::new(kind.name, "a map", "left out", "an edge").of(Vec::leak(keys))
    };
    Vec::leak(EDGES.iter().map(edge).collect())
});

/// Reads a document whose paths begin in `folder`.
///
/// # Errors
/// Everything that is wrong with it.
pub(super) fn config(text: &str, file: &str, folder: &Path) -> Result<Config, Vec<Problem>> {
    let root = parse(text, file)?;
    let problems = Problems::default();
    let top = Section::new(&root, "", *TOP, &problems);
    let location = location(&top, folder);
    let servers = read_servers(&top, &Paths { folder, data: location.data() });
    let listeners = listeners(&top, folder, location.data());
    let edges = edges(&top, &listeners);
    // A policy that is a file begins where this one does.
    let policy = |key: &str| top.text(key).map(|it| it.text.to_owned());
    let config = Config {
        policy: policy("policy").unwrap_or_else(|| DEFAULT.to_owned()),
        shadow_policy: policy("shadow_policy"),
        servers,
        listeners: used(&top, listeners, &edges),
        edges,
        trusted_kernels: kernels(&top),
        location,
        folder: folder.to_owned(),
    };
    if problems.is_empty() { Ok(config) } else { Err(problems.into_sorted()) }
}

/// Kernels elsewhere.
fn kernels(top: &Section<'_>) -> Vec<PublicKey> {
    let mut keys = Vec::new();
    for item in top.texts("trusted_kernels") {
        match PublicKey::from_hex(item.text) {
            Ok(key) => keys.push(key),
            Err(_) => top.problem_at(item.place, "expected a public key in hex"),
        }
    }
    keys
}

/// The store and its data directory. A store without a scheme is a folder.
fn location(top: &Section<'_>, folder: &Path) -> Location {
    let url = top.text("store").map(|value| {
        let is_url = ["sqlite:", "memory:"].iter().any(|scheme| value.text.starts_with(scheme));
        if !is_url {
            return StoreUrl::Sqlite(value.text.into());
        }
        value.text.parse().unwrap_or_else(|error: StoreError| {
            top.problem("store", &error.to_string());
            StoreUrl::Memory
        })
    });
    let data = top.text("data").map(|value| value.text.into());
    Location::new(url, data, Path::new(DEFAULT_FOLDER)).within(folder)
}

fn read_servers(top: &Section<'_>, paths: &Paths<'_>) -> Vec<Arc<dyn ToolServer>> {
    let mut servers: Vec<Arc<dyn ToolServer>> = Vec::new();
    for section in top.sections("servers", *servers::KEYS) {
        let Some(server) = servers::read(&section, paths) else { continue };
        if servers.iter().any(|known| known.id() == server.id()) {
            section.problem("id", "expected a name that no server before has");
        }
        servers.push(server);
    }
    if servers.is_empty() && top.problems().is_empty() {
        top.problem("servers", "expected at least one server, such as `- id: demo`");
    }
    servers
}

/// The listeners that are configured, and those that need not be.
fn listeners(top: &Section<'_>, folder: &Path, data: Option<&Path>) -> Vec<ListenerConfig> {
    let mut listeners = default_listeners(data);
    match top.node("listeners").map(|node| &node.kind) {
        None => {}
        Some(NodeKind::Map(members)) => {
            for (name, node) in members {
                let path = format!("listeners.{}", name.text);
                let section = Section::new(node, path, LISTENER, top.problems());
                let Some(transport) = transport(&section, folder) else { continue };
                listeners.retain(|listener| listener.name != name.text);
                listeners.push(ListenerConfig { name: name.text.clone(), transport });
            }
        }
        Some(_) => top.problem("listeners", "expected a map, written as `NAME: {listen: ...}`"),
    }
    listeners
}

/// Those of the listeners that an edge is on. One that is configured must be among them.
fn used(
    top: &Section<'_>,
    mut listeners: Vec<ListenerConfig>,
    edges: &[EdgeConfig],
) -> Vec<ListenerConfig> {
    let is_used = |name: &str| edges.iter().any(|edge| edge.listener == name);
    if let Some(NodeKind::Map(members)) = top.node("listeners").map(|node| &node.kind) {
        for (name, node) in members.iter().filter(|(name, _)| !is_used(&name.text)) {
            let message = format!("expected an edge on the listener `{}`, found none", name.text);
            top.problem_at(&node.place, &message);
        }
    }
    listeners.retain(|listener| is_used(&listener.name));
    for (index, listener) in listeners.iter().enumerate() {
        let address = listener.http_address().filter(|address| address.port() != 0);
        let before = listeners.iter().take(index).any(|other| other.http_address() == address);
        if address.is_some() && before {
            top.problem("listeners", "expected an address that no other listener has");
        }
    }
    listeners
}

fn transport(section: &Section<'_>, folder: &Path) -> Option<Transport> {
    if let Some(socket) = section.text("socket") {
        for key in ["listen", "tokens", "jwt", "anonymous", "origins"] {
            if section.has(key) {
                section.problem(key, "expected `socket` or an HTTP listener, found both");
            }
        }
        let endpoint = Endpoint::Unix(folder.join(socket.text));
        return Some(Transport::Socket { endpoint, admits: Admits::Everyone(None) });
    }
    let address = match section.text("listen").map(|it| it.text.parse()) {
        None => DEFAULT_LISTEN,
        Some(Ok(address)) => address,
        Some(Err(_)) => {
            section.problem("listen", "expected an address such as `127.0.0.1:9090`");
            return None;
        }
    };
    Some(Transport::Http { address, access: access(section, folder), pages: pages(section) })
}

/// The edges that are configured; all of them when none is.
fn edges(top: &Section<'_>, listeners: &[ListenerConfig]) -> Vec<EdgeConfig> {
    let Some(section) = top.section("edges", *EDGE_KEYS) else { return default_edges(listeners) };
    let mut edges = Vec::new();
    for (kind, keys) in EDGES.iter().zip(EDGE_KEYS.iter()) {
        let Some(section) = section.section(kind.name, keys.of) else { continue };
        let edge = edge(&section, kind, listeners);
        let shares = |other: &EdgeConfig| other.listener == edge.listener;
        let listener = listeners.iter().find(|listener| listener.name == edge.listener);
        if listener.is_some_and(|it| it.carrier() == Carrier::Socket) && edges.iter().any(shares) {
            section.problem(LISTENER_KEY, "expected a listener that no other edge has");
        }
        edges.push(edge);
    }
    if edges.is_empty() && top.problems().is_empty() {
        let names: Vec<&str> = EDGES.iter().map(|kind| kind.name).collect();
        let names = listed(&names, "or");
        top.problem("edges", &format!("expected {names}, so that clients can connect"));
    }
    edges
}

fn edge(
    section: &Section<'_>,
    kind: &'static EdgeKind,
    listeners: &[ListenerConfig],
) -> EdgeConfig {
    let mut settings = Settings::default();
    for setting in kind.settings {
        let value = value(section, setting.name, setting.form);
        settings = settings.with(setting.name, value);
    }
    let mut edge = EdgeConfig::new(kind, settings);
    if let Some(name) = section.text(LISTENER_KEY) {
        edge = edge.on(name.text);
    }
    match listeners.iter().find(|listener| listener.name == edge.listener) {
        None => {
            let name = &edge.listener;
            let message = format!("expected the name of a listener, and there is no `{name}`");
            section.problem(LISTENER_KEY, &message);
        }
        Some(listener) if !kind.carriers.contains(&listener.carrier()) => {
            let expected = match kind.carriers {
                [Carrier::Http, ..] => "an HTTP listener, found a socket",
                _ => "a listener with a `socket`, found an HTTP listener",
            };
            section.problem(LISTENER_KEY, &format!("expected {expected}"));
        }
        Some(listener) => {
            if let Err(error) = (kind.check)(&edge.settings, listener.http_address()) {
                section.problem(error.key.unwrap_or(LISTENER_KEY), &error.message);
            }
        }
    }
    edge
}

fn value(section: &Section<'_>, key: &'static str, form: Form) -> Option<SettingValue> {
    if !section.has(key) {
        return None;
    }
    match form {
        Form::Text => Some(SettingValue::Text(section.text(key)?.text.to_owned())),
        Form::Flag => Some(SettingValue::Flag(section.flag(key, false))),
        Form::Number(most) => section.number(key, 1..=most).map(SettingValue::Number),
        Form::Duration => section.duration(key).map(SettingValue::Duration),
        Form::Texts => Some(SettingValue::Texts(texts(section, key))),
        Form::TextLists => text_lists(section, key),
    }
}

/// Lists of texts by name.
fn text_lists(section: &Section<'_>, key: &str) -> Option<SettingValue> {
    let Some(NodeKind::Map(members)) = section.node(key).map(|node| &node.kind) else {
        section.problem(key, "expected a map, written as `skill: [tag]`");
        return None;
    };
    let mut lists = std::collections::BTreeMap::new();
    for (name, value) in members {
        let NodeKind::List(items) = &value.kind else {
            section.problem_at(&value.place, "expected a list of texts");
            continue;
        };
        let texts = items.iter().filter_map(|item| match &item.kind {
            NodeKind::Text(text) => Some(text.clone()),
            _ => {
                section.problem_at(&item.place, "expected a text");
                None
            }
        });
        lists.insert(name.text.clone(), texts.collect());
    }
    Some(SettingValue::TextLists(lists))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use chio_mcp_adapter::Sharing;
    use chio_yaml::Problem;

    use super::config;
    use crate::access::AccessConfig;
    use crate::config::Config;
    use crate::listeners::Transport;
    use crate::servers::McpCommand;

    /// Each edge, and where it is served.
    fn served(config: &Config) -> Vec<(&'static str, String)> {
        let at = |name: &String| {
            let listener = config.listeners.iter().find(|listener| listener.name == *name).unwrap();
            match &listener.transport {
                Transport::Http { address, .. } => address.to_string(),
                Transport::Socket { endpoint, .. } => endpoint.to_string(),
                Transport::Stdio { .. } => "stdio".to_owned(),
            }
        };
        config.edges.iter().map(|edge| (edge.kind.name, at(&edge.listener))).collect()
    }

    fn read(text: &str) -> Result<Config, Vec<String>> {
        let read = config(text, "chio.yaml", Path::new("/x"));
        read.map_err(|problems| problems.iter().map(Problem::to_string).collect())
    }

    #[test]
    fn what_is_left_out_has_a_default() {
        let config = read("servers: [{id: demo}]").unwrap();
        assert_eq!(config.data(), Some(Path::new("/x/.chio")));
        assert_eq!(config.policy, "default");
        assert_eq!(
            served(&config),
            [
                ("native", "unix:/x/.chio/native.sock"),
                ("mcp", "127.0.0.1:9090"),
                ("a2a", "127.0.0.1:9090")
            ]
            .map(|(edge, at)| (edge, at.to_owned()))
        );
    }

    #[test]
    fn a_data_directory_may_be_apart_from_the_store() {
        for (keys, store, data) in [
            ("", "sqlite:/x/.chio", Some("/x/.chio")),
            ("store: s, ", "sqlite:/x/s", Some("/x/s")),
            ("store: 'sqlite:/s', ", "sqlite:/s", Some("/s")),
            ("data: d, ", "sqlite:/x/d", Some("/x/d")),
            ("data: d, store: 'sqlite:s', ", "sqlite:/x/s", Some("/x/d")),
            ("store: 'memory:', ", "memory:", None),
            ("store: 'memory:', data: d, ", "memory:", Some("/x/d")),
        ] {
            let config = read(&format!("{{{keys}servers: [{{id: demo}}]}}")).unwrap();
            assert_eq!(config.location.store().to_string(), store, "{keys}");
            assert_eq!(config.data(), data.map(Path::new), "{keys}");
        }
    }

    #[test]
    fn an_edge_that_is_not_named_is_not_opened() {
        let listeners = "listeners: {http: {listen: \"127.0.0.1:0\"}}";
        let config = read(&format!("servers: [{{id: demo}}]\n{listeners}\nedges: {{mcp: {{}}}}"));
        assert_eq!(served(&config.unwrap()), [("mcp", "127.0.0.1:0".to_owned())]);
    }

    #[test]
    fn servers_are_read_with_all_that_they_are_started_with() {
        let text = "store: data\nservers:\n  - id: files\n    command: [npx, -y, files]\n    \
                    env: {KEY: value}\n    pass_env: [TOKEN]\n    folder: work\n    shared: true\n    \
                    late_messages: false\n    start_timeout: 5m\n  \
                    - id: demo\n";
        let config = read(text).unwrap();
        assert_eq!(config.server_ids(), ["files", "demo"]);
        let files = McpCommand {
            id: "files".to_owned(),
            command: ["npx", "-y", "files"].map(str::to_owned).to_vec(),
            env: BTreeMap::from([("KEY".to_owned(), "value".to_owned())]),
            pass_env: vec!["TOKEN".to_owned()],
            folder: Some("/x/work".into()),
            sharing: Sharing::Shared,
            never_late: true,
            start_timeout: Some(std::time::Duration::from_secs(300)),
        };
        assert_eq!(format!("{:?}", config.servers[0]), format!("{files:?}"));
    }

    #[test]
    fn agents_are_read_with_what_is_expected_of_them_and_what_they_are_shown() {
        let text = "servers:\n  - a2a:\n      target: https://agent.example.com\n      \
                    require_skills: [research]\n      bearer_file: t\n      \
                    api_keys: [{in: cookie, name: k, file: f}]\n      \
                    oauth: {client_id: c, secret_file: s, scopes: [a, b]}\n      \
                    headers: {X-Partner: p}\n";
        let config = read(text).unwrap();
        assert_eq!(config.servers[0].id(), "a2a:agent.example.com");
        let agent = format!("{:?}", config.servers[0]);
        for expected in [
            "require_skill: [\"research\"]",
            "bearer_file: Some(\"t\")",
            "folder: \"/x\"",
            "api_key_cookie: [(\"k\", \"f\")]",
            "oauth_scope: [\"a\", \"b\"]",
            "header: [(\"X-Partner\", \"p\")]",
            "task_registry: Some(\"/x/.chio/tasks-a2a-agent-example-com.json\")",
        ] {
            assert!(agent.contains(expected), "{expected}: {agent}");
        }
    }

    #[test]
    fn edges_are_on_their_default_listener_or_the_one_that_they_name() {
        let read = |text: &str| read(&format!("servers: [{{id: demo}}]\n{text}"));
        let at = |edge, port: u16| (edge, format!("127.0.0.1:{port}"));
        for (text, expected) in [
            ("edges: {mcp: {}, a2a: {}}", vec![at("mcp", 9090), at("a2a", 9090)]),
            ("edges: {a2a: {}}", vec![at("a2a", 9090)]),
            (
                "listeners: {agents: {listen: \"127.0.0.1:1\"}}\nedges: {mcp: {}, a2a: {listener: agents}}",
                vec![at("mcp", 9090), at("a2a", 1)],
            ),
            (
                "listeners: {s: {socket: a.sock}}\nedges: {native: {listener: s}}",
                vec![("native", "unix:/x/a.sock".to_owned())],
            ),
        ] {
            assert_eq!(served(&read(text).unwrap()), expected, "{text}");
        }
        let http = |listener: &str, edges: &str| {
            format!("listeners: {{http: {{{listener}}}}}\nedges: {{{edges}}}")
        };
        for (text, problem) in [
            ("edges: {a2a: {tags: {echo: demo}}}".to_owned(), "expected a list of texts"),
            ("edges: {mcp: {listener: hptt}}".to_owned(), "there is no `hptt`"),
            ("edges: {mcp: {listen: \"127.0.0.1:1\"}}".to_owned(), "did you mean `listener`?"),
            (http("listen: \"0.0.0.0:1\"", "a2a: {}"), "expected where clients reach it"),
            (http("", "a2a: {url: nowhere}"), "`edges.a2a.url`: expected an http or https URL"),
            (http("listen: \"1.1.1.1:1\", socket: s", "mcp: {}"), "found both"),
            (http("jwt: {issuer: \"https://i\"}", "mcp: {}"), "`listeners.http.jwt.audience`"),
            (
                "listeners: {b: {listen: \"127.0.0.1:9090\"}}\nedges: {mcp: {}, a2a: {listener: b}}"
                    .to_owned(),
                "expected an address that no other listener has",
            ),
            ("listeners: {b: {listen: \"127.0.0.1:1\"}}".to_owned(), "on the listener `b`"),
            ("edges: {native: {listener: http}}".to_owned(), "`socket`, found an HTTP listener"),
            ("edges: {a2a: {listener: socket}}".to_owned(), "an HTTP listener, found a socket"),
            (
                "edges: {native: {}, mcp: {listener: socket}}".to_owned(),
                "`edges.mcp.listener`: expected a listener that no other edge has",
            ),
            ("store: \"memory:\"\nedges: {native: {}}".to_owned(), "there is no `socket`"),
        ] {
            let problems = read(&text).unwrap_err();
            assert!(problems.iter().any(|it| it.contains(problem)), "{text}: {problems:?}");
        }
    }

    #[test]
    fn a_listener_accepts_tokens_of_files_and_of_an_authorization_server() {
        let jwt = "jwt: {issuer: \"https://issuer.example\", audience: chio, keys_file: keys.json}";
        let text = format!(
            "servers: [{{id: demo}}]\nlisteners: {{http: {{tokens: [{{name: a, file: t}}], {jwt}}}}}"
        );
        let config = read(&text).unwrap();
        let http = config.listeners.iter().find(|listener| listener.name == "http").unwrap();
        let Transport::Http { access: AccessConfig::Tokens { files, jwt }, .. } = &http.transport
        else {
            panic!("{http:?}")
        };
        assert_eq!(files, &[("a".to_owned(), "/x/t".into())]);
        let jwt = jwt.as_ref().unwrap();
        assert_eq!((&*jwt.issuer, &*jwt.audience), ("https://issuer.example", "chio"));
        assert_eq!(jwt.keys_file.as_deref(), Some(Path::new("/x/keys.json")));
    }

    #[test]
    fn everything_that_is_wrong_is_told_with_its_place_and_the_nearest_name() {
        for (text, expected) in [
            (
                "server: []",
                "chio.yaml:1:1: the document: there is no `server`; did you mean `servers`?",
            ),
            ("servers: []", "chio.yaml:1:10: `servers`: expected at least one server"),
            ("servers: [{id: a__b}]", "chio.yaml:1:16: `servers[0].id`: expected no `__`"),
            ("servers: [{id: files}]", "`servers[0].command`: expected the command"),
            ("servers: [{command: [a]}]", "`servers[0].id`: expected a name here"),
            ("servers: [{id: demo}, {id: demo}]", "expected a name that no server before has"),
            ("servers: [{id: f, comand: [a]}]", "did you mean `command`?"),
            (
                "servers: [{id: f, command: [a], env: {A: 1}}]",
                "`env`: expected text (in quotes), found a whole number",
            ),
            (
                "servers: [{id: demo}]\nlisteners: {http: {listen: here}}",
                "chio.yaml:2:28: `listeners.http.listen`: expected an address",
            ),
            ("servers: [{id: demo}]\nedges: {}", "`edges`: expected `native`, `mcp`, `a2a`"),
            (
                "servers: [{id: demo}]\nstore: \"mysql:x\"\nedges: {htpp: {}}",
                "chio.yaml:3:9: `edges`: there is no `htpp`",
            ),
            (
                "servers: [{id: demo}]\nlisteners: {http: {tokens: [{name: stdio, file: t}]}}",
                "expected another name",
            ),
            (
                "servers: [{id: demo}]\nlisteners: {h: {anonymous: default, tokens: [{name: a, file: t}]}}",
                "found both",
            ),
            (
                "servers: [{id: demo}]\nedges: {mcp: {versions: [\"2025-06-17\"]}}",
                "chio.yaml:2:25: `edges.mcp.versions`: expected versions among 2025-11-25, ",
            ),
            (
                "servers: [{id: demo}]\nlisteners: {http: {origins: [\"*\"]}}",
                "chio.yaml:2:30: `listeners.http`: expected an origin such as",
            ),
            (
                "servers: [{id: demo}]\nlisteners: {s: {socket: s, origins: [\"https://a.b\"]}}",
                "expected `socket` or an HTTP listener, found both",
            ),
            ("servers: [{a2a: {}}]", "`servers[0].a2a.target`: expected a URL here"),
            ("servers: [{a2a: {target: nowhere}}]", "expected a URL such as"),
            (
                "servers: [{command: [a], a2a: {target: \"https://a\"}}]",
                "expected a command or an agent, found both",
            ),
            (
                "servers: [{a2a: {target: \"https://a\", client_cert_file: c}}]",
                "expected a certificate and its key",
            ),
            ("servers: [", "chio.yaml:"),
        ] {
            let problems = read(text).unwrap_err();
            assert!(problems.iter().any(|it| it.contains(expected)), "{text}: {problems:?}");
        }
    }
}
