//! A store and its data directory in folders of their own, and what must not be put together.

use std::fs;
use std::path::{Path, PathBuf};

use chio_core::certificate::KernelCertificate;
use chio_core::crypto::{Keypair, PublicKey};
use chio_kernel::store::{Reserved, StoreError, StoreResult};
use chio_store::{Location, OpenStore, StoreUrl};

use crate::support::{Scratch, append, clock, free};

/// Where the data directory `a` and the store `b` of a test are.
fn at(scratch: &Scratch, data: &str, store: &str) -> Location {
    let url = StoreUrl::Sqlite(scratch.path().join(store));
    Location::new(Some(url), Some(scratch.path().join(data)), Path::new(""))
}

async fn try_open(scratch: &Scratch, data: &str, store: &str) -> StoreResult<OpenStore> {
    OpenStore::open(at(scratch, data, store), clock()).await
}

async fn open(scratch: &Scratch, data: &str, store: &str) -> OpenStore {
    try_open(scratch, data, store).await.unwrap()
}

/// Checks that a data directory and a store do not go together, for a reason with these words.
async fn refuses(scratch: &Scratch, data: &str, store: &str, words: &str) {
    let error = try_open(scratch, data, store).await.map(drop).unwrap_err().to_string();
    assert!(error.contains(words), "expected `{words}` in `{error}`");
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (from, to) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        if from.is_dir() {
            copy_all(&from, &to);
        } else {
            fs::copy(from, to).unwrap();
        }
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    let mut names: Vec<String> = entries.iter().map(name).collect();
    names.sort();
    names
}

#[tokio::test]
async fn keys_are_in_the_data_directory_and_databases_in_the_store() {
    let scratch = Scratch::new();
    let store = open(&scratch, "a", "b").await;
    let slot = store.take_slot(None).await.unwrap();
    append(slot.ledger.as_ref(), 1).await;
    let made = [".gitignore", "approver.key", "authority.key", "kernels", "store.id"];
    assert_eq!(names(&scratch.path().join("a")), made);
    let mut databases = names(&scratch.path().join("b"));
    // The files that a database has beside it while it is open come and go.
    databases.retain(|name| !name.contains(".db-"));
    for name in &databases {
        let known = ["index.db", "index.lock", "logs", "store.db", "store.epoch"];
        assert!(known.contains(&name.as_str()), "{name}");
    }
    // The next process finds both.
    let again = open(&scratch, "a", "b").await;
    let authority = again.authority().await.unwrap().unwrap();
    assert_eq!(*authority.public_key(), slot.certificate.authority);
    let other = again.take_slot(None).await.unwrap();
    assert_ne!(other.certificate.log_id, slot.certificate.log_id);
    // One that needs no key sees the log without them.
    let url = StoreUrl::Sqlite(scratch.path().join("b"));
    let reader = OpenStore::open_existing(&url, clock()).await.unwrap();
    assert!(reader.authority().await.unwrap().is_none());
    assert_eq!(reader.authority_public().await.unwrap().as_ref(), Some(authority.public_key()));
    assert_eq!(reader.shared().logs().await.unwrap().len(), 2);
}

#[tokio::test]
async fn copies_of_a_data_directory_never_write_one_log() {
    let scratch = Scratch::new();
    let one = open(&scratch, "a", "b").await;
    drop(one.take_slot(None).await.unwrap());
    copy_all(&scratch.path().join("a"), &scratch.path().join("copy"));
    let copy = open(&scratch, "copy", "b").await;
    // Both have the key of the first slot, and both find its lock free in their own folder.
    let slot = one.take_slot(None).await.unwrap();
    let other = copy.take_slot(None).await.unwrap();
    assert_ne!(slot.certificate.log_id, other.certificate.log_id);
    // So with a key that is in neither.
    let key = || Keypair::from_seed(&[9; 32]);
    let held = one.take_slot(Some(key())).await.unwrap();
    let refused = copy.take_slot(Some(key())).await.unwrap_err();
    assert!(matches!(&refused, StoreError::Refused(text) if text.contains("in use")), "{refused}");
    drop((held, slot));
    let held = copy.take_slot(Some(key())).await.unwrap();
    assert_eq!(append(held.ledger.as_ref(), 1).await, 1);
}

#[tokio::test]
async fn a_kernel_of_another_data_directory_is_swept_only_when_it_is_gone() {
    let scratch = Scratch::new();
    let one = open(&scratch, "a", "b").await;
    copy_all(&scratch.path().join("a"), &scratch.path().join("copy"));
    let copy = open(&scratch, "copy", "b").await;
    let (slot, survivor) =
        (one.take_slot(None).await.unwrap(), copy.take_slot(None).await.unwrap().ledger);
    assert!(matches!(slot.ledger.reserve(free()).await.unwrap(), Reserved::Held { .. }));
    assert_eq!(survivor.abandoned().await.unwrap().len(), 0);
    let log = slot.certificate.log_id.clone();
    drop(slot);
    let abandoned = survivor.abandoned().await.unwrap();
    assert_eq!(abandoned[0].log_id, log);
    // Nor can it start while it is swept, wherever.
    let next = one.take_slot(None).await.unwrap();
    assert_ne!(next.certificate.log_id, log);
}

