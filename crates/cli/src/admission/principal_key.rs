//! The key of a principal that has a name and no key of its own.

use chio_core::crypto::{Keypair, PublicKey};
use chio_core::hash::sha256;

/// What the authority signs before the name, so that it signs nothing else with it.
const DOMAIN: &[u8] = b"chio.principal.v1\0";

/// The key of a principal: always the same on a store, and only the authority can derive it,
/// because only it can sign the name.
pub(super) fn derive(authority: &Keypair, name: &str) -> PublicKey {
    let signature = authority.sign(&[DOMAIN, name.as_bytes()].concat());
    // A key of ours is Ed25519, whose signatures are deterministic.
    let bytes = signature.as_ed25519().map_or(&[][..], |bytes| &bytes[..]);
    Keypair::from_seed(&sha256(bytes)).public_key().clone()
}

#[cfg(test)]
mod tests {
    use chio_core::crypto::Keypair;

    use super::derive;

    #[test]
    fn a_principal_has_one_key_on_a_store_and_another_on_another() {
        let (store, other) = (Keypair::from_seed(&[1; 32]), Keypair::from_seed(&[2; 32]));
        assert_eq!(derive(&store, "alice"), derive(&store, "alice"));
        assert_ne!(derive(&store, "alice"), derive(&store, "bob"));
        assert_ne!(derive(&store, "alice"), derive(&other, "alice"));
    }
}
