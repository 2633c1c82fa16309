//! What queries can ask about, read from the body of a receipt.

use std::borrow::Cow;

use chio_core::hash::sha256;
use chio_core::receipt::Execution;
use chio_kernel::store::{ReceiptOutcome, ReceiptQuery};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

/// What a receipt says of itself. What it does not say is left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Fields<'a> {
    pub(crate) id: Option<Cow<'a, str>>,
    pub(crate) capability_id: Option<Cow<'a, str>>,
    pub(crate) subject: Option<Cow<'a, str>>,
    /// The name of the principal.
    pub(crate) principal: Option<Cow<'a, str>>,
    pub(crate) tool_server: Option<Cow<'a, str>>,
    pub(crate) tool_name: Option<Cow<'a, str>>,
    pub(crate) outcome: Option<ReceiptOutcome>,
    pub(crate) timestamp: Option<u64>,
    pub(crate) cost: Option<u64>,
    pub(crate) currency: Option<Cow<'a, str>>,
    pub(crate) trace_id: Option<Cow<'a, str>>,
}

impl<'a> Fields<'a> {
    /// Reads a receipt or child receipt. Metadata is free-form, so anything of an unexpected type
    /// counts as left out.
    pub(crate) fn read(body: &'a [u8]) -> Self {
        match serde_json::from_slice::<Body<'a>>(body) {
            Ok(body) => body.into(),
            Err(_) => {
                serde_json::from_slice(body).map(|body| from_value(&body)).unwrap_or_default()
            }
        }
    }

    /// Whether the receipt is one that the query asks for; cursor and limit aside.
    pub(crate) fn answer(&self, query: &ReceiptQuery) -> bool {
        let texts = [
            (&query.capability_id, &self.capability_id),
            (&query.subject, &self.subject),
            (&query.principal, &self.principal),
            (&query.tool_server, &self.tool_server),
            (&query.tool_name, &self.tool_name),
            (&query.currency, &self.currency),
            (&query.trace_id, &self.trace_id),
        ];
        texts.iter().all(|(asked, found)| asked.is_none() || asked.as_deref() == found.as_deref())
            && (query.outcome.is_none() || query.outcome == self.outcome)
            && at_least(self.timestamp, query.since)
            && at_most(self.timestamp, query.until)
            && at_least(self.cost, query.min_cost)
            && at_most(self.cost, query.max_cost)
    }

    /// The same without the body.
    pub(crate) fn into_owned(self) -> Fields<'static> {
        let own = |text: Option<Cow<'a, str>>| text.map(|text| Cow::Owned(text.into_owned()));
        Fields {
            id: own(self.id),
            capability_id: own(self.capability_id),
            subject: own(self.subject),
            principal: own(self.principal),
            tool_server: own(self.tool_server),
            tool_name: own(self.tool_name),
            outcome: self.outcome,
            timestamp: self.timestamp,
            cost: self.cost,
            currency: own(self.currency),
            trace_id: own(self.trace_id),
        }
    }
}

fn at_least(found: Option<u64>, bound: Option<u64>) -> bool {
    bound.is_none_or(|bound| found.is_some_and(|found| found >= bound))
}

fn at_most(found: Option<u64>, bound: Option<u64>) -> bool {
    bound.is_none_or(|bound| found.is_some_and(|found| found <= bound))
}

/// Eight bytes that stand for an id in the index: its first hex digits, or else those of its hash.
/// Two ids may share them, so a search that finds one compares the whole id.
pub(crate) fn short_id(id: &str) -> i64 {
    let digits = id.get(..16).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let short = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    let short = short.unwrap_or_else(|| {
        sha256(id.as_bytes()).iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte))
    });
    short.cast_signed()
}

