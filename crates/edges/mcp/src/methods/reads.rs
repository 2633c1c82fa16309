//! Resources, prompts and completions: looked up by the road that calls take.

use chio_core::capability::{ChioScope, PresentedToken};
use chio_core::registry::ErrorCode;
use chio_cross_protocol::jsonrpc::RpcError;
use chio_cross_protocol::{Denial, ReadKind, ReadOutcome, ReadRequest, Shelf};
use serde_json::{Map, Value, json};

use super::Turn;
use crate::answer::with_receipt;
use crate::caller::{About, McpCaller};
use crate::error::{CANCELLED, NOT_READY, chio_error, invalid_params, unauthenticated, unreleased};
use crate::session::McpSession;

/// Answers a read.
pub(super) async fn answer(mut turn: Turn<'_>, kind: ReadKind) -> Result<Value, RpcError> {
    let progress = turn.progress();
    turn.params.remove("_meta");
    let session = turn.session;
    let server = whose(session, kind, &mut turn.params).await?;
    let tokens = session.tokens().await.map_err(|error| unauthenticated(error.to_string()))?;
    let token = tokens.iter().find(|token| speaks(&token.scope, kind, &turn.params));
    let Some(token) = token.or_else(|| tokens.first()).cloned() else {
        return Err(unauthenticated("there is no capability for this client"));
    };
    let agent = session.peer.subject.clone().unwrap_or_else(|| token.subject.clone());
    let request = ReadRequest { kind, agent, token, server_id: server, params: turn.params };
    let about = About { id: Some(turn.id), progress, task: None, _running: turn.running };
    let caller = McpCaller::for_request(session, turn.stream, turn.cancellation, about);
    let read = session.shared.orchestrator.read(request, caller).await;
    let read = read.map_err(|error| {
        session.shared.options.log.line(&format!("{}: {error}", kind.name()));
        unreleased()
    })?;
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
        // Whoever may not see a resource need not know that it is there.
        ErrorCode::CapabilityDenied => NOT_READY,
        _ => RpcError::INVALID_PARAMS,
    };
    let data = json!({"chio": receipt, "chioError": chio_error(denial.code)});
    RpcError::new(code, crate::answer::words(denial)).with_data(data)
}

/// Whether a scope speaks of what is asked for, so that its token is the one to present.
fn speaks(scope: &ChioScope, kind: ReadKind, params: &Map<String, Value>) -> bool {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let of = params.get("ref");
    let (uri, name) = match kind {
        ReadKind::Completion => {
            (text(of.and_then(|it| it.get("uri"))), text(of.and_then(|it| it.get("name"))))
        }
        _ => (text(params.get("uri")), text(params.get("name"))),
    };
    uri.is_some_and(|uri| scope.resource_grants.iter().any(|grant| grant.covers(&uri)))
        || name.is_some_and(|name| scope.prompt_grants.iter().any(|grant| grant.covers(&name)))
}

/// Whose resource or prompt it is. A prompt's public name is put into the server's own.
async fn whose(
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
    let Some(member) = named else { return of_resource(session, kind, params).await };
    let place = match member {
        "ref" => params.get_mut("ref").and_then(|it| it.get_mut("name")),
        _ => params.get_mut("name"),
    };
    let unknown = || invalid_params("expected the name of a prompt that is listed");
    let Some(Value::String(public)) = place else { return Err(unknown()) };
    let (server, name) = names.resolve(public).ok_or_else(unknown)?;
    let (server, name) = (server.to_owned(), name.to_owned());
    *public = name;
    Ok(server)
}

/// The server whose resource it is: the one that lists it, or has a template that begins so.
async fn of_resource(
    session: &McpSession,
    kind: ReadKind,
    params: &Map<String, Value>,
) -> Result<String, RpcError> {
    let servers = session.shared.names.servers();
    let uri = match kind {
        ReadKind::Completion => params.get("ref").and_then(|it| it.get("uri")),
        _ => params.get("uri"),
    };
    let Some(uri) = uri.and_then(Value::as_str) else {
        return Err(invalid_params("expected a `uri` that is a string"));
    };
    if let [only] = servers {
        return Ok(only.clone());
    }
    for shelf in [Shelf::Resources, Shelf::ResourceTemplates] {
        for server in servers {
            let listed =
                session.shared.orchestrator.list(server, &session.peer.session, shelf).await;
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

/// The token whose grants speak of a tool, else the first.
pub(super) fn token_for<'a>(
    tokens: &'a [PresentedToken],
    server: &str,
    tool: &str,
) -> Option<&'a PresentedToken> {
    let covers =
        |token: &&PresentedToken| token.scope.grants.iter().any(|grant| grant.covers(server, tool));
    tokens.iter().find(covers).or_else(|| tokens.first())
}
