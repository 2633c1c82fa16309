//! What a kernel can be told.

use std::time::Duration;

use chio_core::crypto::PublicKey;
use chio_core::with_defaults;

with_defaults! {
    /// What a kernel can be told.
    #[derive(Debug, Clone)]
    pub struct KernelConfig {
        /// Who may issue tokens.
        pub trusted_issuers: Vec<PublicKey> = Vec::new(),
        /// Who may approve. Kernels never do.
        pub trusted_approvers: Vec<PublicKey> = Vec::new(),
        /// Whether the caller may approve the call, if trusted to approve at all.
        pub allow_self_approval: bool = false,
        /// How long a call waits for an approval.
        pub approval_timeout: Duration = Duration::from_secs(300),
        /// Kernels elsewhere whose word for where a call comes from counts.
        pub trusted_kernels: Vec<PublicKey> = Vec::new(),
        /// How far one call may go.
        pub limits: Limits = Limits::default(),
        /// After how many receipts a checkpoint is signed.
        pub checkpoint_size: usize = 100,
        /// After how long a checkpoint is signed at the latest.
        pub checkpoint_interval: Duration = Duration::from_secs(1),
        /// How often revocations are looked up.
        pub revocation_poll: Duration = Duration::from_millis(100),
        /// How old the view of revocations may be; calls are denied when it is older.
        pub revocation_max_age: Duration = Duration::from_secs(2),
        /// How often calls that were left unfinished are looked for.
        pub sweep_interval: Duration = Duration::from_secs(1),
        /// How many verified tokens are remembered.
        pub token_cache: usize = 8192,
    }
}

with_defaults! {
    /// How far one call may go.
    #[derive(Debug, Clone)]
    pub struct Limits {
        /// How long a tool may take.
        pub deadline: Duration = Duration::from_secs(300),
        /// How many chunks a stream may have. A receipt lists the hash of each, and has to fit into
        /// a frame.
        pub max_chunks: u64 = 1 << 16,
        /// How many canonical bytes a stream may have.
        pub max_stream_bytes: u64 = 256 << 20,
        /// How often a token may have been handed on.
        pub max_chain_depth: usize = 5,
        /// How many canonical bytes of arguments a call may have; receipts carry them.
        pub max_argument_bytes: usize = 4 << 20,
        /// How many canonical bytes a value that a tool returns may have.
        pub max_output_bytes: usize = 8 << 20,
    }
}

/// What of a configuration may change while a kernel runs.
#[derive(Debug)]
pub(crate) struct Trust {
    pub(crate) approvers: Vec<PublicKey>,
    pub(crate) allow_self_approval: bool,
    pub(crate) approval_timeout: Duration,
    pub(crate) kernels: Vec<PublicKey>,
    pub(crate) deadline: Duration,
}

impl From<&KernelConfig> for Trust {
    fn from(config: &KernelConfig) -> Self {
        Self {
            approvers: config.trusted_approvers.clone(),
            allow_self_approval: config.allow_self_approval,
            approval_timeout: config.approval_timeout,
            kernels: config.trusted_kernels.clone(),
            deadline: config.limits.deadline,
        }
    }
}