/// The least and the most of those that stand for ids which begin with these hex digits.
pub(crate) fn short_ids(digits: &str) -> Option<(i64, i64)> {
    let kept = digits.get(..16).unwrap_or(digits);
    let number = u64::from_str_radix(kept, 16).ok()?;
    let free = 64_u32.checked_sub(u32::try_from(kept.len()).ok()?.checked_mul(4)?)?;
    let rest = 1_u64.checked_shl(free).map_or(u64::MAX, |end| end - 1);
    let least = number.checked_shl(free)?;
    // The first digit decides the sign of both, so that the order stays.
    Some((least.cast_signed(), (least | rest).cast_signed()))
}

/// A text that is borrowed where it has no escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// The members of both kinds of receipt that matter here.
#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    capability_id: Option<Text<'a>>,
    #[serde(borrow)]
    tool_server: Option<Text<'a>>,
    #[serde(borrow)]
    tool_name: Option<Text<'a>>,
    decision: Option<Decision>,
    terminal_state: Option<TerminalState>,
    timestamp: Option<u64>,
    #[serde(borrow)]
    metadata: Option<Metadata<'a>>,
}

#[derive(Deserialize)]
struct Decision {
    verdict: ReceiptOutcome,
}

#[derive(Deserialize)]
struct TerminalState {
    state: State,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Completed,
    Cancelled,
    Incomplete,
}

impl From<State> for ReceiptOutcome {
    fn from(state: State) -> Self {
        match state {
            State::Completed => Self::Allow,
            State::Cancelled => Self::Cancelled,
            State::Incomplete => Self::Incomplete,
        }
    }
}

/// A denial, by what became of the call or read at its tool server.
fn denied(execution: Option<&str>) -> ReceiptOutcome {
    match execution {
        Some(execution) if execution == Execution::Failed.name() => ReceiptOutcome::Failed,
        _ => ReceiptOutcome::Deny,
    }
}

#[derive(Deserialize)]
struct Metadata<'a> {
    #[serde(borrow)]
    execution: Option<Text<'a>>,
    denial: Option<IgnoredAny>,
    #[serde(borrow)]
    attribution: Option<Attribution<'a>>,
    #[serde(borrow)]
    financial: Option<Financial<'a>>,
    #[serde(borrow)]
    chio: Option<Chio<'a>>,
    #[serde(borrow)]
    principal: Option<Principal<'a>>,
    #[serde(borrow, rename = "traceId")]
    trace_id: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Attribution<'a> {
    #[serde(borrow)]
    subject_key: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Principal<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Financial<'a> {
    cost_charged: Option<u64>,
    #[serde(borrow)]
    currency: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Chio<'a> {
    #[serde(borrow)]
    bridge: Option<Bridge<'a>>,
    /// Of a call that crossed no bridge.
    #[serde(borrow)]
    trace: Option<Trace<'a>>,
}

#[derive(Deserialize)]
struct Bridge<'a> {
    #[serde(borrow)]
    trace: Option<Trace<'a>>,
}

#[derive(Deserialize)]
struct Trace<'a> {
    #[serde(borrow, rename = "traceId")]
    trace_id: Option<Text<'a>>,
}

impl<'a> From<Body<'a>> for Fields<'a> {
    fn from(body: Body<'a>) -> Self {
        let text = |text: Option<Text<'a>>| text.map(|text| text.0);
        let mut fields = Self {
            id: text(body.id),
            capability_id: text(body.capability_id),
            tool_server: text(body.tool_server),
            tool_name: text(body.tool_name),
            outcome: body.decision.map(|decision| decision.verdict),
            timestamp: body.timestamp,
            ..Self::default()
        };
        let ended = body.terminal_state.map(|ended| ended.state.into());
        fields.outcome = fields.outcome.or(ended);
        let Some(metadata) = body.metadata else { return fields };
        let is_denied = fields.outcome == Some(ReceiptOutcome::Deny)
            || (fields.outcome == Some(ReceiptOutcome::Allow) && metadata.denial.is_some());
        if is_denied {
            fields.outcome = Some(denied(metadata.execution.as_ref().map(|text| &*text.0)));
        }
        fields.subject = metadata.attribution.and_then(|found| text(found.subject_key));
        fields.principal = metadata.principal.and_then(|found| text(found.name));
        if let Some(financial) = metadata.financial {
            fields.cost = financial.cost_charged;
            fields.currency = text(financial.currency);
        }
        let trace = |chio: Chio<'a>| chio.bridge.and_then(|it| it.trace).or(chio.trace)?.trace_id;
        let trace = metadata.chio.and_then(trace);
        fields.trace_id = text(trace).or_else(|| text(metadata.trace_id));
        fields
    }
}

