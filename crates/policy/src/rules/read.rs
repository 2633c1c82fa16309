//! Rules from text: parsed, checked against the schema, named.

use std::collections::{HashMap, HashSet};

use cedar_policy::ffi::DetailedError;
use cedar_policy::{
    Effect, EntityUid, Policy, PolicyId, PolicySet, Schema, ValidationError, ValidationMode,
    ValidationWarning, Validator,
};
use chio_core::crypto::PublicKey;
use chio_yaml::{Place, Problems};

use super::origin::Source;
use super::{About, Otherwise, SCHEMA, bounds};

/// How long a name or a reason may be, in characters.
const MAX_WORDS: usize = 200;
/// How many rules there may be.
const MAX_RULES: usize = 10_000;

/// Rules as they are read, one by one.
struct Reading<'a> {
    otherwise: Otherwise,
    problems: &'a Problems,
    rules: Vec<(Policy, About)>,
    /// Where a name was met first.
    names: HashMap<String, Place>,
}

/// Reads rules. Whatever is wrong with them is noted; then there are none.
pub(super) fn read(
    sources: &[Source<'_>],
    otherwise: Otherwise,
    problems: &Problems,
) -> Option<Vec<(Policy, About)>> {
    let mut reading = Reading { otherwise, problems, rules: Vec::new(), names: HashMap::new() };
    let mut good = true;
    for source in sources {
        good &= reading.source(source).is_some();
    }
    good.then_some(reading.rules)
}

impl Reading<'_> {
    fn source(&mut self, source: &Source<'_>) -> Option<()> {
        if let Err((at, message)) = bounds::check(source.text) {
            self.problems.add(&source.place(at), message);
            return None;
        }
        let set = match source.text.parse::<PolicySet>() {
            Ok(set) => set,
            Err(errors) => {
                for error in errors.iter() {
                    source.say(&DetailedError::from(error), self.problems);
                }
                return None;
            }
        };
        if set.num_of_policies() + set.num_of_templates() > MAX_RULES {
            let message = format!("expected at most {MAX_RULES} rules, found more");
            self.problems.add(&source.start, message);
            return None;
        }
        let valid = self.is_valid(source, &set);
        let mut good = valid;
        let mut after = 0;
        // The engine numbers rules in their order.
        for number in 0..set.num_of_policies() + set.num_of_templates() {
            let id = PolicyId::new(format!("policy{number}"));
            let rule = set.policy(&id);
            let text = rule.and_then(Policy::to_cedar);
            let text = text.or_else(|| set.template(&id).map(cedar_policy::Template::to_cedar));
            let at = text.and_then(|text| begin(source.text, &text, &mut after));
            let place = source.place(at.unwrap_or(0));
            good &= match rule {
                Some(rule) => self.rule(source, rule, number + 1, &place).is_some(),
                None => {
                    let message = "this is a template (`?principal`, `?resource`), which nothing \
                                   fills in here; name the agent or the tool";
                    self.problems.add(&place, message);
                    false
                }
            };
        }
        good.then_some(())
    }

    /// Whether the rules fit the schema, and can apply at all.
    fn is_valid(&self, source: &Source<'_>, set: &PolicySet) -> bool {
        let schema = match Schema::from_cedarschema_str(SCHEMA) {
            Ok((schema, _)) => schema,
            Err(error) => {
                self.problems.add(&source.start, format!("the schema of rules is broken: {error}"));
                return false;
            }
        };
        let result = Validator::new(schema).validate(set, ValidationMode::Strict);
        for error in result.validation_errors() {
            source.say(&DetailedError::from(error), self.problems);
        }
        // Cedar's warnings are about rules that can never apply, and about text that does not say
        // what it shows. Neither is intended.
        let mut warnings: Vec<&ValidationWarning> =
            result.validation_warnings().filter(|warning| is_meant(warning)).collect();
        warnings.sort_by_key(|warning| vagueness(warning));
        let mut told: HashSet<&PolicyId> =
            result.validation_errors().map(ValidationError::policy_id).collect();
        let good = result.validation_passed() && warnings.is_empty();
        for warning in warnings {
            let is_new = told.insert(warning.policy_id());
            if is_new || vagueness(warning) == 0 {
                source.say(&DetailedError::from(warning), self.problems);
            }
        }
        good
    }

    fn rule(
        &mut self,
        source: &Source<'_>,
        rule: &Policy,
        number: usize,
        place: &Place,
    ) -> Option<()> {
        let mut good = self.check_annotations(rule, place);
        good &= self.check_entities(rule, place);
        let permits = rule.effect() == Effect::Permit;
        if permits && self.otherwise == Otherwise::Allow {
            let message = "a `permit` changes nothing where all is permitted that no rule forbids; \
                           set `default: deny`, or write what is forbidden";
            self.problems.add(place, message);
            good = false;
        }
        let approval = rule.annotation("approval").is_some();
        if permits && approval {
            self.problems.add(place, "`@approval` belongs to a `forbid`, this is a `permit`");
            good = false;
        }
        let name = rule.annotation("id").map_or_else(
            || match source.file {
                None => format!("rule {number} (line {})", place.line),
                Some(file) => format!("rule {number} ({file} line {})", place.line),
            },
            str::to_owned,
        );
        if let Some(first) = self.names.get(&name) {
            let message = format!("the id `{name}` is here a second time; the first is at {first}");
            self.problems.add(place, message);
            return None;
        }
        self.names.insert(name.clone(), place.clone());
        let reason = rule.annotation("reason").map(str::to_owned);
        self.rules.push((rule.clone(), About { name, reason, approval, permits }));
        good.then_some(())
    }

    fn check_annotations(&self, rule: &Policy, place: &Place) -> bool {
        let mut good = true;
        let mut say = |message: String| {
            self.problems.add(place, message);
            good = false;
        };
        for (name, value) in rule.annotations() {
            match name {
                "id" | "reason" if value.trim().is_empty() => {
                    say(format!("`@{name}`: expected text, found none"));
                }
                "id" | "reason" if value.chars().count() > MAX_WORDS => {
                    say(format!("`@{name}`: expected at most {MAX_WORDS} characters"));
                }
                "id" | "reason" if value.chars().any(char::is_control) => {
                    say(format!("`@{name}`: expected one line of plain text"));
                }
                "approval" if !value.is_empty() => {
                    say("`@approval` takes no value; its words are those of `@reason`".to_owned());
                }
                "id" | "reason" | "approval" => {}
                other => say(format!(
                    "there is no `@{}`; there is `@id`, `@reason` and `@approval`",
                    other.chars().take(40).collect::<String>()
                )),
            }
        }
        good
    }

    /// Checks the entities that a rule names: a rule about an impossible name never applies.
    fn check_entities(&self, rule: &Policy, place: &Place) -> bool {
        let problems = rule.entity_literals().iter().filter_map(wrong_name).collect::<Vec<_>>();
        for problem in &problems {
            self.problems.add(place, *problem);
        }
        problems.is_empty()
    }
}

