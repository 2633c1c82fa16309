//! Two calls of the tour's sub-agent, decided by its token and signed by the tour's kernel.

use std::path::Path;

use anyhow::Result;
use chio_core::capability::{CapabilityToken, Match, Operation, Patterns};
use chio_core::crypto::Keypair;
use chio_core::receipt::{ChioReceipt, ContentHash, Decision, NO_OUTPUT_HASH, ToolCallAction};
use serde_json::{Value, json};
use uuid::Uuid;

use super::stage::Stage;
use crate::text;

const SERVER: &str = "files";
const TOOL: &str = "read_file";

/// Signs `allowed.json` and `denied.json`.
pub(super) fn sign(stage: &mut Stage<'_, '_>) -> Result<()> {
    for (file, path) in [("allowed.json", "/workspace/notes.txt"), ("denied.json", "/etc/passwd")] {
        let receipt = stage.with(|io| {
            let token: CapabilityToken = io.read_json(Path::new("sub-agent.json"), "a token")?;
            let kernel = io.read_key(Path::new("kernel.key"))?;
            receipt(&token, json!({"path": path}), io.now, &kernel)
        })?;
        stage.write(file, text::json(&receipt)?.as_bytes())?;
    }
    Ok(())
}

fn receipt(
    token: &CapabilityToken,
    arguments: Value,
    now: u64,
    kernel: &Keypair,
) -> Result<ChioReceipt> {
    let decision = decide(token, &arguments)?;
    let content_hash = match decision {
        Decision::Allow => ContentHash::of_value(&json!({"text": "hello"}))?,
        _ => NO_OUTPUT_HASH.to_owned(),
    };
    let (action, key) = (ToolCallAction::new(arguments)?, kernel.public_key().clone());
    let mut receipt = ChioReceipt::mediated(now, action, decision, content_hash, key);
    receipt.id = format!("rcpt-{}", Uuid::now_v7());
    receipt.capability_id.clone_from(&token.id);
    receipt.tool_server = SERVER.to_owned();
    receipt.tool_name = TOOL.to_owned();
    receipt.policy_hash = "tour".to_owned();
    receipt.metadata = Some(json!({
        "attribution": {
            "subject_key": token.subject,
            "issuer_key": token.issuer,
            "delegation_depth": token.delegation_chain.len(),
        },
    }));
    Ok(receipt.signed(kernel)?)
}

/// What the token's grants say to a call.
fn decide(token: &CapabilityToken, arguments: &Value) -> Result<Decision> {
    let mut reason = "no grant covers the tool".to_owned();
    for grant in &token.scope.grants {
        if !grant.covers(SERVER, TOOL) || !grant.operations.contains(&Operation::Invoke) {
            continue;
        }
        let mut failed = None;
        for constraint in &grant.constraints {
            match constraint.matches(arguments, None, &Patterns::default())? {
                Match::Holds => {}
                Match::LeftTo(_) => failed = Some(format!("{} is not checked", constraint.kind())),
                Match::Fails(why) => failed = Some(format!("{}: {why}", constraint.kind())),
            }
        }
        match failed {
            None => return Ok(Decision::Allow),
            Some(why) => reason = why,
        }
    }
    Ok(Decision::Deny { reason, guard: "kernel".to_owned() })
}
