//! A cache of parsed tokens by their text: an agent sends the same one with every call.

use std::collections::VecDeque;

use crate::capability::{CapabilityToken, PresentedToken};
use crate::strict::{self, StrictError};

/// The number of tokens in a cache.
const MAX_TOKENS: usize = 8;
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
    /// Parses the token of a text that [`strict`] has checked.
    pub(super) fn read(&mut self, text: &str) -> Result<PresentedToken, StrictError> {
        let mut known = self.tokens.iter().enumerate();
        if let Some((at, (_, token))) = known.find(|(_, (known, _))| **known == *text) {
            let token = token.clone();
            self.tokens.swap(at, at.saturating_sub(1));
            return Ok(token);
        }
        let token: CapabilityToken = strict::reread(text.as_bytes()).map_err(in_token)?;
        let token = PresentedToken::from(token);
        if text.len() <= MAX_TEXT {
            self.tokens.truncate(MAX_TOKENS - 1);
            self.tokens.push_front((text.into(), token.clone()));
        }
        Ok(token)
    }
}

/// Names the member that the position of an error is relative to.
fn in_token(error: StrictError) -> StrictError {
    match error {
        StrictError::Shape { message } => {
            StrictError::Shape { message: format!("in `capability_token`: {message}") }
        }
        other => other,
    }
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
                assert_eq!(texts.read(&text(&id)).unwrap().id, id, "round {round}");
                assert_eq!(texts.read(&text(&id)).unwrap().id, id, "round {round}");
            }
        }
        assert_eq!(texts.tokens.len(), MAX_TOKENS);
    }

    #[test]
    fn what_is_no_token_or_too_long_is_not_kept() {
        let mut texts = TokenCache::default();
        let error = texts.read("{}").unwrap_err().to_string();
        assert!(error.contains("in `capability_token`"), "{error}");
        texts.read(&text(&"x".repeat(MAX_TEXT))).unwrap();
        assert!(texts.tokens.is_empty());
    }
}
