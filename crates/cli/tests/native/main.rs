//! The native transport end to end: the built binary, real sockets, real stores.
#![cfg(test)]

mod apart;
mod approvals;
mod approvers;
mod audit;
mod calls;
mod delegation;
mod denials;
mod failing_store;
mod frames;
mod governed;
mod inbox;
mod issued_capabilities;
mod kernels;
mod listeners;
mod logs;
mod marks;
mod policy;
mod policy_change;
mod possession;
mod races;
mod read_only;
mod receipts;
mod revocation;
mod shutdown;
mod stdio;
mod support;
mod trace;
mod trust;
mod two_processes;
mod unreadable;
mod up;