#[tokio::test]
async fn a_kernel_without_the_authority_needs_a_certificate() {
    let scratch = Scratch::new();
    let authority = open(&scratch, "a", "b").await.authority().await.unwrap().unwrap();
    let elsewhere = open(&scratch, "c", "b").await;
    assert!(elsewhere.authority().await.unwrap().is_none());
    let refused = elsewhere.take_slot(None).await.unwrap_err().to_string();
    let expected = format!("expected the authority key `{}` in", authority.public_key());
    assert!(refused.contains(&expected), "{refused}");
    assert!(refused.contains(&*scratch.path().join("c").to_string_lossy()), "{refused}");
    // The refusal names the kernel, which the authority can certify.
    let kernel = refused.split("the kernel `").nth(1).unwrap().split('`').next().unwrap();
    let (kernel, shared) = (PublicKey::from_hex(kernel).unwrap(), elsewhere.shared());
    let store_id = shared.store_id().await.unwrap();
    let certificate = KernelCertificate::issue(&authority, kernel, store_id, 1).unwrap();
    shared.admit(&certificate).await.unwrap();
    assert_eq!(elsewhere.take_slot(None).await.unwrap().certificate, certificate);
}

#[tokio::test]
async fn a_data_directory_is_of_one_store() {
    let scratch = Scratch::new();
    drop(open(&scratch, "a", "b").await);
    drop(open(&scratch, "c", "d").await);
    refuses(&scratch, "a", "new", "there are keys of a store in").await;
    refuses(&scratch, "a", "d", "expected the data directory of the store").await;
    // So without a word of which store it is of: by the key that the store remembers.
    let path = scratch.path();
    for name in ["authority.key", "approver.key"] {
        fs::create_dir(path.join(name.replace(".key", ""))).unwrap();
        fs::copy(path.join("a").join(name), path.join(name.replace(".key", "")).join(name))
            .unwrap();
    }
    refuses(&scratch, "authority", "d", "expected the authority key").await;
    refuses(&scratch, "approver", "d", "expected the approver key").await;
    assert_eq!(names(&path.join("authority")), ["authority.key"], "nothing is added");
    let existing = OpenStore::open_existing(at(&scratch, "authority", "d"), clock()).await.unwrap();
    let refused = existing.authority().await.map(drop).unwrap_err().to_string();
    assert!(refused.contains("expected the authority key"), "{refused}");
    assert!(existing.take_slot(None).await.is_err());
    let existing = OpenStore::open_existing(at(&scratch, "a", "d"), clock()).await.map(drop);
    assert!(matches!(existing, Err(StoreError::Refused(_))));
}

#[tokio::test]
async fn an_authority_that_was_replaced_in_the_store_as_well_starts_no_kernel() {
    let scratch = Scratch::new();
    let store = open(&scratch, "a", "b").await;
    store.check_keys().await.unwrap();
    let own = store.authority().await.unwrap().unwrap().public_key().clone();
    let (other, kernel) = (Keypair::generate(), Keypair::generate().public_key().clone());
    let (shared, store_id) = (store.shared(), store.shared().store_id().await.unwrap());
    // A kernel of another store of that authority says nothing about this one.
    let foreign = KernelCertificate::issue(&other, kernel.clone(), "elsewhere", 1).unwrap();
    shared.admit(&foreign).await.unwrap();
    store.check_keys().await.unwrap();
    // What is left of the time before: a kernel that the other authority certified.
    let before = KernelCertificate::issue(&other, kernel, store_id.clone(), 1).unwrap();
    shared.admit(&before).await.unwrap();
    let words = format!(
        "expected the authority key `{}`, which certified the kernels of this store, found `{own}`",
        other.public_key()
    );
    let refused = store.take_slot(None).await.unwrap_err().to_string();
    assert!(refused.contains(&words), "{refused}");
    let refused = store.check_keys().await.unwrap_err().to_string();
    assert!(refused.contains(&words), "{refused}");
    // Where both did, both were there from the beginning.
    let kernel = Keypair::generate().public_key().clone();
    let own = store.authority().await.unwrap().unwrap();
    shared.admit(&KernelCertificate::issue(&own, kernel, store_id, 1).unwrap()).await.unwrap();
    store.check_keys().await.unwrap();
    store.take_slot(None).await.unwrap();
}
