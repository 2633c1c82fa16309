//! The text forms of keys and signatures, and the same verdicts as another implementation.

use ed25519_dalek::{Signer, SigningKey, Verifier, VerifyingKey};
use serde_json::json;

use super::*;

fn key(seed: u8) -> Keypair {
    Keypair::from_seed(&[seed; SEED_LEN])
}

/// Hex of this many bytes, of both kinds of digits.
fn hex(len: usize) -> String {
    "5a".repeat(len)
}

fn p256_key() -> String {
    format!("p256:04{}", hex(64))
}

fn p384_key() -> String {
    format!("p384:04{}", hex(96))
}

fn p256_signature() -> String {
    format!("p256:3045{}", hex(69))
}

fn p384_signature() -> String {
    format!("p384:3064{}", hex(100))
}

fn hybrid(classical: &str, post_quantum: usize, set: &str) -> String {
    format!("hybrid:{classical}:{}:{set}+mldsa65", hex(post_quantum))
}

fn hybrid_keys() -> [String; 3] {
    [
        hybrid(&hex(32), 1952, "ed25519"),
        hybrid(&p256_key(), 1952, "p256"),
        hybrid(&p384_key(), 1952, "p384"),
    ]
}

fn hybrid_signatures() -> [String; 3] {
    [
        hybrid(&hex(64), 3309, "ed25519"),
        hybrid(&p256_signature(), 3309, "p256"),
        hybrid(&p384_signature(), 3309, "p384"),
    ]
}

#[track_caller]
fn check_key(text: &str, expected: Option<(Algorithm, &str)>) {
    let read = PublicKey::from_hex(text).ok();
    let shown = read.as_ref().map(|key| (key.algorithm(), key.to_hex()));
    assert_eq!(shown.as_ref().map(|(a, text)| (*a, text.as_str())), expected, "{text}");
    assert_eq!(text.parse::<PublicKey>().ok(), read);
    assert_eq!(serde_json::from_value::<PublicKey>(json!(text)).ok(), read);
    if let Some(read) = read {
        assert_eq!(serde_json::to_value(&read).unwrap(), json!(read.to_hex()));
        assert_eq!(PublicKey::from_hex(&read.to_hex()), Ok(read.clone()), "the form is stable");
        assert_eq!(format!("{read}"), read.to_hex());
        assert_eq!(format!("{read:?}"), format!("PublicKey({read})"));
    }
}

#[track_caller]
fn check_signature(text: &str, expected: Option<(Algorithm, &str)>) {
    let read = Signature::from_hex(text).ok();
    let shown = read.as_ref().map(|signature| (signature.algorithm(), signature.to_hex()));
    assert_eq!(shown.as_ref().map(|(a, text)| (*a, text.as_str())), expected, "{text}");
    assert_eq!(text.parse::<Signature>().ok(), read);
    assert_eq!(serde_json::from_value::<Signature>(json!(text)).ok(), read);
    if let Some(read) = read {
        assert_eq!(serde_json::to_value(&read).unwrap(), json!(read.to_hex()));
        assert_eq!(Signature::from_hex(&read.to_hex()), Ok(read), "the form is stable");
    }
}

#[test]
fn ed25519_keys_and_signatures_are_bare_hex_and_read_in_any_case() {
    for (read, len) in
        [(check_key as fn(&str, Option<(Algorithm, &str)>), 32), (check_signature, 64)]
    {
        let normal = "0123456789abcdef".repeat(len / 8);
        let expected = Some((Algorithm::Ed25519, normal.as_str()));
        read(&normal, expected);
        read(&normal.to_uppercase(), expected);
        read(&format!("0x{normal}"), expected);
        read(&format!("0x{}", normal.to_uppercase()), expected);
        for refused in [
            String::new(),
            "0x".to_owned(),
            hex(len - 1),
            hex(len + 1),
            format!("{}5", hex(len - 1)),
            format!("{normal}0"),
            format!("0x0x{normal}"),
            format!(" {normal}"),
            format!("{normal}\n"),
            format!("ed25519:{normal}"),
            format!("{}zz", hex(len - 1)),
            format!("{}é", hex(len - 1)),
            format!("did:chio:{normal}"),
        ] {
            read(&refused, None);
        }
    }
    check_key(&hex(64), None);
    check_signature(&hex(32), None);
}

