//! Whom a kernel believes: who issues tokens, who approves calls, and which kernels speak for
//! calls that come from elsewhere.

use std::time::Duration;

use anyhow::Result;
use chio_core::crypto::PublicKey;
use chio_kernel::KernelConfig;
use chio_store::OpenStore;

use crate::duration;
use crate::io::Io;
use crate::outcome::Refused;

/// Who approves, and whose statements about where calls come from are trusted.
#[derive(Debug, clap::Args)]
pub(crate) struct TrustArgs {
    /// Another approver of calls, besides the store's own, by public key or key file; can be
    /// repeated
    #[arg(long, value_name = "KEY")]
    trusted_approver: Vec<String>,
    /// How long a call waits for an approval
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = duration::parse)]
    approval_timeout: u64,
    /// Let a caller who is trusted to approve approve calls of its own
    #[arg(long)]
    allow_self_approval: bool,
    /// A kernel elsewhere whose statements about where a call comes from are trusted, by public
    /// key or key file; can be repeated
    #[arg(long, value_name = "KEY")]
    trusted_kernel: Vec<String>,
}

impl TrustArgs {
    /// What the options say, with these issuers besides the store's authority.
    pub(crate) fn read(&self, io: &mut Io<'_>, issuers: Vec<PublicKey>) -> Result<Trust> {
        Ok(Trust {
            issuers,
            approvers: io.public_keys("--trusted-approver", &self.trusted_approver)?,
            kernels: io.public_keys("--trusted-kernel", &self.trusted_kernel)?,
            approval_timeout: Duration::from_secs(self.approval_timeout),
            allow_self_approval: self.allow_self_approval,
        })
    }
}

/// Whom a kernel believes.
#[derive(Debug)]
pub(crate) struct Trust {
    issuers: Vec<PublicKey>,
    approvers: Vec<PublicKey>,
    kernels: Vec<PublicKey>,
    approval_timeout: Duration,
    allow_self_approval: bool,
}

impl Trust {
    /// The same, and these kernels elsewhere.
    pub(crate) fn and_kernels(mut self, kernels: Vec<PublicKey>) -> Self {
        self.kernels.extend(kernels);
        self
    }
}

impl Default for Trust {
    fn default() -> Self {
        Self {
            issuers: Vec::new(),
            approvers: Vec::new(),
            kernels: Vec::new(),
            approval_timeout: KernelConfig::default().approval_timeout,
            allow_self_approval: false,
        }
    }
}

impl Trust {
    /// The same with the store's own authority and approver, if no key has two parts to play: a
    /// kernel neither issues nor approves, and who issues does not approve.
    pub(crate) async fn of_store(
        mut self,
        store: &OpenStore,
        kernel_key: Option<&PublicKey>,
    ) -> Result<Self> {
        self.issuers.extend(store.authority_public().await?);
        self.approvers.extend(store.approver_public().await?);
        let known = kernels_of(store).await?;
        for approver in &self.approvers {
            let others = [(&known, KERNEL), (&self.kernels, KERNEL), (&self.issuers, ISSUER)];
            if let Some((_, who)) = others.into_iter().find(|(keys, _)| keys.contains(approver)) {
                return Err(not_an_approver(who).into());
            }
        }
        kernel_key.map_or(Ok(()), |key| self.check_kernel(key))?;
        Ok(self)
    }

    /// The same, with another who may approve.
    #[must_use]
    pub(crate) fn and_approver(mut self, key: PublicKey) -> Self {
        self.approvers.push(key);
        self
    }

    /// Refuses a kernel's key that has another part to play.
    pub(crate) fn check_kernel(&self, key: &PublicKey) -> Result<()> {
        for (keys, who) in [(&self.issuers, ISSUER), (&self.approvers, "that of an approver")] {
            if keys.contains(key) {
                let message = format!("expected a kernel key of its own, found {who}");
                return Err(Refused::new(message).into());
            }
        }
        Ok(())
    }

    /// A kernel's configuration that says so.
    pub(crate) fn config(self) -> KernelConfig {
        KernelConfig {
            trusted_issuers: self.issuers,
            trusted_approvers: self.approvers,
            trusted_kernels: self.kernels,
            approval_timeout: self.approval_timeout,
            allow_self_approval: self.allow_self_approval,
            ..KernelConfig::default()
        }
    }
}

const KERNEL: &str = "a kernel's";
const ISSUER: &str = "that of an issuer of tokens";

/// Refuses a key that approvals of this store's calls cannot be signed with.
pub(crate) async fn check_approver(store: &OpenStore, key: &PublicKey) -> Result<()> {
    if store.authority_public().await?.as_ref() == Some(key) {
        return Err(not_an_approver(ISSUER).into());
    }
    if kernels_of(store).await?.contains(key) {
        return Err(not_an_approver(KERNEL).into());
    }
    Ok(())
}

/// The kernels that the store knows.
async fn kernels_of(store: &OpenStore) -> Result<Vec<PublicKey>> {
    let logs = store.shared().logs().await?;
    Ok(logs.into_iter().map(|log| log.kernel_key).collect())
}

fn not_an_approver(who: &str) -> Refused {
    Refused::new(format!("expected an approver's key of its own, found {who}"))
}
