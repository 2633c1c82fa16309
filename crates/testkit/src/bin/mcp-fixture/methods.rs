//! What is done with a message: requests are answered, calls of tools on threads of their own.

use std::sync::Arc;
use std::thread;

use serde_json::{Value, json};

use crate::call::{Call, Stop, failure};
use crate::rpc::{Fault, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, response, text};
use crate::session::Session;
use crate::{completion, pages, prompts, resources, tools};

/// The one version that is spoken here; a client that asks for another is offered this one.
const VERSION: &str = "2025-11-25";

/// Takes one message of the client.
pub(crate) fn take(session: &Arc<Session>, message: Value) {
    let method = message.get("method").and_then(Value::as_str);
    let params = message.get("params").cloned().unwrap_or_else(|| json!({}));
    match (method, message.get("id")) {
        (Some("tools/call"), Some(id)) => start(session, id.clone(), &params),
        (Some(method), Some(id)) => {
            let answer = answer(session, method, &params);
            session.wire.send(&response(id, answer));
        }
        (Some("notifications/cancelled"), None) => {
            if let Some(id) = params.get("requestId") {
                session.cancel(id);
            }
        }
        (Some(method), None) => session.hear(method, &params),
        (None, _) => session.wire.answered(message),
    }
}

/// Answers a request that needs no time.
fn answer(session: &Session, method: &str, params: &Value) -> Result<Value, Fault> {
    let list = |member, items| pages::page(member, items, params, session.page_size);
    match method {
        "initialize" => Ok(initialize(session, params)),
        "ping" => Ok(json!({})),
        _ if !session.has_begun() => Err(before_initialize()),
        "tools/list" => list("tools", tools::list(session)),
        "resources/list" => list("resources", resources::list()),
        "resources/templates/list" => list("resourceTemplates", resources::templates()),
        "resources/read" => resources::read(text(params, "uri")?),
        "resources/subscribe" => watch(session, params, true),
        "resources/unsubscribe" => watch(session, params, false),
        "prompts/list" => list("prompts", prompts::list()),
        "prompts/get" => prompts::get(text(params, "name")?, params),
        "completion/complete" => completion::complete(params),
        "logging/setLevel" => set_level(session, text(params, "level")?),
        "fixture/echo" => Ok(json!({"params": params})),
        _ => Err(Fault::new(METHOD_NOT_FOUND, format!("there is no method `{method}`"))),
    }
}

fn before_initialize() -> Fault {
    Fault::new(INVALID_REQUEST, "expected `initialize` first")
}

fn initialize(session: &Session, params: &Value) -> Value {
    session.begin(params.get("capabilities").cloned().unwrap_or_else(|| json!({})));
    let mut experimental = json!({});
    if session.also.is_some() {
        experimental = json!({"fixture": {"echo": true}, "chioProtocol": "forged"});
    }
    json!({
        "protocolVersion": VERSION,
        "capabilities": {
            "tools": {"listChanged": true},
            "resources": {"subscribe": true, "listChanged": true},
            "prompts": {"listChanged": true},
            "logging": {},
            "completions": {},
            "experimental": experimental,
        },
        "serverInfo": {
            "name": "mcp-fixture",
            "title": "A server for tests",
            "version": env!("CARGO_PKG_VERSION"),
        },
        "instructions": "Every tool is for tests.",
    })
}

fn watch(session: &Session, params: &Value, wanted: bool) -> Result<Value, Fault> {
    let uri = text(params, "uri")?;
    resources::read(uri)?;
    session.watch(uri, wanted);
    Ok(json!({}))
}

fn set_level(session: &Session, level: &str) -> Result<Value, Fault> {
    if session.set_level(level) {
        return Ok(json!({}));
    }
    Err(Fault::new(INVALID_PARAMS, format!("there is no level `{level}`")))
}

/// Runs a call on its own thread, so that calls run beside each other.
fn start(session: &Arc<Session>, id: Value, params: &Value) {
    let (tool, call) = match prepare(session, &id, params) {
        Ok(prepared) => prepared,
        Err(fault) => return session.wire.send(&response(&id, Err(fault))),
    };
    thread::spawn(move || {
        let outcome = tool(&call);
        call.session.ended(&id);
        let result = match outcome {
            Ok(result) => result,
            Err(Stop::Failed(why)) => failure(why),
            Err(Stop::Fault(fault)) => return call.session.wire.send(&response(&id, Err(fault))),
            Err(Stop::Silent) => return,
        };
        call.session.wire.send(&response(&id, Ok(result)));
    });
}

fn prepare(
    session: &Arc<Session>,
    id: &Value,
    params: &Value,
) -> Result<(tools::Run, Call), Fault> {
    if !session.has_begun() {
        return Err(before_initialize());
    }
    let tool = text(params, "name")?;
    let run = tools::find(session, tool)
        .ok_or_else(|| Fault::new(INVALID_PARAMS, format!("there is no tool `{tool}`")))?;
    let call = Call {
        session: Arc::clone(session),
        id: id.clone(),
        tool: tool.to_owned(),
        arguments: params.get("arguments").cloned().unwrap_or_else(|| json!({})),
        meta: params.get("_meta").cloned().unwrap_or_default(),
        progress_token: params.pointer("/_meta/progressToken").cloned(),
        a2a_message: params
            .pointer("/_meta/chio/a2a/messageId")
            .and_then(Value::as_str)
            .map(str::to_owned),
        cancel: session.started(id),
    };
    Ok((run, call))
}
