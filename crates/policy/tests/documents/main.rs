//! Documents: what is read, what is refused and in which words, what extends what.
#![cfg(test)]

mod cases;
mod extends;
mod hash;
mod mistakes;
mod rulesets;
