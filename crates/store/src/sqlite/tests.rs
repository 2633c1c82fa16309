//! What only the SQLite store promises.
