//! Steps that narrow a scope, applied and checked.

use serde::{Deserialize, Serialize};

use super::constraint::Constraint;
use super::scope::{ChioScope, Operation, ToolGrant};
use crate::money::MonetaryAmount;

/// One step that narrows authority.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(tag = "type", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Attenuation {
    /// Removes the tool.
    RemoveTool {
        /// Its server.
        server_id: String,
        /// The tool.
        tool_name: String,
    },
    /// Removes one operation on the tool.
    RemoveOperation {
        /// Its server.
        server_id: String,
        /// The tool.
        tool_name: String,
        /// The operation.
        operation: Operation,
    },
    /// Adds a condition on calls of the tool.
    AddConstraint {
        /// Its server.
        server_id: String,
        /// The tool.
        tool_name: String,
        /// The condition.
        constraint: Constraint,
    },
    /// Lowers the number of calls of the tool.
    ReduceBudget {
        /// Its server.
        server_id: String,
        /// The tool.
        tool_name: String,
        /// The most calls.
        max_invocations: u32,
    },
    /// Lowers the cost of one call.
    ReduceCostPerInvocation {
        /// Its server.
        server_id: String,
        /// The tool.
        tool_name: String,
        /// The new ceiling.
        max_cost_per_invocation: MonetaryAmount,
    },
    /// Lowers the cost of all calls together.
    ReduceTotalCost {
        /// Its server.
        server_id: String,
        /// The tool.
        tool_name: String,
        /// The new ceiling.
        max_total_cost: MonetaryAmount,
    },
    /// Ends the authority sooner.
    ShortenExpiry {
        /// The first second in which it no longer holds.
        new_expires_at: u64,
    },
}

/// Why a step was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AttenuationError {
    /// No grant covers the tool.
    #[error("expected a grant for tool `{tool_name}` on server `{server_id}`, found none")]
    NoGrant {
        /// The server.
        server_id: String,
        /// The tool.
        tool_name: String,
    },
    /// The grant is a wildcard that also covers other tools.
    #[error(
        "expected a grant for exactly tool `{tool_name}` on server `{server_id}`, \
         found a wildcard grant: name the tool in the child scope instead"
    )]
    Wildcard {
        /// The server.
        server_id: String,
        /// The tool.
        tool_name: String,
    },
    /// The step would widen the grant.
    #[error("expected a step that narrows, found `{0}` that does not")]
    Widens(&'static str),
    /// The step is declared, but the child does not show it.
    #[error("step `{0}` is declared but not reflected in the child")]
    NotReflected(&'static str),
}

/// A scope and when it ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent<'a> {
    pub(super) scope: &'a ChioScope,
    pub(super) expires_at: u64,
}

impl ChioScope {
    /// Applies `steps` in order to this scope, which ends at `expires_at`.
    ///
    /// The result is a subset of this scope. A step on one tool of a wildcard grant is refused:
    /// it would also change the other tools of the grant.
    ///
    /// # Errors
    /// When a step names a tool that is not granted by name, or does not narrow.
    pub fn attenuate(
        &self,
        expires_at: u64,
        steps: &[Attenuation],
    ) -> Result<(Self, u64), AttenuationError> {
        let mut scope = self.clone();
        let mut ends = expires_at;
        for step in steps {
            match step.tool() {
                Some((server_id, tool_name)) => step.apply(&mut scope, server_id, tool_name)?,
                None => ends = step.apply_expiry(ends)?,
            }
        }
        Ok((scope, ends))
    }
}

