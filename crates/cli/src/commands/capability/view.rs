//! A token as lines for people.

use std::fmt::Display;

use anyhow::Result;
use chio_core::capability::{
    Attenuation, CapabilityToken, ChioScope, Constraint, DelegationLink, Operation, SignatureForm,
    TokenError, ToolGrant, Validity,
};
use chio_core::money::MonetaryAmount;
use chio_core::window::WindowError;
use serde_json::Value;

use super::beside::Known;
use crate::date::{iso, relative, span};
use crate::io::Io;
use crate::text;

/// Shows a token.
pub(super) fn show(io: &mut Io<'_>, token: &CapabilityToken) -> Result<()> {
    io.field("capability", &token.id)?;
    io.field("issuer", &token.issuer)?;
    io.field("subject", &token.subject)?;
    io.field("valid from", iso(token.issued_at))?;
    io.field("until", iso(token.expires_at))?;
    io.field("now", window(token.validity(), io.now))?;
    show_scope(io, &token.scope)?;
    show_chain(io, &token.delegation_chain)?;
    if let Some(profile) = token.unsupported_profile() {
        io.field("profile", format_args!("{profile}: a kernel would deny every call"))?;
    }
    match token.check_token_signature() {
        Ok(form) => io.field("signature", format_args!("is the issuer's{}", form_name(form)))?,
        Err(error) => io.field("signature", format_args!("INVALID: {}", reason(&error)))?,
    }
    io.field("hash", token.hash()?)?;
    io.field("scope hash", token.scope.hash()?)
}

/// Shows what a store knows of a token.
pub(super) fn show_known(io: &mut Io<'_>, token: &CapabilityToken, known: &Known) -> Result<()> {
    io.field("store", &known.store)?;
    match &known.revoked {
        None => io.field("revoked", "no")?,
        Some(id) if *id == token.id => io.field("revoked", "YES")?,
        Some(id) => io.field("revoked", format_args!("YES, by `{id}`, which it comes from"))?,
    }
    for (grant, spent) in token.scope.grants.iter().zip(&known.spent) {
        let tool = format!("{}/{}", grant.server_id, grant.tool_name);
        if let Some(most) = grant.max_invocations {
            io.field("spent", format_args!("{tool}: {} of {most} calls", spent.invocations))?;
        }
        if let Some(most) = &grant.max_total_cost {
            let (units, currency) = (most.units, &most.currency);
            io.field("spent", format_args!("{tool}: {} of {units} {currency}", spent.units))?;
        }
    }
    Ok(())
}

/// What there is to say about the form of a signature: nothing, of today's.
pub(super) const fn form_name(form: SignatureForm) -> &'static str {
    match form {
        SignatureForm::Current => "",
        SignatureForm::Legacy => ", in the legacy form",
    }
}

/// Why a check failed, with times that people can read.
pub(super) fn reason(error: &TokenError) -> String {
    match error {
        TokenError::Signature(error) => error.to_string(),
        TokenError::Window(WindowError::NotYetValid { issued_at, now }) => {
            format!("begins {}, {}", iso(*issued_at), relative(*issued_at, *now))
        }
        TokenError::Window(WindowError::Expired { expires_at, now }) if expires_at == now => {
            format!("expired {}, just now", iso(*expires_at))
        }
        TokenError::Window(WindowError::Expired { expires_at, now }) => {
            format!("expired {}, {}", iso(*expires_at), relative(*expires_at, *now))
        }
        error => error.to_string(),
    }
}

/// Where `now` lies in a window.
pub(super) fn window(validity: Validity, now: u64) -> String {
    let Validity { issued_at, expires_at } = validity;
    if issued_at >= expires_at {
        "never valid: it ends before it begins".to_owned()
    } else if now < issued_at {
        format!("not yet valid, begins {}", relative(issued_at, now))
    } else if now < expires_at {
        format!("valid, {} left", span(expires_at - now))
    } else if now == expires_at {
        "expired just now".to_owned()
    } else {
        format!("expired {}", relative(expires_at, now))
    }
}

