//! Conditions that a grant puts on each call. Whether one holds is decided in `matching`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::money::MonetaryAmount;
use crate::tier::{AutonomyTier, RuntimeAssurance, SafetyTier};

/// One condition. An unknown kind fails the parse of the whole token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(tag = "type", content = "value", rename_all = "snake_case", deny_unknown_fields)]
#[strum(serialize_all = "snake_case")]
pub enum Constraint {
    /// Every path in the arguments lies under this one.
    PathPrefix(String),
    /// Every host in the arguments is this one.
    DomainExact(String),
    /// Every host in the arguments matches this pattern.
    DomainGlob(String),
    /// Some string in the arguments matches.
    RegexMatch(String),
    /// No string in the arguments is longer, in bytes.
    MaxLength(u64),
    /// The arguments as compact JSON are no longer, in bytes.
    MaxArgsSize(u64),
    /// The call carries a governed intent.
    GovernedIntentRequired,
    /// Calls that may cost this much need an approval.
    RequireApprovalAbove(ApprovalThreshold),
    /// A rare profile: calls need an approval once they add up to this much.
    RequireCumulativeApprovalAbove(CumulativeThreshold),
    /// The intent's seller is this one.
    SellerExact(String),
    /// The runtime has shown at least this much.
    MinimumRuntimeAssurance(RuntimeAssurance),
    /// The intent declares at least this autonomy.
    MinimumAutonomyTier(AutonomyTier),
    /// Some member of this name has exactly this string.
    Custom(String, String),
    /// Queries touch these tables only.
    TableAllowlist(Vec<String>),
    /// Queries never touch these columns (`table.column`).
    ColumnDenylist(Vec<String>),
    /// Queries return at most this many rows.
    MaxRowsReturned(u64),
    /// Queries are of this class at most.
    OperationClass(OperationClass),
    /// Messages go to these receivers only.
    AudienceAllowlist(Vec<String>),
    /// Content is reviewed at this tier; no reviewer exists, so it never holds.
    ContentReviewTier(ContentReviewTier),
    /// A ceiling in dollars; no rate source exists, so it never holds.
    MaxTransactionAmountUsd(String),
    /// Two approvers; no such flow exists, so it never holds.
    RequireDualApproval(bool),
    /// The calling model is one of these, or careful enough.
    ModelConstraint(ModelRequirement),
    /// Memory is stored in these stores only.
    MemoryStoreAllowlist(Vec<String>),
    /// No string in the arguments matches any of these.
    MemoryWriteDenyPatterns(Vec<String>),
}

/// From how many minor units on a call needs an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalThreshold {
    /// Minor units.
    pub threshold_units: u64,
}

/// From which sum on calls need an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CumulativeThreshold {
    /// The sum.
    pub threshold: MonetaryAmount,
    /// The budget that calls are added up in.
    pub approval_budget_id: String,
    /// Its epoch.
    pub approval_budget_epoch: u64,
    /// The signed root of the budget, passed on unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cumulative_approval_root_binding: Option<Map<String, Value>>,
}

/// What a query may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperationClass {
    /// Read.
    ReadOnly,
    /// Read and write.
    ReadWrite,
    /// Change the schema.
    Admin,
}

/// How closely content is reviewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentReviewTier {
    /// Not at all.
    None,
    /// Somewhat.
    Basic,
    /// Closely.
    Strict,
}

/// Which models may call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelRequirement {
    /// The models; empty means any.
    #[serde(default)]
    pub allowed_model_ids: Vec<String>,
    /// The lowest tier; always written, `null` when there is none.
    #[serde(default)]
    pub min_safety_tier: Option<SafetyTier>,
}

impl Constraint {
    /// Whether a child with this constraint keeps a parent's constraint `theirs`.
    ///
    /// Constraints are preserved unchanged; only a cumulative threshold may be lowered.
    pub(super) fn preserves(&self, theirs: &Self) -> bool {
        match (self, theirs) {
            (
                Self::RequireCumulativeApprovalAbove(mine),
                Self::RequireCumulativeApprovalAbove(theirs),
            ) => {
                mine.threshold.is_within(&theirs.threshold)
                    && mine.approval_budget_id == theirs.approval_budget_id
                    && mine.approval_budget_epoch == theirs.approval_budget_epoch
                    && mine.cumulative_approval_root_binding
                        == theirs.cumulative_approval_root_binding
            }
            (mine, theirs) => mine == theirs,
        }
    }

    pub(super) const fn is_cumulative(&self) -> bool {
        matches!(self, Self::RequireCumulativeApprovalAbove(_))
    }

    /// The `type` that names this kind on the wire.
    pub fn kind(&self) -> &'static str {
        self.into()
    }
}
