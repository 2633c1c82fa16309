//! Plans of queries.
