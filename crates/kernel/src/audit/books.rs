//! What receipts say of budgets and revocations, against what the store says of them.
//!
//! Receipts say less than the store knows: a call that was denied by its tool is debited too, and a
//! revocation shows only in a call that it denied. So the store must say at least as much.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chio_core::capability::{CapabilityToken, ToolGrant};
use chio_core::receipt::{ChioReceipt, Decision, LoggedReceipt};

use crate::revocation::revoked_id;
use crate::road::grants_above;
use crate::store::{Spent, Store, StoreResult};

/// Tokens that are read at once.
const PAGE: usize = 500;

/// A grant of a token.
type Grant = (String, u32);

/// What one receipt says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    Nothing,
    /// A grant of a token was used, for this much money.
    Used(Grant, u64),
    /// A token is revoked.
    Revoked(String),
}

impl Said {
    pub(super) fn by(receipt: &LoggedReceipt) -> Self {
        let LoggedReceipt::Call(receipt) = receipt else { return Self::Nothing };
        match &receipt.decision {
            Some(Decision::Allow) => Self::used(receipt).unwrap_or(Self::Nothing),
            Some(Decision::Deny { reason, .. }) => match revoked_id(reason) {
                Some(id) => Self::Revoked(id.to_owned()),
                None => Self::Nothing,
            },
            _ => Self::Nothing,
        }
    }

    fn used(receipt: &ChioReceipt) -> Option<Self> {
        let member = |path: &str| receipt.metadata.as_ref()?.pointer(path)?.as_u64();
        let grant_index = u32::try_from(member("/attribution/grant_index")?).ok()?;
        let units = member("/financial/cost_charged").unwrap_or(0);
        Some(Self::Used((receipt.capability_id.clone(), grant_index), units))
    }
}

/// What all receipts say.
#[derive(Debug, Default)]
pub(super) struct Books {
    used: BTreeMap<Grant, Spent>,
    revoked: BTreeSet<String>,
}

impl Books {
    pub(super) fn note(&mut self, said: Said) {
        match said {
            Said::Nothing => {}
            Said::Used(grant, units) => add(self.used.entry(grant).or_default(), 1, units),
            Said::Revoked(id) => drop(self.revoked.insert(id)),
        }
    }

    /// What the store says otherwise.
    pub(super) async fn problems<S: Store + ?Sized>(self, store: &S) -> StoreResult<Vec<String>> {
        let mut problems = Vec::new();
        let (known, numbers) = (store.revoked_since(0).await?, store.numbers().await?);
        if numbers.revoked > numbers.epoch {
            let (revoked, epoch) = (numbers.revoked, numbers.epoch);
            let text = format!("expected an epoch of revocations of {revoked} at least");
            problems.push(format!("{text}, for as many tokens are revoked, found {epoch}"));
        }
        let known: BTreeSet<String> = known.ids.into_iter().collect();
        for id in self.revoked.difference(&known) {
            problems
                .push(format!("expected `{id}` to be revoked, as a receipt says, found it valid"));
        }
        let mut spent = HashMap::new();
        let used: Vec<(Grant, Spent)> = self.used.into_iter().collect();
        for page in used.chunks(PAGE) {
            problems.extend(debit(store, page, &mut spent).await?);
        }
        for ((id, index), (least, limits)) in spent {
            let found = store.spent(&id, index).await?;
            let of = format!("grant {index} of `{id}`");
            if limits.calls && found.invocations < least.invocations {
                let (least, found) = (least.invocations, found.invocations);
                problems.push(format!("expected {least} calls debited from {of}, found {found}"));
            }
            if limits.money && found.units < least.units {
                let (least, found) = (least.units, found.units);
                problems.push(format!("expected {least} units debited from {of}, found {found}"));
            }
        }
        problems.sort();
        Ok(problems)
    }
}

fn add(spent: &mut Spent, calls: u64, units: u64) {
    spent.invocations = spent.invocations.saturating_add(calls);
    spent.units = spent.units.saturating_add(units);
}

/// What a grant has a budget of.
#[derive(Debug, Clone, Copy)]
struct Limits {
    calls: bool,
    money: bool,
}

impl From<&ToolGrant> for Limits {
    fn from(grant: &ToolGrant) -> Self {
        Self { calls: grant.max_invocations.is_some(), money: grant.max_total_cost.is_some() }
    }
}

/// Debits grants, and those above them, as the kernel does. Tells of tokens that are not what was
/// used.
async fn debit<S: Store + ?Sized>(
    store: &S,
    page: &[(Grant, Spent)],
    spent: &mut HashMap<Grant, (Spent, Limits)>,
) -> StoreResult<Vec<String>> {
    let mut problems = Vec::new();
    let ids: BTreeSet<&String> = page.iter().map(|((id, _), _)| id).collect();
    let mut tokens = read(store, ids.into_iter().cloned().collect()).await?;
    let links = tokens.values().flat_map(|token| &token.delegation_chain);
    let above: BTreeSet<String> = links.map(|link| link.capability_id.clone()).collect();
    tokens.extend(read(store, above.into_iter().collect()).await?);
    for ((id, index), used) in page {
        let Some(token) = tokens.get(id) else {
            problems.push(format!("expected the token `{id}`, which was used, found none"));
            continue;
        };
        if let Err(error) = token.check_token_signature() {
            problems.push(format!("the token `{id}`: {error}"));
        }
        let at = usize::try_from(*index).unwrap_or(usize::MAX);
        let Some(grant) = token.scope.grants.get(at) else { continue };
        let mut take = |id: &str, index: u32, grant: &ToolGrant| {
            let grant_of = (id.to_owned(), index);
            let (spent, _) = spent.entry(grant_of).or_insert((Spent::default(), grant.into()));
            add(spent, used.invocations, used.units);
        };
        take(id, *index, grant);
        let links = token.delegation_chain.iter();
        let ancestors: Option<Vec<CapabilityToken>> =
            links.map(|link| tokens.get(&link.capability_id).cloned()).collect();
        // A missing ancestor was not used itself, so that nothing says what it had.
        let Some(ancestors) = ancestors else { continue };
        for reference in grants_above(token, at, &ancestors) {
            let Some(ancestor) = ancestors.get(reference.ancestor) else { continue };
            let Some(grant) = ancestor.scope.grants.get(reference.grant) else { continue };
            take(&ancestor.id, u32::try_from(reference.grant).unwrap_or(u32::MAX), grant);
        }
    }
    Ok(problems)
}

async fn read<S: Store + ?Sized>(
    store: &S,
    ids: Vec<String>,
) -> StoreResult<HashMap<String, CapabilityToken>> {
    let found = store.tokens(&ids).await?;
    Ok(found.into_iter().map(|token| (token.id.clone(), token)).collect())
}
