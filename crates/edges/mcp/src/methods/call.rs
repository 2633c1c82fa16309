//! `tools/call`: every call goes through the orchestrator.

use std::sync::Arc;

use chio_core::hash::sha256_hex;
use chio_core::registry::ErrorCode;
use chio_core::text::is_sound;
use chio_cross_protocol::{ApprovalRequest, CapabilityBridge, OrchestratedRequest, Outcome};
use chio_edge::call_metadata::{CallMetadata, MetadataLayout, MetadataSource};
use chio_edge::tokens::token_for;
use chio_net::jsonrpc::{RequestId, RpcError};
use serde_json::{Map, Value};

use super::RequestContext;
use super::lists::NOT_THERE;
use super::meta::take_meta;
use crate::answer;
use crate::bridge::McpBridge;
use crate::caller::{McpCaller, RequestScope, WaitingRequest};
use crate::error::{invalid_params, registered, unauthenticated, unreleased};
use crate::parked::{Ended, Joined, ParkedCalls, Run, is_plain};
use crate::session::McpSession;
use crate::tasks;

/// Chio's own metadata of a call in `_meta`.
pub(super) static LAYOUT: MetadataLayout = MetadataLayout {
    path: "_meta",
    members: &[
        ("chioRequestId", None),
        ("modelMetadata", Some("chioModelMetadata")),
        ("governedIntent", Some("chioGovernedIntent")),
        ("approvalToken", Some("chioApprovalToken")),
    ],
    unsupported: &[
        ("approvalTokens", Some("chioApprovalTokens")),
        ("executionNonce", Some("chioExecutionNonce")),
        ("supplementalAuthorization", Some("chioSupplementalAuthorization")),
    ],
};

/// How many characters of an unknown name are repeated.
const MAX_SHOWN: usize = 128;

/// Handles a call, or accepts it as a task.
pub(super) async fn call_tool(mut context: RequestContext<'_>) -> Result<Value, RpcError> {
    let progress = context.progress();
    let session = context.session;
    // Clients of a version without tasks mean nothing by it.
    let task = context.params.remove("task").filter(|_| session.version.has_tasks());
    let request = read_call(&mut context).await?;
    if let Some(task) = task {
        return tasks::create(session, request, &task, progress).await;
    }
    // A client that hears of progress keeps its request, and what cannot be asked for again waits.
    let patience =
        (progress.is_none() && is_plain(&request)).then_some(session.shared.options.approval_wait);
    let (id, stream) = (Some(context.id.clone()), context.stream);
    let scope = RequestScope { id, progress, _running: context.running, ..RequestScope::default() };
    if let Some(parked) = Joined::find(session, &request).await {
        let request = WaitingRequest { session: Arc::clone(session), stream, scope };
        let ended = parked.wait(request, &context.cancellation, patience).await;
        return ended.unwrap_or_else(|approval| Ok(waiting(session, &approval)));
    }
    let caller = McpCaller::for_request(session, stream, context.cancellation, scope);
    let run = run_call(Arc::clone(session), request, Arc::clone(&caller));
    let Some(patience) = patience else { return run.await };
    let mut run: Run = Box::pin(run);
    let approval = tokio::select! {
        biased;
        ended = &mut run => return ended,
        approval = caller.outwaited(patience) => approval,
    };
    match ParkedCalls::keep(session, Arc::clone(&approval), &caller, run) {
        Ok(()) => Ok(waiting(session, &approval)),
        Err(run) => run.await,
    }
}

/// What a request is told whose call goes on waiting for an approval.
fn waiting(session: &McpSession, approval: &ApprovalRequest) -> Value {
    answer::waiting_result(approval, session.shared.approve_command(approval).as_deref())
}

