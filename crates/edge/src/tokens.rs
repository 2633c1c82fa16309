//! Choosing the capability token for a call.

use chio_core::capability::PresentedToken;

/// The first token with a grant for this tool, else the first token.
pub fn token_for<'a>(
    tokens: &'a [PresentedToken],
    server: &str,
    tool: &str,
) -> Option<&'a PresentedToken> {
    let covers =
        |token: &&PresentedToken| token.scope.grants.iter().any(|grant| grant.covers(server, tool));
    tokens.iter().find(covers).or_else(|| tokens.first())
}