#[test]
fn keys_of_other_algorithms_are_read_and_written() {
    for (text, algorithm) in [(p256_key(), Algorithm::P256), (p384_key(), Algorithm::P384)]
        .into_iter()
        .chain(hybrid_keys().map(|text| (text, Algorithm::Hybrid)))
    {
        check_key(&text, Some((algorithm, &text)));
        assert_eq!(PublicKey::from_hex(&text).unwrap().as_ed25519(), None);
    }
    let expected = p256_key();
    let upper = format!("p256:0x04{}", hex(64).to_uppercase());
    check_key(&upper, Some((Algorithm::P256, &expected)));
    let [_, expected, _] = hybrid_keys();
    let upper = format!("hybrid:{upper}:0x{}:p256+mldsa65", hex(1952).to_uppercase());
    check_key(&upper, Some((Algorithm::Hybrid, &expected)));
    for refused in [
        format!("p256:04{}", hex(63)),
        format!("p256:04{}", hex(65)),
        format!("p256:02{}", hex(32)),
        format!("p256:03{}", hex(64)),
        format!("p384:04{}", hex(64)),
        format!("p384:06{}", hex(96)),
        format!("P256:04{}", hex(64)),
        format!("0xp256:04{}", hex(64)),
        "p256:".to_owned(),
        "p384:".to_owned(),
        format!("p521:04{}", hex(132)),
        p256_signature(),
    ] {
        check_key(&refused, None);
    }
}

#[test]
fn signatures_of_other_algorithms_are_read_and_written() {
    for (text, algorithm) in
        [(p256_signature(), Algorithm::P256), (p384_signature(), Algorithm::P384)]
            .into_iter()
            .chain(hybrid_signatures().map(|text| (text, Algorithm::Hybrid)))
    {
        check_signature(&text, Some((algorithm, &text)));
        assert_eq!(Signature::from_hex(&text).unwrap().as_ed25519(), None);
    }
    for (prefix, most) in [("p256", 72), ("p384", 104)] {
        for (len, accepted) in [(7, false), (8, true), (most, true), (most + 1, false)] {
            let text = format!("{prefix}:30{}", hex(len - 1));
            assert_eq!(Signature::from_hex(&text).is_ok(), accepted, "{prefix} of {len} bytes");
        }
        check_signature(&format!("{prefix}:31{}", hex(70)), None);
        check_signature(&format!("{prefix}:"), None);
    }
    check_signature(&p256_key(), None);
}

#[test]
fn the_parts_of_a_hybrid_fit_its_set() {
    let ed = hex(32);
    for refused in [
        hybrid(&ed, 1952, "p256"),
        hybrid(&p256_key(), 1952, "ed25519"),
        hybrid(&p256_key(), 1952, "p384"),
        hybrid(&p384_key(), 1952, "p256"),
        hybrid(&ed, 1951, "ed25519"),
        hybrid(&ed, 1953, "ed25519"),
        hybrid(&ed, 3309, "ed25519"),
        hybrid(&hex(64), 1952, "ed25519"),
        hybrid(&ed, 1952, "ed25519").replace("mldsa65", "mldsa44"),
        hybrid(&ed, 1952, "ED25519"),
        format!("hybrid:{ed}:{}", hex(1952)),
        format!("hybrid:{ed}"),
        "hybrid:".to_owned(),
        "hybrid:::ed25519+mldsa65".to_owned(),
    ] {
        check_key(&refused, None);
    }
    // A hybrid of a hybrid is none.
    for inner in hybrid_keys() {
        for set in ["ed25519", "p256", "p384"] {
            check_key(&hybrid(&inner, 1952, set), None);
        }
    }
}

#[test]
fn keys_and_signatures_are_strings_in_json() {
    for value in [json!(1), json!(null), json!([]), json!({}), json!([1, 2]), json!(true)] {
        assert!(serde_json::from_value::<PublicKey>(value.clone()).is_err(), "{value}");
        assert!(serde_json::from_value::<Signature>(value.clone()).is_err(), "{value}");
    }
    let escaped = format!("\"\\u0030{}\"", "0".repeat(63));
    let read: PublicKey = serde_json::from_str(&escaped).unwrap();
    assert_eq!(read.to_hex(), "0".repeat(64));
}

