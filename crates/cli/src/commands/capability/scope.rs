//! The scope of a token to be: from a file, from the short form, or from a parent's by steps.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use chio_core::capability::{
    Attenuation, AttenuationError, ChioScope, Constraint, Operation, Patterns, ToolGrant,
};
use chio_core::strict;
use serde_json::Value;

use crate::io::Io;
use crate::outcome::Refused;
use crate::strict_input;

/// The options that say what a token grants.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// The scope as JSON: grants, resource_grants and prompt_grants
    #[arg(long, value_name = "FILE", conflicts_with = "grant")]
    scope: Option<PathBuf>,
    /// Grant a tool; operations are invoke unless named, * is any server or any tool
    #[arg(long, value_name = "SERVER/TOOL[:OP,OP]")]
    grant: Vec<String>,
    /// How often each granted tool may be called
    #[arg(long, value_name = "N", requires = "grant")]
    max_invocations: Option<u32>,
    /// A condition on each call of the granted tools, as JSON
    #[arg(long, value_name = "JSON", requires = "grant")]
    constraint: Vec<String>,
    /// Ask for a proof of possession with each call of the granted tools
    #[arg(long, requires = "grant")]
    dpop: bool,
}

impl Options {
    /// The scope that the options describe, if they describe one.
    pub(super) fn read(&self, io: &mut Io<'_>) -> Result<Option<ChioScope>> {
        match &self.scope {
            Some(path) => read_file(io, path).map(Some),
            None if self.grant.is_empty() => Ok(None),
            None => self.short_form().map(Some),
        }
    }

    fn short_form(&self) -> Result<ChioScope> {
        let constraints = from_options::<Constraint>("--constraint", &self.constraint)?;
        let grant = |text: &String| {
            let (server_id, tool_name, operations) = parse_grant(text)?;
            Ok(ToolGrant {
                server_id,
                tool_name,
                operations,
                constraints: constraints.clone(),
                max_invocations: self.max_invocations,
                max_cost_per_invocation: None,
                max_total_cost: None,
                dpop_required: self.dpop.then_some(true),
            })
        };
        let grants = self.grant.iter().map(grant).collect::<Result<_>>()?;
        let scope = ChioScope { grants, ..ChioScope::default() };
        check_constraints(&scope)?;
        Ok(scope)
    }
}

/// Reads a scope that stands in a file of its own.
pub(super) fn read_file(io: &mut Io<'_>, path: &Path) -> Result<ChioScope> {
    let scope = io.read_exact_json(path, "a scope")?;
    check_constraints(&scope)?;
    Ok(scope)
}

/// Reads the JSON values of an option that can be repeated.
pub(super) fn from_options<T>(option: &str, texts: &[String]) -> Result<Vec<T>>
where
    T: serde::de::DeserializeOwned + serde::Serialize,
{
    let read = |text: &String| strict_input::from_slice(text.as_bytes());
    let read = texts.iter().map(read).collect::<Result<_, _>>();
    read.with_context(|| format!("cannot take {option}"))
}

/// Reads `SERVER/TOOL` or `SERVER/TOOL:OP,OP`.
fn parse_grant(text: &str) -> Result<(String, String, Vec<Operation>)> {
    let Some((server, rest)) = text.split_once('/') else {
        bail!("expected SERVER/TOOL or SERVER/TOOL:OP,OP for --grant, found no `/`");
    };
    let (tool, operations) = rest.rsplit_once(':').unwrap_or((rest, "invoke"));
    if server.is_empty() || tool.is_empty() {
        bail!("expected a server and a tool around `/` for --grant, found an empty name");
    }
    let operations = operations.split(',').map(parse_operation).collect::<Result<_>>()?;
    Ok((server.to_owned(), tool.to_owned(), operations))
}

fn parse_operation(name: &str) -> Result<Operation> {
    let quoted = Value::String(name.to_owned()).to_string();
    strict::from_slice(quoted.as_bytes()).ok().context(
        "expected operations out of invoke, read_result, read, subscribe, get and delegate \
         after `:` for --grant (a tool with `:` in its name needs --scope)",
    )
}

/// Refuses constraints that no call could ever be held against, such as a broken pattern.
fn check_constraints(scope: &ChioScope) -> Result<(), Refused> {
    let constraints = scope.grants.iter().flat_map(|grant| &grant.constraints);
    for constraint in constraints {
        constraint
            .matches(&Value::Null, None, &Patterns::default())
            .map_err(|error| Refused::new(error.to_string()))?;
    }
    Ok(())
}