/// Whether a warning is about more than letters of two scripts in a text, as `/data/データ` has.
const fn is_meant(warning: &ValidationWarning) -> bool {
    !matches!(warning, ValidationWarning::MixedScriptString(_))
}

/// How little a warning says. A rule that is wrong looks impossible, too: then that is no news.
const fn vagueness(warning: &ValidationWarning) -> u8 {
    match warning {
        ValidationWarning::ImpossiblePolicy(_) => 2,
        ValidationWarning::InvalidActionApplication(_) => 1,
        _ => 0,
    }
}

fn wrong_name(uid: &EntityUid) -> Option<&'static str> {
    let text = uid.id().unescaped();
    match uid.type_name().to_string().as_str() {
        "Agent" => {
            let key = text.parse::<PublicKey>().ok();
            let same = key.is_some_and(|key| key.to_string() == text);
            (!same).then_some("expected Agent::\"…\" with a public key of 64 small hex digits")
        }
        "Tool" | "Server" if text.contains('*') => Some(
            "expected a whole name, since names of rules have no wildcards, found `*`; \
             `resource in Server::\"…\"` is about all tools of a server",
        ),
        "Tool" => {
            let named = text
                .split_once('/')
                .is_some_and(|(server, tool)| !server.is_empty() && !tool.is_empty());
            (!named).then_some("expected Tool::\"SERVER/TOOL\", found no server and tool in it")
        }
        _ => None,
    }
}

/// Where a rule begins in its text, after those before it.
fn begin(text: &str, rule: &str, after: &mut usize) -> Option<usize> {
    let found = text.get(*after..)?.find(rule)? + *after;
    *after = found + rule.len();
    Some(found)
}
