//! From text to what is to be run.

mod agent;

use std::collections::BTreeMap;
use std::path::Path;

use chio_core::crypto::PublicKey;
use chio_demo::SERVER_ID;
use chio_mcp_adapter::Sharing;
use chio_policy::document::{Item, Key, Node, NodeKind, Problem, Problems, Section, parse};
use chio_store::StoreUrl;

use super::{A2aEdge, Config, Door, McpEdge, NativeEdge};
use crate::card_url;
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
    Key::new("trusted_kernels", "a list of public keys", "[]", "who may say where calls come from"),
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
    Key::new("a2a", "a map with `target`", "left out", "an A2A agent, in place of a command")
        .of(agent::AGENT),
];
const EDGES: &[Key] = &[
    Key::new("native", "a map", "left out", "the native transport").of(NATIVE),
    Key::new("mcp", "a map", "left out", "MCP over HTTP").of(MCP),
    Key::new("a2a", "a map", "left out", "A2A over HTTP").of(A2A),
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
const A2A: &[Key] = &[
    Key::new("listen", "ADDRESS:PORT", "where MCP is", "where it listens"),
    Key::new("tokens", "a list of maps with `name` and `file`", "[]", "who may come in").of(TOKEN),
    Key::new("anonymous", "`default` or a file", "nobody", "what whoever comes may do"),
    Key::new("name", "a text", "Chio A2A Edge", "the agent's name"),
    Key::new("description", "a text", "a general one", "what the agent is, for people"),
    Key::new("url", "a URL", "where it listens", "where clients reach it"),
    Key::new("http_json", "true or false", "true", "whether HTTP+JSON is served, below /rest"),
    Key::new("tags", "a map of lists of texts", "{}", "tags of skills, by id"),
    Key::new("rate", "a whole number", "no limit", "requests of a caller in a minute"),
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
    let (native, mcp, a2a) = edges(&top, folder, &store);
    // A policy that is a file begins where this one does.
    let policy = |key: &str| top.text(key).map(|it| it.text.to_owned());
    let config = Config {
        policy: policy("policy").unwrap_or_else(|| DEFAULT.to_owned()),
        shadow_policy: policy("shadow_policy"),
        servers,
        native,
        mcp,
        a2a,
        trusted_kernels: kernels(&top),
        store,
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
    if let Some(agent) = section.section("a2a", agent::AGENT) {
        for key in ["command", "env", "folder", "shared"] {
            if section.has(key) {
                section.problem(key, "expected a command or an agent, found both");
            }
        }
        let id = section.text("id").map(|it| it.text);
        return agent::read(&agent, id, folder, store).map(|it| ToolServer::A2a(Box::new(it)));
    }
    let id = required(section, "id", "a name")?;
    if let Err(expected) = server_name::check(id.text) {
        section.problem("id", &expected);
        return None;
    }
    let command: Vec<String> =
        section.texts("command").iter().map(|it| it.text.to_owned()).collect();
    let env = env(section);
    let works_in = section.text("folder").map_or(folder.to_owned(), |it| folder.join(it.text));
    let sharing = if section.flag("shared", false) { Sharing::Shared } else { Sharing::PerSession };
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
    Some(ToolServer::Mcp(McpCommand { id, command, env, folder, sharing }))
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
) -> (Option<NativeEdge>, Option<McpEdge>, Option<A2aEdge>) {
    let beside = match store {
        StoreUrl::Sqlite(data) => Some(NativeEdge { socket: data.join(SOCKET) }),
        StoreUrl::Memory => None,
    };
    let Some(edges) = top.section("edges", EDGES) else {
        let a2a = A2aEdge { http_json: true, ..A2aEdge::default() };
        return (beside, Some(McpEdge::default()), Some(a2a));
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
    let a2a = edges.section("a2a", A2A).map(|section| a2a(&section, folder, mcp.as_ref()));
    if native.is_none() && mcp.is_none() && a2a.is_none() && top.problems().is_empty() {
        top.problem("edges", "expected `native`, `mcp` or `a2a`, so that somebody can come in");
    }
    (native, mcp, a2a)
}

/// Where an edge is served over HTTP, and who may come in.
fn door(section: &Section<'_>, folder: &Path) -> Door {
    let mut edge = Door::default();
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
    edge
}

fn a2a(section: &Section<'_>, folder: &Path, mcp: Option<&McpEdge>) -> A2aEdge {
    let own = section.has("listen") || mcp.is_none();
    if !own {
        for key in ["tokens", "anonymous"] {
            if section.has(key) {
                let problem = "expected it under `mcp`, whose door is used, or `listen` with it";
                section.problem(key, problem);
            }
        }
    }
    let text = |key: &str| section.text(key).map(|it| it.text.to_owned());
    let url = text("url").and_then(|url| match card_url::read(&url) {
        Ok(url) => Some(url),
        Err(problem) => {
            section.problem("url", &problem);
            None
        }
    });
    let edge = A2aEdge {
        door: own.then(|| door(section, folder)),
        name: text("name"),
        description: text("description"),
        url,
        http_json: section.flag("http_json", true),
        tags: tags(section),
        rate: rate(section),
    };
    let listens = edge.door.as_ref().or(mcp.map(|mcp| &mcp.door));
    if !section.has("url") && listens.is_some_and(|door| door.listen.ip().is_unspecified()) {
        let problem = "expected where clients reach it, since it listens at every address";
        section.problem("url", problem);
    }
    if let (Some(door), Some(mcp)) = (&edge.door, mcp)
        && door.listen == mcp.door.listen
        && door.listen.port() != 0
    {
        section.problem("listen", "expected no `listen` to share the door of `mcp`");
    }
    edge
}

/// Tags of skills.
fn tags(section: &Section<'_>) -> BTreeMap<String, Vec<String>> {
    let mut tags = BTreeMap::new();
    match section.node("tags").map(|node| &node.kind) {
        None => {}
        Some(NodeKind::Map(members)) => {
            for (skill, value) in members {
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
                tags.insert(skill.text.clone(), texts.collect());
            }
        }
        Some(_) => section.problem("tags", "expected a map, written as `skill: [tag]`"),
    }
    tags
}

fn rate(section: &Section<'_>) -> Option<u32> {
    section.number("rate", 1..=u64::from(u32::MAX)).and_then(|number| u32::try_from(number).ok())
}

fn mcp(section: &Section<'_>, folder: &Path) -> McpEdge {
    let mut edge = McpEdge { door: door(section, folder), ..McpEdge::default() };
    edge.versions = versions(section);
    edge.max_sessions = section
        .number("max_sessions", 1..=MOST_SESSIONS)
        .and_then(|number| usize::try_from(number).ok());
    edge.session_idle = section.duration("session_idle");
    edge.rate = rate(section);
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

    use chio_mcp_adapter::Sharing;
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
        assert_eq!(config.mcp.unwrap().door.listen.to_string(), "127.0.0.1:9090");
        assert!(config.a2a.unwrap().door.is_none(), "it shares the door of MCP");
    }

    #[test]
    fn an_edge_that_is_not_named_is_not_opened() {
        let config =
            read("servers: [{id: demo}]\nedges: {mcp: {listen: \"127.0.0.1:0\"}}").unwrap();
        assert!(config.native.is_none());
        assert_eq!(config.mcp.unwrap().door.listen.port(), 0);
        assert!(config.a2a.is_none());
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
        assert_eq!(files.sharing, Sharing::Shared);
    }

    #[test]
    fn agents_are_read_with_what_is_expected_of_them_and_what_they_are_shown() {
        let text = "servers:\n  - a2a:\n      target: https://agent.example.com\n      \
                    require_skills: [research]\n      bearer_file: t\n      \
                    api_keys: [{in: cookie, name: k, file: f}]\n      \
                    oauth: {client_id: c, secret_file: s, scopes: [a, b]}\n      \
                    headers: {X-Partner: p}\n";
        let config = read(text).unwrap();
        let crate::servers::ToolServer::A2a(agent) = &config.servers[0] else { panic!() };
        assert_eq!(agent.id, "a2a:agent.example.com");
        assert_eq!(agent.expected.skills, ["research"]);
        assert_eq!(agent.shown.bearer.as_deref(), Some(Path::new("/x/t")));
        assert_eq!(agent.shown.api_keys[0].name, "k");
        assert_eq!(agent.shown.oauth.as_ref().unwrap().scopes, ["a", "b"]);
        assert_eq!(agent.shown.headers, [("X-Partner".to_owned(), "p".to_owned())]);
        let registry = agent.task_registry.as_deref();
        assert_eq!(registry, Some(Path::new("/x/.chio/tasks-a2a-agent-example-com.json")));
    }

    #[test]
    fn a2a_shares_the_door_of_mcp_unless_it_has_its_own() {
        let edges = |text: &str| read(&format!("servers: [{{id: demo}}]\nedges: {text}"));
        for (text, expected) in [
            ("{mcp: {}, a2a: {}}", vec![(9090, true, true)]),
            ("{a2a: {}}", vec![(9090, false, true)]),
            (
                "{mcp: {}, a2a: {listen: \"127.0.0.1:1\"}}",
                vec![(9090, true, false), (1, false, true)],
            ),
        ] {
            let config = edges(text).unwrap();
            let doors = config.doors();
            let found: Vec<_> =
                doors.iter().map(|(door, mcp, a2a)| (door.listen.port(), *mcp, *a2a)).collect();
            assert_eq!(found, expected, "{text}");
        }
        for (text, problem) in [
            ("{mcp: {}, a2a: {anonymous: default}}", "expected it under `mcp`"),
            ("{mcp: {}, a2a: {listen: \"127.0.0.1:9090\"}}", "share the door"),
            ("{a2a: {tags: {echo: demo}}}", "expected a list of texts"),
            ("{a2a: {listen: \"0.0.0.0:1\"}}", "expected where clients reach it"),
        ] {
            let problems = edges(text).unwrap_err();
            assert!(problems.iter().any(|it| it.contains(problem)), "{text}: {problems:?}");
        }
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
            ("servers: [{id: demo}]\nedges: {}", "`edges`: expected `native`, `mcp` or `a2a`"),
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
