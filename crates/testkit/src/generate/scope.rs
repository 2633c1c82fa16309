//! Random scopes, narrower scopes, and steps that lead to them.

use chio_core::capability::{
    ApprovalThreshold, Attenuation, ChioScope, Constraint, CumulativeThreshold, ModelRequirement,
    Operation, PromptGrant, ResourceGrant, ToolGrant, WILDCARD,
};
use chio_core::money::MonetaryAmount;
use chio_core::tier::{AutonomyTier, RuntimeAssurance, SafetyTier};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

const OPERATIONS: [Operation; 6] = [
    Operation::Invoke,
    Operation::ReadResult,
    Operation::Read,
    Operation::Subscribe,
    Operation::Get,
    Operation::Delegate,
];

fn name() -> impl Strategy<Value = String> {
    select(vec![WILDCARD, "files", "mail", "shell"]).prop_map(str::to_owned)
}

fn pattern() -> impl Strategy<Value = String> {
    select(vec![WILDCARD, "a*", "ab*", "a**", "**", "*a", "abc", "b", "a", ""])
        .prop_map(str::to_owned)
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    subsequence(OPERATIONS.to_vec(), 0..=OPERATIONS.len()).prop_shuffle()
}

fn money() -> impl Strategy<Value = MonetaryAmount> {
    (0u64..4, select(vec!["USD", "EUR"])).prop_map(|(units, code)| MonetaryAmount::new(units, code))
}

fn words() -> impl Strategy<Value = Vec<String>> {
    vec("[a-c]{1,2}", 0..3)
}

fn constraint() -> impl Strategy<Value = Constraint> {
    prop_oneof![
        "/[a-c]{0,2}".prop_map(Constraint::PathPrefix),
        "[a-c]\\.example".prop_map(Constraint::DomainExact),
        "\\*\\.[a-c]".prop_map(Constraint::DomainGlob),
        "\\^[a-c]\\+".prop_map(Constraint::RegexMatch),
        (0u64..3).prop_map(Constraint::MaxLength),
        (0u64..3).prop_map(Constraint::MaxArgsSize),
        Just(Constraint::GovernedIntentRequired),
        (0u64..3).prop_map(|threshold_units| {
            Constraint::RequireApprovalAbove(ApprovalThreshold { threshold_units })
        }),
        "[a-c]".prop_map(Constraint::SellerExact),
        Just(Constraint::MinimumRuntimeAssurance(RuntimeAssurance::Attested)),
        Just(Constraint::MinimumAutonomyTier(AutonomyTier::Delegated)),
        ("[ab]", "[ab]").prop_map(|(key, value)| Constraint::Custom(key, value)),
        words().prop_map(Constraint::TableAllowlist),
        words().prop_map(Constraint::AudienceAllowlist),
        words().prop_map(Constraint::MemoryStoreAllowlist),
        (words(), option::of(select(vec![SafetyTier::Low, SafetyTier::High]))).prop_map(
            |(allowed_model_ids, min_safety_tier)| {
                Constraint::ModelConstraint(ModelRequirement { allowed_model_ids, min_safety_tier })
            }
        ),
    ]
}

/// Constraints of the rare cumulative profile, which has its own subset rule.
fn cumulative() -> impl Strategy<Value = Constraint> {
    (money(), "[ab]", 0u64..2).prop_map(|(threshold, approval_budget_id, approval_budget_epoch)| {
        Constraint::RequireCumulativeApprovalAbove(CumulativeThreshold {
            threshold,
            approval_budget_id,
            approval_budget_epoch,
            cumulative_approval_root_binding: None,
        })
    })
}

/// A grant of a tool.
pub fn tool_grant() -> impl Strategy<Value = ToolGrant> {
    let constraints = vec(prop_oneof![8 => constraint(), 1 => cumulative()], 0..3);
    let limits = (option::of(0u32..4), option::of(money()), option::of(money()));
    let dpop = option::of(any::<bool>());
    (name(), name(), operations(), constraints, limits, dpop).prop_map(
        |(server_id, tool_name, operations, constraints, limits, dpop_required)| ToolGrant {
            server_id,
            tool_name,
            operations,
            constraints,
            max_invocations: limits.0,
            max_cost_per_invocation: limits.1,
            max_total_cost: limits.2,
            dpop_required,
        },
    )
}

/// A scope.
pub fn scope() -> impl Strategy<Value = ChioScope> {
    let resources = vec((pattern(), operations()), 0..3);
    let prompts = vec((pattern(), operations()), 0..2);
    (vec(tool_grant(), 0..4), resources, prompts).prop_map(|(grants, resources, prompts)| {
        let resource = |(uri_pattern, operations)| ResourceGrant { uri_pattern, operations };
        let prompt = |(prompt_name, operations)| PromptGrant { prompt_name, operations };
        ChioScope {
            grants,
            resource_grants: resources.into_iter().map(resource).collect(),
            prompt_grants: prompts.into_iter().map(prompt).collect(),
        }
    })
}

