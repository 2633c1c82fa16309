//! The context of a call for rules: the members that they read, and no others.

use cedar_policy::{Context, RestrictedExpression as Expression};
use chio_core::calendar::{rfc3339, weekday};
use chio_core::governance::{GovernedTransactionIntent, ModelMetadata};
use chio_core::money::MonetaryAmount;
use chio_kernel::GuardInput;

use super::needs::{Member, Needs};
use crate::facts::{Access, Action, Facts};
use crate::size::json_bytes;

/// How many folders or domains one path or host may lie in.
const MAX_ABOVE: usize = 256;

/// The members that are derived from the arguments.
const DERIVED: &[Member] = &[
    Member::Action,
    Member::Writes,
    Member::Path,
    Member::Paths,
    Member::Folders,
    Member::Host,
    Member::Hosts,
    Member::Domains,
    Member::Command,
    Member::Commands,
];

/// How many times rules are asked about one call.
const MAX_TURNS: usize = 64;

/// Which of its paths, hosts and commands a call is about when rules are asked once more.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Turn {
    path: usize,
    host: usize,
    command: usize,
}

/// The turns that rules are asked in: one for every path with every host and every command, as far
/// as rules read a single one of these, so that a second path does not hide the first.
///
/// # Errors
/// When there are too many.
pub(super) fn turns(input: &GuardInput<'_>, needs: Needs) -> Result<Vec<Turn>, String> {
    if !needs.has_any(&[Member::Path, Member::Host, Member::Command]) {
        return Ok(vec![Turn::default()]);
    }
    let facts = Facts::of_call(input)?;
    let count = |member, found: usize| if needs.has(member) { found.max(1) } else { 1 };
    let paths = count(Member::Path, facts.paths.len());
    let hosts = count(Member::Host, facts.destinations.len());
    let commands = count(Member::Command, facts.commands.len());
    if paths.saturating_mul(hosts).saturating_mul(commands) > MAX_TURNS {
        return Err("the call has more paths, hosts and commands than rules can look at".to_owned());
    }
    let turn = |number: usize| Turn {
        path: number % paths,
        host: number / paths % hosts,
        command: number / paths / hosts,
    };
    Ok((0..paths * hosts * commands).map(turn).collect())
}

/// How many bytes of paths, hosts and commands rules may look at.
///
/// # Errors
/// As [`Facts::of_call`].
pub(super) fn derived_bytes(input: &GuardInput<'_>, needs: Needs) -> Result<usize, String> {
    if !needs.has_any(DERIVED) {
        return Ok(0);
    }
    let facts = Facts::of_call(input)?;
    let paths = facts.paths.iter().map(|path| {
        // Each folder is a text of its own.
        let folders = if needs.has(Member::Folders) { path.normal.matches('/').count() } else { 0 };
        path.normal.len().saturating_mul(folders + 1)
    });
    let hosts = facts.destinations.iter().map(|to| {
        let host = to.host.as_deref().unwrap_or_default();
        let domains = if needs.has(Member::Domains) { host.matches('.').count() } else { 0 };
        host.len().saturating_mul(domains + 1)
    });
    Ok(paths.chain(hosts).chain(facts.commands.iter().map(String::len)).sum())
}

/// Named values.
type Pairs = Vec<(String, Expression)>;

/// The context of a call.
///
/// # Errors
/// Why the call cannot be judged. Never an argument's value.
pub(super) fn of(input: &GuardInput<'_>, needs: Needs, turn: Turn) -> Result<Context, String> {
    let mut pairs = Pairs::new();
    if needs.has_any(DERIVED) {
        let facts = Facts::of_call(input)?;
        if let Some(why) = &facts.malformed {
            return Err(format!("the rules ask what the call does, which cannot be told: {why}"));
        }
        derived(facts, needs, turn, &mut pairs)?;
    }
    let mut add = |member: Member, make: &dyn Fn() -> Result<Option<Expression>, String>| {
        if needs.has(member) {
            pairs.extend(make()?.map(|value| (member.into_str().to_owned(), value)));
        }
        Ok::<(), String>(())
    };
    add(Member::ArgumentBytes, &|| Ok(Some(long(json_bytes(input.arguments) as u64))))?;
    add(Member::Tool, &|| tool(input).map(Some))?;
    add(Member::Capability, &|| capability(input).map(Some))?;
    add(Member::Chio, &|| record([("bridge", bridge(input)?)]).map(Some))?;
    add(Member::Session, &|| session(input).map(Some))?;
    add(Member::Cost, &|| input.cost.map(amount).transpose())?;
    add(Member::Model, &|| input.model.map(model).transpose())?;
    add(Member::Intent, &|| input.intent.map(intent).transpose())?;
    add(Member::Time, &|| when(input.now).map(Some))?;
    add(Member::Now, &|| Ok(Some(Expression::new_datetime(rfc3339(input.now)))))?;
    Context::from_pairs(pairs).map_err(|_| "the call does not fit the schema of rules".to_owned())
}