/// The slow way, for bodies with a member of an unexpected type.
fn from_value(body: &Value) -> Fields<'static> {
    let at = |path: &str| body.pointer(path);
    let text = |path: &str| at(path).and_then(Value::as_str).map(|text| text.to_owned().into());
    let verdict = at("/decision/verdict").cloned();
    let state = at("/terminal_state/state").cloned();
    let ended = |state| serde_json::from_value::<State>(state).ok().map(Into::into);
    let outcome: Option<ReceiptOutcome> = verdict
        .and_then(|verdict| serde_json::from_value(verdict).ok())
        .or_else(|| state.and_then(ended));
    let is_denied = outcome == Some(ReceiptOutcome::Deny)
        || (outcome == Some(ReceiptOutcome::Allow)
            && at("/metadata/denial").is_some_and(|denial| !denial.is_null()));
    let execution = at("/metadata/execution").and_then(Value::as_str);
    Fields {
        id: text("/id"),
        capability_id: text("/capability_id"),
        subject: text("/metadata/attribution/subject_key"),
        principal: text("/metadata/principal/name"),
        tool_server: text("/tool_server"),
        tool_name: text("/tool_name"),
        outcome: if is_denied { Some(denied(execution)) } else { outcome },
        timestamp: at("/timestamp").and_then(Value::as_u64),
        cost: at("/metadata/financial/cost_charged").and_then(Value::as_u64),
        currency: text("/metadata/financial/currency"),
        trace_id: text("/metadata/chio/bridge/trace/traceId")
            .or_else(|| text("/metadata/chio/trace/traceId"))
            .or_else(|| text("/metadata/traceId")),
    }
}

#[cfg(test)]
mod tests {
    use chio_kernel::store::ReceiptOutcome;
    use serde_json::json;

    use super::{Fields, short_id, short_ids};

    #[test]
    fn a_denial_that_ran_is_a_failure_and_a_read_that_was_denied_is_a_denial() {
        use ReceiptOutcome::{Allow, Deny, Failed, Incomplete};
        let call = |verdict: &str, execution: &str| json!({"decision": {"verdict": verdict}, "metadata": {"execution": execution}});
        let read = |state: &str, metadata: serde_json::Value| json!({"terminal_state": {"state": state}, "metadata": metadata});
        for (body, expected) in [
            (call("deny", "not_begun"), Deny),
            (call("deny", "completed"), Deny),
            (call("deny", "failed"), Failed),
            (call("allow", "failed"), Allow),
            (call("incomplete", "begun"), Incomplete),
            (json!({"decision": {"verdict": "deny"}}), Deny),
            (json!({"decision": {"verdict": "deny"}, "metadata": {}}), Deny),
            (read("completed", json!({"outcome": "result"})), Allow),
            (read("completed", json!({"denial": {}})), Deny),
            (read("completed", json!({"denial": {}, "execution": "failed"})), Failed),
            (read("incomplete", json!({"execution": "begun"})), Incomplete),
        ] {
            assert_eq!(Fields::read(body.to_string().as_bytes()).outcome, Some(expected), "{body}");
            // The slow way says the same.
            let mut odd = body;
            odd["id"] = json!(7);
            assert_eq!(Fields::read(odd.to_string().as_bytes()).outcome, Some(expected), "{odd}");
        }
    }

