//! Whether a token's grants allow a read.

use std::sync::Arc;

use chio_core::capability::{ChioScope, Operation};
use chio_core::registry::ErrorCode;
use serde_json::Value;

use super::authorize::Authorized;
use super::read::read_tool;
use super::verify::Verified;
use crate::call::{Denial, ToolCall};
use crate::kernel::{Inner, ToolFacts};
use crate::resource_provider::ReadKind;
use crate::store::Alternative;

impl Inner {
    /// The stage authorize, for a read.
    pub(super) fn authorize_read(
        &self,
        kind: ReadKind,
        call: &ToolCall,
        verified: &Verified,
    ) -> Result<Authorized, Denial> {
        let known = Arc::clone(verified.known());
        let alternatives = check(kind, call, &known.token.scope)?;
        let server = self.find_server(call)?;
        if server.connection().resources().is_none() {
            let reason = format!("tool server `{}` has only tools", call.server_id);
            let code = if kind.has_side_effects() {
                ErrorCode::CapabilityDenied
            } else {
                ErrorCode::ToolServerError
            };
            return Err(Denial::by_kernel(code, reason));
        }
        let has_side_effects = kind.has_side_effects();
        let tool = ToolFacts { has_side_effects, ..ToolFacts::plain(read_tool(kind)) };
        Ok(Authorized::to_read(known, server, tool, alternatives))
    }
}

/// Whether some grant of the scope allows the read; the grant, where there is an intent to name it.
fn check(kind: ReadKind, call: &ToolCall, scope: &ChioScope) -> Result<Vec<Alternative>, Denial> {
    if kind.has_side_effects() {
        text(&call.arguments, "method", "a `method`")?;
        let index = scope.whole_server_grant(&call.server_id).ok_or_else(|| {
            let reason = "only a grant of all tools of the server, without any condition, allows \
                          what is no part of the protocol";
            Denial::by_kernel(ErrorCode::CapabilityDenied, reason)
        })?;
        let grant_index = u32::try_from(index).unwrap_or(u32::MAX);
        return Ok(vec![Alternative { grant_index, holds: Vec::new(), price: None }]);
    }
    look_up(kind, &call.arguments, scope).map(|()| Vec::new())
}

fn look_up(kind: ReadKind, params: &Value, scope: &ChioScope) -> Result<(), Denial> {
    let uri = || text(params, "uri", "a `uri`");
    match kind {
        ReadKind::Resource => resource(uri()?, Operation::Read, scope),
        ReadKind::Subscribe | ReadKind::Unsubscribe => {
            resource(uri()?, Operation::Subscribe, scope)
        }
        ReadKind::Prompt => prompt(text(params, "name", "a `name`")?, scope),
        ReadKind::Completion => {
            let of = params.get("ref").unwrap_or(&Value::Null);
            match of.get("type").and_then(Value::as_str) {
                Some("ref/prompt") => prompt(text(of, "name", "a `ref.name`")?, scope),
                Some("ref/resource") => {
                    resource(text(of, "uri", "a `ref.uri`")?, Operation::Read, scope)
                }
                _ => Err(missing("a `ref` to a prompt or a resource")),
            }
        }
        ReadKind::Method | ReadKind::Notification => Err(missing("something to look up")),
    }
}

fn text<'a>(of: &'a Value, name: &str, what: &str) -> Result<&'a str, Denial> {
    of.get(name).and_then(Value::as_str).ok_or_else(|| missing(what))
}

fn missing(what: &str) -> Denial {
    let reason = format!("expected {what}, found none");
    Denial::by_kernel(ErrorCode::InvalidRequestShape, reason)
}

fn resource(uri: &str, operation: Operation, scope: &ChioScope) -> Result<(), Denial> {
    // SECURITY: many readers of URIs drop such characters, and would see another one than guards do.
    if uri.chars().any(|c| c.is_control()) || uri.trim() != uri {
        let reason = "expected a URI without control characters and blanks around it";
        return Err(Denial::by_kernel(ErrorCode::InvalidRequestShape, reason));
    }
    // SECURITY: grants go by prefixes, and a server may walk up from there.
    if walks_up(uri) {
        let reason = "expected a URI without `.` and `..` segments, found one with them";
        return Err(Denial::by_kernel(ErrorCode::InvalidRequestShape, reason));
    }
    let grants = &scope.resource_grants;
    let allows = grants.iter().any(|it| it.covers(uri) && it.operations.contains(&operation));
    if allows {
        return Ok(());
    }
    let what = if operation == Operation::Subscribe { "subscribing to" } else { "reading" };
    let reason = format!("no grant of the token allows {what} this resource");
    Err(Denial::by_kernel(ErrorCode::CapabilityDenied, reason))
}

