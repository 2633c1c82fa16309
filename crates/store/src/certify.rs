//! The authority's word for the kernels of its own store.

use chio_core::certificate::KernelCertificate;
use chio_core::crypto::{Keypair, PublicKey};
use chio_kernel::store::{StoreError, StoreResult};

/// A second handle on the same secret.
pub(crate) fn same_key(key: &Keypair) -> StoreResult<Keypair> {
    Keypair::from_seed_hex(&key.seed_hex())
        .map_err(|error| StoreError::Damaged(format!("a key cannot be read again: {error}")))
}

/// The certificate of a kernel: one that is there if it is this authority's for this store,
/// otherwise a new one.
pub(crate) fn certificate(
    known: &[KernelCertificate],
    authority: Option<&Keypair>,
    kernel_key: &PublicKey,
    store_id: &str,
    now: u64,
) -> StoreResult<KernelCertificate> {
    let fits = |known: &&KernelCertificate| {
        let ours = authority.is_none_or(|authority| known.authority == *authority.public_key());
        ours && known.store_id == store_id && known.kernel_key == *kernel_key
    };
    if let Some(known) = known.iter().find(fits) {
        return Ok(known.clone());
    }
    let Some(authority) = authority else {
        return Err(StoreError::Refused(
            "expected an authority key or a certificate for this kernel in the store, found neither"
                .to_owned(),
        ));
    };
    KernelCertificate::issue(authority, kernel_key.clone(), store_id, now)
        .map_err(|error| StoreError::Refused(format!("the kernel cannot be certified: {error}")))
}

/// The refusal of a kernel key whose slot another kernel holds.
pub(crate) fn in_use(kernel_key: &PublicKey) -> StoreError {
    StoreError::Refused(format!(
        "expected a kernel key that nobody uses, found `{kernel_key}` in use by another kernel"
    ))
}
