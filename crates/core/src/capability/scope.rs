//! Scopes and grants, and when one is no wider than another.

use serde::{Deserialize, Serialize};

use super::constraint::Constraint;
use crate::canonical::{self, CanonicalError};
use crate::money::MonetaryAmount;

/// The one wildcard of servers, tools and patterns.
pub const WILDCARD: &str = "*";

/// What a holder may do with a granted tool, resource or prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Operation {
    /// Call a tool.
    Invoke,
    /// Read the result of a tool call.
    ReadResult,
    /// Read a resource.
    Read,
    /// Be notified when a resource changes.
    Subscribe,
    /// Get a prompt.
    Get,
    /// Delegate the grant.
    Delegate,
}

/// Everything that a token grants.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChioScope {
    /// Tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<ToolGrant>,
    /// Resources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resource_grants: Vec<ResourceGrant>,
    /// Prompts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prompt_grants: Vec<PromptGrant>,
}

/// Permission to use a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolGrant {
    /// The tool server, or [`WILDCARD`].
    pub server_id: String,
    /// The tool, or [`WILDCARD`].
    pub tool_name: String,
    /// What may be done with it.
    pub operations: Vec<Operation>,
    /// Conditions on each call; all must hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<Constraint>,
    /// The most calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_invocations: Option<u32>,
    /// The most that one call may cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost_per_invocation: Option<MonetaryAmount>,
    /// The most that all calls may cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_total_cost: Option<MonetaryAmount>,
    /// Whether each call needs a proof of possession.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dpop_required: Option<bool>,
}

/// Permission to use resources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceGrant {
    /// A URI, [`WILDCARD`], or a prefix with one trailing `*`.
    pub uri_pattern: String,
    /// What may be done with them.
    pub operations: Vec<Operation>,
}

/// Permission to use prompts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptGrant {
    /// A name, [`WILDCARD`], or a prefix with one trailing `*`.
    pub prompt_name: String,
    /// What may be done with them.
    pub operations: Vec<Operation>,
}

impl ChioScope {
    /// Whether every grant here is covered by one grant of `parent`.
    ///
    /// Grants of the parent are not added up: each child grant must fit into a single one.
    #[must_use]
    pub fn is_subset_of(&self, parent: &Self) -> bool {
        self.is_covered(parent, |_| true)
    }

    /// As [`Self::is_subset_of`], by grants of `parent` that may be delegated.
    #[must_use]
    pub fn is_delegable_from(&self, parent: &Self) -> bool {
        self.is_covered(parent, |operations| operations.contains(&Operation::Delegate))
    }

    fn is_covered(&self, parent: &Self, counts: impl Fn(&[Operation]) -> bool) -> bool {
        self.grants.iter().all(|child| {
            parent.grants.iter().any(|p| counts(&p.operations) && child.is_subset_of(p))
        }) && self.resource_grants.iter().all(|child| {
            parent.resource_grants.iter().any(|p| counts(&p.operations) && child.is_subset_of(p))
        }) && self.prompt_grants.iter().all(|child| {
            parent.prompt_grants.iter().any(|p| counts(&p.operations) && child.is_subset_of(p))
        })
    }

    /// The place of a grant that allows everything that a server can do: all of its tools, without
    /// constraints, budgets or proofs.
    pub fn whole_server_grant(&self, server_id: &str) -> Option<usize> {
        self.grants.iter().position(|grant| {
            grant.covers(server_id, WILDCARD)
                && grant.operations.contains(&Operation::Invoke)
                && *grant == ToolGrant::new(&*grant.server_id, &*grant.tool_name, &grant.operations)
        })
    }

    /// Whether any grant may be delegated.
    #[must_use]
    pub fn has_delegate(&self) -> bool {
        let mut operations = (self.grants.iter().map(|grant| &grant.operations))
            .chain(self.resource_grants.iter().map(|grant| &grant.operations))
            .chain(self.prompt_grants.iter().map(|grant| &grant.operations));
        operations.any(|operations| operations.contains(&Operation::Delegate))
    }

    /// SHA-256 of the canonical scope.
    ///
    /// # Errors
    /// When the scope has no canonical form.
    pub fn hash(&self) -> Result<String, CanonicalError> {
        canonical::hash(self)
    }
}

