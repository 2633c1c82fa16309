//! Admission on a store in memory.

use std::path::Path;
use std::sync::Arc;

use chio_core::capability::{CapabilityToken, PresentedToken};
use chio_cross_protocol::{Admission, Credential, DiscoveryProtocol, Principal, Refused, Session};
use chio_kernel::SystemClock;
use chio_store::{Location, OpenStore, StoreUrl};
use chio_testkit::{key, token};

use super::{Anonymous, PolicyAdmission, everything_of};
use crate::policies::Policies;
use crate::policy_args::PolicySources;
use crate::runtime::{Plan, Runtime};
use crate::servers::demo;

async fn runtime() -> Runtime {
    let store = OpenStore::open(&StoreUrl::Memory, Arc::new(SystemClock::default())).await.unwrap();
    let sources = || PolicySources::new("default", None, Path::new(""), &Arc::default());
    let policies = Policies::load(sources().in_force, None).await.unwrap();
    let plan = Plan {
        servers: vec![demo::server(None)],
        ..Plan::new(Location::from(&StoreUrl::Memory), sources(), "")
    };
    Runtime::start(plan, store, policies, &Arc::default()).await.unwrap().0
}

async fn admission(runtime: &Runtime, anonymous: Anonymous) -> PolicyAdmission {
    let issuer = runtime.issuer(Some(everything_of(&runtime.servers))).await.unwrap();
    let orchestrator = Arc::clone(&runtime.orchestrator);
    PolicyAdmission { orchestrator, issuer, anonymous, admits_ended: false }
}

/// Opens a session over HTTP.
async fn open(
    admission: &PolicyAdmission,
    name: Option<&str>,
    presented: Option<&CapabilityToken>,
) -> Result<Session, Refused> {
    let bearer = Credential::StaticBearer { fingerprint: "f".to_owned() };
    let principal = match name {
        Some(name) => Principal::new(name, bearer),
        None => Principal::anonymous(),
    };
    let presented = presented.map(|token| PresentedToken::from(token.clone()));
    admission.admit(DiscoveryProtocol::Mcp, principal.with_capability(presented)).await
}

fn presented(id: &str) -> CapabilityToken {
    token::token(&key(1), key(2).public_key(), id, vec![token::grant("echo")], 1)
}

/// A token of the store's own authority that holds now.
async fn issued(runtime: &Runtime, id: &str) -> CapabilityToken {
    let (authority, now) =
        (runtime.store.authority().await.unwrap().unwrap(), runtime.orchestrator.now());
    token::token(&authority, key(2).public_key(), id, vec![token::grant("echo")], now)
}

async fn ids(admission: &PolicyAdmission, session: &Session) -> Result<Vec<String>, String> {
    let tokens =
        admission.tokens(&session.principal).await.map_err(|refused| refused.to_string())?;
    Ok(tokens.iter().map(|token| token.id.clone()).collect())
}

#[tokio::test]
async fn a_principal_is_issued_the_same_capability_again_and_others_are_others() {
    let runtime = runtime().await;
    let admission = admission(&runtime, Anonymous::Refused).await;
    let alice = open(&admission, Some("alice"), None).await.unwrap();
    let again = open(&admission, Some("alice"), None).await.unwrap();
    let other = admission.admit(DiscoveryProtocol::Mcp, Principal::stdio()).await.unwrap();
    assert_eq!(alice.principal.subject, again.principal.subject);
    assert_ne!(alice.id, again.id);
    assert_ne!(alice.principal.subject, other.principal.subject);
    let issued = ids(&admission, &alice).await.unwrap();
    assert_eq!(issued.len(), 1);
    assert_eq!(ids(&admission, &again).await.unwrap(), issued);
    assert_ne!(ids(&admission, &other).await.unwrap(), issued);
}

#[tokio::test]
async fn anonymous_principals_are_admitted_only_where_that_was_set() {
    let runtime = runtime().await;
    for (anonymous, admitted) in [(Anonymous::Refused, false), (Anonymous::Principal, true)] {
        let admission = admission(&runtime, anonymous).await;
        let found = open(&admission, None, None).await;
        assert_eq!(found.is_ok(), admitted);
    }
    let bound = Anonymous::Token(presented("cap-any").into());
    let admission = admission(&runtime, bound).await;
    let session = open(&admission, None, None).await.unwrap();
    assert_eq!(ids(&admission, &session).await.unwrap(), ["cap-any"]);
}

#[tokio::test]
async fn a_session_with_a_capability_of_its_own_never_gets_another() {
    let runtime = runtime().await;
    let admission = admission(&runtime, Anonymous::Principal).await;
    // A forged one opens nothing.
    let forged = presented("cap-forged");
    assert!(open(&admission, Some("alice"), Some(&forged)).await.is_err());
    let own = issued(&runtime, "cap-own").await;
    let session = open(&admission, Some("alice"), Some(&own)).await.unwrap();
    assert_eq!(session.principal.subject.as_ref(), Some(&own.subject));
    assert_eq!(ids(&admission, &session).await.unwrap(), ["cap-own"]);
}
