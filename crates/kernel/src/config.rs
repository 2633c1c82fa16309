//! What a kernel can be told.

use std::time::Duration;

use chio_core::crypto::PublicKey;

/// What a kernel can be told.
#[derive(Debug, Clone)]
pub struct KernelConfig {
    /// Who may issue tokens.
    pub trusted_issuers: Vec<PublicKey>,
    /// Who may approve. Kernels never do.
    pub trusted_approvers: Vec<PublicKey>,
    /// Whether the caller may approve the call, if trusted to approve at all.
    pub allow_self_approval: bool,
    /// How long a call waits for an approval.
    pub approval_timeout: Duration,
    /// Kernels elsewhere whose word for where a call comes from counts.
    pub trusted_kernels: Vec<PublicKey>,
    /// How far one call may go.
    pub limits: Limits,
    /// After how many receipts a checkpoint is signed.
    pub checkpoint_size: usize,
    /// After how long a checkpoint is signed at the latest.
    pub checkpoint_interval: Duration,
    /// How often revocations are looked up.
    pub revocation_poll: Duration,
    /// How old the view of revocations may be; calls are denied when it is older.
    pub revocation_max_age: Duration,
    /// How often calls that were left unfinished are looked for.
    pub sweep_interval: Duration,
    /// How many verified tokens are remembered.
    pub token_cache: usize,
}

/// How far one call may go.
#[derive(Debug, Clone)]
pub struct Limits {
    /// How long a tool may take.
    pub deadline: Duration,
    /// How many chunks a stream may have.
    pub max_chunks: u64,
    /// How many canonical bytes a stream may have.
    pub max_stream_bytes: u64,
    /// How often a token may have been handed on.
    pub max_chain_depth: usize,
    /// How many canonical bytes of arguments a call may have; receipts carry them.
    pub max_argument_bytes: usize,
    /// How many canonical bytes a value that a tool returns may have.
    pub max_output_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(300),
            // A receipt lists the hash of each, and has to fit into a frame.
            max_chunks: 1 << 16,
            max_stream_bytes: 256 << 20,
            max_chain_depth: 5,
            max_argument_bytes: 4 << 20,
            max_output_bytes: 8 << 20,
        }
    }
}

impl Default for KernelConfig {
    fn default() -> Self {
        Self {
            trusted_issuers: Vec::new(),
            trusted_approvers: Vec::new(),
            allow_self_approval: false,
            approval_timeout: Duration::from_secs(300),
            trusted_kernels: Vec::new(),
            limits: Limits::default(),
            checkpoint_size: 100,
            checkpoint_interval: Duration::from_secs(1),
            revocation_poll: Duration::from_millis(100),
            revocation_max_age: Duration::from_secs(2),
            sweep_interval: Duration::from_secs(1),
            token_cache: 8192,
        }
    }
}
