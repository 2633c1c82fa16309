//! How large patches may be, and what they may not add.

use chio_kernel::GuardInput;
use chio_yaml::{Key, Section};
use serde_json::json;

use super::{Building, Built, GuardKind};
use crate::document::patterns;
use crate::example::ExampleCall;
use crate::facts::patch::{self, Patch};
use crate::facts::{Action, Facts};
use crate::search_pattern::SearchPattern;

pub(crate) const KIND: GuardKind = GuardKind {
    name: "patch-integrity",
    section: "rules.patch_integrity",
    about: "Bounds how many lines a patch adds and takes away, and denies patches that add lines of \
            a forbidden kind, such as those that switch off checks of certificates. A patch that \
            cannot be read is denied.",
    keys: &[
        Key::ENABLED,
        Key::new("max_additions", "a whole number", "1000", "how many lines a patch may add"),
        Key::new("max_deletions", "a whole number", "500", "how many lines a patch may take away"),
        patterns::key(
            "forbidden_patterns",
            "(switching off authentication, verification, certificates)",
            "what an added line may not match",
        ),
        Key::flag("require_balance", "false", "whether both have to be of one size"),
        Key::new(
            "max_imbalance_ratio",
            "a number from 1 to 1000",
            "10",
            "how many times as much of one as of the other, where they have to be balanced",
        ),
    ],
    always: false,
    build,
};

/// Lines that switch off what protects.
const FORBIDDEN: &[&str] = &[
    r"(?i)\b(disable|bypass|skip)[\w\s.=:-]{0,20}(auth|security|verification|signature)",
    r"(?i)\b(ssl_)?verify(_ssl|_certs|_peer)?\s*[=:]\s*(False|0|none|VERIFY_NONE|OpenSSL::SSL::VERIFY_NONE)\b",
    r"(?i)NODE_TLS_REJECT_UNAUTHORIZED\W{0,5}0",
    r"(?i)rejectUnauthorized\W{1,3}false",
    r"(?i)InsecureSkipVerify\W{1,3}true",
    r"(?i)(danger_)?accept_invalid_(certs|hostnames)\(true\)",
    r"(?i)CURLOPT_SSL_VERIFY(PEER|HOST)\W{1,3}(false|0)",
    r"(?i)\beval\s*\(\s*(atob|base64_decode|Buffer\.from)\b",
    r"(?i)\bexec\s*\(\s*(base64|codecs|zlib|bytes\.fromhex)\b",
    r"(?i)\b(curl|wget)\b[^|]{0,200}\|\s*(sudo\s+)?(ba|z|da)?sh\b",
];

struct PatchIntegrity {
    max_additions: u64,
    max_deletions: u64,
    forbidden: Vec<SearchPattern>,
    balance: Option<f64>,
}

fn build(section: &Section<'_>, building: &Building<'_>) -> Option<Built> {
    building.note_replaced(section, "forbidden_patterns");
    let forbidden = if section.has("forbidden_patterns") {
        let written = patterns::list(section, "forbidden_patterns").into_iter();
        written.map(SearchPattern::written).collect()
    } else {
        FORBIDDEN.iter().copied().map(SearchPattern::new).collect()
    };
    let ratio = section.ratio("max_imbalance_ratio", 1.0..=1000.0).unwrap_or(10.0);
    let guard = PatchIntegrity {
        max_additions: section.number("max_additions", 0..=10_000_000).unwrap_or(1000),
        max_deletions: section.number("max_deletions", 0..=10_000_000).unwrap_or(500),
        forbidden,
        balance: section.flag("require_balance", false).then_some(ratio),
    };
    section.enabled(true)?;
    // What cannot be read is always denied.
    let forbidden = Some(ExampleCall::new("apply_patch", json!({"patch": "not a patch"})));
    Some(Built::refusing(KIND.name, forbidden, move |input| guard.refuses_call(input)))
}

impl PatchIntegrity {
    fn refuses_call(&self, input: &GuardInput<'_>) -> Result<Option<String>, String> {
        let facts = Facts::of_call(input)?;
        let unreadable = |why: &str| Some(format!("the patch cannot be read: {why}"));
        if let Some(why) = facts.malformed.as_ref().filter(|_| facts.action == Action::Patch) {
            return Ok(unreadable(why));
        }
        let bytes: usize = facts.patches.iter().map(String::len).sum();
        let steps = input.work.charge_each(bytes, self.forbidden.len() + 1);
        steps.map_err(|spent| spent.to_string())?;
        let mut patches = facts.patches.iter().map(|text| patch::read(text));
        Ok(patches.find_map(|patch| patch.map_or_else(unreadable, |patch| self.refuses(&patch))))
    }

    /// Why a patch may not be applied.
    fn refuses(&self, patch: &Patch<'_>) -> Option<String> {
        let additions = patch.files.iter().map(|file| file.added.len()).sum::<usize>();
        let deletions = patch.files.iter().map(|file| file.deletions).sum::<usize>();
        let (additions, deletions) = (additions as u64, deletions as u64);
        if additions > self.max_additions {
            let most = self.max_additions;
            return Some(format!("the patch adds {additions} lines; at most {most} are allowed"));
        }
        if deletions > self.max_deletions {
            let most = self.max_deletions;
            return Some(format!(
                "the patch takes away {deletions} lines; at most {most} are allowed"
            ));
        }
        if let Some(ratio) = self.balance.filter(|ratio| imbalance(additions, deletions) > *ratio) {
            return Some(format!(
                "the patch adds {additions} lines and takes away {deletions}; at most {ratio} times \
                 as many of one as of the other are allowed"
            ));
        }
        let lines = || patch.files.iter().flat_map(|file| &file.added);
        let found =
            self.forbidden.iter().find(|pattern| lines().any(|line| pattern.is_match(line)));
        found.map(|found| format!("the patch adds a line that is forbidden by `{}`", found.text()))
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of lines are small")]
fn imbalance(one: u64, other: u64) -> f64 {
    one.max(other) as f64 / one.min(other).max(1) as f64
}
