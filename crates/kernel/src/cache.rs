//! Tokens whose signature and chain were verified once.
//!
//! An entry stands for exactly these bytes: a token is found by its id and compared member by
//! member. Window, issuer trust and revocation are not remembered; they are checked on every call.

use std::collections::HashMap;
use std::sync::Arc;

use chio_core::capability::{CapabilityToken, PresentedToken};
use chio_core::crypto::PublicKey;
use parking_lot::Mutex;

/// A grant somewhere above the presented token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GrantRef {
    /// Which ancestor, as an index into [`KnownToken::ancestors`].
    pub(crate) ancestor: usize,
    /// Which of its grants.
    pub(crate) grant: usize,
}

/// A verified token and what it comes from.
#[derive(Debug)]
pub(crate) struct KnownToken {
    pub(crate) token: PresentedToken,
    /// The tokens that it comes from, root first.
    pub(crate) ancestors: Vec<CapabilityToken>,
    /// For each of its tool grants the grants above that cover it, nearest first.
    pub(crate) above: Vec<Vec<GrantRef>>,
    /// Its own id and those of its ancestors.
    pub(crate) authority: Vec<String>,
}

impl KnownToken {
    /// Every key that vouched for it.
    pub(crate) fn issuers(&self) -> impl Iterator<Item = &PublicKey> {
        std::iter::once(&self.token.issuer)
            .chain(self.ancestors.iter().map(|ancestor| &ancestor.issuer))
    }
}

/// Two generations of tokens: when the young one is full it becomes the old one, and what was not
/// asked for since is forgotten. Bounded, and without bookkeeping on every hit.
#[derive(Debug)]
pub(crate) struct TokenCache {
    capacity: usize,
    generations: Mutex<Generations>,
}

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<String, Arc<KnownToken>>,
    old: HashMap<String, Arc<KnownToken>>,
}

impl TokenCache {
    /// A cache of at most this many tokens.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity: capacity.max(2), generations: Mutex::default() }
    }

    /// The entry for exactly this token.
    pub(crate) fn get(&self, token: &CapabilityToken) -> Option<Arc<KnownToken>> {
        let mut generations = self.generations.lock();
        if let Some(known) = generations.young.get(&token.id) {
            return (*known.token == *token).then(|| Arc::clone(known));
        }
        let known = generations.old.get(&token.id).filter(|known| *known.token == *token)?;
        let known = Arc::clone(known);
        self.put(&mut generations, Arc::clone(&known));
        Some(known)
    }

    /// Remembers a token.
    pub(crate) fn insert(&self, known: Arc<KnownToken>) {
        let mut generations = self.generations.lock();
        self.put(&mut generations, known);
    }

    fn put(&self, generations: &mut Generations, known: Arc<KnownToken>) {
        if generations.young.len() >= self.capacity / 2 {
            generations.old = std::mem::take(&mut generations.young);
        }
        generations.young.insert(known.token.id.clone(), known);
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        let generations = self.generations.lock();
        generations.young.len() + generations.old.len()
    }
}

#[cfg(test)]
mod tests {
    use super::{Arc, CapabilityToken, KnownToken, TokenCache};
    use chio_core::capability::{ChioScope, Validity};
    use chio_core::crypto::Keypair;

    fn token(id: &str) -> CapabilityToken {
        let key = Keypair::from_seed(&[1; 32]).public_key().clone();
        let validity = Validity { issued_at: 1, expires_at: 2 };
        CapabilityToken::draft(id, key.clone(), key, ChioScope::default(), validity)
    }

    fn known(id: &str) -> Arc<KnownToken> {
        let token = token(id);
        let authority = vec![token.id.clone()];
        Arc::new(KnownToken { token: token.into(), ancestors: vec![], above: vec![], authority })
    }

    #[test]
    fn only_exactly_the_same_token_is_found() {
        let cache = TokenCache::new(8);
        cache.insert(known("a"));
        assert!(cache.get(&token("a")).is_some());
        let mut changed = token("a");
        changed.expires_at += 1;
        assert!(cache.get(&changed).is_none());
        assert!(cache.get(&token("b")).is_none());
    }

    #[test]
    fn the_cache_is_bounded_and_keeps_what_is_used() {
        let cache = TokenCache::new(8);
        for n in 0..100 {
            cache.insert(known(&format!("cap-{n}")));
            cache.insert(known("used"));
            assert!(cache.get(&token("used")).is_some());
            assert!(cache.len() <= 8);
        }
    }
}
