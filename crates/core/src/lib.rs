//! What Chio's bytes mean.
//!
//! Canonical JSON, keys, capability tokens and their scope algebra, receipts, manifests, the
//! Merkle log's hashes and proofs, native messages and frames, and the error registry. Everything
//! here is a pure function of its arguments: no I/O, no clock, no async. What a token or a receipt
//! means is decided here once; no other crate handles signed bytes itself.

/// Defines a struct whose fields have defaults, each beside its field.
#[macro_export]
macro_rules! with_defaults {
    ($(#[$meta:meta])* $vis:vis struct $name:ident {
        $($(#[$of:meta])* $field_vis:vis $field:ident: $type:ty = $default:expr,)*
    }) => {
        $(#[$meta])*
        $vis struct $name {
            $($(#[$of])* $field_vis $field: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }
    };
}

pub mod bundle;
pub mod calendar;
pub mod canonical;
pub mod capability;
pub mod capability_ref;
pub mod certificate;
pub mod checkpoint;
pub mod crypto;
pub mod duration;
pub mod fidelity;
pub mod frame;
pub mod governance;
pub mod hash;
pub mod lineage;
pub mod manifest;
pub mod mark;
pub mod mcp;
pub mod merkle;
pub mod message;
pub mod money;
pub mod principal;
pub mod protocol;
pub mod receipt;
pub mod registry;
pub mod session;
pub mod signed;
pub mod strict;
pub mod text;
pub mod tier;
pub mod tool_result;
pub mod window;

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
