//! Lists: what the session's capabilities let it use, page by page, as the servers write it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use chio_core::capability::{ChioScope, Operation, PresentedToken};
use chio_core::manifest::ToolDefinition;
use chio_core::registry::ErrorCode;
use chio_core::text::members;
use chio_cross_protocol::{CapabilityBridge, ListKind, UnusableTool};
use chio_net::jsonrpc::RpcError;
use serde_json::{Map, Value, json};

use super::RequestContext;
use crate::answer::{CHIO, insert_meta};
use crate::bridge::McpBridge;
use crate::error::{invalid_params, registered};
use crate::names::Names;
use crate::service::EdgeState;
use crate::session::McpSession;

/// Answers a request for a list.
pub(super) async fn list(context: RequestContext<'_>, kind: ListKind) -> Result<Value, RpcError> {
    let session = context.session;
    let tokens = context.tokens().await?;
    let names = &session.shared.names;
    let (mut entries, mut problems) = (Vec::new(), Vec::new());
    let is_only = names.servers().len() == 1;
    for server in names.servers() {
        match server_entries(session, server, kind, &tokens).await {
            Ok(found) => entries.extend(found.into_iter().map(|entry| (server.as_str(), entry))),
            Err(error) if is_only => return Err(error),
            // The others are listed.
            Err(error) => problems.push(json!({"server": server, "problem": error.message})),
        }
    }
    if let (Some(uri), true) = (uri_member(kind), names.is_qualified()) {
        tell_apart(uri, &mut entries);
    }
    let entries = entries.into_iter().map(|(_, entry)| entry).collect();
    let size = session.shared.options.limits.page;
    let mut page = page(&context.params, member(kind), entries, size)?;
    if kind == ListKind::Tools {
        problems.extend(not_listed(session, &tokens));
    }
    if let (false, Value::Object(page)) = (problems.is_empty(), &mut page) {
        insert_meta(page, CHIO, json!({"problems": problems}));
    }
    Ok(page)
}

/// The member of `_meta.chio` that says what it took to put a tool's schema right.
const REPAIRED: &str = "repaired";
/// What clients are told of a server that is not there. Why is for the operator.
pub(super) const NOT_THERE: &str =
    "the server is not there; it is tried again, and the log of Chio says why";

/// What a client may want to know of tools that are not in the list, although it may use them.
fn not_listed(session: &McpSession, tokens: &[PresentedToken]) -> Vec<Value> {
    let mut problems = Vec::new();
    for server in session.shared.names.servers() {
        if session.shared.orchestrator.absent(server).is_some() {
            problems.push(json!({"server": server, "problem": NOT_THERE}));
        }
        let unusable = session.shared.orchestrator.unusable_tools(server);
        let may_use = |name: &str| {
            let entry = json!({"name": name});
            tokens.iter().any(|token| allows(&token.scope, server, ListKind::Tools, &entry))
        };
        for UnusableTool { name, problem } in unusable.iter().filter(|tool| may_use(&tool.name)) {
            problems.push(json!({"server": server, "tool": name, "problem": problem}));
        }
    }
    problems
}

const fn uri_member(kind: ListKind) -> Option<&'static str> {
    match kind {
        ListKind::Resources => Some("uri"),
        ListKind::ResourceTemplates => Some("uriTemplate"),
        ListKind::Tools | ListKind::Prompts => None,
    }
}

/// Has URIs that several servers list name their server.
fn tell_apart(member: &str, entries: &mut [(&str, Value)]) {
    let (mut first, mut several) = (HashMap::new(), HashSet::new());
    for (server, entry) in &*entries {
        let Some(Value::String(uri)) = entry.get(member) else { continue };
        if *first.entry(uri.as_str()).or_insert(*server) != *server {
            several.insert(uri.clone());
        }
    }
    for (server, entry) in entries {
        if let Some(Value::String(uri)) = entry.get_mut(member)
            && several.contains(uri)
        {
            *uri = Names::public_uri(server, uri);
        }
    }
}

