//! Which models may ask for calls.
//!
//! What a caller states about its model is unverified unless the kernel has checked it; the word
//! `verified` is set by the kernel alone.

use chio_core::governance::{ModelMetadata, ProvenanceClass};
use chio_core::tier::SafetyTier;
use chio_kernel::{GuardInput, GuardMemo, Work};
use chio_yaml::{Key, Section};
use regex::{Regex, RegexBuilder};

use super::{Building, Built, GuardKind};
use crate::document::words;
use crate::example::ExampleCall;
use crate::pattern::ToolPatterns;

pub(crate) const KIND: GuardKind = GuardKind {
    name: "model-constraint",
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
        Key::flag(
            "require",
            "true where anything but `deny` is set",
            "whether calls that name no model are denied",
        ),
        ToolPatterns::key("tools", "all", "the tools that this is about"),
    ],
    always: false,
    build,
};

fn build(section: &Section<'_>, _: &Building<'_>) -> Option<Built> {
    section.enabled(true)?;
    let (allow, deny) = (names(section, "allow", false), names(section, "deny", true));
    let min_tier = section.one_of("min_tier", &words());
    let provenance = section.one_of("require_provenance", &words());
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
    Some(Built::refusing(KIND.name, forbidden, move |input| Ok(guard.refusal(input))))
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
        if !self.tools.covers(input) {
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
        let call = self.tools.example_call("example");
        let model = |model_id: String| ModelMetadata {
            model_id,
            safety_tier: None,
            provider: None,
            provenance_class: ProvenanceClass::Asserted,
        };
        let denied = self.deny.first().map(|(name, _)| model(name.replace('*', "x")));
        let models = [None, denied, Some(model("example".to_owned()))];
        let mut calls = models.into_iter().map(|model| ExampleCall { model, ..call.clone() });
        calls.find(|call| {
            self.refusal(&call.input(&GuardMemo::default(), &Work::default())).is_some()
        })
    }
}

fn is_named(model: &ModelMetadata, (_, pattern): &Name) -> bool {
    let full = || {
        let provider = model.provider.as_ref()?;
        Some(pattern.is_match(&format!("{provider}/{}", model.model_id)))
    };
    pattern.is_match(&model.model_id) || full().unwrap_or(false)
}
