//! Whom the kernel trusts, and how long it waits, as it is configured.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use chio_core::crypto::PublicKey;
use chio_kernel::KernelConfig;
use chio_yaml::{Key, Section};

use crate::io::Io;
use crate::servers::texts;

/// The keys of `approvals`.
pub(super) const APPROVALS: &[Key] = &[
    Key::new(
        "approvers",
        "a list of public keys or files",
        "[]",
        "who approves calls besides the store's own approver",
    ),
    Key::new("timeout", "a time such as `10m`", "5m", "how long a call waits for an approval"),
    Key::new(
        "allow_self",
        "true or false",
        "false",
        "whether a caller who is trusted to approve may approve calls of its own",
    ),
];

/// What of the kernel is configured. Keys may be in files, which are read later.
#[derive(Debug, Clone, Default)]
pub(crate) struct KernelSettings {
    approvers: Vec<String>,
    approval_timeout: Option<Duration>,
    allow_self_approval: bool,
    deadline: Option<Duration>,
    /// Kernels elsewhere whose statements about where a call comes from are trusted.
    trusted_kernels: Vec<PublicKey>,
}

impl KernelSettings {
    /// Reads the sections of a document.
    pub(super) fn read(top: &Section<'_>, folder: &Path) -> Self {
        let approvals = top.section("approvals", APPROVALS);
        let approvers = approvals.as_ref().map(|it| texts(it, "approvers")).unwrap_or_default();
        // Paths begin in the folder of the file.
        let place = |text: String| match PublicKey::from_hex(&text) {
            Ok(_) => text,
            Err(_) => folder.join(text).display().to_string(),
        };
        Self {
            approvers: approvers.into_iter().map(place).collect(),
            approval_timeout: approvals.as_ref().and_then(|it| it.duration("timeout")),
            allow_self_approval: approvals.is_some_and(|it| it.flag("allow_self", false)),
            deadline: top.duration("deadline"),
            trusted_kernels: kernels(top),
        }
    }

    /// The configuration of a kernel, with keys that were read from files.
    pub(crate) fn config(&self, io: &mut Io<'_>) -> Result<KernelConfig> {
        let mut config = KernelConfig {
            trusted_approvers: io.public_keys("approvals.approvers", &self.approvers)?,
            trusted_kernels: self.trusted_kernels.clone(),
            allow_self_approval: self.allow_self_approval,
            ..KernelConfig::default()
        };
        config.approval_timeout = self.approval_timeout.unwrap_or(config.approval_timeout);
        config.limits.deadline = self.deadline.unwrap_or(config.limits.deadline);
        Ok(config)
    }
}

/// Kernels elsewhere.
fn kernels(top: &Section<'_>) -> Vec<PublicKey> {
    let mut keys = Vec::new();
    for item in top.texts("trusted_kernels") {
        match PublicKey::from_hex(item.text) {
            Ok(key) => keys.push(key),
            Err(_) => top.problem_at(item.place, "expected a public key in hex"),
        }
    }
    keys
}
