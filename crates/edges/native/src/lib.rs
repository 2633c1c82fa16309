//! The native transport.
