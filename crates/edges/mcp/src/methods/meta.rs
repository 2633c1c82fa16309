//! What a client adds to its requests for the server: `_meta`, but for what is for us or for this hop.

use chio_core::canonical::size;
use chio_net::jsonrpc::RpcError;
use serde_json::{Map, Value};

use super::call::LAYOUT;
use crate::error::invalid_params;

/// The most bytes that go on to the server.
const MAX_BYTES: usize = 16 << 10;
/// The deepest nesting that goes on to the server.
const MAX_DEPTH: usize = 16;
/// What the names of the protocol's own members begin with: they are about this hop.
const PROTOCOL: &str = "io.modelcontextprotocol/";

/// Takes `_meta` out of the params of a request; what of it is for the server.
pub(crate) fn take_meta(params: &mut Map<String, Value>) -> Result<Option<Value>, RpcError> {
    let Some(Value::Object(mut meta)) = params.remove("_meta") else { return Ok(None) };
    meta.retain(|name, _| is_for_server(name));
    if meta.is_empty() {
        return Ok(None);
    }
    let meta = Value::Object(meta);
    if !size(&meta).is_ok_and(|size| size.bytes <= MAX_BYTES && size.depth <= MAX_DEPTH) {
        let message = format!(
            "expected at most {MAX_BYTES} bytes and {MAX_DEPTH} levels in `_meta` for the server"
        );
        return Err(invalid_params(message));
    }
    Ok(Some(meta))
}

fn is_for_server(name: &str) -> bool {
    name != "progressToken"
        && !name.starts_with("chio")
        && !name.starts_with(PROTOCOL)
        && !LAYOUT.members.iter().chain(LAYOUT.unsupported).any(|(own, _)| *own == name)
}

#[cfg(test)]
mod tests {
    use chio_core::text::members;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_ours_goes_on_within_bounds() {
        let nested = (0..MAX_DEPTH).fold(json!(1), |inner, _| json!([inner]));
        for (meta, expected) in [
            (
                json!({"traceparent": "00-1", "acme/id": [7]}),
                Some(Some(json!({"traceparent": "00-1", "acme/id": [7]}))),
            ),
            (
                json!({"progressToken": 1, "chio": {}, "chioRequestId": "r", "modelMetadata": {},
                    "executionNonce": 1, "io.modelcontextprotocol/related-task": {}, "a": 1}),
                Some(Some(json!({"a": 1}))),
            ),
            (json!({"progressToken": 1}), Some(None)),
            (json!({}), Some(None)),
            (json!(7), Some(None)),
            (json!({"a": "x".repeat(MAX_BYTES)}), None),
            (json!({"a": nested}), None),
        ] {
            let mut params = members(json!({"name": "t", "_meta": meta}));
            assert_eq!(take_meta(&mut params).ok(), expected, "{meta}");
            assert_eq!(params, members(json!({"name": "t"})));
        }
        assert_eq!(take_meta(&mut Map::new()).unwrap(), None);
    }
}
