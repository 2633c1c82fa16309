//! Which models may ask for calls.
//!
//! What a caller says about its model is its own word unless somebody has checked it; the word
//! `verified` is the kernel's.

use std::sync::Arc;

use async_trait::async_trait;
use chio_core::governance::{ModelMetadata, ProvenanceClass};
use chio_core::tier::SafetyTier;
use chio_kernel::{Guard, GuardInput, GuardOutcome, Shared, Verdict};
use regex::{Regex, RegexBuilder};
use serde_json::json;

use super::{Building, Built, GuardKind};
use crate::document::{Key, Section};
use crate::example::ExampleCall;
use crate::pattern::ToolPatterns;

const NAME: &str = "model-constraint";

pub(crate) const KIND: GuardKind = GuardKind {
    name: NAME,
    section: "chio.models",
    about: "Which models may ask for calls. A name may have `*` in it, and may begin with the \
            provider and a `/`. What a caller says about its model is only its word, unless \
            `require_provenance` asks for more.",
    keys: &[
        Key::ENABLED,
        Key::new(
            "allow",
            "a list of model names, with `*`",
            "[]",
            "the models that may; all if empty",
        ),
        Key::new("deny", "a list of model names, with `*`", "[]", "the models that may not"),
        Key::new(
            "min_tier",
            "`low`, `standard`, `high` or `restricted`",
            "none",
            "the lowest safety tier that may",
        ),
        Key::new(
            "require_provenance",
            "`asserted` or `verified`",
            "none",
            "how far it must be known which model asks",
        ),
        Key::new(
            "require",
            "true or false",
            "true where anything but `deny` is set",
            "whether calls that name no model are denied",
        ),
        Key::new("tools", "a list of tool names, with `*`", "all", "the tools that this is about"),
    ],
    always: false,
    build,
    samples: SAMPLES,
};

const SAMPLES: &str = r#"
policy:
  hushspec: "0.1.0"
  chio:
    models:
      allow: ["careful-*", "lab/steady"]
      deny: ["*-preview"]
      min_tier: standard
      require_provenance: verified
      tools: ["pay_*", "files/*"]
cases:
  - tool: pay_bill
    model: {model_id: careful-2, safety_tier: high, provenance_class: verified}
    expect: allow
  - tool: pay_bill
    model: {model_id: steady, provider: lab, safety_tier: standard, provenance_class: verified}
    expect: allow
  - {name: another tool, tool: echo, expect: allow}
  - {tool: pay_bill, expect: deny, by: model-constraint, says: names no model}
  - {server: files, tool: read, expect: deny, by: model-constraint}
  - tool: pay_bill
    model: {model_id: careful-2, safety_tier: high}
    expect: deny
    by: model-constraint
    says: require_provenance
  - tool: pay_bill
    model: {model_id: careful-2, safety_tier: low, provenance_class: verified}
    expect: deny
    by: model-constraint
    says: min_tier
  - name: no tier at all
    tool: pay_bill
    model: {model_id: careful-2, provenance_class: verified}
    expect: deny
    says: min_tier
  - tool: pay_bill
    model: {model_id: other, safety_tier: high, provenance_class: verified}
    expect: deny
    says: "`allow`"
  - name: another letter case does not help
    tool: pay_bill
    model: {model_id: careful-3-PREVIEW, safety_tier: high, provenance_class: verified}
    expect: deny
    says: "`*-preview`"
"#;

const TIERS: [(&str, SafetyTier); 4] = [
    ("low", SafetyTier::Low),
    ("standard", SafetyTier::Standard),
    ("high", SafetyTier::High),
    ("restricted", SafetyTier::Restricted),
];