fn show_scope(io: &mut Io<'_>, scope: &ChioScope) -> Result<()> {
    if *scope == ChioScope::default() {
        return io.field("scope", "nothing is granted");
    }
    for grant in &scope.grants {
        io.field("tool", format_args!("{}/{}", grant.server_id, grant.tool_name))?;
        detail(io, "may", operations(&grant.operations))?;
        limits(grant).into_iter().try_for_each(|limit| detail(io, "limit", limit))?;
        if grant.dpop_required == Some(true) {
            detail(io, "needs", "a proof of possession with each call")?;
        }
        for constraint in &grant.constraints {
            detail(io, "constraint", describe(constraint))?;
        }
    }
    for grant in &scope.resource_grants {
        io.field("resource", &grant.uri_pattern)?;
        detail(io, "may", operations(&grant.operations))?;
    }
    for grant in &scope.prompt_grants {
        io.field("prompt", &grant.prompt_name)?;
        detail(io, "may", operations(&grant.operations))?;
    }
    Ok(())
}

/// A line that belongs to the one before it.
fn detail(io: &mut Io<'_>, name: &str, value: impl Display) -> Result<()> {
    io.field("", format_args!("{name:12}{value}"))
}

fn operations(operations: &[Operation]) -> String {
    let names: Vec<_> = operations.iter().map(text::name).collect();
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

fn limits(grant: &ToolGrant) -> Vec<String> {
    let amount = |money: &MonetaryAmount, of| {
        format!("{} minor units of {} {of}", money.units, money.currency)
    };
    let calls = grant
        .max_invocations
        .map(|most| text::count(usize::try_from(most).unwrap_or(usize::MAX), "call"));
    let cost = grant.max_cost_per_invocation.as_ref().map(|money| amount(money, "a call"));
    let total = grant.max_total_cost.as_ref().map(|money| amount(money, "in all"));
    [calls, cost, total].into_iter().flatten().collect()
}

/// A constraint's kind and value.
fn describe(constraint: &Constraint) -> String {
    let value = serde_json::to_value(constraint).ok();
    match value.as_ref().and_then(|value| value.get("value")) {
        None | Some(Value::Null) => constraint.kind().to_owned(),
        Some(value) => format!("{} {value}", constraint.kind()),
    }
}

/// How often a token was handed on.
pub(super) fn handed_on(links: &[DelegationLink]) -> String {
    match links.len() {
        0 => "never handed on".to_owned(),
        number => format!("handed on {}", text::count(number, "time")),
    }
}

/// The chain as a tree: each holder below the delegator.
fn show_chain(io: &mut Io<'_>, links: &[DelegationLink]) -> Result<()> {
    io.field("history", handed_on(links))?;
    let Some(first) = links.first() else { return Ok(()) };
    io.field("", &first.delegator)?;
    for (depth, link) in links.iter().enumerate() {
        let indent = 3 * depth;
        io.field("", format_args!("{:indent$}└─ {}", "", link.delegatee))?;
        let facts = format!("from {}, {}", link.capability_id, iso(link.timestamp));
        let steps = link.attenuations.iter().map(step);
        for line in std::iter::once(facts).chain(steps) {
            io.field("", format_args!("{:indent$}   {line}", ""))?;
        }
    }
    Ok(())
}

/// What a step took away.
fn step(step: &Attenuation) -> String {
    let of = |server: &str, tool: &str| format!("{server}/{tool}");
    let amount = |money: &MonetaryAmount| format!("{} {}", money.units, money.currency);
    let what = match step {
        Attenuation::RemoveTool { server_id, tool_name } => of(server_id, tool_name),
        Attenuation::RemoveOperation { server_id, tool_name, operation } => {
            format!("{} of {}", text::name(operation), of(server_id, tool_name))
        }
        Attenuation::AddConstraint { server_id, tool_name, constraint } => {
            format!("{} to {}", describe(constraint), of(server_id, tool_name))
        }
        Attenuation::ReduceBudget { server_id, tool_name, max_invocations } => {
            format!("of {} to {max_invocations} calls", of(server_id, tool_name))
        }
        Attenuation::ReduceCostPerInvocation { server_id, tool_name, max_cost_per_invocation } => {
            format!("of {} to {}", of(server_id, tool_name), amount(max_cost_per_invocation))
        }
        Attenuation::ReduceTotalCost { server_id, tool_name, max_total_cost } => {
            format!("of {} to {}", of(server_id, tool_name), amount(max_total_cost))
        }
        Attenuation::ShortenExpiry { new_expires_at } => format!("to {}", iso(*new_expires_at)),
    };
    format!("- {} {what}", step.kind())
}