/// Runs a call and writes its result.
async fn run_call(
    session: Arc<McpSession>,
    request: OrchestratedRequest,
    caller: Arc<McpCaller>,
) -> Ended {
    let origin = request.origin_request_id.clone();
    let (server, tool) = (request.server_id.clone(), request.tool_name.clone());
    let ran = session.shared.orchestrator.run(request, Arc::clone(&caller) as _).await;
    let mut ran = ran.map_err(|_| unreleased())?;
    ran.evaluation.answered.take_if(|error| !session.takes_error(error.code));
    match ran.evaluation.outcome {
        Outcome::Stream { chunks } if caller.takes_chunks() => {
            Ok(answer::stream_result(&ran.evaluation, chunks, caller.has_failed()))
        }
        Outcome::Value(_) => answer::call_result(ran.evaluation, (&origin, &server, &tool), &[]),
        _ => answer::call_result(ran.evaluation, (&origin, &server, &tool), &caller.take_chunks()),
    }
}

/// Reads the params of a call.
async fn read_call(context: &mut RequestContext<'_>) -> Result<OrchestratedRequest, RpcError> {
    let (session, mut params) = (context.session, std::mem::take(&mut context.params));
    let arguments = params.remove("arguments");
    let Some(Value::String(public)) = params.get("name") else {
        return Err(invalid_params("expected `name` to be the name of a tool"));
    };
    let arguments = match arguments {
        None => Value::Object(Map::new()),
        Some(arguments @ Value::Object(_)) => arguments,
        Some(_) => return Err(invalid_params("expected `arguments` to be an object")),
    };
    let reference = McpBridge.extract(&params);
    let reference = reference.map_err(|error| invalid_params(error.to_string()))?;
    let unknown = || {
        let found = public.chars().take(MAX_SHOWN).collect::<String>();
        let found = found.escape_debug();
        invalid_params(format!(
            "unknown tool: expected the name of a tool that is listed, found `{found}`"
        ))
    };
    let (server, tool) = session.shared.names.resolve(public).ok_or_else(unknown)?;
    let orchestrator = &session.shared.orchestrator;
    let Some(fidelity) = orchestrator.fidelity(server, tool, McpBridge.protocol()) else {
        return Err(match orchestrator.absent(server) {
            Some(_) => registered(RpcError::INTERNAL_ERROR, NOT_THERE, ErrorCode::ToolServerError),
            None => unknown(),
        });
    };
    if !fidelity.is_published() {
        return Err(unknown());
    }
    let tokens = context.tokens().await?;
    let token = token_for(&tokens, server, tool)
        .cloned()
        .ok_or_else(|| unauthenticated("there is no capability for this client"))?;
    let objects = [params.get("_meta").and_then(Value::as_object), None];
    let source = MetadataSource { layout: &LAYOUT, objects };
    let metadata = CallMetadata::read(&source);
    let metadata = metadata.map_err(|error| invalid_params(error.0))?;
    source.refuse_unsupported().map_err(|error| invalid_params(error.0))?;
    let origin = metadata.request_id.unwrap_or_else(|| origin(session, &context.id));
    let mut request = OrchestratedRequest::new(origin, token, server, tool, arguments);
    if let Some(subject) = &session.kernel_session.principal.subject {
        request.agent = subject.clone();
    }
    request.dpop_proof = context.credentials.proof.take();
    request.capability_ref = reference;
    request.protocol_context = McpBridge.protocol_context(&params);
    request.meta = take_meta(&mut params)?;
    request.model = metadata.model;
    request.governed_intent = metadata.intent;
    request.approval = metadata.approval;
    Ok(request)
}

/// The id of a call in receipts, from the id that its client gave the request.
fn origin(session: &McpSession, id: &RequestId) -> String {
    // Request ids are unique within a session only; the end of its id tells sessions apart.
    let mut parts = session.kernel_session.id.rsplit('-');
    let session = parts.find(|part| part.len() == 12).unwrap_or_default();
    let name = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
    // A client may choose any text as an id.
    if name.len() <= 64 && is_sound(&name) {
        format!("{session}/{name}")
    } else {
        format!("{session}/sha256:{}", sha256_hex(name.as_bytes()))
    }
}
