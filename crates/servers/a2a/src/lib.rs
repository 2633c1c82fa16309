//! A2A agents as tool servers: their skills become tools.
//!
//! ```text
//! card ─► interface, manifest                          registry: which task is whose
//!              │                                          ▲            │
//! kernel ─► input ─► auth ─► wire ─► exchange ─► agent ─► answer ─► chunks, value
//!           one of   what    1.0 or   JSON-RPC or         what must
//!           8 modes  is      0.3      HTTP+JSON           be there
//!                    asked
//! ```
//!
//! A2A has no selector for skills, so the one that is meant goes along as
//! `metadata.chio.targetSkillId`, and nothing else is made up. Only credentials are sent that
//! satisfy what the card asks for; a card that asks for anything unknown is never called.
//!
//! ```no_run
//! # // The files are the operator's.
//! # macro_rules! include_str { ($file:literal) => { "" } }
//! # async fn configure(parts: chio_kernel::KernelParts) -> Result<(), Box<dyn std::error::Error>> {
//! # let recovered = parts.recover().await?;
//! use chio_a2a_adapter::{A2aAdapter, A2aAdapterConfig, A2aPartnerPolicy};
//! use chio_core::crypto::Keypair;
//! use chio_kernel::ChioKernel;
//!
//! let manifest_key = Keypair::generate();
//!
//! let adapter = A2aAdapter::discover(
//!     A2aAdapterConfig::new(
//!         "https://agent.example.com",
//!         manifest_key.public_key().to_hex(),
//!     )
//!     .with_tls_root_ca_pem(include_str!("agent-root-ca.pem"))
//!     .with_mtls_client_auth_pem(
//!         include_str!("agent-client-cert-chain.pem"),
//!         include_str!("agent-client-key.pem"),
//!     )
//!     .with_request_header("X-Partner", "design-partner-a")
//!     .with_oauth_client_credentials("client-id", "client-secret")
//!     .with_oauth_scope("a2a.invoke")
//!     .with_partner_policy(
//!         A2aPartnerPolicy::new("design-partner-a")
//!             .with_required_tenant("tenant-alpha")
//!             .require_skill("research")
//!             .require_security_scheme("oauthAuth")
//!             .allow_interface_origin("https://agent.example.com"),
//!     )
//!     .with_task_registry_file(".chio/a2a-task-registry.json")
//! )?;
//!
//! let mut kernel = ChioKernel::new(recovered);
//! kernel.register_tool_server(Box::new(adapter));
//! # Ok(())
//! # }
//! ```

// The snippet of the documents stands above and is compiled with the tests.
// covers: A2A-034

/// Writes the builders of a type: each changes it as its block says, and gives it back.
macro_rules! builders {
    ($of:ident: $(
        $(#[$doc:meta])* $name:ident($this:ident $(, $value:ident: $type:ty)*) $change:block
    )*) => {
        impl $of {$(
            $(#[$doc])*
            pub fn $name(mut $this $(, $value: $type)*) -> Self {
                $change
                $this
            }
        )*}
    };
}

mod adapter;
mod answer;
mod auth;
mod bridge;
mod call;
mod card;
mod config;
mod discovery;
mod error;
mod exchange;
mod input;
mod interface;
mod manifest;
mod place;
mod policy;
mod registry;
mod secret;
mod transport;
mod wire;

pub use adapter::A2aAdapter;
pub use config::{A2aAdapterConfig, AgentLimits};
pub use error::AgentError;
pub use place::server_id_of;
pub use policy::A2aPartnerPolicy;
