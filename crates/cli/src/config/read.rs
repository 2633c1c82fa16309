//! From text to what is to be run.

use std::collections::BTreeMap;
use std::path::Path;

use chio_demo::SERVER_ID;
use chio_policy::document::{Item, Key, Node, NodeKind, Problem, Problems, Section, parse};
use chio_store::StoreUrl;

use super::{Config, DEFAULT_LISTEN, McpEdge, NativeEdge};
use crate::commands::SOCKET;
use crate::policies::DEFAULT;
use crate::server_name;
use crate::servers::{McpCommand, ToolServer};
use crate::store_args::DEFAULT_FOLDER;

const TOP: &[Key] = &[
    Key::new("store", "a folder, `sqlite:FOLDER` or `memory:`", ".chio", "where state is kept"),
    Key::new("policy", "a file or a name", "default", "the policy that judges calls"),
    Key::new("shadow_policy", "a file or a name", "none", "a policy that is only tried"),
    Key::new("servers", "a list of maps with `id`", "required", "what has tools").of(SERVER),
    Key::new("edges", "a map", "both", "where agents come in").of(EDGES),
];
const SERVER: &[Key] = &[
    Key::new("id", "a name", "required", "its name in grants, calls and receipts"),
    Key::new(
        "command",
        "a list of texts",
        "required",
        "the program that speaks MCP, and its arguments",
    ),
    Key::new("env", "a map of texts", "{}", "what is added to its environment"),
    Key::new("folder", "a folder", "that of the file", "where it works"),
    Key::new("shared", "true or false", "false", "whether all sessions share one child"),
];
const EDGES: &[Key] = &[
    Key::new("native", "a map", "left out", "the native transport").of(NATIVE),
    Key::new("mcp", "a map", "left out", "MCP over HTTP").of(MCP),
];
const NATIVE: &[Key] = &[Key::new(
    "socket",
    "a path",
    "native.sock beside the store",
    "the socket that it listens at",
)];
const MCP: &[Key] = &[
    Key::new("listen", "ADDRESS:PORT", "127.0.0.1:9090", "where it listens"),
    Key::new("tokens", "a list of maps with `name` and `file`", "[]", "who may come in").of(TOKEN),
    Key::new("anonymous", "`default` or a file", "nobody", "what whoever comes may do"),
    Key::new("versions", "a list of texts", "all", "the versions of MCP that are spoken"),
    Key::new("max_sessions", "a whole number", "1024", "how many sessions there may be"),
    Key::new("session_idle", "a time such as `15m`", "15m", "how long an unused session lives"),
    Key::new("rate", "a whole number", "no limit", "requests of a caller in a minute"),
    Key::new("rotate_streams", "a time such as `5m`", "never", "when clients have to come back"),
];
const TOKEN: &[Key] = &[
    Key::new("name", "a name", "required", "whom the token stands for"),
    Key::new("file", "a file", "required", "the file that has the token"),
];

/// The name that stands for whoever started a process; no token may.
const STDIO: &str = "stdio";
/// The most sessions that can be asked for.
const MOST_SESSIONS: u64 = 1_000_000;

/// Reads a document whose paths begin in `folder`.
///
/// # Errors
/// Everything that is wrong with it.
pub(super) fn config(text: &str, file: &str, folder: &Path) -> Result<Config, Vec<Problem>> {
    let root = parse(text, file)?;
    let problems = Problems::default();
    let top = Section::new(&root, "", TOP, &problems);
    let store = store(&top, folder);
    let servers = servers(&top, folder, &store);
    let (native, mcp) = edges(&top, folder, &store);
    // A policy that is a file begins where this one does.
    let policy = |key: &str| top.text(key).map(|it| it.text.to_owned());
    let config = Config {
        policy: policy("policy").unwrap_or_else(|| DEFAULT.to_owned()),
        shadow_policy: policy("shadow_policy"),
        servers,
        native,
        mcp,
        store,
        folder: folder.to_owned(),
    };
    if problems.is_empty() { Ok(config) } else { Err(problems.into_sorted()) }
}

