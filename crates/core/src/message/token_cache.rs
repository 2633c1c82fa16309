//! A cache of parsed tokens by their text: an agent sends the same one with every call.

use std::collections::VecDeque;

use serde::Deserialize;

use crate::capability::{CapabilityToken, PresentedToken};
use crate::strict;

/// The number of tokens in a cache.
const MAX_TOKENS: usize = 8;
/// The longest id that is repeated of what is no token, in bytes.
const MAX_CLAIMED_ID: usize = 256;
/// The longest text of a cached token, in bytes.
const MAX_TEXT: usize = 64 * 1024;

/// The tokens received most recently over one connection. The same text is the same token; whether
/// it may be used is checked with every call.
#[derive(Debug, Default)]
pub struct TokenCache {
    /// The latest first.
    tokens: VecDeque<(Box<str>, PresentedToken)>,
}

impl TokenCache {
    /// Parses the token of a text that [`strict`] has checked. What is none is presented as that.
    pub(super) fn read(&mut self, text: &str) -> PresentedToken {
        let mut known = self.tokens.iter().enumerate();
        if let Some((at, (_, token))) = known.find(|(_, (known, _))| **known == *text) {
            let token = token.clone();
            self.tokens.swap(at, at.saturating_sub(1));
            return token;
        }
        let token = match strict::reread::<CapabilityToken>(text.as_bytes()) {
            Ok(token) => PresentedToken::from(token),
            Err(error) => return PresentedToken::unreadable(&claimed_id(text), error.to_string()),
        };
        if text.len() <= MAX_TEXT {
            self.tokens.truncate(MAX_TOKENS - 1);
            self.tokens.push_front((text.into(), token.clone()));
        }
        token
    }
}

/// The id that something claims which is no token; a blank one where it claims none that fits.
fn claimed_id(text: &str) -> String {
    #[derive(Deserialize)]
    struct Claim {
        id: String,
    }
    let claim = strict::reread::<Claim>(text.as_bytes()).ok();
    claim.map(|claim| claim.id).filter(|id| id.len() <= MAX_CLAIMED_ID).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capability::{ChioScope, Validity};
    use crate::crypto::Keypair;

    fn text(id: &str) -> String {
        let key = Keypair::from_seed(&[1; 32]).public_key().clone();
        let validity = Validity { issued_at: 1, expires_at: 2 };
        let token = CapabilityToken::draft(id, key.clone(), key, ChioScope::default(), validity);
        serde_json::to_string(&token).unwrap()
    }

    #[test]
    fn the_same_text_is_the_same_token_and_no_other_is() {
        let mut texts = TokenCache::default();
        for round in 0..3 {
            for number in 0..MAX_TOKENS + 2 {
                let id = format!("cap-{number}");
                assert_eq!(texts.read(&text(&id)).id, id, "round {round}");
                assert_eq!(texts.read(&text(&id)).id, id, "round {round}");
            }
        }
        assert_eq!(texts.tokens.len(), MAX_TOKENS);
    }

    #[test]
    fn what_is_no_token_or_too_long_is_not_kept() {
        let mut texts = TokenCache::default();
        for (text, claimed) in [
            ("{}".to_owned(), ""),
            ("null".to_owned(), ""),
            (r#""cap-1""#.to_owned(), ""),
            (r#"{"id":7}"#.to_owned(), ""),
            (r#"{"id":"cap-1","scope":"s3cret"}"#.to_owned(), "cap-1"),
            (format!(r#"{{"id":"{}"}}"#, "x".repeat(MAX_CLAIMED_ID + 1)), ""),
        ] {
            let token = texts.read(&text);
            assert_eq!(token.id, claimed, "{text}");
            assert!(token.problem().is_some_and(|why| !why.contains("s3cret")), "{token:?}");
            assert!(token.scope.grants.is_empty());
        }
        let token = texts.read(&text(&"x".repeat(MAX_TEXT)));
        assert_eq!(token.problem(), None);
        assert!(texts.tokens.is_empty());
    }
}
