//! A2A agents somewhere, each as a tool server.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;
use chio_a2a_adapter::server_id_of;
use chio_core::crypto::Keypair;
use chio_kernel::ToolServerConnection;
use chio_net::address::{AddressPattern, PatternError};
use chio_yaml::{Key, Section};

use super::{
    Connection, ServerContext, ServerKind, ToolServer, mcp, required, texts, texts_by_name,
};
use crate::a2a_agent::A2aAgent;
use crate::health::Check;
use crate::text;

pub(super) const KIND: ServerKind = ServerKind {
    keys: &[Key::new(
        SECTION,
        "a map with `target`",
        "left out",
        "an A2A agent, in place of a command",
    )
    .of(AGENT)],
    is: |section| section.has(SECTION),
    read: |section, paths| {
        let agent = section.section(SECTION, AGENT)?;
        for key in mcp::KIND.keys.iter().map(|key| key.name) {
            if section.has(key) {
                section.problem(key, "expected a command or an agent, found both");
            }
        }
        let id = section.text("id").map(|it| it.text);
        Some(Arc::new(read(&agent, id, paths.folder, paths.data)?))
    },
};

/// The key of an agent in an entry of `servers`.
const SECTION: &str = "a2a";

#[async_trait]
impl ToolServer for A2aAgent {
    fn id(&self) -> &str {
        &self.id
    }

    async fn start(&self, context: ServerContext) -> Result<Connection> {
        self.keep_back(&context.own);
        Ok(Box::new(self.connect(&context.public_key).await?))
    }

    async fn check(&self) -> Check {
        let what = format!("server {}", self.id);
        let key = Keypair::generate().public_key().clone();
        match self.connect(&key).await {
            Ok(agent) => {
                let manifest = agent.manifest();
                let skills = text::count(manifest.tools.len(), "skill");
                let found = format!("{} {} answers, {skills}", manifest.name, manifest.version);
                Check::fine(what, found)
            }
            Err(error) => Check::wrong(what, format!("{error:#}"))
                .with_advice("is it running, and reachable?"),
        }
    }
}

const AGENT: &[Key] = &[
    Key::new("target", "a URL", "required", "where it is: https, or http on this machine"),
    Key::new("partner", "a name", "its host", "what it is called in errors"),
    Key::new("required_tenant", "a text", "any", "the tenant of its interface"),
    Key::new("require_skills", "a list of texts", "[]", "skills that it must have"),
    Key::new("require_schemes", "a list of texts", "[]", "security schemes that it must ask for"),
    Key::new(
        "allow_origins",
        "a list of texts",
        "any; its own for credentials",
        "where its interfaces may be, and its token endpoint",
    ),
    Key::new("allow_addresses", "a list of texts", "[]", "where to go although it is not public"),
    Key::new("bearer_file", "a file", "none", "the file of a bearer token"),
    Key::new("basic", "a map", "none", "HTTP Basic").of(BASIC),
    Key::new("api_keys", "a list of maps", "[]", "keys that it asks for by name").of(API_KEY),
    Key::new("oauth", "a map", "none", "client credentials").of(OAUTH),
    Key::new("headers", "a map of texts", "{}", "headers of every request"),
    Key::new("query", "a map of texts", "{}", "query parameters of every request"),
    Key::new("cookies", "a map of texts", "{}", "cookies of every request"),
    Key::new("ca_file", "a file", "the system's", "certificates that are trusted as well"),
    Key::new("client_cert_file", "a file", "none", "the chain of our own certificate"),
    Key::new("client_key_file", "a file", "none", "the key of our own certificate"),
    Key::new("capability_file", "a file", "none", "a capability that its kernel has issued"),
    Key::new("task_registry", "a file", "in the data directory", "where its tasks are remembered"),
    Key::new("timeout", "a time such as `10s`", "60s", "how long it may take for an answer"),
    Key::new("history_length", "true or false", "false", "whether to ask 1.0 agents for history"),
];
const BASIC: &[Key] = &[
    Key::new("user", "a name", "required", "the user"),
    Key::new("password_file", "a file", "required", "the file of the password"),
];
const API_KEY: &[Key] = &[
    Key::new("in", "`header`, `query` or `cookie`", "required", "where it is put"),
    Key::new("name", "a name", "required", "its name there"),
    Key::new("file", "a file", "required", "the file of the key"),
];
const OAUTH: &[Key] = &[
    Key::new("client_id", "a text", "required", "who we are"),
    Key::new("secret_file", "a file", "required", "the file of our secret"),
    Key::new("scopes", "a list of texts", "[]", "what to ask for"),
    Key::new("token_endpoint", "a URL", "as the card says", "where to ask"),
];

