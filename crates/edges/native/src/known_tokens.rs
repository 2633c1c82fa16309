//! The tokens whose revocation matters to a connection.

use std::collections::{HashMap, VecDeque};

use chio_core::capability::CapabilityToken;

/// How many tokens are remembered.
const MAX_TOKENS: usize = 256;
/// How large they may be together, in bytes of JSON.
const MAX_WEIGHT: usize = 4 * 1024 * 1024;

/// The tokens that were presented on a connection, or are held by its client. When
/// there are too many, the oldest are forgotten: their revocation is not announced, but is
/// enforced all the same.
#[derive(Default)]
pub(crate) struct KnownTokens {
    tokens: HashMap<String, Known>,
    /// Their ids, oldest first.
    order: VecDeque<String>,
    weight: usize,
}

struct Known {
    token: CapabilityToken,
    /// Whether the kernel itself named it; else the client presented it, and may have made it up.
    listed: bool,
    weight: usize,
    told: bool,
}

impl KnownTokens {
    /// Remembers a token that was presented in a message of this size.
    pub(crate) fn presented(&mut self, token: &CapabilityToken, weight: usize) {
        self.remember(token, weight, false);
    }

    /// Remembers a token that the kernel says the client holds.
    pub(crate) fn listed(&mut self, token: &CapabilityToken, weight: usize) {
        self.remember(token, weight, true);
    }

    fn remember(&mut self, token: &CapabilityToken, weight: usize, listed: bool) {
        if let Some(known) = self.tokens.get_mut(&token.id) {
            if listed && !known.listed {
                (known.token, known.listed) = (token.clone(), true);
            }
            return;
        }
        if weight > MAX_WEIGHT {
            return;
        }
        self.weight += weight;
        self.order.push_back(token.id.clone());
        let known = Known { token: token.clone(), listed, weight, told: false };
        self.tokens.insert(token.id.clone(), known);
        while self.order.len() > MAX_TOKENS || self.weight > MAX_WEIGHT {
            let Some(oldest) = self.order.pop_front() else { break };
            if let Some(known) = self.tokens.remove(&oldest) {
                self.weight -= known.weight;
            }
        }
    }

    /// The ids of the tokens that `is_revoked` newly finds revoked. None is told twice. A token that
    /// was only presented counts if it was verified: it tells nothing of its presenter otherwise.
    pub(crate) fn newly_revoked(
        &mut self,
        is_revoked: impl Fn(&CapabilityToken) -> bool,
        is_verified: impl Fn(&CapabilityToken) -> bool,
    ) -> Vec<String> {
        let mut ids = Vec::new();
        for known in self.tokens.values_mut() {
            let counts = |token| is_revoked(token) && (known.listed || is_verified(token));
            if !known.told && counts(&known.token) {
                known.told = true;
                ids.push(known.token.id.clone());
            }
        }
        ids
    }
}

/// Whether a token is the one with this id, or comes from it.
pub(crate) fn rests_on(token: &CapabilityToken, id: &str) -> bool {
    token.id == id || token.delegation_chain.iter().any(|link| link.capability_id == id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::{child, token};

    #[test]
    fn the_oldest_are_forgotten_when_there_are_too_many() {
        let mut known = KnownTokens::default();
        for number in 0..=MAX_TOKENS {
            known.presented(&token(&number.to_string()), 1);
        }
        assert_eq!(known.tokens.len(), MAX_TOKENS);
        assert!(!known.tokens.contains_key("0"));
        assert_eq!((known.order.len(), known.weight), (MAX_TOKENS, MAX_TOKENS));
    }

    #[test]
    fn few_large_ones_are_too_many_too() {
        let mut known = KnownTokens::default();
        known.presented(&token("beyond"), MAX_WEIGHT + 1);
        assert!(known.tokens.is_empty());
        for id in ["a", "b", "c"] {
            known.presented(&token(id), MAX_WEIGHT / 2);
        }
        assert!(!known.tokens.contains_key("a"));
        assert_eq!(known.weight, MAX_WEIGHT);
    }

    #[test]
    fn a_token_rests_on_itself_and_its_ancestors() {
        let token = child("child", &child("middle", &token("root")));
        for (id, expected) in [("child", true), ("root", true), ("middle", true), ("r", false)] {
            assert_eq!(rests_on(&token, id), expected, "{id}");
        }
    }
}
