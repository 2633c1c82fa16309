//! The test kernel end to end: guards, broken tools and small bounds behind the native transport.
#![cfg(test)]

mod bounds;
mod guards;
mod limits;
mod output;
mod support;
mod tools;