#[test]
fn errors_of_form_do_not_repeat_the_text() {
    let expected = "expected a public key (64 hex digits, or `p256:`, `p384:` or `hybrid:` and \
                    their form), found 7 characters that are not";
    assert_eq!(PublicKey::from_hex("hunter2").unwrap_err().to_string(), expected);
    let expected = "expected a signature (128 hex digits, or `p256:`, `p384:` or `hybrid:` and \
                    their form), found 7 characters that are not";
    assert_eq!(Signature::from_hex("hunter2").unwrap_err().to_string(), expected);
    let error = Keypair::from_seed_hex("hunter2").unwrap_err();
    let expected = "expected a seed of 64 hex digits, found 7 characters that are not";
    assert_eq!(error.to_string(), expected);
    assert!(!format!("{error:?}").contains("hunter2"));
}

#[test]
fn signatures_that_we_cannot_verify_are_unsupported() {
    let key = |text: &str| PublicKey::from_hex(text).unwrap();
    let signature = |text: &str| Signature::from_hex(text).unwrap();
    let mut pairs = vec![
        (p256_key(), p256_signature(), Algorithm::P256),
        (p384_key(), p384_signature(), Algorithm::P384),
    ];
    for (key, signature) in hybrid_keys().into_iter().zip(hybrid_signatures()) {
        pairs.push((key, signature, Algorithm::Hybrid));
    }
    for (key_text, signature_text, algorithm) in pairs {
        let (key, signature) = (key(&key_text), signature(&signature_text));
        let outcome = key.check(b"message", &signature);
        assert_eq!(outcome, Err(SignatureError::Unsupported(algorithm)));
        assert!(key.check(b"message", &signature).is_err(), "and do not hold");
    }
}

#[test]
fn a_signature_of_another_algorithm_than_the_key_does_not_hold() {
    let keys = [hex(32), p256_key(), p384_key(), hybrid_keys()[0].clone()];
    let signatures = [hex(64), p256_signature(), p384_signature(), hybrid_signatures()[0].clone()];
    for (i, key) in keys.iter().enumerate() {
        for (j, signature) in signatures.iter().enumerate() {
            let key = PublicKey::from_hex(key).unwrap();
            let signature = Signature::from_hex(signature).unwrap();
            let outcome = key.check(b"", &signature);
            let (key, given) = (key.algorithm(), signature.algorithm());
            let mismatch = Err(SignatureError::Mismatch { key, signature: given });
            assert_eq!(outcome == mismatch, i != j, "{key:?} and {given:?}: {outcome:?}");
            assert!(outcome.is_err());
        }
    }
}

#[test]
fn algorithms_have_the_names_of_algorithm_members() {
    for (algorithm, name, is_default) in [
        (Algorithm::Ed25519, "ed25519", true),
        (Algorithm::P256, "p256", false),
        (Algorithm::P384, "p384", false),
        (Algorithm::Hybrid, "hybrid", false),
    ] {
        assert_eq!(algorithm.name(), name);
        assert_eq!(serde_json::to_value(algorithm).unwrap(), json!(name));
        assert_eq!(serde_json::from_value::<Algorithm>(json!(name)).unwrap(), algorithm);
        assert_eq!(Algorithm::is_default(&Some(algorithm)), is_default);
    }
    assert!(Algorithm::is_default(&None));
    for other in ["Ed25519", "ED25519", "rsa", ""] {
        assert!(serde_json::from_value::<Algorithm>(json!(other)).is_err(), "{other}");
    }
}

#[test]
fn a_seed_is_read_from_hex_and_given_back_only_when_asked_for() {
    let seed = "0f".repeat(SEED_LEN);
    for text in [seed.clone(), seed.to_uppercase(), format!("0x{seed}")] {
        let read = Keypair::from_seed_hex(&text).unwrap();
        assert_eq!(*read.seed_hex(), seed);
        assert_eq!(read.public_key(), key(0x0f).public_key());
    }
    for refused in [
        "",
        "0x",
        "0f",
        seed.strip_prefix("0f").unwrap(),
        &format!("{seed}0f"),
        &format!(" {seed}"),
    ] {
        assert!(Keypair::from_seed_hex(refused).is_err(), "{refused}");
    }
}

