//! Results of `tools/call`: what the kernel answered, as MCP writes it, with the receipt named.

use chio_core::calendar::rfc3339;
use chio_core::receipt::{Execution, SealedReceipt};
use chio_core::registry::ErrorCode;
use chio_cross_protocol::{
    ApprovalRequest, CapabilityBridge, CrossProtocolTargetRequest, Denial, Evaluation,
    McpTargetExecutor, Outcome, ServerError, TargetProtocolExecutor,
};
use chio_net::jsonrpc::RpcError;
use serde_json::{Map, Value, json};

use crate::bridge::McpBridge;
use crate::error::{CANCELLED, guidance, is_transient, unreleased};

/// The member of `_meta` with Chio's details of a call or a tool.
pub(crate) const CHIO: &str = "chio";

/// The result of a call, or the error of one that was cancelled or that its server answered with an
/// error.
pub(crate) fn call_result(
    mut evaluation: Evaluation,
    (origin, server, tool): (&str, &str, &str),
    chunks: &[Value],
) -> Result<Value, RpcError> {
    let answered = evaluation.answered.take();
    let receipt = || json!({"receiptId": evaluation.receipt.id});
    if let (Some(error), Outcome::Denied(denial)) = (answered, &evaluation.outcome) {
        let about = ending(&evaluation.receipt, "deny");
        return Err(server_error(error, denial.reason.clone(), about));
    }
    let (mut result, about) = match evaluation.outcome {
        Outcome::Cancelled { reason, chunks: 0 } => {
            let about = ending(&evaluation.receipt, "cancelled");
            return Err(RpcError::new(CANCELLED, reason).with_data(json!({CHIO: about})));
        }
        // What most calls come to is not copied.
        Outcome::Value(value) => (McpTargetExecutor::result_of(value), receipt()),
        _ => {
            let request = CrossProtocolTargetRequest {
                origin_request_id: origin,
                kernel_request_id: origin,
                server_id: server,
                tool_name: tool,
                target: McpBridge.protocol(),
                chunks,
            };
            let result = McpTargetExecutor::default().project(&request, &evaluation);
            let Value::Object(mut result) = result else { return Err(unreleased()) };
            let mut about = receipt();
            match &evaluation.outcome {
                Outcome::Denied(denial) => {
                    let execution = evaluation.receipt.execution();
                    let words = json!([{"type": "text", "text": words(denial, execution)}]);
                    result.insert("content".to_owned(), words);
                    about = denial_details(&evaluation.receipt, denial);
                }
                Outcome::Cancelled { .. } => about = ending(&evaluation.receipt, "cancelled"),
                Outcome::Incomplete { .. } => {
                    about = ending(&evaluation.receipt, "incomplete");
                    if let Some(Value::Array(content)) = result.get_mut("content") {
                        let words = guidance(ErrorCode::ToolServerError, Some(Execution::Begun));
                        content.push(json!({"type": "text", "text": words}));
                    }
                }
                _ => {}
            }
            (result, about)
        }
    };
    if let Some(Value::Object(meta)) = result.get_mut("_meta") {
        // Whatever the tool says there is not ours to vouch for.
        meta.remove("chioReceiptId");
    }
    insert_meta(&mut result, CHIO, about);
    Ok(Value::Object(result))
}

/// A server's own error: its code, its words and its data, with the receipt beside them where the data
/// has room for that.
pub(crate) fn server_error(error: ServerError, message: String, receipt: Value) -> RpcError {
    let data = match error.data.map(|data| *data) {
        None => json!({CHIO: receipt}),
        Some(Value::Object(mut members)) => {
            members.insert(CHIO.to_owned(), receipt);
            Value::Object(members)
        }
        Some(other) => other,
    };
    RpcError::new(error.code, message).with_data(data)
}

/// Puts a member into the `_meta` of a result.
pub(crate) fn insert_meta(result: &mut Map<String, Value>, name: &str, value: Value) {
    let meta = result.entry("_meta").or_insert_with(|| Value::Object(Map::new()));
    if !meta.is_object() {
        *meta = Value::Object(Map::new());
    }
    if let Value::Object(meta) = meta {
        meta.insert(name.to_owned(), value);
    }
}

/// How a person lets a call go on.
pub(crate) fn how_to_approve(command: Option<&str>) -> String {
    match command {
        Some(command) => format!("an operator answers with `{command}`"),
        None => {
            "no command can answer, because the store is in the memory of this process".to_owned()
        }
    }
}

/// The result of a request whose call waits for an approval, and was not run yet. It names no
/// receipt, because the call has not ended.
pub(crate) fn waiting_result(approval: &ApprovalRequest, command: Option<&str>) -> Value {
    let until = rfc3339(approval.expires_at);
    let guidance = "Call the same tool again with the same arguments: that goes on with this very \
                    call, and gives its result. Ask once at a time: two at once are two calls.";
    let words = format!(
        "This call has not run. A person has to approve it first ({}): {}.\nUntil {until}: {guidance}",
        approval.reason,
        how_to_approve(command)
    );
    json!({
        "content": [{"type": "text", "text": words}],
        "isError": true,
        "_meta": {CHIO: {
            "approvalId": approval.id,
            "command": command,
            "retry": {"strategy": "same_call", "guidance": guidance, "until": until},
        }},
    })
}

/// The result of a stream whose chunks have left before.
pub(crate) fn stream_result(evaluation: &Evaluation, chunks: u64, failed: bool) -> Value {
    let stream = json!({
        "mode": "notification_stream",
        "totalChunks": chunks,
        "terminalState": "completed",
    });
    json!({
        "content": [],
        "structuredContent": {"chioToolStream": stream},
        "isError": failed,
        "_meta": {CHIO: {"receiptId": evaluation.receipt.id}},
    })
}

/// A denial in words that a model can act on.
pub(crate) fn words(denial: &Denial, execution: Option<Execution>) -> String {
    let Denial { code, guard, reason } = denial;
    let is_own = [Denial::KERNEL, Denial::TOOL_SERVER].contains(&guard.as_str());
    let who = if is_own { String::new() } else { format!(" by {guard}") };
    let verb = match (code, execution) {
        (_, Some(Execution::Failed)) => "The tool failed",
        (_, Some(Execution::Completed)) => "The tool ran, and its result was withheld",
        (ErrorCode::ToolServerError, _) => "The tool server failed",
        // Something to correct, and no matter of policy.
        (ErrorCode::InvalidRequestShape, _) => "Not accepted",
        _ => "Denied",
    };
    format!("{verb}{who}: {reason} [{}]\n{}", code.name(), guidance(*code, execution))
}

/// How a call ended that was not simply allowed, and what became of it at its tool.
fn ending(receipt: &SealedReceipt, decision: &str) -> Value {
    json!({
        "receiptId": receipt.id,
        "decision": decision,
        "execution": receipt.execution(),
    })
}

/// What a result says about a denial.
fn denial_details(receipt: &SealedReceipt, Denial { code, guard, .. }: &Denial) -> Value {
    let execution = receipt.execution();
    json!({
        "receiptId": receipt.id,
        "decision": "deny",
        "execution": execution,
        "code": code.number(),
        "name": code.name(),
        "guard": guard,
        "transient": is_transient(*code, execution),
        "retry": {
            "strategy": code.retry_after(execution),
            "guidance": guidance(*code, execution),
        },
    })
}

/// Puts a receipt's id into a result that is not a tool's.
pub(crate) fn with_receipt(mut result: Value, receipt_id: &str) -> Value {
    if let Value::Object(members) = &mut result {
        insert_meta(members, CHIO, json!({"receiptId": receipt_id}));
    }
    result
}
