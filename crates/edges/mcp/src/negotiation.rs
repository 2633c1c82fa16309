//! Which version of the protocol a session speaks: the one that the client asks for, if it is
//! supported, and no other.

use chio_core::registry::ErrorCode;
use chio_net::jsonrpc::RpcError;
use serde_json::{Map, Value, json};

use crate::error::chio_error;

/// The versions that are supported unless an operator says otherwise.
pub const SUPPORTED: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// The version of a client that asks for none.
const ASSUMED: &str = "2025-11-25";
/// From this version on streams begin with a number to go on from.
const FIRST_WITH_PRIMING: &str = "2025-11-25";
/// From this version on results say what they are.
const FIRST_WITH_RESULT_TYPE: &str = "2026-07-28";

/// The version that the params of `initialize` ask for.
pub(crate) fn select(
    params: &Map<String, Value>,
    supported: &[String],
) -> Result<String, RpcError> {
    let requested = match params.get("protocolVersion") {
        None => ASSUMED,
        Some(Value::String(version)) => version,
        Some(_) => {
            let message = "expected `protocolVersion` to be a string";
            let data = json!({
                "chioError": chio_error(ErrorCode::InvalidRequestShape),
                "parameter": "protocolVersion",
            });
            return Err(RpcError::new(RpcError::INVALID_REQUEST, message).with_data(data));
        }
    };
    if supported.iter().any(|version| version == requested) {
        return Ok(requested.to_owned());
    }
    // A version is short; whatever is not is no version.
    let shown: String = requested.chars().take(32).collect();
    let message = format!(
        "unsupported protocolVersion: expected one of {}, found `{}`",
        supported.join(", "),
        shown.escape_debug()
    );
    let data = json!({
        "chioError": chio_error(ErrorCode::ProtocolVersionUnsupported),
        "requestedProtocolVersion": shown,
        "supportedProtocolVersions": supported,
        "requested": shown,
        "supported": supported,
    });
    Err(RpcError::new(RpcError::INVALID_REQUEST, message).with_data(data))
}

/// Whether streams of this version begin with a number to go on from. Versions are dates.
pub(crate) fn primes(version: &str) -> bool {
    version >= FIRST_WITH_PRIMING
}

/// Whether results of this version say what they are.
pub(crate) fn types_results(version: &str) -> bool {
    version >= FIRST_WITH_RESULT_TYPE
}

/// What we tell clients about how the version was chosen.
pub(crate) fn chio_protocol(selected: &str, supported: &[String]) -> Value {
    json!({
        "supportedProtocolVersions": supported,
        "selectedProtocolVersion": selected,
        "compatibility": "exact_match",
        "downgradeBehavior": "reject",
        "errorRegistry": {
            "schema": "chio.error-registry.v1",
            "path": "spec/errors/chio-error-registry.v1.json",
        },
        "requestIdentity": {
            "stableRequestIdMetaField": "chioRequestId",
            "requestBoundArtifactsRequireStableId": true,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn supported() -> Vec<String> {
        SUPPORTED.map(str::to_owned).to_vec()
    }

    fn params(version: Value) -> Map<String, Value> {
        Map::from_iter([("protocolVersion".to_owned(), version)])
    }

    // covers: WIRE-074, WIRE-075
    #[test]
    fn a_supported_version_is_taken_as_it_is_and_absence_is_the_assumed_one() {
        for version in SUPPORTED {
            assert_eq!(select(&params(json!(version)), &supported()).unwrap(), version);
        }
        assert_eq!(select(&Map::new(), &supported()).unwrap(), ASSUMED);
    }

    // covers: WIRE-077, WIRE-080
    #[test]
    fn any_other_version_is_refused_with_the_registrys_account() {
        for version in ["2024-11-05", "2025-11-26", "", "2099-01-01", "2025-11-25 "] {
            let error = select(&params(json!(version)), &supported()).unwrap_err();
            assert_eq!(error.code, -32600);
            let data = error.data.unwrap();
            assert_eq!(data["chioError"]["code"], 1000);
            assert_eq!(data["chioError"]["name"], "protocol_version_unsupported");
            assert_eq!(data["supportedProtocolVersions"], json!(SUPPORTED));
            assert_eq!(data["requestedProtocolVersion"], version);
        }
        let error = select(&params(json!(7)), &supported()).unwrap_err();
        let data = error.data.unwrap();
        assert_eq!(
            (&data["chioError"]["code"], &data["parameter"]),
            (&json!(1002), &json!("protocolVersion"))
        );
    }

    // covers: WIRE-073, WIRE-076
    #[test]
    fn the_published_rules_say_what_the_code_says() {
        let text = include_str!("../../../../spec/versions/chio-protocol-negotiation.v1.json");
        let published: Value = serde_json::from_str(text).unwrap();
        let hosted = &published["hostedMcp"];
        assert_eq!(hosted["supportedVersions"], json!(SUPPORTED));
        assert_eq!(hosted["onMismatch"]["jsonrpcCode"], RpcError::INVALID_REQUEST);
        let code = ErrorCode::ProtocolVersionUnsupported.number();
        assert_eq!(hosted["onMismatch"]["chioErrorCode"], code);
    }

    #[test]
    fn versions_say_what_they_have() {
        let has = |version| (primes(version), types_results(version));
        assert_eq!(has("2025-06-18"), (false, false));
        assert_eq!(has("2025-11-25"), (true, false));
        assert_eq!(has("2026-07-28"), (true, true));
    }
}