/// Reads an agent. Without a name, it is called by its host.
fn read(
    section: &Section<'_>,
    id: Option<&str>,
    folder: &Path,
    data: Option<&Path>,
) -> Option<A2aAgent> {
    let target = required(section, "target", "a URL")?.text.to_owned();
    let id = id.map(str::to_owned).or_else(|| server_id_of(&target));
    let Some(id) = id else {
        section.problem("target", "expected a URL such as `https://agent.example.com`");
        return None;
    };
    let text = |key: &str| section.text(key).map(|it| it.text.to_owned());
    let file = |key: &str| section.text(key).map(|it| PathBuf::from(it.text));
    let mut agent = A2aAgent {
        id,
        target: Some(target),
        partner: text("partner"),
        required_tenant: text("required_tenant"),
        require_skill: texts(section, "require_skills"),
        require_scheme: texts(section, "require_schemes"),
        allow_origin: texts(section, "allow_origins"),
        allow_address: addresses(section),
        bearer_file: file("bearer_file"),
        basic: section.section("basic", BASIC).and_then(|basic| {
            let user = required(&basic, "user", "a name");
            let password = required(&basic, "password_file", "a file");
            Some((user?.text.to_owned(), password?.text.to_owned()))
        }),
        header: texts_by_name(section, "headers"),
        query: texts_by_name(section, "query"),
        cookie: texts_by_name(section, "cookies"),
        tls_ca: file("ca_file"),
        client_cert: file("client_cert_file"),
        client_key: file("client_key_file"),
        capability: file("capability_file"),
        task_registry: file("task_registry"),
        agent_timeout: section.duration("timeout"),
        history_length: section.flag("history_length", false),
        ..A2aAgent::default()
    };
    let certificate = [&agent.client_cert, &agent.client_key].map(Option::is_some);
    if let [true, false] | [false, true] = certificate {
        let missing =
            if agent.client_cert.is_some() { "client_key_file" } else { "client_cert_file" };
        section.problem(missing, "expected a certificate and its key, found one of them");
    }
    credentials(section, &mut agent);
    Some(agent.within(folder, data))
}

/// Reads the keys that the agent asks for by name, and the client of OAuth.
fn credentials(section: &Section<'_>, agent: &mut A2aAgent) {
    for key in section.sections("api_keys", API_KEY) {
        let place = required(&key, "in", "`header`, `query` or `cookie`");
        let (name, file) = (required(&key, "name", "a name"), required(&key, "file", "a file"));
        let (Some(place), Some(name), Some(file)) = (place, name, file) else { continue };
        let keys = match place.text {
            "header" => &mut agent.api_key_header,
            "query" => &mut agent.api_key_query,
            "cookie" => &mut agent.api_key_cookie,
            _ => {
                key.problem("in", "expected `header`, `query` or `cookie`");
                continue;
            }
        };
        keys.push((name.text.to_owned(), file.text.to_owned()));
    }
    if let Some(oauth) = section.section("oauth", OAUTH) {
        let client_id = required(&oauth, "client_id", "a text");
        let secret = required(&oauth, "secret_file", "a file");
        agent.oauth_client =
            client_id.zip(secret).map(|(id, file)| (id.text.to_owned(), file.text.to_owned()));
        agent.oauth_scope = texts(&oauth, "scopes");
        agent.oauth_token_endpoint = oauth.text("token_endpoint").map(|it| it.text.to_owned());
    }
}

fn addresses(section: &Section<'_>) -> Vec<AddressPattern> {
    let parsed = section.texts("allow_addresses").into_iter().filter_map(|it| {
        let parsed = it.text.parse();
        parsed.map_err(|error: PatternError| section.problem_at(it.place, &error.to_string())).ok()
    });
    parsed.collect()
}
