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
    /// A kernel's configuration that says so.
    pub(crate) fn read(&self, io: &mut Io<'_>) -> Result<KernelConfig> {
        Ok(KernelConfig {
            trusted_approvers: io.public_keys("--trusted-approver", &self.trusted_approver)?,
            trusted_kernels: io.public_keys("--trusted-kernel", &self.trusted_kernel)?,
            approval_timeout: Duration::from_secs(self.approval_timeout),
            allow_self_approval: self.allow_self_approval,
            ..KernelConfig::default()
        })
    }
}

/// Has a kernel trust the store's own authority and approver, if no key has two parts to play: a
/// kernel neither issues nor approves, and who issues does not approve.
pub(crate) async fn trust_store(config: &mut KernelConfig, store: &OpenStore) -> Result<()> {
    config.trusted_issuers.extend(store.authority_public().await?);
    config.trusted_approvers.extend(store.approver_public().await?);
    let known = kernels_of(store).await?;
    for approver in &config.trusted_approvers {
        let issuers = (&config.trusted_issuers, ISSUER);
        let others = [(&known, KERNEL), (&config.trusted_kernels, KERNEL), issuers];
        if let Some((_, who)) = others.into_iter().find(|(keys, _)| keys.contains(approver)) {
            return Err(not_an_approver(who).into());
        }
    }
    Ok(())
}

/// Refuses a kernel's key that has another part to play.
pub(crate) fn check_kernel(config: &KernelConfig, key: &PublicKey) -> Result<()> {
    let approvers = (&config.trusted_approvers, "that of an approver");
    for (keys, who) in [(&config.trusted_issuers, ISSUER), approvers] {
        if keys.contains(key) {
            let message = format!("expected a kernel key of its own, found {who}");
            return Err(Refused::new(message).into());
        }
    }
    Ok(())
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