fn store(top: &Section<'_>, folder: &Path) -> StoreUrl {
    let Some(said) = top.text("store") else {
        return StoreUrl::Sqlite(folder.join(DEFAULT_FOLDER));
    };
    let is_url = ["sqlite:", "memory:"].iter().any(|scheme| said.text.starts_with(scheme));
    if !is_url {
        return StoreUrl::Sqlite(folder.join(said.text));
    }
    match said.text.parse() {
        Ok(StoreUrl::Sqlite(data)) => StoreUrl::Sqlite(folder.join(data)),
        Ok(url) => url,
        Err(error) => {
            top.problem("store", &error.to_string());
            StoreUrl::Memory
        }
    }
}

fn servers(top: &Section<'_>, folder: &Path, store: &StoreUrl) -> Vec<ToolServer> {
    let mut servers: Vec<ToolServer> = Vec::new();
    for section in top.sections("servers", SERVER) {
        let Some(server) = server(&section, folder, store) else { continue };
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

fn server(section: &Section<'_>, folder: &Path, store: &StoreUrl) -> Option<ToolServer> {
    let id = required(section, "id", "a name")?;
    if let Err(expected) = server_name::check(id.text) {
        section.problem("id", &expected);
        return None;
    }
    let command: Vec<String> =
        section.texts("command").iter().map(|it| it.text.to_owned()).collect();
    let env = env(section);
    let works_in = section.text("folder").map_or(folder.to_owned(), |it| folder.join(it.text));
    let shared = section.flag("shared", false);
    if !section.has("command") {
        if id.text == SERVER_ID {
            return Some(ToolServer::demo(store));
        }
        section.problem("command", "expected the command that starts the server");
        return None;
    }
    if command.is_empty() {
        return None;
    }
    let id = id.text.to_owned();
    // A path of no letters is where we are.
    let folder = Some(works_in).filter(|folder| !folder.as_os_str().is_empty());
    Some(ToolServer::Mcp(McpCommand { id, command, env, folder, shared }))
}

/// The map of variables that a server is given.
fn env(section: &Section<'_>) -> BTreeMap<String, String> {
    let mut env = BTreeMap::new();
    match section.node("env").map(|node| &node.kind) {
        None => {}
        Some(NodeKind::Map(members)) => {
            for (name, value) in members {
                match &value.kind {
                    NodeKind::Text(text) => {
                        env.insert(name.text.clone(), text.clone());
                    }
                    _ => section.problem_at(&value.place, &no_text(value)),
                }
            }
        }
        Some(_) => section.problem("env", "expected a map, written as `NAME: value`"),
    }
    env
}

fn no_text(value: &Node) -> String {
    format!("`env`: expected text (in quotes), found {}", value.found())
}

fn edges(
    top: &Section<'_>,
    folder: &Path,
    store: &StoreUrl,
) -> (Option<NativeEdge>, Option<McpEdge>) {
    let beside = match store {
        StoreUrl::Sqlite(data) => Some(NativeEdge { socket: data.join(SOCKET) }),
        StoreUrl::Memory => None,
    };
    let Some(edges) = top.section("edges", EDGES) else {
        return (beside, Some(McpEdge::default()));
    };
    let native = edges.section("native", NATIVE).and_then(|section| {
        if let Some(socket) = section.text("socket") {
            return Some(NativeEdge { socket: folder.join(socket.text) });
        }
        if beside.is_none() && !section.has("socket") {
            section.problem("socket", "expected a path, since the store has no folder");
        }
        beside
    });
    let mcp = edges.section("mcp", MCP).map(|section| mcp(&section, folder));
    if native.is_none() && mcp.is_none() && top.problems().is_empty() {
        top.problem("edges", "expected `native` or `mcp`, so that somebody can come in");
    }
    (native, mcp)
}

impl Default for McpEdge {
    fn default() -> Self {
        Self {
            listen: DEFAULT_LISTEN,
            tokens: Vec::new(),
            anonymous: None,
            versions: Vec::new(),
            max_sessions: None,
            session_idle: None,
            rate: None,
            rotate_streams: None,
        }
    }
}

fn mcp(section: &Section<'_>, folder: &Path) -> McpEdge {
    let mut edge = McpEdge::default();
    if let Some(listen) = section.text("listen") {
        match listen.text.parse() {
            Ok(address) => edge.listen = address,
            Err(_) => section.problem("listen", "expected an address such as `127.0.0.1:9090`"),
        }
    }
    for token in section.sections("tokens", TOKEN) {
        let (name, file) = (required(&token, "name", "a name"), required(&token, "file", "a file"));
        let (Some(name), Some(file)) = (name, file) else { continue };
        if name.text == STDIO {
            token.problem("name", "expected another name: this one stands for standard input");
        }
        edge.tokens.push((name.text.to_owned(), folder.join(file.text)));
    }
    edge.anonymous = section.text("anonymous").map(|it| match it.text {
        "default" => it.text.to_owned(),
        file => folder.join(file).display().to_string(),
    });
    if edge.anonymous.is_some() && !edge.tokens.is_empty() {
        section.problem("anonymous", "expected `tokens` or `anonymous`, found both");
    }
    edge.versions = versions(section);
    edge.max_sessions = section
        .number("max_sessions", 1..=MOST_SESSIONS)
        .and_then(|number| usize::try_from(number).ok());
    edge.session_idle = section.duration("session_idle");
    edge.rate = section
        .number("rate", 1..=u64::from(u32::MAX))
        .and_then(|number| u32::try_from(number).ok());
    edge.rotate_streams = section.duration("rotate_streams");
    edge
}

fn versions(section: &Section<'_>) -> Vec<String> {
    let versions = section.texts("versions");
    versions.iter().map(|it| it.text.to_owned()).collect()
}

fn required<'a>(section: &Section<'a>, key: &str, what: &str) -> Option<Item<'a>> {
    let found = section.text(key);
    if found.is_none() && !section.has(key) {
        section.problem(key, &format!("expected {what} here"));
    }
    found
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use chio_policy::document::Problem;

    use super::config;
    use crate::config::Config;

    fn read(text: &str) -> Result<Config, Vec<String>> {
        let read = config(text, "chio.yaml", Path::new("/x"));
        read.map_err(|problems| problems.iter().map(Problem::to_string).collect())
    }

    #[test]
    fn what_is_left_out_has_a_default() {
        let config = read("servers: [{id: demo}]").unwrap();
        assert_eq!(config.data(), Some(Path::new("/x/.chio")));
        assert_eq!(config.policy, "default");
        assert_eq!(config.native.unwrap().socket, Path::new("/x/.chio/native.sock"));
        assert_eq!(config.mcp.unwrap().listen.to_string(), "127.0.0.1:9090");
    }

    #[test]
    fn an_edge_that_is_not_named_is_not_opened() {
        let config =
            read("servers: [{id: demo}]\nedges: {mcp: {listen: \"127.0.0.1:0\"}}").unwrap();
        assert!(config.native.is_none());
        assert_eq!(config.mcp.unwrap().listen.port(), 0);
    }

    #[test]
    fn servers_are_read_with_all_that_they_are_started_with() {
        let text = "store: data\nservers:\n  - id: files\n    command: [npx, -y, files]\n    \
                    env: {KEY: value}\n    folder: work\n    shared: true\n  - id: demo\n";
        let config = read(text).unwrap();
        assert_eq!(config.server_ids(), ["files", "demo"]);
        let crate::servers::ToolServer::Mcp(files) = &config.servers[0] else { panic!() };
        assert_eq!(files.command, ["npx", "-y", "files"]);
        assert_eq!(files.env["KEY"], "value");
        assert_eq!(files.folder.as_deref(), Some(Path::new("/x/work")));
        assert!(files.shared);
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
                "servers: [{id: demo}]\nedges: {mcp: {listen: here}}",
                "chio.yaml:2:23: `edges.mcp.listen`: expected an address",
            ),
            ("servers: [{id: demo}]\nedges: {}", "`edges`: expected `native` or `mcp`"),
            (
                "servers: [{id: demo}]\nstore: \"mysql:x\"\nedges: {htpp: {}}",
                "chio.yaml:3:9: `edges`: there is no `htpp`",
            ),
            (
                "servers: [{id: demo}]\nedges: {mcp: {tokens: [{name: stdio, file: t}]}}",
                "expected another name",
            ),
            (
                "servers: [{id: demo}]\nedges: {mcp: {anonymous: default, tokens: [{name: a, file: t}]}}",
                "found both",
            ),
            ("servers: [", "chio.yaml:"),
        ] {
            let problems = read(text).unwrap_err();
            assert!(problems.iter().any(|it| it.contains(expected)), "{text}: {problems:?}");
        }
    }
}
