//! What only a store in a folder promises.
#![cfg(test)]

mod crash;
mod folder;
mod index;
mod sharing;
mod support;
