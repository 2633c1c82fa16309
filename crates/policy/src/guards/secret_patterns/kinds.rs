//! The secrets that are looked for when a document names none of its own.

use super::finder::{Check, Kind, Severity};
use super::likely::{is_assigned, is_credential, is_login, is_long_block, is_token};

use Severity::{Critical, Error, Warn};

/// A kind of secret: its name, its pattern, and the pattern for text without spaces and quotes where
/// the form is distinctive enough to be recognised there. Patterns stand between word boundaries of
/// ASCII, which cost nothing.
type Token = (&'static str, &'static str, Option<&'static str>);

/// Tokens and keys of services: critical, whatever their letters.
const TOKENS: &[Token] = &[
    (
        "aws-access-key",
        r"(?-u:\b)(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?-u:\b)",
        Some("AKIA[A-Z0-9]{16}"),
    ),
    (
        "aws-secret-key",
        r#"(?i)aws.{0,20}?(?:secret|sk).{0,20}?["'\s:=>]{1,5}(?P<secret>[A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+]|$)"#,
        None,
    ),
    (
        "github-token",
        r"(?-u:\b)(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{60,255})",
        Some("gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{60}"),
    ),
    (
        "gitlab-token",
        r"(?-u:\b)gl(?:pat|dt|rt|ptt|soat|ft|cbt|imt|agent)-[A-Za-z0-9_-]{20,255}",
        Some("glpat-[A-Za-z0-9_-]{20}"),
    ),
    (
        "slack-token",
        r"(?-u:\b)(?:xox[abeoprs]-[A-Za-z0-9-]{10,250}|xapp-[0-9]-[A-Za-z0-9-]{10,250})",
        Some("xox[abeoprs]-[0-9]{8,}-[A-Za-z0-9-]{16}"),
    ),
    (
        "slack-webhook",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{30,60}",
        Some(r"hooks\.slack\.com/services/[A-Za-z0-9+/]{30}"),
    ),
    (
        "stripe-key",
        r"(?-u:\b)(?:(?:sk|rk)_(?:live|test)|whsec)_[A-Za-z0-9]{16,255}",
        Some("(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16}"),
    ),
    (
        "anthropic-key",
        r"(?-u:\b)sk-ant-[a-z0-9]{2,10}-[A-Za-z0-9_-]{20,255}",
        Some("sk-ant-[a-z0-9]{2,10}-[A-Za-z0-9_-]{20}"),
    ),
    (
        "openai-key",
        r"(?-u:\b)sk-(?:(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{20,255}|[A-Za-z0-9]{32,64}(?-u:\b))",
        Some("sk-(?:proj|svcacct)-[A-Za-z0-9_-]{20}|sk-[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}"),
    ),
    (
        "google-key",
        r"(?-u:\b)(?:AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,255}|GOCSPX-[A-Za-z0-9_-]{28})",
        Some("AIza[A-Za-z0-9_-]{35}|GOCSPX-[A-Za-z0-9_-]{28}"),
    ),
    (
        "azure-key",
        r"(?i)(?:AccountKey|SharedAccessKey)=(?P<secret>[A-Za-z0-9+/]{42,86}={0,2})",
        Some("AccountKey=[A-Za-z0-9+/]{86}"),
    ),
    ("npm-token", r"(?-u:\b)npm_[A-Za-z0-9]{36}(?-u:\b)", Some("npm_[A-Za-z0-9]{36}")),
    ("pypi-token", r"(?-u:\b)pypi-[A-Za-z0-9_-]{50,255}", Some("pypi-Ag[A-Za-z0-9_-]{50}")),
    ("cargo-token", r"(?-u:\b)cio[A-Za-z0-9]{32}(?-u:\b)", None),
    (
        "sendgrid-key",
        r"(?-u:\b)SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{30,64}",
        Some(r"SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}"),
    ),
    ("twilio-key", r"(?-u:\b)SK[0-9a-f]{32}(?-u:\b)", None),
    ("mailgun-key", r"(?-u:\b)key-[0-9a-f]{32}(?-u:\b)", None),
    ("huggingface-token", r"(?-u:\b)hf_[A-Za-z0-9]{30,60}(?-u:\b)", None),
    ("digitalocean-token", r"(?-u:\b)do[opr]_v1_[a-f0-9]{64}", Some("do[opr]_v1_[a-f0-9]{64}")),
    ("databricks-token", r"(?-u:\b)dapi[a-f0-9]{32}", None),
    (
        "shopify-token",
        r"(?-u:\b)shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}",
        Some("shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
    ),
    ("vault-token", r"(?-u:\b)hv[sbr]\.[A-Za-z0-9_-]{24,255}", None),
    (
        "docker-token",
        r"(?-u:\b)dckr_(?:pat|oat)_[A-Za-z0-9_-]{24,64}",
        Some("dckr_pat_[A-Za-z0-9_-]{24}"),
    ),
    ("linear-key", r"(?-u:\b)lin_(?:api|oauth)_[A-Za-z0-9]{40,64}", None),
    ("telegram-token", r"(?-u:\b)[0-9]{8,10}:AA[A-Za-z0-9_-]{33}(?-u:\b)", None),
    ("age-key", r"AGE-SECRET-KEY-1[0-9A-Z]{58}", Some("AGE-SECRET-KEY-1[0-9A-Z]{58}")),
    // `kernel_key` and `kernelKey` are public: every receipt has one.
    (
        "chio-key",
        r#"(?i)(?:(?:seed|secret|private|authority|signing)[_ .-]?(?:seed|hex|key)?|kernel[ .-](?:seed|hex|key)|kernel[_ .-]?(?:seed|secret|private)[_ .-]?(?:hex|key)?)(?:[_ .-]?hex)?["'`]?\s{0,3}[:=]\s{0,3}["'`]?(?P<secret>[0-9a-f]{64})(?-u:\b)"#,
        None,
    ),
];

/// The other kinds, with their severity and what has to hold of the text found.
const OTHERS: &[(&str, Severity, &str, Option<&str>, Check)] = &[
    (
        "jwt",
        Error,
        r"(?-u:\b)eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{16,}",
        Some(r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{16,}"),
        is_token,
    ),
    (
        "connection-string",
        Error,
        r#"(?i)(?-u:\b)[a-z][a-z0-9+.-]{1,20}://(?P<secret>[^\s:/?#@"'<>`]{0,64}:[^\s/?#@"'<>`]{3,128})@[^\s/@"'<>`]"#,
        Some(
            r"(?i)(?:postgres(?:ql)?|mysql|mongodb(?:\+srv)?|rediss?|amqps?)://(?P<secret>[^:/?#@<>]{1,64}:[^/?#@<>]{3,128})@[a-z0-9]",
        ),
        is_login,
    ),
    ("password", Error, ASSIGNMENT, None, is_assigned),
    (
        "authorization",
        Warn,
        r"(?i)(?-u:\b)(?:bearer|basic|token)\s{1,3}(?P<secret>[A-Za-z0-9._~+/-]{20,512}={0,2})",
        None,
        is_credential,
    ),
];

const PRIVATE_KEY: &str = r"-----BEGIN[ A-Z0-9]{0,30}PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-[^-])*(?:-----END[ A-Z0-9]{0,30}PRIVATE KEY(?: BLOCK)?-----)?";
const PRIVATE_KEY_LOOSE: &str =
    r"-----BEGIN[A-Z0-9]{0,24}PRIVATEKEY(?:BLOCK)?-----[A-Za-z0-9/=]{40,}";

/// `password=…`, `api_key: …` and their like. What looks like code, a path or a placeholder is
/// sorted out afterwards.
const ASSIGNMENT: &str = r#"(?i)(?:passw(?:or)?d|passphrase|(?-u:\b)pwd|secret|api[_-]?key|access[_-]?key|private[_-]?key|(?:access|auth|api|bearer|refresh|session|oauth|bot)[_-]?token|(?-u:\b)token)["'`]?\s{0,4}(?:=>|:=|==?|:)\s{0,4}["'`]?(?P<secret>[^\s"'`,;&(){}\[\]<>$]{8,128})"#;

/// The kinds of secrets that are looked for by default.
pub(super) fn defaults() -> Vec<Kind> {
    let key =
        Kind::new("private-key", Critical, PRIVATE_KEY, Some(PRIVATE_KEY_LOOSE), is_long_block);
    let tokens = TOKENS
        .iter()
        .map(|(name, pattern, loose)| Kind::new(name, Critical, pattern, *loose, is_token));
    let others = OTHERS.iter().map(|(name, severity, pattern, loose, check)| {
        Kind::new(name, *severity, pattern, *loose, *check)
    });
    [key].into_iter().chain(tokens).chain(others).collect()
}
