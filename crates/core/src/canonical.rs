//! Canonical JSON (RFC 8785): the one byte form of a value that everything signed is made of.
//!
//! [`to_vec`] writes any serializable value without building a tree first: members are written as
//! they come and put in order when their object ends, which for objects that are already in order
//! costs one comparison a member. Integers that fit `i64` or `u64` keep every digit; doubles take
//! the ECMAScript form. Reading untrusted text is [`crate::strict`]'s work.

mod name;
mod order;
mod writer;
mod written;

use serde::Serialize;

pub use written::Written;

use crate::hash::sha256_hex;
use writer::Writer;

/// The deepest nesting that is written, so that an ordinary parser can read it.
pub const MAX_DEPTH: usize = 128;

/// Why a value has no canonical form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CanonicalError {
    /// NaN and the infinities have no JSON form.
    #[error("expected a finite number, found `{0}`")]
    NotFinite(&'static str),
    /// An integer beyond 64 bits has no exact form that every reader keeps.
    #[error("expected an integer of at most 64 bits, found `{0}`")]
    TooWide(String),
    /// Object member names are strings.
    #[error("expected a string as member name, found {0}")]
    KeyNotString(&'static str),
    /// The same member twice in one object.
    #[error("expected each member once, found `{0}` twice")]
    DuplicateKey(String),
    /// Nested deeper than [`MAX_DEPTH`].
    #[error("expected at most {MAX_DEPTH} levels of nesting")]
    TooDeep,
    /// A type's own `Serialize` refused.
    #[error("{0}")]
    Custom(String),
}

/// Writes `value` in canonical form.
///
/// # Errors
/// When the value holds something that canonical JSON cannot say; see [`CanonicalError`].
pub fn to_vec<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, CanonicalError> {
    to_vec_without(value, &[])
}

/// Writes `value` in canonical form without the named members of its outermost object.
///
/// This is how signing inputs are made: an artifact minus its own `signature`, say.
///
/// # Errors
/// As [`to_vec`].
pub fn to_vec_without<T: Serialize + ?Sized>(
    value: &T,
    omit: &[&str],
) -> Result<Vec<u8>, CanonicalError> {
    Ok(to_vec_with_gaps(value, omit)?.0)
}

/// Writes `value` in canonical form without the named members of its outermost object, and returns
/// the offset in the text of each of those that it has, in order, before the comma; no offsets when
/// members came out of order.
pub(crate) fn to_vec_with_gaps<T: Serialize + ?Sized>(
    value: &T,
    omit: &[&str],
) -> Result<(Vec<u8>, Vec<usize>), CanonicalError> {
    let mut writer = Writer::new(omit);
    value.serialize(&mut writer)?;
    Ok(writer.into_parts())
}

/// Writes `value` in canonical form, as text.
///
/// # Errors
/// As [`to_vec`].
pub fn to_string<T: Serialize + ?Sized>(value: &T) -> Result<String, CanonicalError> {
    let bytes = to_vec(value)?;
    String::from_utf8(bytes).map_err(|error| CanonicalError::Custom(error.to_string()))
}

/// How large the canonical form of a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// In bytes.
    pub bytes: usize,
    /// How many levels of objects and arrays it has.
    pub depth: usize,
}

/// How large the canonical form of a value is.
///
/// # Errors
/// As [`to_vec`].
pub fn size<T: Serialize + ?Sized>(value: &T) -> Result<Size, CanonicalError> {
    let mut scratch = Scratch::default();
    scratch.write(value)?;
    Ok(scratch.size())
}

/// A buffer for writing several values one after another.
#[derive(Default)]
pub struct Scratch(Option<Writer<'static>>);

impl Scratch {
    /// The canonical form of a value, until the next is written.
    ///
    /// # Errors
    /// As [`to_vec`].
    pub fn write<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<&[u8], CanonicalError> {
        let writer = self.0.get_or_insert_with(|| Writer::new(&[]));
        writer.clear();
        value.serialize(&mut *writer)?;
        Ok(writer.bytes())
    }

    /// How large what was written last is.
    pub fn size(&self) -> Size {
        let size =
            |writer: &Writer<'_>| Size { bytes: writer.bytes().len(), depth: writer.deepest() };
        self.0.as_ref().map_or(Size { bytes: 0, depth: 0 }, size)
    }

    /// As [`hash`].
    ///
    /// # Errors
    /// As [`to_vec`].
    pub fn hash<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<String, CanonicalError> {
        self.write(value).map(sha256_hex)
    }
}

/// SHA-256 of the canonical form, as 64 lowercase hex digits.
///
/// # Errors
/// As [`to_vec`].
pub fn hash<T: Serialize + ?Sized>(value: &T) -> Result<String, CanonicalError> {
    Ok(sha256_hex(&to_vec(value)?))
}

#[cfg(test)]
mod tests;
