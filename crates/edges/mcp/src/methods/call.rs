//! `tools/call`: every call goes through the orchestrator.

use std::sync::Arc;

use chio_core::capability::{DpopProof, PresentedToken};
use chio_core::governance::{ApprovalToken, GovernedTransactionIntent, ModelMetadata};
use chio_core::hash::sha256_hex;
use chio_cross_protocol::jsonrpc::{RequestId, RpcError};
use chio_cross_protocol::{CapabilityBridge, MAX_ORIGIN_ID, OrchestratedRequest, Outcome};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::Turn;
use super::reads::token_for;
use crate::answer;
use crate::bridge::McpBridge;
use crate::caller::{About, McpCaller};
use crate::error::{invalid_params, unauthenticated, unreleased};
use crate::session::McpSession;
use crate::tasks;

/// A call, decoded.
#[derive(Debug)]
pub(crate) struct Arguments {
    pub(crate) request: OrchestratedRequest,
}

/// Answers a call, or takes it on as a task.
pub(super) async fn answer(mut turn: Turn<'_>) -> Result<Value, RpcError> {
    let task = turn.params.remove("task");
    let progress = turn.progress();
    let session = turn.session;
    let proof = turn.proof.take();
    let arguments = decode(session, &turn.id, turn.params, proof).await?;
    if let Some(task) = task {
        return tasks::create(session, arguments, &task, progress).await;
    }
    let about = About { id: Some(turn.id), progress, task: None, _running: turn.running };
    let caller = McpCaller::for_request(session, turn.stream, turn.cancellation, about);
    run(session, arguments, &caller).await
}

/// Runs a call and writes its result.
async fn run(
    session: &McpSession,
    arguments: Arguments,
    caller: &Arc<McpCaller>,
) -> Result<Value, RpcError> {
    let request = arguments.request;
    let origin = request.origin_request_id.clone();
    let (server, tool) = (request.server_id.clone(), request.tool_name.clone());
    let ran = session.shared.orchestrator.run(request, Arc::clone(caller) as _).await;
    let ran = ran.map_err(|error| {
        session.shared.options.log.line(&format!("{server}/{tool}: {error}"));
        unreleased()
    })?;
    let chunks = caller.take_chunks();
    if let Outcome::Stream { chunks } = ran.evaluation.outcome
        && session.takes_chunks()
    {
        return Ok(answer::of_stream(&ran.evaluation, chunks, caller.has_failed()));
    }
    answer::of_call(ran.evaluation, (&origin, &server, &tool), &chunks)
}

/// Reads the params of a call.
async fn decode(
    session: &McpSession,
    id: &RequestId,
    mut params: Map<String, Value>,
    proof: Option<Box<DpopProof>>,
) -> Result<Arguments, RpcError> {
    let reference = McpBridge.extract(&params);
    let reference = reference.map_err(|error| invalid_params(error.to_string()))?;
    let context = McpBridge.protocol_context(&params);
    let Some(Value::String(public)) = params.remove("name") else {
        return Err(invalid_params("expected `name` to be the name of a tool"));
    };
    let arguments = match params.remove("arguments") {
        None => Value::Object(Map::new()),
        Some(arguments @ Value::Object(_)) => arguments,
        Some(_) => return Err(invalid_params("expected `arguments` to be an object")),
    };
    let unknown = || invalid_params("unknown tool: expected the name of a tool that is listed");
    let (server, tool) = session.shared.names.resolve(&public).ok_or_else(unknown)?;
    session.shared.orchestrator.tool(server, tool).ok_or_else(unknown)?;
    let tokens = session.tokens().await.map_err(|error| unauthenticated(error.to_string()))?;
    let token: PresentedToken = token_for(&tokens, server, tool)
        .cloned()
        .ok_or_else(|| unauthenticated("there is no capability for this client"))?;
    let meta = match params.remove("_meta") {
        Some(Value::Object(meta)) => meta,
        _ => Map::new(),
    };
    let origin = origin(session, id, &meta)?;
    let mut request = OrchestratedRequest::new(origin, token, server, tool, arguments);
    if let Some(subject) = &session.peer.subject {
        request.agent = subject.clone();
    }
    request.dpop_proof = proof;
    (request.capability_ref, request.protocol_context) = (reference, context);
    admit(&mut request, meta)?;
    Ok(Arguments { request })
}

