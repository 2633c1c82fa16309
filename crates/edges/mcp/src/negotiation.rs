//! Which version of the protocol a session speaks: the one that the client asks for, if it is
//! supported, and no other.

use chio_core::registry::ErrorCode;
use chio_edge::SettingError;
use chio_net::jsonrpc::RpcError;
use serde_json::{Map, Value, json};

use crate::error::chio_error;
use crate::version::Version;

/// The setting that names the versions that are spoken.
pub(crate) const VERSIONS: &str = "versions";

/// The versions that sessions are opened with, newest first.
pub const SUPPORTED: [&str; 4] = [
    Version::Nov2025.name(),
    Version::Jun2025.name(),
    Version::Mar2025.name(),
    Version::Nov2024.name(),
];

/// The versions that are spoken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Versions(Vec<Version>);

impl Versions {
    /// Those that an operator names; all when none is named.
    ///
    /// # Errors
    /// When one is not known.
    pub(crate) fn new(named: &[String]) -> Result<Self, SettingError> {
        if named.is_empty() {
            return Ok(Self(Version::ALL.to_vec()));
        }
        let mut versions: Vec<Version> = Vec::new();
        for name in named {
            let Some(version) = name.parse().ok().filter(|it: &Version| it.is_offered()) else {
                let message = format!("expected versions among {}", SUPPORTED.join(", "));
                return Err(SettingError { key: Some(VERSIONS), message });
            };
            versions.push(version);
        }
        versions.sort_unstable_by(|one, other| other.cmp(one));
        versions.dedup();
        Ok(Self(versions))
    }

    /// Those that clients are told of.
    fn offered(&self) -> Vec<&'static str> {
        let offered = self.0.iter().filter(|version| version.is_offered());
        offered.map(|version| version.name()).collect()
    }
}

/// The version that the params of `initialize` ask for.
pub(crate) fn select(
    params: &Map<String, Value>,
    supported: &Versions,
) -> Result<Version, RpcError> {
    let requested = match params.get("protocolVersion") {
        None => Version::ASSUMED.name(),
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
    if let Ok(version) = requested.parse()
        && supported.0.contains(&version)
    {
        return Ok(version);
    }
    // A version is short; whatever is not is no version.
    let shown: String = requested.chars().take(32).collect();
    let offered = supported.offered();
    let message = format!(
        "unsupported protocolVersion: expected one of {}, found `{}`",
        offered.join(", "),
        shown.escape_debug()
    );
    let data = json!({
        "chioError": chio_error(ErrorCode::ProtocolVersionUnsupported),
        "requestedProtocolVersion": shown,
        "supportedProtocolVersions": offered,
        "requested": shown,
        "supported": offered,
    });
    Err(RpcError::new(RpcError::INVALID_REQUEST, message).with_data(data))
}

/// What we tell clients about how the version was chosen.
pub(crate) fn chio_protocol(selected: Version, supported: &Versions) -> Value {
    json!({
        "supportedProtocolVersions": supported.offered(),
        "selectedProtocolVersion": selected.name(),
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

    fn named(versions: &[&str]) -> Result<Versions, SettingError> {
        let versions: Vec<String> = versions.iter().map(|&version| version.to_owned()).collect();
        Versions::new(&versions)
    }

    fn params(version: Value) -> Map<String, Value> {
        Map::from_iter([("protocolVersion".to_owned(), version)])
    }

    // covers: WIRE-074, WIRE-075
    #[test]
    fn a_supported_version_is_taken_as_it_is_and_absence_is_the_assumed_one() {
        let all = named(&[]).unwrap();
        for version in Version::ALL {
            assert_eq!(select(&params(json!(version.name())), &all), Ok(version));
        }
        assert_eq!(select(&Map::new(), &all), Ok(Version::ASSUMED));
        let old = named(&["2024-11-05", "2025-03-26", "2024-11-05"]).unwrap();
        assert_eq!(old.offered(), ["2025-03-26", "2024-11-05"]);
        assert_eq!(select(&params(json!("2025-03-26")), &old), Ok(Version::Mar2025));
        assert!(select(&Map::new(), &old).is_err());
        assert!(select(&params(json!("2026-07-28")), &old).is_err());
    }

    // covers: WIRE-077, WIRE-080
    #[test]
    fn any_other_version_is_refused_with_the_registrys_account() {
        let all = named(&[]).unwrap();
        for version in ["2024-11-06", "2025-11-26", "", "2099-01-01", "2025-11-25 "] {
            let error = select(&params(json!(version)), &all).unwrap_err();
            assert_eq!(error.code, -32600);
            let data = error.data.unwrap();
            assert_eq!(data["chioError"]["code"], 1000);
            assert_eq!(data["chioError"]["name"], "protocol_version_unsupported");
            assert_eq!(data["supportedProtocolVersions"], json!(SUPPORTED));
            assert_eq!(data["requestedProtocolVersion"], version);
        }
        let error = select(&params(json!(7)), &all).unwrap_err();
        let data = error.data.unwrap();
        assert_eq!(
            (&data["chioError"]["code"], &data["parameter"]),
            (&json!(1002), &json!("protocolVersion"))
        );
    }

    #[test]
    fn an_operator_names_versions_that_are_known() {
        for wrong in [&["2025-06-17"][..], &["2025-06-18", ""], &["latest"]] {
            let error = named(wrong).unwrap_err();
            assert_eq!(error.key, Some(VERSIONS));
            assert!(error.message.ends_with("2024-11-05"), "{error}");
        }
    }

    // covers: WIRE-073, WIRE-076
    #[test]
    fn the_published_rules_say_what_the_code_says() {
        let text = include_str!("../../../../spec/versions/chio-protocol-negotiation.v1.json");
        let published: Value = serde_json::from_str(text).unwrap();
        let hosted = &published["hostedMcp"];
        assert_eq!(hosted["supportedVersions"], json!(SUPPORTED));
        assert_eq!(named(&[]).unwrap().offered(), SUPPORTED);
        assert_eq!(hosted["onMismatch"]["jsonrpcCode"], RpcError::INVALID_REQUEST);
        let code = ErrorCode::ProtocolVersionUnsupported.number();
        assert_eq!(hosted["onMismatch"]["chioErrorCode"], code);
    }
}