fn prompt(name: &str, scope: &ChioScope) -> Result<(), Denial> {
    let mut grants = scope.prompt_grants.iter();
    if grants.any(|it| it.covers(name) && it.operations.contains(&Operation::Get)) {
        return Ok(());
    }
    let reason = "no grant of the token allows this prompt";
    Err(Denial::by_kernel(ErrorCode::CapabilityDenied, reason))
}

/// Whether a URI has dot segments, however they are written.
fn walks_up(uri: &str) -> bool {
    let mut plain = uri.to_ascii_lowercase();
    // Some servers decode more than once.
    for _ in 0..3 {
        plain = plain.replace("%25", "%").replace("%2e", ".").replace("%2f", "/");
        plain = plain.replace("%5c", "/").replace('\\', "/");
    }
    plain.split(['/', '?', '#']).any(|segment| segment == "." || segment == "..")
}

#[cfg(test)]
mod tests {
    use chio_core::capability::{PromptGrant, ResourceGrant};
    use serde_json::json;

    use super::*;

    fn scope() -> ChioScope {
        let resource = |uri: &str, operations: &[Operation]| ResourceGrant {
            uri_pattern: uri.to_owned(),
            operations: operations.to_vec(),
        };
        let prompt =
            PromptGrant { prompt_name: "greet*".to_owned(), operations: vec![Operation::Get] };
        ChioScope {
            resource_grants: vec![
                resource("file:///project/*", &[Operation::Read]),
                resource("test://watched", &[Operation::Read, Operation::Subscribe]),
            ],
            prompt_grants: vec![prompt],
            ..ChioScope::default()
        }
    }

    #[test]
    fn a_read_needs_a_grant_for_exactly_that() {
        use ErrorCode::{CapabilityDenied, InvalidRequestShape};
        use ReadKind::{Completion, Prompt, Resource, Subscribe, Unsubscribe};
        let cases = [
            (Resource, json!({"uri": "file:///project/a.txt"}), None),
            (Resource, json!({"uri": "file:///etc/passwd"}), Some(CapabilityDenied)),
            (Resource, json!({"uri": "file:///project/../etc/passwd"}), Some(InvalidRequestShape)),
            (Resource, json!({"uri": "file:///project/%2E%2e/etc"}), Some(InvalidRequestShape)),
            (Resource, json!({"uri": "file:///project/%252e%252e/etc"}), Some(InvalidRequestShape)),
            (Resource, json!({"uri": "file:///project/..%5cetc"}), Some(InvalidRequestShape)),
            (Resource, json!({"uri": "file:///project/..?x"}), Some(InvalidRequestShape)),
            (Resource, json!({"uri": "file:///project/.\t./etc"}), Some(InvalidRequestShape)),
            (Resource, json!({"uri": " file:///project/a"}), Some(InvalidRequestShape)),
            (Resource, json!({"uri": "file:///project/a..b/c.d"}), None),
            (Resource, json!({}), Some(InvalidRequestShape)),
            (Subscribe, json!({"uri": "file:///project/a.txt"}), Some(CapabilityDenied)),
            (Subscribe, json!({"uri": "test://watched"}), None),
            (Unsubscribe, json!({"uri": "test://watched"}), None),
            (Prompt, json!({"name": "greeting"}), None),
            (Prompt, json!({"name": "other"}), Some(CapabilityDenied)),
            (Prompt, json!({"name": 7}), Some(InvalidRequestShape)),
            (Completion, json!({"ref": {"type": "ref/prompt", "name": "greet"}}), None),
            (
                Completion,
                json!({"ref": {"type": "ref/prompt", "name": "x"}}),
                Some(CapabilityDenied),
            ),
            (
                Completion,
                json!({"ref": {"type": "ref/resource", "uri": "file:///project/{name}"}}),
                None,
            ),
            (Completion, json!({"ref": {"type": "ref/tool"}}), Some(InvalidRequestShape)),
            (Completion, json!({}), Some(InvalidRequestShape)),
        ];
        for (kind, params, expected) in cases {
            let found = look_up(kind, &params, &scope()).err().map(|denial| denial.code);
            assert_eq!(found, expected, "{kind:?} {params}");
        }
    }
}