#[test]
fn printing_a_key_pair_shows_its_public_half_only() {
    let key = key(0x5e);
    let seed = key.seed_hex();
    for shown in [format!("{key:?}"), format!("{key:#?}")] {
        assert!(shown.contains(&key.public_key().to_hex()), "{shown}");
        assert!(!shown.contains(seed.as_str()) && !shown.contains("5e5e5e"), "{shown}");
        assert!(!shown.contains("94, 94"), "{shown}");
    }
}

#[test]
fn every_new_key_is_another() {
    let (one, two) = (Keypair::generate(), Keypair::generate());
    assert_ne!(one.public_key(), two.public_key());
    assert_ne!(*one.seed_hex(), *two.seed_hex());
    let again = Keypair::from_seed_hex(&one.seed_hex()).unwrap();
    assert_eq!(again.public_key(), one.public_key());
    assert!(one.public_key().check(b"m", &again.sign(b"m")).is_ok());
    assert!(two.public_key().check(b"m", &one.sign(b"m")).is_err());
}

/// Whether the other implementation accepts, by its ordinary check.
fn accepts(key: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> bool {
    VerifyingKey::from_bytes(key).is_ok_and(|key| {
        key.verify(message, &ed25519_dalek::Signature::from_bytes(signature)).is_ok()
    })
}

/// Both implementations say this.
#[track_caller]
fn agree(key: &[u8; 32], message: &[u8], signature: &[u8; 64], expected: bool) {
    let case = || format!("{} {}", const_hex::encode(key), const_hex::encode(signature));
    let ours = PublicKey::from_ed25519(*key).check(message, &Signature::from_ed25519(*signature));
    assert_eq!(accepts(key, message, signature), expected, "theirs: {}", case());
    assert_eq!(ours, if expected { Ok(()) } else { Err(SignatureError::Invalid) }, "{}", case());
}

/// A seed and a message, both of which depend on `n` alone.
fn case(n: u8) -> ([u8; 32], Vec<u8>) {
    let message: Vec<u8> =
        (0..usize::from(n) * 7 % 200).map(|i| (i as u8).wrapping_mul(n)).collect();
    (crate::hash::sha256(&[n]), message)
}

#[test]
fn we_sign_and_verify_as_another_implementation_does() {
    for n in 0..=255 {
        let (seed, message) = case(n);
        let (ours, theirs) = (Keypair::from_seed(&seed), SigningKey::from_bytes(&seed));
        let public = *ours.public_key().as_ed25519().unwrap();
        assert_eq!(public, theirs.verifying_key().to_bytes());
        let signature = *ours.sign(&message).as_ed25519().unwrap();
        assert_eq!(signature, theirs.sign(&message).to_bytes(), "signing is deterministic");
        agree(&public, &message, &signature, true);
    }
}

#[test]
fn one_bit_flipped_anywhere_is_noticed() {
    let (seed, message) = case(100);
    assert!(message.len() > 50);
    let key = Keypair::from_seed(&seed);
    let public = *key.public_key().as_ed25519().unwrap();
    let signature = *key.sign(&message).as_ed25519().unwrap();
    for bit in 0..512 {
        let mut flipped = signature;
        flipped[bit / 8] ^= 1 << (bit % 8);
        agree(&public, &message, &flipped, false);
    }
    for bit in 0..256 {
        let mut flipped = public;
        flipped[bit / 8] ^= 1 << (bit % 8);
        agree(&flipped, &message, &signature, false);
    }
    for bit in 0..message.len() * 8 {
        let mut flipped = message.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        agree(&public, &flipped, &signature, false);
    }
}

/// The order of the base point, little endian.
const ORDER: [u8; 32] = [
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
];

/// The signature with the order added to its scalar; none when it no longer fits.
fn add_order(signature: &[u8; 64]) -> Option<[u8; 64]> {
    let mut changed = *signature;
    let mut carry = 0_u16;
    for (byte, order) in changed[32..].iter_mut().zip(ORDER) {
        let sum = u16::from(*byte) + u16::from(order) + carry;
        *byte = sum.to_le_bytes()[0];
        carry = sum >> 8;
    }
    (carry == 0).then_some(changed)
}

#[test]
fn a_signature_has_one_form() {
    let mut forms = 0;
    for n in 0..32 {
        let (seed, message) = case(n);
        let key = Keypair::from_seed(&seed);
        let public = *key.public_key().as_ed25519().unwrap();
        let mut signature = *key.sign(&message).as_ed25519().unwrap();
        // S + L, S + 2L and so on solve the same equation.
        while let Some(other) = add_order(&signature) {
            signature = other;
            agree(&public, &message, &signature, false);
            forms += 1;
        }
    }
    assert!(forms > 32 * 10, "{forms}");
    let mut scalar_is_order = [0; 64];
    scalar_is_order[32..].copy_from_slice(&ORDER);
    agree(&[0; 32], b"", &scalar_is_order, false);
}

/// The points of small order, in their one canonical form.
const SMALL_ORDER: [&str; 8] = [
    "0100000000000000000000000000000000000000000000000000000000000000",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "0000000000000000000000000000000000000000000000000000000000000080",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
    "0000000000000000000000000000000000000000000000000000000000000000",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
];

/// Other forms of some of them, which the other implementation reads and ours refuses.
const NOT_CANONICAL: [&str; 6] = [
    "0100000000000000000000000000000000000000000000000000000000000080",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
];

fn point(text: &str) -> [u8; 32] {
    const_hex::decode_to_array(text).unwrap()
}

/// Signatures of these points with scalar zero, over a few messages each.
fn weak_signatures() -> impl Iterator<Item = ([u8; 4], [u8; 64])> {
    SMALL_ORDER.into_iter().chain(NOT_CANONICAL).flat_map(|r| {
        (0..16_u32).map(move |n| {
            let mut signature = [0; 64];
            signature[..32].copy_from_slice(&point(r));
            (n.to_le_bytes(), signature)
        })
    })
}

#[test]
fn keys_of_small_order_are_judged_as_another_implementation_does() {
    let mut accepted = 0;
    for key in SMALL_ORDER.map(point) {
        for (message, signature) in weak_signatures() {
            let expected = accepts(&key, &message, &signature);
            agree(&key, &message, &signature, expected);
            accepted += usize::from(expected);
        }
    }
    // Signing as such a key needs no secret: to trust one is to trust every signer.
    assert!(accepted > 0);
}

#[test]
fn keys_that_are_not_in_canonical_form_verify_nothing() {
    let mut accepted_elsewhere = 0;
    for key in NOT_CANONICAL.map(point) {
        for (message, signature) in weak_signatures() {
            let ours = PublicKey::from_ed25519(key);
            assert!(ours.check(&message, &Signature::from_ed25519(signature)).is_err());
            accepted_elsewhere += usize::from(accepts(&key, &message, &signature));
        }
    }
    assert!(accepted_elsewhere > 0, "the one difference between the two, on the safe side");
}

#[test]
fn a_blank_signature_does_not_hold_for_a_real_key() {
    assert_eq!(Signature::blank().to_hex(), "0".repeat(128));
    for n in 0..=255 {
        let (seed, message) = case(n);
        let public = *Keypair::from_seed(&seed).public_key().as_ed25519().unwrap();
        agree(&public, &message, &[0; 64], false);
        agree(&public, &message, &[0xff; 64], false);
    }
}

#[test]
fn keys_that_are_no_points_verify_nothing() {
    for first in [2_u8, 7, 8] {
        let mut key = [0; 32];
        key[0] = first;
        assert!(VerifyingKey::from_bytes(&key).is_err());
        agree(&key, b"", &[0; 64], false);
    }
    agree(&[0xff; 32], b"", &[0; 64], false);
}

#[test]
fn regression_a_hybrid_inside_a_hybrid_is_refused_at_once() {
    let n = 300_000;
    let text = format!("{}00{}", "hybrid:".repeat(n), "::p256+mldsa65".repeat(n));
    assert!(PublicKey::from_hex(&text).is_err());
    assert!(Signature::from_hex(&text).is_err());
}
