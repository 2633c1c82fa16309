//! What only a store in a folder promises.
#![cfg(test)]

mod apart;
mod crash;
mod folder;
mod index;
mod migration;
mod once;
mod sharing;
mod support;
