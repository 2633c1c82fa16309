//! Keys of authorization servers (RFC 7517), and what they have signed.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chio_core::strict::{self, StrictError};
use serde::Deserialize;
use serde_json::Value;

use super::error::JwtError;

/// The most keys of a set that are read.
const MAX_KEYS: usize = 64;

/// Bytes of an RSA modulus: 2048 to 8192 bits.
const RSA_BYTES: std::ops::RangeInclusive<usize> = 256..=1024;

/// An algorithm that tokens may be signed with. All are asymmetric: a verifier cannot issue tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Ed25519.
    EdDsa,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384.
    Es384,
    /// RSA PKCS #1 v1.5 with SHA-256.
    Rs256,
    /// RSA PSS with SHA-256.
    Ps256,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::EdDsa, Self::Es256, Self::Es384, Self::Rs256, Self::Ps256];

    /// The name in tokens and keys.
    pub const fn name(self) -> &'static str {
        match self {
            Self::EdDsa => "EdDSA",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::Rs256 => "RS256",
            Self::Ps256 => "PS256",
        }
    }
}

/// The keys of an authorization server that can be used here. Keys of other kinds, for other uses or
/// malformed are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "WireSet")]
pub struct JwkSet(Vec<Jwk>);

/// A public key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Jwk {
    id: Option<String>,
    algorithm: Option<String>,
    material: Material,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Material {
    Ed25519(Vec<u8>),
    P256(Vec<u8>),
    P384(Vec<u8>),
    Rsa { n: Vec<u8>, e: Vec<u8> },
}

/// A key on the wire.
#[derive(Deserialize)]
struct WireKey {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    x: Option<String>,
    y: Option<String>,
    n: Option<String>,
    e: Option<String>,
    d: Option<Value>,
}

/// A set of keys on the wire.
#[derive(Deserialize)]
struct WireSet {
    keys: Vec<Value>,
}

impl From<WireSet> for JwkSet {
    fn from(set: WireSet) -> Self {
        let keys = set.keys.into_iter().take(MAX_KEYS);
        Self(keys.filter_map(|key| Jwk::read(key).ok()?).collect())
    }
}

/// The key that the header of a token names.
#[derive(Clone, Copy)]
pub(super) struct KeyQuery<'a> {
    pub(super) id: Option<&'a str>,
    pub(super) algorithm: Algorithm,
}

impl JwkSet {
    /// Reads a set from untrusted text.
    ///
    /// # Errors
    /// When the text is not a set.
    pub fn from_slice(text: &[u8]) -> Result<Self, StrictError> {
        strict::object_from_slice(text)
    }

    /// The one key that a token names. Without an id, there may be only one that fits.
    pub(super) fn find(&self, wanted: KeyQuery<'_>) -> Result<&Jwk, JwtError> {
        let named = |key: &&Jwk| wanted.id.is_none() || key.id.as_deref() == wanted.id;
        let mut fitting = self.0.iter().filter(named).filter(|key| key.fits(wanted.algorithm));
        match (fitting.next(), fitting.next()) {
            (None, _) => Err(JwtError::UnknownKey),
            (Some(key), None) => Ok(key),
            (Some(_), Some(_)) => Err(JwtError::AmbiguousKey),
        }
    }
}

impl Jwk {
    /// Reads a key; none when it is not one to check signatures with.
    fn read(key: Value) -> Result<Option<Self>, StrictError> {
        let key: WireKey = strict::from_value(key)?;
        let for_signatures = key.usage.as_deref().is_none_or(|usage| usage == "sig")
            && key.key_ops.as_ref().is_none_or(|ops| ops.iter().any(|op| op == "verify"));
        // SECURITY: a private key that was published is no longer private.
        if !for_signatures || key.d.is_some() {
            return Ok(None);
        }
        let material = key.material();
        Ok(material.map(|material| Self { id: key.kid, algorithm: key.alg, material }))
    }

