//! The agent over HTTP: a real listener, a real kernel, and nothing between them but the edge.
#![cfg(test)]

mod access;
mod cards;
mod continued;
mod lineage;
mod methods;
mod old;
mod rest;
mod seed;
mod send;
mod tasks;
mod world;
