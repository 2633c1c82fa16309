//! The keys of a store while a kernel serves: one that was replaced is reported.

use std::convert::Infallible;
use std::time::Duration;

use chio_core::crypto::PublicKey;
use chio_kernel::store::StoreError;
use chio_store::OpenStore;
use tokio::time::sleep;

/// How often the keys are looked at.
const BEAT: Duration = Duration::from_secs(5);

/// Watches as long as the kernel serves, which goes on with the keys that it has.
pub(crate) async fn watch_keys(store: &OpenStore) -> Infallible {
    let (first, mut told) = (public_keys(store).await, None);
    loop {
        sleep(BEAT).await;
        let problem = replaced(store, first.as_ref()).await;
        if let Some(problem) = problem.as_ref().filter(|problem| told.as_ref() != Some(*problem)) {
            tracing::error!("a key of this store was replaced while it serves: {problem}");
        }
        told = problem;
    }
}

type PublicKeys = [Option<PublicKey>; 2];

/// The public halves that the store knows, if it answers.
async fn public_keys(store: &OpenStore) -> Option<PublicKeys> {
    Some([store.authority_public().await.ok()?, store.approver_public().await.ok()?])
}

/// Which key is another now than the store knows, or than it knew at first.
async fn replaced(store: &OpenStore, first: Option<&PublicKeys>) -> Option<String> {
    let looked = [store.authority().await.map(drop), store.approver().await.map(drop)];
    for refused in looked.into_iter().filter_map(Result::err) {
        if let StoreError::Refused(problem) = refused {
            return Some(problem);
        }
    }
    let (first, now) = (first?, public_keys(store).await?);
    let mut changed = first.iter().zip(&now).filter(|(first, now)| first != now);
    changed.next().map(|(first, now)| {
        let text =
            |key: &Option<PublicKey>| key.as_ref().map_or("none".to_owned(), ToString::to_string);
        format!("expected `{}` in the store, found `{}`", text(first), text(now))
    })
}