    #[test]
    fn what_stands_for_an_id_is_within_what_stands_for_its_beginnings() {
        for id in ["0123456789abcdef0123", "fedcba9876543210fedc", "8000000000000000aaaa"] {
            for length in 1..id.len() {
                let (least, most) = short_ids(id.get(..length).unwrap()).unwrap();
                assert!((least..=most).contains(&short_id(id)), "{length} of {id}");
                assert_eq!(least == most, length >= 16, "{length} of {id}");
            }
        }
        assert_eq!(short_ids("child-rcpt-"), None);
        assert_eq!(short_ids(""), None);
    }

    #[test]
    fn a_receipt_of_every_member_is_read() {
        let body = json!({
            "id": "ab", "capability_id": "cap", "tool_server": "fs", "tool_name": "re\"ad",
            "decision": {"verdict": "deny", "reason": "r", "guard": "g"}, "timestamp": 7,
            "metadata": {
                "attribution": {"subject_key": "k", "x": [1]},
                "principal": {"groups": ["g"], "name": "alice", "tenant": "acme"},
                "financial": {"cost_charged": 5, "currency": "USD"},
                "chio": {"bridge": {"trace": {"traceId": "t", "hops": []}}},
            },
        });
        let text = body.to_string();
        let fields = Fields::read(text.as_bytes());
        assert_eq!(fields.tool_name.as_deref(), Some("re\"ad"));
        assert_eq!(fields.subject.as_deref(), Some("k"));
        assert_eq!(fields.principal.as_deref(), Some("alice"));
        assert_eq!(fields.outcome, Some(ReceiptOutcome::Deny));
        assert_eq!((fields.timestamp, fields.cost), (Some(7), Some(5)));
        assert_eq!(fields.currency.as_deref(), Some("USD"));
        assert_eq!(fields.trace_id.as_deref(), Some("t"));
        assert_eq!(super::from_value(&body), fields);
    }

    #[test]
    fn the_trace_of_a_call_that_crossed_no_bridge_is_read() {
        let body = json!({"id": "a", "metadata": {"chio": {"trace": {"traceId": "t"}}}});
        let text = body.to_string();
        assert_eq!(Fields::read(text.as_bytes()).trace_id.as_deref(), Some("t"));
        assert_eq!(super::from_value(&body).trace_id.as_deref(), Some("t"));
    }

    #[test]
    fn a_child_receipt_is_read_as_far_as_it_goes() {
        let body = json!({
            "id": "child-rcpt-1", "timestamp": 7, "terminal_state": {"state": "completed"},
            "metadata": {"traceId": "t", "principal": {"name": "alice"}},
        });
        let text = body.to_string();
        let fields = Fields::read(text.as_bytes());
        assert_eq!(fields.outcome, Some(ReceiptOutcome::Allow));
        assert_eq!(fields.trace_id.as_deref(), Some("t"));
        assert_eq!(fields.principal.as_deref(), Some("alice"));
        assert_eq!(fields.capability_id, None);
    }

    #[test]
    fn members_of_unexpected_types_count_as_left_out() {
        let body = json!({
            "id": "a", "tool_name": "t", "decision": {"verdict": "allow"},
            "metadata": {"financial": {"cost_charged": "5", "currency": "USD"}, "chio": 3},
        });
        let text = body.to_string();
        let fields = Fields::read(text.as_bytes());
        assert_eq!((fields.cost, fields.currency.as_deref()), (None, Some("USD")));
        assert_eq!(fields.tool_name.as_deref(), Some("t"));
        assert_eq!(fields.outcome, Some(ReceiptOutcome::Allow));
        assert_eq!(Fields::read(b"not json"), Fields::default());
        assert_eq!(Fields::read(b"{\"metadata\":7,\"id\":\"x\"}").id.as_deref(), Some("x"));
    }

    #[test]
    fn short_ids_are_hex_digits_or_a_hash() {
        assert_eq!(short_id("00000000000000ff77"), 255);
        assert_eq!(short_id("ffffffffffffffff"), -1);
        assert_ne!(short_id("child-rcpt-1"), short_id("child-rcpt-2"));
        assert_ne!(short_id("+0000000000000ff"), 255);
    }
}