/// The page of a list that the params ask for.
pub(crate) fn page(
    params: &Map<String, Value>,
    member: &str,
    entries: Vec<Value>,
    size: usize,
) -> Result<Value, RpcError> {
    let wrong = || invalid_params("expected a `cursor` that a list has given");
    let from = match params.get("cursor") {
        None => 0,
        Some(cursor) => {
            let number = cursor.as_str().and_then(|cursor| cursor.parse::<usize>().ok());
            // The beginning is asked for without one.
            number.filter(|from| (1..=entries.len()).contains(from)).ok_or_else(wrong)?
        }
    };
    let size = size.max(1);
    let until = from.saturating_add(size).min(entries.len());
    let (total, entries) = (entries.len(), entries.into_iter().skip(from).take(size));
    let mut result = Map::new();
    result.insert(member.to_owned(), Value::Array(entries.collect()));
    if until < total {
        result.insert("nextCursor".to_owned(), json!(until.to_string()));
    }
    Ok(Value::Object(result))
}

const fn member(kind: ListKind) -> &'static str {
    match kind {
        ListKind::Tools => "tools",
        ListKind::Resources => "resources",
        ListKind::ResourceTemplates => "resourceTemplates",
        ListKind::Prompts => "prompts",
    }
}

/// What of a server's kind the session may use.
async fn server_entries(
    session: &McpSession,
    server: &str,
    kind: ListKind,
    tokens: &Arc<[PresentedToken]>,
) -> Result<Vec<Value>, RpcError> {
    let (shared, names) = (&session.shared, &session.shared.names);
    let listed = shared.orchestrator.list(server, &session.kernel_session, kind).await;
    let listed = listed.map_err(|error| {
        let message = format!("server `{server}` does not say what it has: {error}");
        registered(RpcError::INTERNAL_ERROR, message, ErrorCode::ToolServerError)
    })?;
    let entries = match listed {
        Some(entries) => entries,
        // A server that has only tools says so in its manifest.
        None if kind == ListKind::Tools => {
            let manifests = shared.orchestrator.manifests().await;
            let manifest = manifests.into_iter().find(|manifest| manifest.server_id == server);
            let tools = manifest.into_iter().flat_map(|it| it.tools);
            Arc::new(tools.map(|tool| manifest_entry(&tool)).collect())
        }
        None => Arc::default(),
    };
    let may_use =
        |entry: &&Value| tokens.iter().any(|token| allows(&token.scope, server, kind, entry));
    let mut visible: Vec<Value> = entries.iter().filter(may_use).cloned().collect();
    if kind == ListKind::Tools {
        visible.retain_mut(|entry| rate(shared, server, entry));
    }
    for entry in &mut visible {
        let Value::Object(entry) = entry else { continue };
        if matches!(kind, ListKind::Tools | ListKind::Prompts)
            && let Some(Value::String(name)) = entry.get_mut("name")
        {
            *name = names.public(server, name);
        }
    }
    Ok(visible)
}

/// Whether a tool may be shown, and in its entry how honestly that is.
fn rate(shared: &EdgeState, server: &str, entry: &mut Value) -> bool {
    let Value::Object(entry) = entry else { return false };
    let name = entry.get("name").and_then(Value::as_str).unwrap_or_default();
    // A tool without a rating is not known to the kernel.
    let rating = shared.orchestrator.fidelity(server, name, McpBridge.protocol());
    if let Some(rating) = &rating {
        let mut about = members(json!({"bridgeFidelity": rating}));
        // The adapter tells what it took to put the schema right.
        let meta = entry.get("_meta").and_then(|meta| meta.get(CHIO));
        let repaired = meta.and_then(|meta| meta.get(REPAIRED)).cloned();
        about.extend(repaired.map(|repaired| (REPAIRED.to_owned(), repaired)));
        insert_meta(entry, CHIO, Value::Object(about));
    }
    rating.is_none_or(|rating| rating.is_published())
}