/// What stands in receipts for the client's name of the call.
fn origin(
    session: &McpSession,
    id: &RequestId,
    meta: &Map<String, Value>,
) -> Result<String, RpcError> {
    if let Some(stable) = meta.get("chioRequestId") {
        let stable = stable.as_str().filter(|it| (1..=MAX_ORIGIN_ID).contains(&it.len()));
        let expected = || {
            invalid_params(format!("expected `_meta.chioRequestId` of 1 to {MAX_ORIGIN_ID} bytes"))
        };
        return stable.map(str::to_owned).ok_or_else(expected);
    }
    // Ids are told apart within a session only; the end of its name will do.
    let mut parts = session.peer.session.id.rsplit('-');
    let session = parts.find(|part| part.len() == 12).unwrap_or_default();
    let name = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
    // A client may choose any text.
    let plain = name.len() <= 64 && !name.is_empty() && name.trim() == name;
    Ok(if plain && !name.chars().any(char::is_control) {
        format!("{session}/{name}")
    } else {
        format!("{session}/sha256:{}", sha256_hex(name.as_bytes()))
    })
}

/// Takes over what a client may say about a call beside its arguments.
fn admit(request: &mut OrchestratedRequest, mut meta: Map<String, Value>) -> Result<(), RpcError> {
    if meta.is_empty() {
        return Ok(());
    }
    // SECURITY: whatever class the client claims for it, it is the client's own word.
    let model: Option<ModelMetadata> = take(&mut meta, "modelMetadata", "chioModelMetadata")?;
    request.model = model.map(|model| Box::new(model.asserted()));
    let intent: Option<GovernedTransactionIntent> =
        take(&mut meta, "governedIntent", "chioGovernedIntent")?;
    request.governed_intent = intent.map(Box::new);
    let approval: Option<ApprovalToken> = take(&mut meta, "approvalToken", "chioApprovalToken")?;
    request.approval = approval.map(Box::new);
    if request.approval.is_some() && !meta.contains_key("chioRequestId") {
        // SECURITY: an approval names the call that it is for, and ids of a session repeat.
        let message = "expected `_meta.chioRequestId` beside an approval, found none";
        return Err(invalid_params(message));
    }
    for name in ["approvalTokens", "executionNonce", "supplementalAuthorization"] {
        let prefixed = format!(
            "chio{}{}",
            name.get(..1).unwrap_or_default().to_uppercase(),
            name.get(1..).unwrap_or_default()
        );
        if meta.contains_key(name) || meta.contains_key(&prefixed) {
            // Whoever sends one of these relies on its being looked at.
            return Err(invalid_params(format!("`_meta.{name}` is not supported")));
        }
    }
    Ok(())
}

/// A member of `_meta` under either of its names, but not under both.
fn take<T: DeserializeOwned>(
    meta: &mut Map<String, Value>,
    name: &str,
    prefixed: &str,
) -> Result<Option<T>, RpcError> {
    let found = match (meta.remove(name), meta.remove(prefixed)) {
        (Some(_), Some(_)) => {
            return Err(invalid_params(format!(
                "expected `_meta.{name}` or `_meta.{prefixed}`, found both"
            )));
        }
        (Some(found), None) | (None, Some(found)) => found,
        (None, None) => return Ok(None),
    };
    // The error could repeat what was sent.
    serde_json::from_value(found)
        .map(Some)
        .map_err(|_| invalid_params(format!("expected `_meta.{name}` in its published form")))
}
