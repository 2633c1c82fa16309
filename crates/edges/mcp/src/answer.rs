//! Results of `tools/call`: what the kernel answered, as MCP writes it, with the receipt named.

use chio_cross_protocol::jsonrpc::RpcError;
use chio_cross_protocol::{
    CrossProtocolTargetRequest, Denial, DiscoveryProtocol, Evaluation, McpTargetExecutor, Outcome,
    TargetProtocolExecutor,
};
use serde_json::{Map, Value, json};

use crate::error::{CANCELLED, guidance};

/// The member of `_meta` that tells about the call.
const CHIO: &str = "chio";

/// The result of a call, or the error of one that was called off.
pub(crate) fn of_call(
    evaluation: &Evaluation,
    (origin, server, tool): (&str, &str, &str),
    chunks: &[Value],
) -> Result<Value, RpcError> {
    let receipt = json!({"receiptId": evaluation.receipt.id});
    if let Outcome::Cancelled { reason, chunks: 0 } = &evaluation.outcome {
        return Err(RpcError::new(CANCELLED, reason.clone()).with_data(json!({CHIO: receipt})));
    }
    let request = CrossProtocolTargetRequest {
        origin_request_id: origin,
        kernel_request_id: origin,
        server_id: server,
        tool_name: tool,
        target: DiscoveryProtocol::Mcp,
        chunks,
    };
    let mut result = McpTargetExecutor::default().project(&request, evaluation);
    let denial = match &evaluation.outcome {
        Outcome::Denied(denial) => Some(denial),
        _ => None,
    };
    if let (Some(denial), Value::Object(members)) = (denial, &mut result) {
        members.insert("content".to_owned(), json!([{"type": "text", "text": words(denial)}]));
    }
    let meta = result.get_mut("_meta").and_then(Value::as_object_mut);
    if let Some(meta) = meta {
        // Whatever the tool says there is not ours to vouch for.
        meta.remove("chioReceiptId");
        meta.insert(CHIO.to_owned(), account(receipt, denial));
    }
    Ok(result)
}

/// The result of a stream whose chunks have left before.
pub(crate) fn of_stream(evaluation: &Evaluation, chunks: u64) -> Value {
    let stream = json!({
        "mode": "notification_stream",
        "totalChunks": chunks,
        "terminalState": "completed",
    });
    json!({
        "content": [],
        "structuredContent": {"chioToolStream": stream},
        "isError": false,
        "_meta": {CHIO: {"receiptId": evaluation.receipt.id}},
    })
}

/// A denial in words that a model can act on.
pub(crate) fn words(denial: &Denial) -> String {
    let Denial { code, guard, reason } = denial;
    let who = if guard == Denial::KERNEL { String::new() } else { format!(" by {guard}") };
    let verb = if *code == chio_core::registry::ErrorCode::ToolServerError {
        "The tool failed"
    } else {
        "Denied"
    };
    format!("{verb}{who}: {reason} [{}]\n{}", code.name(), guidance(*code))
}

fn account(mut receipt: Value, denial: Option<&Denial>) -> Value {
    if let (Some(denial), Value::Object(members)) = (denial, &mut receipt) {
        let code = denial.code;
        members.insert("code".to_owned(), json!(code.number()));
        members.insert("name".to_owned(), json!(code.name()));
        members.insert("guard".to_owned(), json!(denial.guard));
        members.insert("transient".to_owned(), json!(code.is_transient()));
        let retry = json!({"strategy": code.retry(), "guidance": guidance(code)});
        members.insert("retry".to_owned(), retry);
    }
    receipt
}

/// Puts a receipt's id into a result that is not a tool's.
pub(crate) fn with_receipt(mut result: Value, receipt_id: &str) -> Value {
    if let Value::Object(members) = &mut result {
        let meta = members.entry("_meta").or_insert_with(|| Value::Object(Map::new()));
        if !meta.is_object() {
            *meta = Value::Object(Map::new());
        }
        if let Value::Object(meta) = meta {
            meta.insert(CHIO.to_owned(), json!({"receiptId": receipt_id}));
        }
    }
    result
}