/// A scope on its way from a parent to a child, and the steps so far.
#[derive(Debug)]
pub(super) struct Narrowing {
    pub(super) scope: ChioScope,
    pub(super) expires_at: u64,
    pub(super) steps: Vec<Attenuation>,
}

impl Narrowing {
    /// Takes `steps` from a parent.
    pub(super) fn new(
        scope: &ChioScope,
        expires_at: u64,
        steps: Vec<Attenuation>,
    ) -> Result<Self, AttenuationError> {
        let (scope, expires_at) = scope.attenuate(expires_at, &steps)?;
        Ok(Self { scope, expires_at, steps })
    }

    /// Takes `delegate` away from every grant: a child hands on only what it is told to.
    ///
    /// Where a step can say so it does, and the delegator's signature covers it.
    pub(super) fn drop_delegate(&mut self) {
        for grant in self.scope.grants.clone() {
            let step = Attenuation::RemoveOperation {
                server_id: grant.server_id,
                tool_name: grant.tool_name,
                operation: Operation::Delegate,
            };
            let one = std::slice::from_ref(&step);
            if let Ok((scope, _)) = self.scope.attenuate(self.expires_at, one) {
                self.scope = scope;
                self.steps.push(step);
            }
        }
        let keep = |operations: &mut Vec<Operation>| {
            operations.retain(|operation| *operation != Operation::Delegate);
        };
        self.scope.grants.iter_mut().for_each(|grant| keep(&mut grant.operations));
        self.scope.resource_grants.iter_mut().for_each(|grant| keep(&mut grant.operations));
        self.scope.prompt_grants.iter_mut().for_each(|grant| keep(&mut grant.operations));
    }
}

#[cfg(test)]
mod tests {
    use chio_core::capability::Operation::{Delegate, Invoke, ReadResult};
    use chio_core::capability::{ChioScope, Operation};
    use serde_json::{Value, json};

    use super::{Narrowing, parse_grant};

    #[track_caller]
    fn check(text: &str, server: &str, tool: &str, operations: &[Operation]) {
        let expected = (server.to_owned(), tool.to_owned(), operations.to_vec());
        assert_eq!(parse_grant(text).unwrap(), expected, "{text}");
    }

    #[test]
    fn the_short_form_of_a_grant_is_read() {
        check("files/read_file", "files", "read_file", &[Invoke]);
        check("files/*:invoke,delegate", "files", "*", &[Invoke, Delegate]);
        check("*/*", "*", "*", &[Invoke]);
        check("a2a:agent/x:read_result", "a2a:agent", "x", &[ReadResult]);
        check("s/a/b", "s", "a/b", &[Invoke]);
    }

    #[test]
    fn anything_else_is_no_grant() {
        for text in ["", "files", "/read", "files/", "s/t:", "s/t:run", "s/t:invoke,", "s/:invoke"]
        {
            assert!(parse_grant(text).is_err(), "{text}");
        }
    }

    fn scope(scope: Value) -> ChioScope {
        serde_json::from_value(scope).unwrap()
    }

    #[test]
    fn delegate_is_dropped_everywhere_and_declared_where_a_step_can_say_so() {
        let parent = scope(json!({
            "grants": [
                {"server_id": "a", "tool_name": "x", "operations": ["invoke", "delegate"]},
                {"server_id": "b", "tool_name": "*", "operations": ["invoke", "delegate"]},
                {"server_id": "b", "tool_name": "y", "operations": ["delegate"]},
                {"server_id": "c", "tool_name": "z", "operations": ["invoke"]},
            ],
            "resource_grants": [{"uri_pattern": "*", "operations": ["read", "delegate"]}],
        }));
        let mut child = Narrowing::new(&parent, 10, Vec::new()).unwrap();
        child.drop_delegate();
        assert!(!child.scope.has_delegate());
        assert!(child.scope.is_subset_of(&parent));
        let steps = serde_json::to_value(&child.steps).unwrap();
        let expected = json!([{"type": "remove_operation", "server_id": "a", "tool_name": "x",
            "operation": "delegate"}]);
        assert_eq!(steps, expected);
    }
}