    fn fits(&self, algorithm: Algorithm) -> bool {
        let right_kind = matches!(
            (&self.material, algorithm),
            (Material::Ed25519(_), Algorithm::EdDsa)
                | (Material::P256(_), Algorithm::Es256)
                | (Material::P384(_), Algorithm::Es384)
                | (Material::Rsa { .. }, Algorithm::Rs256 | Algorithm::Ps256)
        );
        right_kind && self.algorithm.as_deref().is_none_or(|own| own == algorithm.name())
    }

    /// Whether the key has signed the message with this algorithm.
    pub(super) fn has_signed(
        &self,
        algorithm: Algorithm,
        message: &[u8],
        signature: &[u8],
    ) -> bool {
        let plain = |scheme: &'static dyn VerificationAlgorithm, key: &[u8]| {
            UnparsedPublicKey::new(scheme, key).verify(message, signature).is_ok()
        };
        match (&self.material, algorithm) {
            (Material::Ed25519(key), Algorithm::EdDsa) => plain(&ED25519, key),
            (Material::P256(key), Algorithm::Es256) => plain(&ECDSA_P256_SHA256_FIXED, key),
            (Material::P384(key), Algorithm::Es384) => plain(&ECDSA_P384_SHA384_FIXED, key),
            (Material::Rsa { n, e }, Algorithm::Rs256) => RsaPublicKeyComponents { n, e }
                .verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
                .is_ok(),
            (Material::Rsa { n, e }, Algorithm::Ps256) => RsaPublicKeyComponents { n, e }
                .verify(&RSA_PSS_2048_8192_SHA256, message, signature)
                .is_ok(),
            _ => false,
        }
    }
}

impl WireKey {
    fn material(&self) -> Option<Material> {
        match (self.kty.as_str(), self.crv.as_deref()) {
            ("OKP", Some("Ed25519")) => Some(Material::Ed25519(number(&self.x, 32)?)),
            ("EC", Some("P-256")) => Some(Material::P256(self.point(32)?)),
            ("EC", Some("P-384")) => Some(Material::P384(self.point(48)?)),
            ("RSA", _) => {
                let (n, e) = (bytes(&self.n)?, bytes(&self.e)?);
                let trim = |number: Vec<u8>| -> Vec<u8> {
                    number.into_iter().skip_while(|byte| *byte == 0).collect()
                };
                let (n, e) = (trim(n), trim(e));
                RSA_BYTES.contains(&n.len()).then_some(Material::Rsa { n, e })
            }
            _ => None,
        }
    }

    /// A point of a curve, uncompressed.
    fn point(&self, size: usize) -> Option<Vec<u8>> {
        let (x, y) = (number(&self.x, size)?, number(&self.y, size)?);
        Some([vec![4], x, y].concat())
    }
}

fn bytes(text: &Option<String>) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text.as_deref()?).ok()
}

fn number(text: &Option<String>, size: usize) -> Option<Vec<u8>> {
    bytes(text).filter(|bytes| bytes.len() == size)
}

#[cfg(test)]
mod tests {
    use super::{Algorithm, Engine, JwkSet, JwtError, KeyQuery, URL_SAFE_NO_PAD};

    /// The example keys of RFC 8037 A.2, RFC 7515 A.3 and RFC 7515 A.2, and what they have signed.
    const EXAMPLES: [(Algorithm, &str, &str); 3] = [
        (
            Algorithm::EdDsa,
            r#"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#,
            "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-09PG\
             cvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg",
        ),
        (
            Algorithm::Es256,
            r#"{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}"#,
            "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxl\
             LmNvbS9pc19yb290Ijp0cnVlfQ.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISl\
             SApmWQxfKTUJqPP3-Kg6NU1Q",
        ),
        (
            Algorithm::Rs256,
            r#"{"kty":"RSA","e":"AQAB","n":"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"}"#,
            "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxl\
             LmNvbS9pc19yb290Ijp0cnVlfQ.cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZm\
             h7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTy\
             WzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZ\
             ESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypG\
             lUPQGe77Rw",
        ),
    ];

    fn set(keys: &[&str]) -> JwkSet {
        JwkSet::from_slice(format!("{{\"keys\":[{}]}}", keys.join(",")).as_bytes()).unwrap()
    }

