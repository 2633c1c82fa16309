//! The serializer of member names: strings, and nothing else.

use serde::ser::{self, Serialize};

use super::CanonicalError;
use super::writer::Object;

type Result<T> = std::result::Result<T, CanonicalError>;

/// Takes a member name and refuses everything that is not a string.
pub(super) struct Name<'n, 'w, 'o>(pub(super) &'n mut Object<'w, 'o>);

/// Implements the methods of a serializer that refuses their kind of value.
macro_rules! refuse {
    ($($method:ident($($type:ty),*) -> $ok:ty = $what:literal;)*) => {$(
        fn $method(self, $(_: $type),*) -> Result<$ok> {
            Err(CanonicalError::KeyNotString($what))
        }
    )*};
}

impl ser::Serializer for Name<'_, '_, '_> {
    type Ok = ();
    type Error = CanonicalError;
    type SerializeSeq = ser::Impossible<(), CanonicalError>;
    type SerializeTuple = ser::Impossible<(), CanonicalError>;
    type SerializeTupleStruct = ser::Impossible<(), CanonicalError>;
    type SerializeTupleVariant = ser::Impossible<(), CanonicalError>;
    type SerializeMap = ser::Impossible<(), CanonicalError>;
    type SerializeStruct = ser::Impossible<(), CanonicalError>;
    type SerializeStructVariant = ser::Impossible<(), CanonicalError>;

    fn serialize_str(self, name: &str) -> Result<()> {
        self.0.name(name)
    }

    fn serialize_char(self, name: char) -> Result<()> {
        self.0.name(name.encode_utf8(&mut [0; 4]))
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
    ) -> Result<()> {
        self.0.name(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        value: &T,
    ) -> Result<()> {
        value.serialize(self)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<()> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        _value: &T,
    ) -> Result<()> {
        Err(CanonicalError::KeyNotString("an enum variant with content"))
    }

    refuse! {
        serialize_bool(bool) -> () = "a boolean";
        serialize_i8(i8) -> () = "a number";
        serialize_i16(i16) -> () = "a number";
        serialize_i32(i32) -> () = "a number";
        serialize_i64(i64) -> () = "a number";
        serialize_u8(u8) -> () = "a number";
        serialize_u16(u16) -> () = "a number";
        serialize_u32(u32) -> () = "a number";
        serialize_u64(u64) -> () = "a number";
        serialize_f32(f32) -> () = "a number";
        serialize_f64(f64) -> () = "a number";
        serialize_bytes(&[u8]) -> () = "bytes";
        serialize_none() -> () = "nothing";
        serialize_unit() -> () = "nothing";
        serialize_unit_struct(&'static str) -> () = "nothing";
        serialize_seq(Option<usize>) -> Self::SerializeSeq = "an array";
        serialize_tuple(usize) -> Self::SerializeTuple = "an array";
        serialize_tuple_struct(&'static str, usize) -> Self::SerializeTupleStruct = "an array";
        serialize_tuple_variant(&'static str, u32, &'static str, usize)
            -> Self::SerializeTupleVariant = "an array";
        serialize_map(Option<usize>) -> Self::SerializeMap = "an object";
        serialize_struct(&'static str, usize) -> Self::SerializeStruct = "an object";
        serialize_struct_variant(&'static str, u32, &'static str, usize)
            -> Self::SerializeStructVariant = "an object";
    }
}