impl Attenuation {
    /// The `type` that names this kind on the wire.
    pub fn kind(&self) -> &'static str {
        self.into()
    }

    /// The server and tool that the step is about; none for the expiry.
    fn tool(&self) -> Option<(&str, &str)> {
        match self {
            Self::RemoveTool { server_id, tool_name }
            | Self::RemoveOperation { server_id, tool_name, .. }
            | Self::AddConstraint { server_id, tool_name, .. }
            | Self::ReduceBudget { server_id, tool_name, .. }
            | Self::ReduceCostPerInvocation { server_id, tool_name, .. }
            | Self::ReduceTotalCost { server_id, tool_name, .. } => Some((server_id, tool_name)),
            Self::ShortenExpiry { .. } => None,
        }
    }

    fn apply(
        &self,
        scope: &mut ChioScope,
        server_id: &str,
        tool_name: &str,
    ) -> Result<(), AttenuationError> {
        let named = || (server_id.to_owned(), tool_name.to_owned());
        let mut any = false;
        for grant in scope.grants.iter_mut().filter(|grant| grant.overlaps(server_id, tool_name)) {
            if grant.server_id != server_id || grant.tool_name != tool_name {
                let (server_id, tool_name) = named();
                return Err(AttenuationError::Wildcard { server_id, tool_name });
            }
            any = true;
            if !self.narrow(grant) {
                return Err(AttenuationError::Widens(self.kind()));
            }
        }
        if !any {
            let (server_id, tool_name) = named();
            return Err(AttenuationError::NoGrant { server_id, tool_name });
        }
        if matches!(self, Self::RemoveTool { .. }) {
            scope.grants.retain(|grant| !grant.overlaps(server_id, tool_name));
        }
        Ok(())
    }

    /// Narrows one grant; false when the step would not.
    fn narrow(&self, grant: &mut ToolGrant) -> bool {
        if !self.is_reduction_of(grant) {
            return false;
        }
        match self {
            Self::RemoveOperation { operation, .. } => {
                grant.operations.retain(|held| held != operation);
            }
            Self::AddConstraint { constraint, .. } => {
                if !grant.constraints.contains(constraint) {
                    grant.constraints.push(constraint.clone());
                }
            }
            Self::ReduceBudget { max_invocations, .. } => {
                grant.max_invocations = Some(*max_invocations);
            }
            Self::ReduceCostPerInvocation { max_cost_per_invocation, .. } => {
                grant.max_cost_per_invocation = Some(max_cost_per_invocation.clone());
            }
            Self::ReduceTotalCost { max_total_cost, .. } => {
                grant.max_total_cost = Some(max_total_cost.clone());
            }
            Self::RemoveTool { .. } | Self::ShortenExpiry { .. } => {}
        }
        true
    }

    /// Whether the step only takes away from `grant`.
    fn is_reduction_of(&self, grant: &ToolGrant) -> bool {
        match self {
            Self::RemoveTool { .. } | Self::ShortenExpiry { .. } => true,
            Self::RemoveOperation { operation, .. } => grant.operations.contains(operation),
            // A cumulative approval budget cannot begin below its root.
            Self::AddConstraint { constraint, .. } => !constraint.is_cumulative(),
            Self::ReduceBudget { max_invocations, .. } => {
                grant.max_invocations.is_none_or(|held| *max_invocations <= held)
            }
            Self::ReduceCostPerInvocation { max_cost_per_invocation: cost, .. } => {
                grant.max_cost_per_invocation.as_ref().is_none_or(|held| cost.is_within(held))
            }
            Self::ReduceTotalCost { max_total_cost: cost, .. } => {
                grant.max_total_cost.as_ref().is_none_or(|held| cost.is_within(held))
            }
        }
    }

    fn apply_expiry(&self, ends: u64) -> Result<u64, AttenuationError> {
        match self {
            Self::ShortenExpiry { new_expires_at } if *new_expires_at <= ends => {
                Ok(*new_expires_at)
            }
            _ => Err(AttenuationError::Widens(self.kind())),
        }
    }

    /// Checks a declared step against the parent it was taken from and the child that shows it.
    pub(super) fn check(
        &self,
        parent: Extent<'_>,
        child: Extent<'_>,
    ) -> Result<(), AttenuationError> {
        let Some((server_id, tool_name)) = self.tool() else {
            let ends = self.apply_expiry(parent.expires_at)?;
            let reflected = child.expires_at <= ends;
            return if reflected { Ok(()) } else { Err(self.not_reflected()) };
        };
        let covering = parent.scope.grants.iter().filter(|g| g.covers(server_id, tool_name));
        let mut covering = covering.peekable();
        if covering.peek().is_none() {
            let (server_id, tool_name) = (server_id.to_owned(), tool_name.to_owned());
            return Err(AttenuationError::NoGrant { server_id, tool_name });
        }
        if !covering.any(|grant| self.is_reduction_of(grant)) {
            return Err(AttenuationError::Widens(self.kind()));
        }
        let mut shown =
            child.scope.grants.iter().filter(|grant| grant.overlaps(server_id, tool_name));
        if shown.all(|grant| self.is_shown_by(grant)) { Ok(()) } else { Err(self.not_reflected()) }
    }

    fn is_shown_by(&self, grant: &ToolGrant) -> bool {
        match self {
            Self::RemoveTool { .. } => false,
            Self::RemoveOperation { operation, .. } => !grant.operations.contains(operation),
            Self::AddConstraint { constraint, .. } => grant.constraints.contains(constraint),
            Self::ReduceBudget { max_invocations, .. } => {
                grant.max_invocations.is_some_and(|held| held <= *max_invocations)
            }
            Self::ReduceCostPerInvocation { max_cost_per_invocation: cost, .. } => {
                grant.max_cost_per_invocation.as_ref().is_some_and(|held| held.is_within(cost))
            }
            Self::ReduceTotalCost { max_total_cost: cost, .. } => {
                grant.max_total_cost.as_ref().is_some_and(|held| held.is_within(cost))
            }
            Self::ShortenExpiry { .. } => true,
        }
    }

    fn not_reflected(&self) -> AttenuationError {
        AttenuationError::NotReflected(self.kind())
    }
}
