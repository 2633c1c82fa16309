//! A token of a store by its id, or by the beginning of it.

use std::path::Path;

use anyhow::Result;
use chio_core::capability::CapabilityToken;
use chio_kernel::store::SharedStore;

use super::TOKEN;
use crate::io::Io;
use crate::outcome::Refused;

/// How many tokens are read at once.
const PAGE: usize = 500;
/// The fewest letters that may stand for an id.
const FEWEST: usize = 8;

/// The id of the known token that is meant. One that was revoked is known, too.
///
/// # Errors
/// When there is none, or more than one.
pub(super) async fn id(io: &mut Io<'_>, store: &SharedStore, text: &str) -> Result<String> {
    let is_known = !store.tokens(&[text.to_owned()]).await?.is_empty();
    if is_known || store.revoked_since(0).await?.ids.iter().any(|id| id == text) {
        return Ok(text.to_owned());
    }
    if io.folder.join(text).is_file() {
        return Err(of_file(io, text).into());
    }
    let mut found = Vec::new();
    if text.len() >= FEWEST {
        let later = store.known_after(text, 2).await?;
        found.extend(later.into_iter().map(|token| token.id).filter(|id| id.starts_with(text)));
    }
    match found.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(Refused::new(format!(
            "no token `{text}` is known here: `chio capability list` lists those that are; for one \
             that may still come, add --anyway"
        ))
        .into()),
        [one, other, ..] => Err(Refused::new(format!(
            "several tokens begin with `{text}`, such as `{one}` and `{other}`: give more of it"
        ))
        .into()),
    }
}

/// The refusal of a file in place of the id of the token in it.
fn of_file(io: &mut Io<'_>, path: &str) -> Refused {
    match io.read_json::<CapabilityToken>(Path::new(path), TOKEN) {
        Ok(token) => Refused::new(format!(
            "expected the id of a token, found the file `{path}`: its token is `{}`",
            token.id
        )),
        Err(_) => Refused::new(format!("expected the id of a token, found the file `{path}`")),
    }
}

/// All known tokens.
pub(super) async fn all(store: &SharedStore) -> Result<Vec<CapabilityToken>> {
    let mut tokens: Vec<CapabilityToken> = Vec::new();
    loop {
        let after = tokens.last().map_or("", |token| token.id.as_str()).to_owned();
        let page = store.known_after(&after, PAGE).await?;
        if page.is_empty() {
            return Ok(tokens);
        }
        tokens.extend(page);
    }
}
