//! What the database's errors mean to the users of a store.

use chio_kernel::store::StoreError;
use rusqlite::{Error, ErrorCode};

/// Says what an error of the database means: that it is damaged, or that it may work later.
#[expect(clippy::needless_pass_by_value, reason = "this is what `map_err` hands over")]
pub(crate) fn failed(error: Error) -> StoreError {
    if is_damage(&error) {
        StoreError::Damaged(error.to_string())
    } else if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) {
        let message = "another process writes the store and does not end: one that was stopped has \
                       to go on, or to be killed";
        StoreError::Unavailable(format!("{message} ({error})"))
    } else {
        StoreError::Unavailable(error.to_string())
    }
}

/// Whether the database holds what cannot be right.
pub(crate) fn is_damage(error: &Error) -> bool {
    match error {
        Error::SqliteFailure(failure, _) => matches!(
            failure.code,
            ErrorCode::DatabaseCorrupt
                | ErrorCode::NotADatabase
                | ErrorCode::ConstraintViolation
                | ErrorCode::TypeMismatch
                | ErrorCode::Unknown
        ),
        Error::FromSqlConversionFailure(..)
        | Error::IntegralValueOutOfRange(..)
        | Error::InvalidColumnType(..)
        | Error::QueryReturnedNoRows
        | Error::Utf8Error(..) => true,
        _ => false,
    }
}

/// What is stored cannot be read as what it should be.
pub(crate) fn unreadable(what: &str, error: impl std::fmt::Display) -> StoreError {
    StoreError::Damaged(format!("{what} cannot be read: {error}"))
}
