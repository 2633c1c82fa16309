//! Resources, prompts and completions: read through the orchestrator, as calls are.

use chio_core::capability::{ChioScope, PresentedToken};
use chio_core::receipt::Execution;
use chio_core::registry::ErrorCode;
use chio_cross_protocol::{Denial, ListKind, ReadKind, ReadOutcome, ReadRequest, ServerError};
use chio_net::jsonrpc::RpcError;
use serde_json::{Map, Value, json};

use super::RequestContext;
use super::meta::take_meta;
use crate::answer::{server_error, with_receipt};
use crate::caller::{McpCaller, RequestScope};
use crate::error::{CANCELLED, NOT_READY, chio_error, invalid_params, unauthenticated, unreleased};
use crate::names::Names;
use crate::session::McpSession;

/// Handles a request that reads.
pub(super) async fn read(
    mut context: RequestContext<'_>,
    kind: ReadKind,
) -> Result<Value, RpcError> {
    let progress = context.progress();
    let meta = take_meta(&mut context.params)?;
    let session = context.session;
    let Target { server, named } = resolve_server(session, kind, &mut context.params).await?;
    let tokens = context.tokens().await?;
    let token = tokens.iter().find(|token| grants(&token.scope, kind, &context.params));
    let token = token.or_else(|| tokens.first()).cloned();
    let read = Read { kind, server: server.clone(), token, meta, progress };
    let mut result = run(context, read).await?;
    if let Some((public, uri)) = named {
        match kind {
            ReadKind::Resource => rename(&mut result, &public, &uri),
            ReadKind::Subscribe => session.watch((server, uri), Some(public)),
            ReadKind::Unsubscribe => session.watch((server, uri), None),
            _ => {}
        }
    }
    Ok(result)
}

/// Whose something is that is read.
struct Target {
    server: String,
    /// The URI that the client has for it, where that names the server, and the server's own.
    named: Option<(String, String)>,
}

impl From<&str> for Target {
    fn from(server: &str) -> Self {
        Self { server: server.to_owned(), named: None }
    }
}

/// Has the contents of a resource carry the URI that they were asked for by.
fn rename(result: &mut Value, public: &str, uri: &str) {
    let contents = result.get_mut("contents").and_then(Value::as_array_mut);
    for content in contents.into_iter().flatten() {
        if let Some(Value::String(found)) = content.get_mut("uri")
            && found == uri
        {
            public.clone_into(found);
        }
    }
}

/// What is read, from where, and by which authority.
pub(super) struct Read {
    pub(super) kind: ReadKind,
    pub(super) server: String,
    pub(super) token: Option<PresentedToken>,
    /// What the client adds for the server.
    pub(super) meta: Option<Value>,
    /// The client's progress token.
    pub(super) progress: Option<Value>,
}

/// Reads through the orchestrator.
pub(super) async fn run(context: RequestContext<'_>, read: Read) -> Result<Value, RpcError> {
    let Read { kind, server, token, meta, progress } = read;
    let session = context.session;
    let Some(token) = token else {
        return Err(unauthenticated("there is no capability for this client"));
    };
    let subject = session.kernel_session.principal.subject.clone();
    let agent = subject.unwrap_or_else(|| token.subject.clone());
    let params = context.params;
    let request = ReadRequest { kind, agent, token, server_id: server, params, meta };
    let scope = RequestScope {
        id: Some(context.id),
        progress,
        _running: context.running,
        ..RequestScope::default()
    };
    let caller = McpCaller::for_request(session, context.stream, context.cancellation, scope);
    let read = session.shared.orchestrator.read(request, caller).await;
    let read = read.map_err(|_| unreleased())?;
    let receipt = json!({"receiptId": read.receipt_id});
    match read.outcome {
        ReadOutcome::Value(value) => Ok(with_receipt(value, &read.receipt_id)),
        ReadOutcome::Answered { code, message, data } => {
            let known = ServerError { code, data };
            let unknown = ServerError { code: RpcError::INTERNAL_ERROR, data: None };
            let error = if session.takes_error(code) { known } else { unknown };
            Err(server_error(error, message, receipt))
        }
        ReadOutcome::Cancelled(reason) => {
            Err(RpcError::new(CANCELLED, reason).with_data(json!({"chio": receipt})))
        }
        ReadOutcome::Incomplete(reason) => {
            let data =
                json!({"chio": receipt, "chioError": chio_error(ErrorCode::ToolServerError)});
            Err(RpcError::new(RpcError::INTERNAL_ERROR, reason).with_data(data))
        }
        ReadOutcome::Denied(denial) => Err(denied(kind, &denial, &receipt)),
    }
}