fn derived(facts: &Facts, needs: Needs, turn: Turn, pairs: &mut Pairs) -> Result<(), String> {
    let mut add =
        |member: Member, value: Expression| pairs.push((member.into_str().to_owned(), value));
    if needs.has(Member::Action) {
        add(Member::Action, text(facts.action.into()));
    }
    if needs.has(Member::Writes) {
        add(Member::Writes, Expression::new_bool(writes(facts)));
    }
    if needs.has_any(&[Member::Path, Member::Paths, Member::Folders]) {
        let paths: Vec<&str> = facts.paths.iter().map(|path| &*path.normal).collect();
        named(&paths, turn.path, Member::Path, Member::Paths, needs, &mut add);
        if needs.has(Member::Folders) {
            add(Member::Folders, set(above(&paths, folders)?));
        }
    }
    if needs.has_any(&[Member::Host, Member::Hosts, Member::Domains]) {
        let hosts = facts.destinations.iter().map(|destination| destination.host.as_deref());
        let hosts: Option<Vec<&str>> = hosts.collect();
        // A host that is left out would pass any rule about hosts.
        let hosts = hosts.ok_or("the rules ask for a host, and one cannot be told")?;
        named(&hosts, turn.host, Member::Host, Member::Hosts, needs, &mut add);
        if needs.has(Member::Domains) {
            add(Member::Domains, set(above(&hosts, domains)?));
        }
    }
    if needs.has_any(&[Member::Command, Member::Commands]) {
        let commands: Vec<&str> = facts.commands.iter().map(String::as_str).collect();
        named(&commands, turn.command, Member::Command, Member::Commands, needs, &mut add);
    }
    Ok(())
}

/// All of them, and the one whose turn it is.
fn named(
    found: &[&str],
    turn: usize,
    one: Member,
    all: Member,
    needs: Needs,
    add: &mut impl FnMut(Member, Expression),
) {
    if needs.has(all) {
        add(all, set(found.iter().copied()));
    }
    if let (Some(found), true) = (found.get(turn), needs.has(one)) {
        add(one, text(found));
    }
}

/// Everything that each of them lies in, with itself.
fn above<'t>(
    found: &[&'t str],
    steps: fn(&'t str) -> Box<dyn Iterator<Item = &'t str> + 't>,
) -> Result<Vec<&'t str>, String> {
    let mut all = Vec::new();
    for one in found {
        let before = all.len();
        all.extend(steps(one).take(MAX_ABOVE + 1));
        if all.len() - before > MAX_ABOVE {
            return Err("a path or a host has more parts than rules can look at".to_owned());
        }
    }
    Ok(all)
}

fn folders<'t>(path: &'t str) -> Box<dyn Iterator<Item = &'t str> + 't> {
    let cuts = path.match_indices('/').filter_map(move |(at, _)| path.get(..at.max(1)));
    Box::new(cuts.chain([path]))
}

fn domains<'t>(host: &'t str) -> Box<dyn Iterator<Item = &'t str> + 't> {
    let is_name = !host.contains(':') && host.parse::<std::net::IpAddr>().is_err();
    let cuts = host.match_indices('.').filter(move |_| is_name);
    Box::new([host].into_iter().chain(cuts.filter_map(move |(at, _)| host.get(at + 1..))))
}

fn writes(facts: &Facts) -> bool {
    matches!(facts.action, Action::FileWrite | Action::Patch)
        || facts.paths.iter().any(|path| path.access != Access::Read)
}

fn tool(input: &GuardInput<'_>) -> Result<Expression, String> {
    // Of a tool without a published definition, the worst is assumed.
    let side_effects = input.tool.is_none_or(|tool| tool.has_side_effects);
    record([
        ("name", text(input.tool_name)),
        ("server", text(input.server_id)),
        ("sideEffects", Expression::new_bool(side_effects)),
    ])
}