    #[test]
    fn the_examples_of_the_standards_verify_and_changed_ones_do_not() {
        for (algorithm, key, token) in EXAMPLES {
            let (message, signature) = token.rsplit_once('.').unwrap();
            let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
            let set = set(&[key]);
            let key = set.find(KeyQuery { id: None, algorithm }).unwrap();
            assert!(key.has_signed(algorithm, message.as_bytes(), &signature), "{algorithm:?}");
            assert!(!key.has_signed(algorithm, b"other", &signature), "{algorithm:?}");
            for at in 0..signature.len() {
                let mut changed = signature.clone();
                changed[at] ^= 1;
                assert!(!key.has_signed(algorithm, message.as_bytes(), &changed), "{algorithm:?}");
            }
            assert!(!key.has_signed(algorithm, message.as_bytes(), &[]), "{algorithm:?}");
            for other in Algorithm::ALL.into_iter().filter(|other| *other != algorithm) {
                assert!(!key.has_signed(other, message.as_bytes(), &signature), "{other:?}");
            }
        }
    }

    #[test]
    fn keys_that_are_not_for_this_are_left_out_and_the_others_stay() {
        let good = EXAMPLES[0].1;
        let with = |member: &str| good.replace("{", &format!("{{{member},"));
        for other in [
            with(r#""use":"enc""#),
            with(r#""key_ops":["sign"]"#),
            with(r#""d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A""#),
            good.replace("Ed25519", "Ed448"),
            good.replace("OKP", "oct"),
            good.replace("11qY", "11q"),
            good.replace("11qY", "11q="),
            good.replace(r#""x":"#, r#""X":"#),
            r#"{"kty":"oct","k":"AAAA"}"#.to_owned(),
            r#"{"kty":"RSA","n":"AQAB","e":"AQAB"}"#.to_owned(),
            r#"{"kty":7}"#.to_owned(),
            "7".to_owned(),
        ] {
            assert_eq!(set(&[&other, good]), set(&[good]), "{other}");
        }
        for same in [with(r#""use":"sig""#), with(r#""key_ops":["verify"]"#), with(r#""zip":1"#)] {
            assert_eq!(set(&[&same]), set(&[good]), "{same}");
        }
    }

    #[test]
    fn a_key_is_found_by_name_and_algorithm() {
        let (ed, ec, rsa) = (EXAMPLES[0].1, EXAMPLES[1].1, EXAMPLES[2].1);
        let named = |key: &str, rest: &str| key.replace("{", &format!("{{{rest},"));
        let a = named(ed, r#""kid":"a""#);
        let b = named(ed, r#""kid":"b","alg":"EdDSA""#);
        let c = named(rsa, r#""kid":"c","alg":"PS256""#);
        let set = set(&[&a, &b, &c, ec]);
        for (id, algorithm, expected) in [
            (Some("a"), Algorithm::EdDsa, 1),
            (Some("b"), Algorithm::EdDsa, 1),
            (None, Algorithm::EdDsa, 2),
            (Some("x"), Algorithm::EdDsa, 0),
            (Some("a"), Algorithm::Es256, 0),
            (Some("c"), Algorithm::Ps256, 1),
            (Some("c"), Algorithm::Rs256, 0),
            (None, Algorithm::Es256, 1),
            (Some(""), Algorithm::Es256, 0),
            (None, Algorithm::Es384, 0),
        ] {
            let found = match set.find(KeyQuery { id, algorithm }) {
                Err(JwtError::UnknownKey) => 0,
                Ok(_) => 1,
                Err(JwtError::AmbiguousKey) => 2,
                Err(error) => panic!("{error}"),
            };
            assert_eq!(found, expected, "{id:?} {algorithm:?}");
        }
    }

    #[test]
    fn what_is_no_set_is_refused() {
        for text in ["", "[]", "{}", r#"{"keys":{}}"#, r#"{"keys":[],"keys":[]}"#] {
            assert!(JwkSet::from_slice(text.as_bytes()).is_err(), "{text}");
        }
        let many = vec![EXAMPLES[0].1; 200];
        assert_eq!(set(&many).0.len(), super::MAX_KEYS);
    }
}
