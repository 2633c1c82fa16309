//! A request for approval by its id, or by the beginning of its id.

use anyhow::{Result, bail};
use chio_core::canonical;
use chio_kernel::store::{Approval, ApprovalQuery, ApprovalRequest, SharedStore};

use crate::outcome::Refused;

/// How many requests are read at once.
const PAGE: usize = 200;
/// How many requests are looked at for one that is not named in full.
const MOST: usize = 10_000;
/// How every id begins.
const PREFIX: &str = "appr-";

/// The request with this id, or the only one whose id begins so.
///
/// Requests that are over count as well: an operator who typed a beginning had seen one request,
/// and must not answer another that came later.
pub(super) async fn request(store: &SharedStore, id: &str) -> Result<Approval> {
    let found = look_up(store, id).await?;
    check(&found.request)?;
    Ok(found)
}

/// Refuses a request that does not say what its hashes say.
fn check(request: &ApprovalRequest) -> Result<()> {
    // SECURITY: an approver signs the hash of the intent, and has to be shown what it speaks of.
    if request.intent.hash()? != request.intent_hash
        || canonical::hash(&request.action.parameters)? != request.action.parameter_hash
    {
        bail!("the store is damaged: request `{}` was changed since it was made", request.id);
    }
    Ok(())
}

async fn look_up(store: &SharedStore, id: &str) -> Result<Approval> {
    if let Some(found) = store.approval(id).await? {
        return Ok(found);
    }
    let unknown = || Refused::new(format!("there is no request `{id}`: see `chio approvals list`"));
    if id.strip_prefix(PREFIX).unwrap_or(id).is_empty() {
        return Err(unknown().into());
    }
    let mut query = ApprovalQuery { limit: PAGE, ..ApprovalQuery::default() };
    let (mut found, mut seen) = (None, 0);
    loop {
        let page = store.approvals(&query).await?;
        let Some((cursor, _)) = page.last() else { break };
        query.cursor = Some(*cursor);
        seen += page.len();
        for (_, approval) in page {
            if !begins(&approval.request.id, id) {
                continue;
            }
            if found.replace(approval).is_some() {
                let message =
                    format!("expected the beginning of one id, found more than one with `{id}`");
                return Err(Refused::new(message).into());
            }
        }
        if seen >= MOST {
            let message =
                "there are too many requests to look for the beginning of an id: give all of it";
            return Err(Refused::new(message).into());
        }
    }
    Ok(found.ok_or_else(unknown)?)
}

/// Whether an id begins so, with or without what every id begins with.
fn begins(id: &str, text: &str) -> bool {
    id.starts_with(text) || id.strip_prefix(PREFIX).is_some_and(|rest| rest.starts_with(text))
}

#[cfg(test)]
mod tests {
    use super::begins;

    #[test]
    fn an_id_is_known_by_its_beginning() {
        for (text, expected) in [
            ("appr-01", true),
            ("01", true),
            ("appr-0199", true),
            ("0199-x", false),
            ("199", false),
            ("APPR-01", false),
        ] {
            assert_eq!(begins("appr-0199", text), expected, "{text}");
        }
    }
}