fn capability(input: &GuardInput<'_>) -> Result<Expression, String> {
    let depth = input.token.delegation_chain.len();
    record([
        ("id", text(&input.token.id)),
        ("issuer", Expression::new_string(input.token.issuer.to_string())),
        ("depth", long(depth as u64)),
        ("root", Expression::new_bool(depth == 0)),
    ])
}

fn bridge(input: &GuardInput<'_>) -> Result<Expression, String> {
    let fidelity = input.fidelity.map_or("unknown", Into::into);
    let (source, target) = (input.session.protocol, input.target);
    record([
        ("sourceProtocol", text(source.name())),
        ("targetProtocol", text(target.name())),
        ("fidelity", text(fidelity)),
        ("crosses", Expression::new_bool(source != target)),
    ])
}

fn session(input: &GuardInput<'_>) -> Result<Expression, String> {
    let session = input.session;
    let tenant = session.principal.tenant.as_deref().map(|tenant| ("tenant", text(tenant)));
    let known = [("id", text(&session.id)), ("protocol", text(session.protocol.name()))];
    record(known.into_iter().chain(tenant))
}

fn amount(amount: &MonetaryAmount) -> Result<Expression, String> {
    record([("units", long(amount.units)), ("currency", text(&amount.currency))])
}

fn model(model: &ModelMetadata) -> Result<Expression, String> {
    let tier = model.safety_tier.map(|tier| ("tier", text(tier.into())));
    let provider = model.provider.as_deref().map(|provider| ("provider", text(provider)));
    let known =
        [("id", text(&model.model_id)), ("provenance", text(model.provenance_class.into()))];
    record(known.into_iter().chain(tier).chain(provider))
}

fn intent(intent: &GovernedTransactionIntent) -> Result<Expression, String> {
    let max = intent.max_amount.as_ref().map(amount).transpose()?;
    let autonomy = intent.autonomy.as_ref().map(|it| ("autonomy", text(it.tier.into())));
    let known = [("id", text(&intent.id)), ("purpose", text(&intent.purpose))];
    let max = max.map(|max| ("maxAmount", max));
    record(known.into_iter().chain(max).chain(autonomy))
}

fn when(now: u64) -> Result<Expression, String> {
    record([("unix", long(now)), ("hour", long(now / 3600 % 24)), ("weekday", text(weekday(now)))])
}

fn record<'n>(
    fields: impl IntoIterator<Item = (&'n str, Expression)>,
) -> Result<Expression, String> {
    let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value));
    Expression::new_record(fields).map_err(|error| error.to_string())
}

fn text(text: &str) -> Expression {
    Expression::new_string(text.to_owned())
}

/// Numbers beyond what Cedar counts are the largest: a limit on them still holds.
fn long(number: u64) -> Expression {
    Expression::new_long(i64::try_from(number).unwrap_or(i64::MAX))
}

fn set<'t>(texts: impl IntoIterator<Item = &'t str>) -> Expression {
    Expression::new_set(texts.into_iter().map(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_lies_in_its_folders_and_a_host_in_its_domains() {
        let list = |items: Box<dyn Iterator<Item = &'static str>>| items.collect::<Vec<_>>();
        assert_eq!(list(folders("/a/b/c")), ["/", "/a", "/a/b", "/a/b/c"]);
        assert_eq!(list(folders("a/b")), ["a", "a/b"]);
        assert_eq!(list(folders("/")), ["/", "/"]);
        assert_eq!(list(folders("a")), ["a"]);
        assert_eq!(list(domains("a.b.com")), ["a.b.com", "b.com", "com"]);
        assert_eq!(list(domains("10.0.0.1")), ["10.0.0.1"]);
        assert_eq!(list(domains("fe80::1.2.3.4")), ["fe80::1.2.3.4"]);
    }

    #[test]
    fn endless_paths_and_hosts_are_refused() {
        let deep = "/a".repeat(MAX_ABOVE + 1);
        assert!(above(&[&deep], folders).is_err());
        let wide = "a.".repeat(MAX_ABOVE + 1);
        assert!(above(&[&wide], domains).is_err());
        assert!(above(&["/a/b", "/c"], folders).is_ok());
    }
}