fn denied(kind: ReadKind, denial: &Denial, receipt: &Value) -> RpcError {
    let code = match denial.code {
        ErrorCode::CapabilityDenied if kind == ReadKind::Method => RpcError::METHOD_NOT_FOUND,
        // SECURITY: a client that may not see a resource does not learn that it exists.
        ErrorCode::CapabilityDenied => NOT_READY,
        _ => RpcError::INVALID_PARAMS,
    };
    let data = json!({"chio": receipt, "chioError": chio_error(denial.code)});
    // A read can be repeated as if it had not begun.
    RpcError::new(code, crate::answer::words(denial, Some(Execution::NotBegun))).with_data(data)
}

/// Where the URI or the name of what is read stands.
fn reference(kind: ReadKind, params: &Map<String, Value>) -> Option<&Map<String, Value>> {
    match kind {
        ReadKind::Completion => params.get("ref").and_then(Value::as_object),
        _ => Some(params),
    }
}

/// Whether a scope grants what is read, so that its token is the one to present.
fn grants(scope: &ChioScope, kind: ReadKind, params: &Map<String, Value>) -> bool {
    let about = reference(kind, params);
    let text = |name: &str| about.and_then(|about| about.get(name)).and_then(Value::as_str);
    text("uri").is_some_and(|uri| scope.resource_grants.iter().any(|grant| grant.covers(uri)))
        || text("name").is_some_and(|name| scope.prompt_grants.iter().any(|it| it.covers(name)))
}

/// The server of a resource or prompt. A prompt's public name becomes the server's own.
async fn resolve_server(
    session: &McpSession,
    kind: ReadKind,
    params: &mut Map<String, Value>,
) -> Result<Target, RpcError> {
    let names = &session.shared.names;
    let named = match kind {
        ReadKind::Prompt => Some("name"),
        ReadKind::Completion if params.get("ref").and_then(|it| it.get("name")).is_some() => {
            Some("ref")
        }
        _ => None,
    };
    let Some(member) = named else { return server_of_resource(session, kind, params).await };
    let name = match member {
        "ref" => params.get_mut("ref").and_then(|it| it.get_mut("name")),
        _ => params.get_mut("name"),
    };
    let unknown = || invalid_params("expected the name of a prompt that is listed");
    let Some(Value::String(public)) = name else { return Err(unknown()) };
    let (server, name) = names.resolve(public).ok_or_else(unknown)?;
    let (target, name) = (Target::from(server), name.to_owned());
    *public = name;
    Ok(target)
}

/// The server that lists a resource, or has a template with its beginning.
async fn server_of_resource(
    session: &McpSession,
    kind: ReadKind,
    params: &mut Map<String, Value>,
) -> Result<Target, RpcError> {
    let names = &session.shared.names;
    let about = match kind {
        ReadKind::Completion => params.get_mut("ref").and_then(Value::as_object_mut),
        _ => Some(params),
    };
    let Some(Value::String(uri)) = about.and_then(|about| about.get_mut("uri")) else {
        return Err(invalid_params("expected a `uri` that is a string"));
    };
    if let [only] = names.servers() {
        return Ok(Target::from(only.as_str()));
    }
    if let Some((server, own)) = names.resolve_uri(uri) {
        let (server, own) = (server.to_owned(), own.to_owned());
        let public = std::mem::replace(uri, own.clone());
        return Ok(Target { server, named: Some((public, own)) });
    }
    for kind in [ListKind::Resources, ListKind::ResourceTemplates] {
        let mut found: Vec<&str> = Vec::new();
        for server in names.servers() {
            let listed =
                session.shared.orchestrator.list(server, &session.kernel_session, kind).await;
            let is_listed = |entry: &Value| {
                let is = |name: &str| entry.get(name).and_then(Value::as_str);
                let begins = |template: &str| {
                    uri.starts_with(template.split('{').next().unwrap_or_default())
                };
                is("uri") == Some(&**uri) || is("uriTemplate").is_some_and(begins)
            };
            if let Ok(Some(entries)) = listed
                && entries.iter().any(is_listed)
            {
                found.push(server);
            }
        }
        match (kind, found.as_slice()) {
            (_, []) => {}
            (ListKind::Resources, [_, _, ..]) => {
                let uris = found.iter().map(|server| Names::public_uri(server, uri));
                let uris = uris.collect::<Vec<_>>().join("` or `");
                return Err(invalid_params(format!(
                    "several servers list this resource: expected `{uris}`"
                )));
            }
            // A template may begin with next to nothing: the first server is asked.
            (_, [server, ..]) => return Ok(Target::from(*server)),
        }
    }
    let message = "no server lists this resource";
    Err(RpcError::new(NOT_READY, message))
}
