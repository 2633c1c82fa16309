//! Which bridges between protocols a call may cross.

use chio_core::fidelity::BridgeFidelity;
use chio_core::protocol::DiscoveryProtocol;
use chio_kernel::{GuardInput, GuardMemo, Work};
use chio_yaml::{Key, Section};
use serde_json::json;

use super::{Building, Built, GuardKind};
use crate::example::ExampleCall;

pub(crate) const KIND: GuardKind = GuardKind {
    name: "bridge",
    section: "chio.bridge",
    about: "Which bridges between protocols a call may cross. A call crosses one when its tool is \
            addressed in another protocol than its caller speaks.",
    keys: &[
        Key::ENABLED,
        Key::new(
            "targets",
            "a map from what a caller speaks to a list of protocols",
            "{}",
            "what tools may be addressed as, by callers of a protocol; others are free",
        ),
        Key::flag(
            "require_attenuation",
            "false",
            "only capabilities that were handed on at least once cross a bridge",
        ),
        Key::flag("native_only", "false", "tools are addressed as native, always"),
        Key::flag(
            "refuse_adapted",
            "false",
            "only what the caller's protocol presents without loss crosses a bridge",
        ),
    ],
    always: false,
    build,
};

/// What a caller may speak.
const SOURCES: &[Key] = &[
    source("native"),
    source("http"),
    source("mcp"),
    source("a2a"),
    source("acp"),
    source("open_ai"),
];

const fn source(name: &'static str) -> Key {
    Key::new(name, "a list of protocols", "any", "what their calls may address tools as")
}

fn build(section: &Section<'_>, _: &Building<'_>) -> Option<Built> {
    section.enabled(true)?;
    let targets = section.section("targets", SOURCES);
    let targets = targets.map(|targets| {
        let listed = DiscoveryProtocol::ALL.into_iter().filter(|it| targets.has(it.name()));
        listed.map(|source| (source, protocols(&targets, source.name()))).collect()
    });
    let guard = Bridge {
        targets: targets.unwrap_or_default(),
        require_attenuation: section.flag("require_attenuation", false),
        native_only: section.flag("native_only", false),
        refuse_adapted: section.flag("refuse_adapted", false),
    };
    let forbidden = guard.forbidden();
    Some(Built::refusing(KIND.name, forbidden, move |input| Ok(guard.refusal(input))))
}

fn protocols(section: &Section<'_>, key: &str) -> Vec<DiscoveryProtocol> {
    let mut found = Vec::new();
    for item in section.texts(key) {
        match DiscoveryProtocol::ALL.into_iter().find(|it| it.name() == item.text) {
            Some(protocol) => found.push(protocol),
            None => {
                let names = DiscoveryProtocol::ALL.map(DiscoveryProtocol::name).join(", ");
                let message = format!("expected one of {names}, found another word");
                section.problem_at(item.place, &message);
            }
        }
    }
    found
}

struct Bridge {
    targets: Vec<(DiscoveryProtocol, Vec<DiscoveryProtocol>)>,
    require_attenuation: bool,
    native_only: bool,
    refuse_adapted: bool,
}

impl Bridge {
    /// Why a call may not cross.
    fn refusal(&self, input: &GuardInput<'_>) -> Option<String> {
        let (source, target) = (input.session.protocol, input.target);
        if self.native_only && target != DiscoveryProtocol::Native {
            return Some(format!(
                "`native_only`: the tool is addressed as {target}, not as native"
            ));
        }
        let listed = self.targets.iter().find(|(from, _)| *from == source);
        if listed.is_some_and(|(_, targets)| !targets.contains(&target)) {
            return Some(format!("`targets`: callers that speak {source} do not reach {target}"));
        }
        if source == target {
            return None;
        }
        if self.require_attenuation && input.token.delegation_chain.is_empty() {
            let why = "`require_attenuation`: the capability was never handed on and attenuated";
            return Some(format!("{why}, so it does not cross from {source} to {target}"));
        }
        if self.refuse_adapted && input.fidelity != Some(&BridgeFidelity::Lossless) {
            let rating = input.fidelity.map_or("unknown", Into::into);
            return Some(format!("`refuse_adapted`: the tool on {source} is rated {rating}"));
        }
        None
    }

    /// A call that may not cross, where there is one.
    fn forbidden(&self) -> Option<ExampleCall> {
        let all = DiscoveryProtocol::ALL;
        let pairs = all.into_iter().flat_map(|source| all.map(|target| (source, target)));
        let mut calls = pairs.map(|(source, target)| {
            let mut call = ExampleCall::new("example", json!({}));
            call.session.protocol = source;
            call.target = target;
            call.fidelity = None;
            call
        });
        calls.find(|call| {
            self.refusal(&call.input(&GuardMemo::default(), &Work::default())).is_some()
        })
    }
}
