//! Tokens: what they look like, when they hold, and how they are handed on.

mod attenuation;
mod delegation;
mod dpop;
mod form;
mod profile;
mod verify;
