//! Rules cut into slices by the agent and by the tool or server that they name.
//!
//! A rule whose head names an agent, a tool or a server is false for all others, so to leave it out
//! for them changes nothing. Whatever else a head says is left to the engine, in the slice that is
//! always asked.

use std::collections::HashMap;
use std::sync::Arc;

use cedar_policy::{Effect, EntityUid, Policy, PolicySet, PrincipalConstraint, ResourceConstraint};

use super::id_of;
use super::needs::Needs;

/// What the head of a rule names.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Scope {
    /// An agent, by its key.
    pub(crate) agent: Option<String>,
    /// A tool or a server.
    pub(crate) target: Target,
}

impl Scope {
    /// A server and a tool that the rule can speak of.
    pub(crate) fn example(&self) -> (String, String) {
        let (server, tool) = match &self.target {
            Target::Any => ("example", "example"),
            Target::Server(server) => return (server.clone(), "example".to_owned()),
            Target::Tool(id) => id.split_once('/').unwrap_or(("example", id)),
        };
        (server.replace("%2F", "/").replace("%25", "%"), tool.to_owned())
    }
}

/// The tools that a rule is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Target {
    /// All.
    #[default]
    Any,
    /// Those of one server.
    Server(String),
    /// One, by its name among all servers.
    Tool(String),
}

/// Rules with the same scope. Those that permit are apart, since the engine does not say whether
/// anything permits what something else forbids.
#[derive(Debug, Default)]
pub(super) struct Slice {
    pub(super) forbids: Option<PolicySet>,
    pub(super) permits: Option<PolicySet>,
    pub(super) needs: Needs,
    /// How many rules there are.
    pub(super) len: usize,
}

/// The slices of one target, by agent.
#[derive(Debug, Default)]
pub(super) struct Group {
    any: Option<Slice>,
    agents: HashMap<String, Slice>,
}

impl Group {
    fn slice(&mut self, agent: Option<&String>) -> &mut Slice {
        match agent {
            None => self.any.get_or_insert_default(),
            Some(agent) => self.agents.entry(agent.clone()).or_default(),
        }
    }

    /// The slices that can speak of an agent.
    pub(super) fn about(&self, agent: &str) -> impl Iterator<Item = &Slice> {
        [self.any.as_ref(), self.agents.get(agent)].into_iter().flatten()
    }
}

/// All slices.
#[derive(Debug, Default)]
pub(super) struct Slices {
    groups: HashMap<Target, Arc<Group>>,
    scopes: Vec<Scope>,
}

impl Slices {
    /// Cuts rules into slices. A rule's number is its place.
    ///
    /// # Errors
    /// When the engine refuses one.
    pub(super) fn of(policies: &[Policy]) -> Result<Self, String> {
        let mut groups: HashMap<Target, Group> = HashMap::new();
        let mut scopes = Vec::new();
        for (number, policy) in policies.iter().enumerate() {
            let scope = scope_of(policy);
            let group = groups.entry(scope.target.clone()).or_default();
            let slice = group.slice(scope.agent.as_ref());
            slice.needs = slice.needs.and(Needs::of(policy));
            slice.len += 1;
            let set = match policy.effect() {
                Effect::Forbid => slice.forbids.get_or_insert_default(),
                Effect::Permit => slice.permits.get_or_insert_default(),
            };
            set.add(policy.new_id(id_of(number))).map_err(|error| error.to_string())?;
            scopes.push(scope);
        }
        let groups = groups.into_iter().map(|(target, group)| (target, Arc::new(group))).collect();
        Ok(Self { groups, scopes })
    }

    /// What each rule names.
    pub(super) fn scopes(&self) -> &[Scope] {
        &self.scopes
    }

    /// The groups that can speak of a tool.
    pub(super) fn groups(&self, server: &str, tool_id: &str) -> Vec<Arc<Group>> {
        let targets =
            [Target::Any, Target::Server(server.to_owned()), Target::Tool(tool_id.to_owned())];
        targets.iter().filter_map(|target| self.groups.get(target).cloned()).collect()
    }
}

fn scope_of(policy: &Policy) -> Scope {
    let is = |uid: &EntityUid, kind: &str| uid.type_name().to_string() == kind;
    let agent = match policy.principal_constraint() {
        // Agents are in nothing but themselves.
        PrincipalConstraint::Eq(uid)
        | PrincipalConstraint::In(uid)
        | PrincipalConstraint::IsIn(_, uid)
            if is(&uid, "Agent") =>
        {
            Some(uid)
        }
        _ => None,
    };
    let target = match policy.resource_constraint() {
        ResourceConstraint::Eq(uid)
        | ResourceConstraint::In(uid)
        | ResourceConstraint::IsIn(_, uid)
            if is(&uid, "Tool") =>
        {
            Target::Tool(text(&uid))
        }
        ResourceConstraint::In(uid) | ResourceConstraint::IsIn(_, uid) if is(&uid, "Server") => {
            Target::Server(text(&uid))
        }
        _ => Target::Any,
    };
    Scope { agent: agent.as_ref().map(text), target }
}

fn text(uid: &EntityUid) -> String {
    uid.id().unescaped().to_owned()
}
