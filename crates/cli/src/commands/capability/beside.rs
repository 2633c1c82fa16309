//! What a store knows of a token: who may have issued it, whether it was revoked, what is left of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use chio_core::capability::CapabilityToken;
use chio_core::crypto::PublicKey;
use chio_kernel::SystemClock;
use chio_kernel::store::Spent;
use chio_store::{Location, OpenStore};

use crate::adoption::foreign;
use crate::files::is_dash;
use crate::io::Io;
use crate::store_args::{DEFAULT_FOLDER, StoreArgs, block_on};

/// What is in the folder of every store.
const DATABASE: &str = "store.db";

/// What a store knows of a token.
pub(super) struct Known {
    /// The store, as people know it.
    pub(super) store: String,
    /// Who issues there; none where whoever gave us the token may have given us the store as well.
    pub(super) authority: Option<PublicKey>,
    /// The token that was revoked: this one, or one that it comes from.
    pub(super) revoked: Option<String>,
    /// What has been debited from each of its grants.
    pub(super) spent: Vec<Spent>,
}

/// Asks the store that is named, or the one beside the token; none where there is no store.
pub(super) fn look(
    io: &mut Io<'_>,
    args: &StoreArgs,
    file: &Path,
    token: &CapabilityToken,
) -> Result<Option<Known>> {
    let named = args.is_given();
    let found = if named { Some((args.location(io)?, true)) } else { beside(io, file) };
    let Some((location, is_trusted)) = found else { return Ok(None) };
    let store = location.store().folder().map_or_else(String::new, |it| it.display().to_string());
    let known = block_on(async {
        let opened = OpenStore::open_existing(location, Arc::new(SystemClock::default())).await?;
        ask(&opened, store, token, is_trusted).await
    });
    match known {
        Ok(known) => Ok(Some(known)),
        Err(error) if named => Err(error),
        Err(error) => {
            io.complain("note", format_args!("the store beside the token is not asked: {error:#}"));
            Ok(None)
        }
    }
}

async fn ask(
    opened: &OpenStore,
    store: String,
    token: &CapabilityToken,
    is_trusted: bool,
) -> Result<Known> {
    let shared = opened.shared();
    let revoked = shared.revoked_since(0).await?.ids;
    let above = token.delegation_chain.iter().map(|link| &link.capability_id);
    let revoked = std::iter::once(&token.id).chain(above).find(|id| revoked.contains(id)).cloned();
    let mut spent = Vec::new();
    for index in 0..u32::try_from(token.scope.grants.len())? {
        spent.push(shared.spent(&token.id, index).await?);
    }
    let authority = if is_trusted { opened.authority_public().await? } else { None };
    Ok(Known { store, authority, revoked, spent })
}

/// The store beside a token: its folder or one above it is a store's, its folder has one, or that in
/// which we are; and whether its authority counts: a store that is not where we are may have come with
/// the token.
fn beside(io: &Io<'_>, file: &Path) -> Option<(Location, bool)> {
    let whole = |path: &Path| std::path::absolute(io.folder.join(path)).ok();
    let token = Some(file).filter(|file| !is_dash(file)).and_then(whole);
    let folders = token.iter().flat_map(|token| token.ancestors().skip(1));
    let own = token.iter().filter_map(|token| Some(token.parent()?.join(DEFAULT_FOLDER)));
    let here = whole(Path::new(DEFAULT_FOLDER));
    let mut places = folders.map(Path::to_owned).chain(own).chain(here.clone());
    // SECURITY: what another user has put there says nothing.
    let is_ours = |place: &PathBuf| {
        place.join(DATABASE).is_file() && foreign(place).is_ok_and(|reason| reason.is_none())
    };
    let place = places.find(is_ours)?;
    Some((Location::new(None, Some(place.clone()), &place), here.as_ref() == Some(&place)))
}
