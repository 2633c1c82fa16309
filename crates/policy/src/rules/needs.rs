//! Which members of the context rules read: nothing else is computed for a call.

use cedar_policy::Policy;
use serde_json::Value;
use strum::VariantArray;

/// A set of members of the context.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Needs(u32);

/// A member of the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "camelCase", const_into_str)]
pub(super) enum Member {
    Action,
    Writes,
    Path,
    Paths,
    Folders,
    Host,
    Hosts,
    Domains,
    Command,
    Commands,
    ArgumentBytes,
    Tool,
    Capability,
    Chio,
    Session,
    Cost,
    Model,
    Intent,
    Time,
    Now,
}

impl Needs {
    /// Everything.
    pub(super) const ALL: Self = Self(u32::MAX);

    /// What a rule reads; everything where that is unknown.
    pub(super) fn of(policy: &Policy) -> Self {
        policy.to_json().map_or(Self::ALL, |json| Self::in_json(&json))
    }

    fn in_json(json: &Value) -> Self {
        match json {
            Value::Array(items) => {
                items.iter().fold(Self::default(), |needs, item| needs.and(Self::in_json(item)))
            }
            Value::Object(members) => {
                if members.get("Var").is_some_and(|name| name == "context") {
                    return Self::ALL;
                }
                let parts = members.iter().map(|(name, value)| match (name.as_str(), value) {
                    ("." | "has", access) if is_context(access) => Self::named(access),
                    (_, value) => Self::in_json(value),
                });
                parts.fold(Self::default(), Self::and)
            }
            _ => Self::default(),
        }
    }

    /// The member that `context.member` or `context has member` reads.
    fn named(access: &Value) -> Self {
        // `context has a.b` names its steps in a list.
        let name = access.get("attr").map(|name| name.get(0).unwrap_or(name));
        name.and_then(Value::as_str).map_or(Self::ALL, Self::one)
    }

    fn one(name: &str) -> Self {
        let member = Member::VARIANTS.iter().find(|member| member.into_str() == name);
        member.map_or(Self::ALL, |member| Self::just(*member))
    }

    const fn just(member: Member) -> Self {
        Self(1 << member as u32)
    }

    /// Both.
    #[must_use]
    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether this member is read.
    pub(super) const fn has(self, member: Member) -> bool {
        self.0 & Self::just(member).0 != 0
    }

    /// Whether one of these is read.
    pub(super) fn has_any(self, members: &[Member]) -> bool {
        members.iter().any(|member| self.has(*member))
    }
}

fn is_context(access: &Value) -> bool {
    let left = access.get("left").and_then(Value::as_object);
    left.is_some_and(|left| {
        left.len() == 1 && left.get("Var").is_some_and(|name| name == "context")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_rule_looks_at_is_needed() {
        let needs = |condition: &str| {
            let text = format!("forbid(principal, action, resource) when {{ {condition} }};");
            Needs::of(&Policy::parse(None, text).unwrap())
        };
        assert_eq!(needs("true"), Needs::default());
        assert_eq!(needs("context.paths.contains(\"a\")"), Needs::one("paths"));
        let model =
            needs("context has model && context.model has tier && context.model.tier == \"x\"");
        assert_eq!(model, Needs::one("model"));
        assert_eq!(needs("context has model.tier"), Needs::one("model"));
        let two = needs("if context.writes then context.time.hour > 3 else false");
        assert_eq!(two, Needs::one("writes").and(Needs::one("time")));
        assert!(two.has(Member::Time) && !two.has(Member::Now));
        assert!(two.has_any(&[Member::Now, Member::Writes]) && !two.has_any(&[Member::Now]));
        for whole in ["context == {}", "[context].isEmpty()", "{x: context}.x.writes"] {
            assert_eq!(needs(whole), Needs::ALL, "{whole}");
        }
        assert_eq!(needs("context.neverHeardOf"), Needs::ALL);
    }

    #[test]
    fn every_member_has_its_own_place_and_a_line_in_the_schema() {
        for (place, member) in Member::VARIANTS.iter().enumerate() {
            assert_eq!(Needs::just(*member), Needs(1 << place), "{member:?}");
            let line = |mark| format!("    {}{mark}: ", member.into_str());
            let schema = crate::rules::SCHEMA;
            assert!(schema.contains(&line("")) || schema.contains(&line("?")), "{member:?}");
        }
    }
}
