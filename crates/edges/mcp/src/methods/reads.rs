//! Resources, prompts and completions: read through the orchestrator, as calls are.

use chio_core::capability::ChioScope;
use chio_core::registry::ErrorCode;
use chio_cross_protocol::{Denial, ListKind, ReadKind, ReadOutcome, ReadRequest};
use chio_net::jsonrpc::RpcError;
use serde_json::{Map, Value, json};

use super::RequestContext;
use crate::answer::with_receipt;
use crate::caller::{McpCaller, RequestScope};
use crate::error::{CANCELLED, NOT_READY, chio_error, invalid_params, unauthenticated, unreleased};
use crate::session::McpSession;

/// Handles a request that reads.
pub(super) async fn read(
    mut context: RequestContext<'_>,
    kind: ReadKind,
) -> Result<Value, RpcError> {
    let progress = context.progress();
    context.params.remove("_meta");
    let session = context.session;
    let server = resolve_server(session, kind, &mut context.params).await?;
    let tokens = context.tokens().await?;
    let token = tokens.iter().find(|token| grants(&token.scope, kind, &context.params));
    let Some(token) = token.or_else(|| tokens.first()).cloned() else {
        return Err(unauthenticated("there is no capability for this client"));
    };
    let subject = session.kernel_session.principal.subject.clone();
    let agent = subject.unwrap_or_else(|| token.subject.clone());
    let request = ReadRequest { kind, agent, token, server_id: server, params: context.params };
    let scope =
        RequestScope { id: Some(context.id), progress, task: None, _running: context.running };
    let caller = McpCaller::for_request(session, context.stream, context.cancellation, scope);
    let read = session.shared.orchestrator.read(request, caller).await;
    let read = read.map_err(|_| unreleased())?;
    let receipt = json!({"receiptId": read.receipt_id});
    match read.outcome {
        ReadOutcome::Value(value) => Ok(with_receipt(value, &read.receipt_id)),
        ReadOutcome::Answered { code, message } => {
            Err(RpcError::new(code, message).with_data(json!({"chio": receipt})))
        }
        ReadOutcome::Cancelled(reason) => {
            Err(RpcError::new(CANCELLED, reason).with_data(json!({"chio": receipt})))
        }
        ReadOutcome::Denied(denial) => Err(denied(&denial, &receipt)),
    }
}

fn denied(denial: &Denial, receipt: &Value) -> RpcError {
    let code = match denial.code {
        // SECURITY: a client that may not see a resource does not learn that it exists.
        ErrorCode::CapabilityDenied => NOT_READY,
        _ => RpcError::INVALID_PARAMS,
    };
    let data = json!({"chio": receipt, "chioError": chio_error(denial.code)});
    RpcError::new(code, crate::answer::words(denial)).with_data(data)
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
) -> Result<String, RpcError> {
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
    let (server, name) = (server.to_owned(), name.to_owned());
    *public = name;
    Ok(server)
}

/// The server that lists a resource, or has a template with its beginning.
async fn server_of_resource(
    session: &McpSession,
    kind: ReadKind,
    params: &Map<String, Value>,
) -> Result<String, RpcError> {
    let servers = session.shared.names.servers();
    let uri = reference(kind, params).and_then(|about| about.get("uri"));
    let Some(uri) = uri.and_then(Value::as_str) else {
        return Err(invalid_params("expected a `uri` that is a string"));
    };
    if let [only] = servers {
        return Ok(only.clone());
    }
    for kind in [ListKind::Resources, ListKind::ResourceTemplates] {
        for server in servers {
            let listed =
                session.shared.orchestrator.list(server, &session.kernel_session, kind).await;
            let is_listed = |entry: &Value| {
                let is = |name: &str| entry.get(name).and_then(Value::as_str);
                let begins = |template: &str| {
                    uri.starts_with(template.split('{').next().unwrap_or_default())
                };
                is("uri") == Some(uri) || is("uriTemplate").is_some_and(begins)
            };
            if let Ok(Some(entries)) = listed
                && entries.iter().any(is_listed)
            {
                return Ok(server.clone());
            }
        }
    }
    let message = "no server lists this resource";
    Err(RpcError::new(NOT_READY, message))
}
