//! Admission: whether a principal may open a session, and with which capabilities.

use async_trait::async_trait;
use chio_core::capability::PresentedToken;
use chio_core::principal::Principal;
use chio_kernel::Session;

use crate::DiscoveryProtocol;

/// Why a principal was not admitted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not admitted: {0}")]
pub struct Refused(pub String);

/// Admits principals. The binary implements it.
#[async_trait]
pub trait Admission: Send + Sync {
    /// Admits a principal and opens its session. The session's principal has its subject key, and
    /// the capability that it is limited to, if any.
    ///
    /// # Errors
    /// When it may not come in.
    async fn admit(
        &self,
        protocol: DiscoveryProtocol,
        principal: Principal,
    ) -> Result<Session, Refused>;

    /// The capabilities of an admitted principal, where the protocol carries none: the best first.
    ///
    /// # Errors
    /// When they cannot be issued.
    async fn tokens(&self, _principal: &Principal) -> Result<Vec<PresentedToken>, Refused> {
        Ok(Vec::new())
    }
}