fn build(section: &Section<'_>, _: &Building<'_>) -> Option<Built> {
    if !section.flag("enabled", true) {
        return None;
    }
    let provenance =
        [("asserted", ProvenanceClass::Asserted), ("verified", ProvenanceClass::Verified)];
    let (allow, deny) = (names(section, "allow", false), names(section, "deny", true));
    let min_tier = section.one_of("min_tier", &TIERS);
    let provenance = section.one_of("require_provenance", &provenance);
    let known = !allow.is_empty() || min_tier.is_some() || provenance.is_some();
    let guard = ModelConstraint {
        require: section.flag("require", known),
        tools: ToolPatterns::read(section, "tools"),
        allow,
        deny,
        min_tier,
        provenance,
    };
    let forbidden = guard.forbidden();
    Some(Built { guard: Arc::new(guard), forbidden })
}

/// A name with `*`, as it was written and as it is matched.
type Name = (String, Regex);

fn names(section: &Section<'_>, key: &str, any_case: bool) -> Vec<Name> {
    let items = section.texts(key).into_iter();
    let names = items.filter_map(|item| {
        let pieces: Vec<String> = item.text.split('*').map(regex::escape).collect();
        let pattern = format!("^(?:{})$", pieces.join(".*"));
        let built = RegexBuilder::new(&pattern)
            .case_insensitive(any_case)
            .dot_matches_new_line(true)
            .size_limit(1 << 20)
            .build();
        if built.is_err() {
            section.problem_at(item.place, "this name is too long");
        }
        Some((item.text.to_owned(), built.ok()?))
    });
    names.collect()
}

struct ModelConstraint {
    allow: Vec<Name>,
    deny: Vec<Name>,
    min_tier: Option<SafetyTier>,
    provenance: Option<ProvenanceClass>,
    require: bool,
    tools: ToolPatterns,
}

impl ModelConstraint {
    /// Why the model may not ask for this.
    fn refusal(&self, input: &GuardInput<'_>) -> Option<String> {
        let about = |tools: &ToolPatterns| {
            tools.is_empty() || tools.find(input.server_id, input.tool_name).is_some()
        };
        if !about(&self.tools) {
            return None;
        }
        let Some(model) = input.model else {
            return self.require.then(|| "the call names no model".to_owned());
        };
        if let Some((name, _)) = self.deny.iter().find(|name| is_named(model, name)) {
            return Some(format!("the model is denied by `{name}`"));
        }
        if !self.allow.is_empty() && !self.allow.iter().any(|name| is_named(model, name)) {
            return Some("the model is none of `allow`".to_owned());
        }
        if self.provenance.is_some_and(|class| model.provenance_class < class) {
            return Some("`require_provenance`: the model is only asserted".to_owned());
        }
        if self.min_tier.is_some_and(|tier| model.safety_tier.is_none_or(|found| found < tier)) {
            return Some("`min_tier`: the model's safety tier is lower, or unknown".to_owned());
        }
        None
    }

    /// A call that it does not let pass, where there is one.
    fn forbidden(&self) -> Option<ExampleCall> {
        let (server, tool) = self.tools.example().unwrap_or((None, "example".to_owned()));
        let mut call = ExampleCall::new(&tool, json!({}));
        if let Some(server) = server {
            call.server_id = server;
        }
        let model = |model_id: String| ModelMetadata {
            model_id,
            safety_tier: None,
            provider: None,
            provenance_class: ProvenanceClass::Asserted,
        };
        let denied = self.deny.first().map(|(name, _)| model(name.replace('*', "x")));
        let models = [None, denied, Some(model("example".to_owned()))];
        let mut calls = models.into_iter().map(|model| ExampleCall { model, ..call.clone() });
        calls.find(|call| self.refusal(&call.input(&Shared::default())).is_some())
    }
}

fn is_named(model: &ModelMetadata, (_, pattern): &Name) -> bool {
    let full = || {
        let provider = model.provider.as_ref()?;
        Some(pattern.is_match(&format!("{provider}/{}", model.model_id)))
    };
    pattern.is_match(&model.model_id) || full().unwrap_or(false)
}

#[async_trait]
impl Guard for ModelConstraint {
    fn name(&self) -> &str {
        NAME
    }

    async fn check(&self, input: &GuardInput<'_>) -> Result<GuardOutcome, String> {
        Ok(self.refusal(input).map_or(Verdict::Allow, Verdict::Deny).into())
    }
}
