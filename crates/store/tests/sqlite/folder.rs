//! The folder: what is in it, who may read it, and what is refused.

use std::fs;
use std::path::Path;

use chio_core::crypto::Keypair;
use chio_kernel::store::StoreError;
use chio_store::{OpenStore, StoreUrl};

use crate::support::{Scratch, append, clock};

/// The message of the refusal to open.
fn refusal(opened: Result<OpenStore, StoreError>) -> String {
    match opened {
        Ok(_) => panic!("expected a refusal"),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn an_authority_key_is_made_once() {
    let scratch = Scratch::new();
    let made = scratch.open().await.authority().await.unwrap().unwrap();
    let text = fs::read_to_string(scratch.path().join("authority.key")).unwrap();
    assert_eq!(text.len(), 65);
    let read = Keypair::from_seed_hex(text.trim_end()).unwrap();
    assert_eq!(read.public_key(), made.public_key());
    let again = scratch.open().await.authority().await.unwrap().unwrap();
    assert_eq!(again.public_key(), made.public_key());
}

#[tokio::test]
async fn git_adds_nothing_of_a_data_directory() {
    let scratch = Scratch::new();
    let path = scratch.path().join(".gitignore");
    drop(scratch.open().await);
    assert_eq!(fs::read_to_string(&path).unwrap(), "*\n");
    // One of an earlier version gets it at the next start; what an operator wrote is kept.
    fs::remove_file(&path).unwrap();
    drop(scratch.open().await.take_slot(None).await.unwrap());
    assert_eq!(fs::read_to_string(&path).unwrap(), "*\n");
    fs::write(&path, "*\n!notes\n").unwrap();
    drop(scratch.open().await.take_slot(None).await.unwrap());
    assert_eq!(fs::read_to_string(&path).unwrap(), "*\n!notes\n");
}

#[tokio::test]
async fn an_authority_key_that_was_taken_to_a_safer_place_is_not_replaced() {
    let scratch = Scratch::new();
    let slot = scratch.open().await.take_slot(None).await.unwrap();
    let certificate = slot.certificate.clone();
    drop(slot);
    fs::remove_file(scratch.path().join("authority.key")).unwrap();
    let store = scratch.open().await;
    assert!(store.authority().await.unwrap().is_none());
    // The kernel that it certified goes on; a new one cannot be certified.
    let slot = store.take_slot(None).await.unwrap();
    assert_eq!(slot.certificate, certificate);
    assert!(matches!(store.take_slot(None).await, Err(StoreError::Refused(_))));
}

#[tokio::test]
async fn an_approver_key_is_made_once_and_not_replaced() {
    let scratch = Scratch::new();
    let made = scratch.open().await.approver().await.unwrap().unwrap();
    let path = scratch.path().join("approver.key");
    let text = fs::read_to_string(&path).unwrap();
    let read = Keypair::from_seed_hex(text.trim_end()).unwrap();
    assert_eq!(read.public_key(), made.public_key());
    assert_eq!(
        scratch.open().await.approver().await.unwrap().unwrap().public_key(),
        made.public_key()
    );
    // Taken to a safer place, it is still known.
    fs::remove_file(&path).unwrap();
    let store = scratch.open().await;
    assert!(store.approver().await.unwrap().is_none());
    assert_eq!(store.approver_public().await.unwrap().as_ref(), Some(made.public_key()));
    assert!(!path.exists());
}

#[tokio::test]
async fn what_must_exist_is_not_made() {
    let scratch = Scratch::new();
    let message = refusal(OpenStore::open_existing(&scratch.url(), clock()).await);
    assert!(message.contains("found none"), "{message}");
    assert!(!scratch.path().exists());
    drop(scratch.open().await);
    let store = OpenStore::open_existing(&scratch.url(), clock()).await.unwrap();
    assert!(store.authority().await.unwrap().is_some());
}

#[tokio::test]
async fn a_file_in_the_place_of_the_folder_is_refused() {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.path().parent().unwrap()).unwrap();
    fs::write(scratch.path(), "x").unwrap();
    for opened in
        [scratch.try_open().await, OpenStore::open_existing(&scratch.url(), clock()).await]
    {
        let message = refusal(opened);
        assert!(message.contains("expected a folder"), "{message}");
    }
    assert_eq!(fs::read_to_string(scratch.path()).unwrap(), "x");
}

fn with_database(scratch: &Scratch, change: &str) {
    let database = rusqlite::Connection::open(scratch.path().join("store.db")).unwrap();
    database.execute_batch(change).unwrap();
}

#[tokio::test]
async fn a_newer_schema_is_refused_by_name() {
    let scratch = Scratch::new();
    drop(scratch.open().await);
    with_database(&scratch, "PRAGMA user_version = 99");
    let message = refusal(scratch.try_open().await);
    assert!(message.contains("made by a newer chio: schema 99, this one knows 4"), "{message}");
}

#[tokio::test]
async fn the_database_of_another_application_is_refused_and_left_alone() {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.path()).unwrap();
    with_database(&scratch, "CREATE TABLE songs(title)");
    let message = refusal(scratch.try_open().await);
    assert!(message.contains("another application's"), "{message}");
    fs::write(scratch.path().join("store.db"), "x".repeat(5000)).unwrap();
    let message = refusal(scratch.try_open().await);
    assert!(message.contains("is no database of a store"), "{message}");
}

#[tokio::test]
async fn a_damaged_key_is_reported_and_not_replaced() {
    let scratch = Scratch::new();
    drop(scratch.open().await.take_slot(None).await.unwrap());
    let path = scratch.path().join("kernels/0/key");
    fs::write(&path, "half a k").unwrap();
    let error = scratch.open().await.take_slot(None).await.unwrap_err();
    assert!(matches!(&error, StoreError::Damaged(text) if text.contains("kernels")), "{error}");
    assert_eq!(fs::read_to_string(path).unwrap(), "half a k");
}

#[tokio::test]
async fn a_secret_that_is_kept_elsewhere_is_not_copied() {
    let scratch = Scratch::new();
    let store = scratch.open().await;
    let key = Keypair::from_seed(&[9; 32]);
    let public = key.public_key().to_hex();
    let slot = store.take_slot(Some(key)).await.unwrap();
    let folder = scratch.path().join("kernels/0");
    assert_eq!(fs::read_to_string(folder.join("public")).unwrap().trim_end(), public);
    assert!(!folder.join("key").exists());
    drop(slot);
}

#[cfg(unix)]
fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[cfg(unix)]
fn check_modes(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            assert_eq!(mode(&path), 0o700, "{}", path.display());
            check_modes(&path);
        } else {
            assert_eq!(mode(&path), 0o600, "{}", path.display());
        }
    }
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_can_read_what_is_made() {
    let scratch = Scratch::new();
    // No indexer, so that no file comes or goes while we look.
    let store = scratch.open_without_indexing().await;
    let slots = [store.take_slot(None).await.unwrap(), store.take_slot(None).await.unwrap()];
    store.shared().find("something").await.unwrap();
    append(slots[0].ledger.as_ref(), 1).await;
    store.shared().find("something").await.unwrap();
    assert!(scratch.path().join("index.db").exists());
    assert_eq!(mode(&scratch.path()), 0o700);
    assert_eq!(mode(scratch.path().parent().unwrap()), 0o700);
    check_modes(&scratch.path());
    drop(slots);
}

#[test]
fn a_relative_folder_stays_the_same_one() {
    let url: StoreUrl = "sqlite:some/where".parse().unwrap();
    assert_eq!(url, StoreUrl::Sqlite(Path::new("some/where").to_owned()));
}
