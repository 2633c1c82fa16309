//! Keys of made-up issuers, and tokens that they sign.

use std::sync::LazyLock;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    KeyPair, RSA_PKCS1_SHA256, RSA_PSS_SHA256, RsaKeyPair,
};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chio_net::jwt::{Algorithm, JwkSet};
use serde_json::{Value, json};

/// A key that can sign with one algorithm.
pub(crate) struct Key {
    pub(crate) id: &'static str,
    pub(crate) algorithm: Algorithm,
    secret: Secret,
}

enum Secret {
    Ed(Ed25519KeyPair),
    Ec(EcdsaKeyPair),
    Rsa(&'static RsaKeyPair),
}

/// Made once, because it takes its time.
static RSA: LazyLock<RsaKeyPair> =
    LazyLock::new(|| RsaKeyPair::generate(KeySize::Rsa2048).unwrap());

impl Key {
    pub(crate) fn new(id: &'static str, algorithm: Algorithm) -> Self {
        let ec = |scheme| Secret::Ec(EcdsaKeyPair::generate(scheme).unwrap());
        let secret = match algorithm {
            Algorithm::EdDsa => Secret::Ed(Ed25519KeyPair::generate().unwrap()),
            Algorithm::Es256 => ec(&ECDSA_P256_SHA256_FIXED_SIGNING),
            Algorithm::Es384 => ec(&ECDSA_P384_SHA384_FIXED_SIGNING),
            Algorithm::Rs256 | Algorithm::Ps256 => Secret::Rsa(&RSA),
        };
        Self { id, algorithm, secret }
    }

    pub(crate) fn ed(id: &'static str) -> Self {
        Self::new(id, Algorithm::EdDsa)
    }

    pub(crate) fn jwk(&self) -> Value {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let mut jwk = match &self.secret {
            Secret::Ed(key) => {
                json!({"kty": "OKP", "crv": "Ed25519", "x": text(key.public_key().as_ref())})
            }
            Secret::Ec(key) => {
                let point = key.public_key().as_ref();
                let (x, y) = point[1..].split_at(point.len() / 2);
                let curve = if x.len() == 32 { "P-256" } else { "P-384" };
                json!({"kty": "EC", "crv": curve, "x": text(x), "y": text(y)})
            }
            Secret::Rsa(key) => {
                // SEQUENCE { INTEGER n, INTEGER e } for 2048 bits and 65537.
                let der = key.public_key().as_ref();
                json!({"kty": "RSA", "n": text(&der[9..265]), "e": text(&der[267..])})
            }
        };
        jwk["kid"] = self.id.into();
        jwk
    }

    /// A token with these texts, whatever they are.
    pub(crate) fn sign_text(&self, header: &str, payload: &str) -> String {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let message = format!("{}.{}", text(header.as_bytes()), text(payload.as_bytes()));
        let (random, bytes) = (SystemRandom::new(), message.as_bytes());
        let signature = match &self.secret {
            Secret::Ed(key) => key.sign(bytes).as_ref().to_vec(),
            Secret::Ec(key) => key.sign(&random, bytes).unwrap().as_ref().to_vec(),
            Secret::Rsa(key) => {
                let mut signature = vec![0; key.public_modulus_len()];
                match self.algorithm {
                    Algorithm::Ps256 => key.sign(&RSA_PSS_SHA256, &random, bytes, &mut signature),
                    _ => key.sign(&RSA_PKCS1_SHA256, &random, bytes, &mut signature),
                }
                .unwrap();
                signature
            }
        };
        format!("{message}.{}", text(&signature))
    }

    /// A token with these claims.
    pub(crate) fn sign(&self, payload: &Value) -> String {
        let header = json!({"alg": self.algorithm.name(), "kid": self.id, "typ": "JWT"});
        self.sign_text(&header.to_string(), &payload.to_string())
    }
}

pub(crate) fn set_text(keys: &[&Key]) -> String {
    json!({"keys": keys.iter().map(|key| key.jwk()).collect::<Vec<_>>()}).to_string()
}

pub(crate) fn set(keys: &[&Key]) -> JwkSet {
    JwkSet::from_slice(set_text(keys).as_bytes()).unwrap()
}

pub(crate) const ISSUER: &str = "https://issuer.example";
pub(crate) const AUDIENCE: &str = "https://chio.example/mcp";
pub(crate) const NOW: u64 = 1_800_000_000;

/// The claims of a good token, with some of them changed; `null` takes one away.
pub(crate) fn claims(changes: &Value) -> Value {
    let mut claims = json!({
        "iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "exp": NOW + 300, "iat": NOW, "nbf": NOW,
        "scope": "read write",
    });
    for (name, value) in changes.as_object().unwrap() {
        claims[name] = value.clone();
        if value.is_null() {
            claims.as_object_mut().unwrap().remove(name);
        }
    }
    claims
}