impl ToolGrant {
    /// Permission for these operations on a tool, without constraints or limits.
    pub fn new(
        server_id: impl Into<String>,
        tool_name: impl Into<String>,
        operations: &[Operation],
    ) -> Self {
        Self {
            server_id: server_id.into(),
            tool_name: tool_name.into(),
            operations: operations.to_vec(),
            constraints: Vec::new(),
            max_invocations: None,
            max_cost_per_invocation: None,
            max_total_cost: None,
            dpop_required: None,
        }
    }

    /// Whether this grant gives no more than `parent`.
    #[must_use]
    pub fn is_subset_of(&self, parent: &Self) -> bool {
        parent.covers(&self.server_id, &self.tool_name)
            && are_within(&self.operations, &parent.operations)
            && self.keeps_limits_of(parent)
            && self.keeps_constraints_of(parent)
            && (parent.dpop_required != Some(true) || self.dpop_required == Some(true))
    }

    /// Whether the grant covers this tool. A wildcard is covered by a wildcard only.
    #[must_use]
    pub fn covers(&self, server_id: &str, tool_name: &str) -> bool {
        let covers = |mine: &str, asked| mine == WILDCARD || mine == asked;
        covers(&self.server_id, server_id) && covers(&self.tool_name, tool_name)
    }

    /// Whether the grant and the given tool, either with wildcards, have a tool in common.
    #[must_use]
    pub(super) fn overlaps(&self, server_id: &str, tool_name: &str) -> bool {
        let meets = |mine: &str, asked| mine == WILDCARD || asked == WILDCARD || mine == asked;
        meets(&self.server_id, server_id) && meets(&self.tool_name, tool_name)
    }

    fn keeps_limits_of(&self, parent: &Self) -> bool {
        let within = MonetaryAmount::is_within;
        keeps(&self.max_invocations, &parent.max_invocations, |child, parent| child <= parent)
            && keeps(&self.max_cost_per_invocation, &parent.max_cost_per_invocation, within)
            && keeps(&self.max_total_cost, &parent.max_total_cost, within)
    }

    fn keeps_constraints_of(&self, parent: &Self) -> bool {
        let (own, inherited) = (&self.constraints, &parent.constraints);
        inherited.iter().all(|theirs| own.iter().any(|mine| mine.preserves(theirs)))
            // A cumulative approval budget cannot begin below its root.
            && own.iter().filter(|mine| mine.is_cumulative()).all(|mine| {
                inherited.iter().any(|theirs| mine.preserves(theirs))
            })
    }
}

/// Whether a limit of the parent is preserved: set where the parent sets it, and no higher.
fn keeps<T>(child: &Option<T>, parent: &Option<T>, within: impl Fn(&T, &T) -> bool) -> bool {
    match (child, parent) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(child), Some(parent)) => within(child, parent),
    }
}

fn are_within(child: &[Operation], parent: &[Operation]) -> bool {
    child.iter().all(|operation| parent.contains(operation))
}

/// Whether `pattern` covers `text`, which may itself be a pattern.
fn pattern_covers(pattern: &str, text: &str) -> bool {
    // SECURITY: of a pattern only its prefix counts: `a*` is not within `a**`, whose prefix is `a*`.
    let covered = text.strip_suffix('*').unwrap_or(text);
    pattern == text || pattern.strip_suffix('*').is_some_and(|prefix| covered.starts_with(prefix))
}

impl ResourceGrant {
    /// Whether this grant gives no more than `parent`.
    #[must_use]
    pub fn is_subset_of(&self, parent: &Self) -> bool {
        parent.covers(&self.uri_pattern) && are_within(&self.operations, &parent.operations)
    }

    /// Whether the grant covers this URI (or of every URI of this pattern).
    #[must_use]
    pub fn covers(&self, uri: &str) -> bool {
        pattern_covers(&self.uri_pattern, uri)
    }
}

impl PromptGrant {
    /// Whether this grant gives no more than `parent`.
    #[must_use]
    pub fn is_subset_of(&self, parent: &Self) -> bool {
        parent.covers(&self.prompt_name) && are_within(&self.operations, &parent.operations)
    }

    /// Whether the grant covers this prompt (or of every prompt of this pattern).
    #[must_use]
    pub fn covers(&self, name: &str) -> bool {
        pattern_covers(&self.prompt_name, name)
    }
}