/// Whether a scope lets its holder use an entry of a list.
fn allows(scope: &ChioScope, server: &str, kind: ListKind, entry: &Value) -> bool {
    let text = |name: &str| entry.get(name).and_then(Value::as_str);
    match kind {
        ListKind::Tools => text("name").is_some_and(|name| {
            let mut grants = scope.grants.iter();
            grants.any(|it| it.covers(server, name) && it.operations.contains(&Operation::Invoke))
        }),
        ListKind::Resources => text("uri").is_some_and(|uri| {
            let mut grants = scope.resource_grants.iter();
            grants.any(|it| it.covers(uri) && it.operations.contains(&Operation::Read))
        }),
        ListKind::ResourceTemplates => text("uriTemplate").is_some_and(|template| {
            let fixed = template.split('{').next().unwrap_or_default();
            scope.resource_grants.iter().any(|it| {
                let reaches = it.covers(template) || it.uri_pattern.starts_with(fixed);
                reaches && it.operations.contains(&Operation::Read)
            })
        }),
        ListKind::Prompts => text("name").is_some_and(|name| {
            let mut grants = scope.prompt_grants.iter();
            grants.any(|it| it.covers(name) && it.operations.contains(&Operation::Get))
        }),
    }
}

/// A tool of a manifest, as MCP writes it.
fn manifest_entry(tool: &ToolDefinition) -> Value {
    let mut schema = tool.input_schema.clone();
    schema.entry("type").or_insert_with(|| json!("object"));
    let mut entry = json!({
        "name": tool.name,
        "description": tool.description,
        "inputSchema": schema,
        // Any call can run as a task, and any task be waited for.
        "execution": {"taskSupport": "optional"},
        "annotations": {
            "readOnlyHint": !tool.has_side_effects,
            "destructiveHint": tool.has_side_effects,
        },
    });
    // MCP knows only objects as structured results.
    let output = tool.output_schema.as_ref();
    let output = output.filter(|schema| schema.get("type") == Some(&json!("object")));
    if let (Some(schema), Value::Object(members)) = (output, &mut entry) {
        members.insert("outputSchema".to_owned(), json!(schema));
    }
    entry
}

#[cfg(test)]
mod tests {
    use chio_core::capability::{PromptGrant, ResourceGrant, ToolGrant};

    use super::*;

    #[test]
    fn uris_that_several_servers_list_name_their_server() {
        let entry = |uri: &str| json!({"uri": uri, "name": "n"});
        let mut entries = vec![
            ("a", entry("memo://x")),
            ("a", entry("memo://twice")),
            ("a", entry("memo://twice")),
            ("b", entry("memo://y")),
            ("b", entry("memo://x")),
            ("b", json!({"name": "without"})),
        ];
        tell_apart("uri", &mut entries);
        let uris: Vec<_> = entries.iter().map(|(_, entry)| entry["uri"].as_str()).collect();
        let told =
            ["chio://a/memo://x", "memo://twice", "memo://twice", "memo://y", "chio://b/memo://x"];
        assert_eq!(uris, [told.map(Some).as_slice(), &[None]].concat());
    }

    #[test]
    fn a_list_shows_what_a_grant_speaks_of() {
        let scope = ChioScope {
            grants: vec![
                ToolGrant::new("files", "read", &[Operation::Invoke]),
                ToolGrant::new("files", "write", &[Operation::ReadResult]),
            ],
            resource_grants: vec![ResourceGrant {
                uri_pattern: "file:///project/*".to_owned(),
                operations: vec![Operation::Read],
            }],
            prompt_grants: vec![PromptGrant {
                prompt_name: "greet".to_owned(),
                operations: vec![Operation::Get],
            }],
        };
        let cases = [
            (ListKind::Tools, "files", json!({"name": "read"}), true),
            (ListKind::Tools, "other", json!({"name": "read"}), false),
            (ListKind::Tools, "files", json!({"name": "write"}), false),
            (ListKind::Tools, "files", json!({"title": "read"}), false),
            (ListKind::Resources, "any", json!({"uri": "file:///project/a"}), true),
            (ListKind::Resources, "any", json!({"uri": "file:///etc/a"}), false),
            (
                ListKind::ResourceTemplates,
                "any",
                json!({"uriTemplate": "file:///project/{a}"}),
                true,
            ),
            (ListKind::ResourceTemplates, "any", json!({"uriTemplate": "file:///{a}"}), true),
            (ListKind::ResourceTemplates, "any", json!({"uriTemplate": "test://{a}"}), false),
            (ListKind::Prompts, "any", json!({"name": "greet"}), true),
            (ListKind::Prompts, "any", json!({"name": "other"}), false),
        ];
        for (kind, server, entry, expected) in cases {
            assert_eq!(allows(&scope, server, kind, &entry), expected, "{kind:?} {entry}");
        }
    }
}