/// A scope that takes some of the grants of `from` and makes each of them narrower.
pub fn narrower(from: ChioScope) -> impl Strategy<Value = ChioScope> {
    let count = from.grants.len();
    let grants = subsequence(from.grants, 0..=count)
        .prop_flat_map(|grants| grants.into_iter().map(narrower_grant).collect::<Vec<_>>());
    let resources = from.resource_grants.len();
    let resources = subsequence(from.resource_grants, 0..=resources);
    let prompts = from.prompt_grants.len();
    let prompts = subsequence(from.prompt_grants, 0..=prompts);
    (grants, resources, prompts).prop_map(|(grants, resource_grants, prompt_grants)| ChioScope {
        grants,
        resource_grants,
        prompt_grants,
    })
}

fn narrower_grant(from: ToolGrant) -> impl Strategy<Value = ToolGrant> {
    let kept = from.operations.len();
    let operations = subsequence(from.operations.clone(), 0..=kept);
    let concrete = |name: &str| match name {
        WILDCARD => select(vec![WILDCARD, "files", "mail"]).boxed(),
        _ => Just("").boxed(),
    };
    let names = (concrete(&from.server_id), concrete(&from.tool_name));
    let limit = from.max_invocations.map_or(9, |most| most);
    (names, operations, vec(constraint(), 0..2), option::of(0..=limit), any::<bool>()).prop_map(
        move |((server, tool), operations, extra, limit, dpop)| {
            let mut grant = from.clone();
            if !server.is_empty() {
                server.clone_into(&mut grant.server_id);
            }
            if !tool.is_empty() {
                tool.clone_into(&mut grant.tool_name);
            }
            grant.operations = operations;
            grant.constraints.extend(extra);
            grant.max_invocations = limit.or(grant.max_invocations);
            if dpop {
                grant.dpop_required = Some(true);
            }
            grant
        },
    )
}

/// A grant that differs from `from` in one thing, either way, or only in how it is written: such
/// grants are often within each other.
pub fn near(from: ToolGrant) -> impl Strategy<Value = ToolGrant> {
    let other = (name(), operations(), constraint(), option::of(0u32..4), option::of(money()));
    (0u8..10, other, option::of(any::<bool>())).prop_map(move |(what, other, dpop)| {
        let (name, operations, constraint, limit, cost) = other;
        let mut grant = from.clone();
        match what {
            0 => grant.server_id = name,
            1 => grant.tool_name = name,
            2 => grant.operations = operations,
            3 => grant.constraints.push(constraint),
            4 => drop(grant.constraints.pop()),
            5 => grant.max_invocations = limit,
            6 => grant.max_cost_per_invocation = cost,
            7 => grant.dpop_required = dpop,
            8 => grant.operations.reverse(),
            _ => grant.constraints.extend(from.constraints.iter().cloned()),
        }
        grant
    })
}

/// Steps on the tools that the generated scopes speak of; many do not apply.
pub fn steps() -> impl Strategy<Value = Vec<Attenuation>> {
    let step = (name(), name()).prop_flat_map(|(server_id, tool_name)| {
        let tool = move || (server_id.clone(), tool_name.clone());
        let (a, b, c, d, e, f) =
            (tool.clone(), tool.clone(), tool.clone(), tool.clone(), tool.clone(), tool);
        prop_oneof![
            Just(()).prop_map(move |()| {
                let (server_id, tool_name) = a();
                Attenuation::RemoveTool { server_id, tool_name }
            }),
            select(OPERATIONS.to_vec()).prop_map(move |operation| {
                let (server_id, tool_name) = b();
                Attenuation::RemoveOperation { server_id, tool_name, operation }
            }),
            constraint().prop_map(move |constraint| {
                let (server_id, tool_name) = c();
                Attenuation::AddConstraint { server_id, tool_name, constraint }
            }),
            (0u32..4).prop_map(move |max_invocations| {
                let (server_id, tool_name) = d();
                Attenuation::ReduceBudget { server_id, tool_name, max_invocations }
            }),
            money().prop_map(move |max_cost_per_invocation| {
                let (server_id, tool_name) = e();
                Attenuation::ReduceCostPerInvocation {
                    server_id,
                    tool_name,
                    max_cost_per_invocation,
                }
            }),
            money().prop_map(move |max_total_cost| {
                let (server_id, tool_name) = f();
                Attenuation::ReduceTotalCost { server_id, tool_name, max_total_cost }
            }),
            (0u64..200).prop_map(|new_expires_at| Attenuation::ShortenExpiry { new_expires_at }),
        ]
    });
    vec(step, 0..4)
}
