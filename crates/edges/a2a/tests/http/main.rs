//! The agent over HTTP: a real listener, a real kernel, and nothing between them but the edge.
#![cfg(test)]

mod access;
mod cards;
mod continued;
mod guards;
mod lineage;
mod methods;
mod rest;
mod seed;
mod send;
mod tasks;
mod v03;
mod world;
