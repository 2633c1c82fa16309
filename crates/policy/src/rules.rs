//! Rules in Cedar.
