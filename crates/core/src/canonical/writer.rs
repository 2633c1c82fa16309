//! The serializer behind [`super::to_vec`]: one pass, one output buffer, members sorted in place.

use std::ops::Range;

use serde::ser::{self, Serialize};

use super::name::Name;
use super::order::compare;
use super::written::{RAW, WRITTEN};
use super::{CanonicalError, MAX_DEPTH};

type Result<T> = std::result::Result<T, CanonicalError>;

/// Room for a typical artifact, so that most values are written without a second allocation.
const INITIAL_CAPACITY: usize = 2048;

/// One member of an object that is being written.
struct Member {
    /// Where its name stands in [`Writer::names`], unescaped.
    name: Range<usize>,
    /// Where its name, colon and value stand in [`Writer::out`].
    text: Range<usize>,
}

/// Writes canonical JSON.
pub(super) struct Writer<'o> {
    out: Vec<u8>,
    /// Members of the objects that are open, outermost first.
    members: Vec<Member>,
    /// The names of those members, as a sort needs them.
    names: Vec<u8>,
    /// Where an object is put together when its members came out of order.
    scratch: Vec<u8>,
    /// Members of the outermost object that are left out.
    omit: &'o [&'o str],
    /// Where members were left out.
    gaps: Vec<usize>,
    depth: usize,
    /// The deepest level reached.
    deepest: usize,
    /// Whether the next string is canonical text of its own, to be copied.
    copies: bool,
}

impl<'o> Writer<'o> {
    pub(super) fn new(omit: &'o [&'o str]) -> Self {
        Self {
            out: Vec::with_capacity(INITIAL_CAPACITY),
            members: Vec::with_capacity(32),
            names: Vec::with_capacity(512),
            scratch: Vec::new(),
            omit,
            gaps: Vec::new(),
            depth: 0,
            deepest: 0,
            copies: false,
        }
    }

    /// Clears the state and retains the buffers.
    pub(super) fn clear(&mut self) {
        self.out.clear();
        self.members.clear();
        self.names.clear();
        self.gaps.clear();
        (self.depth, self.deepest, self.copies) = (0, 0, false);
    }

    pub(super) const fn deepest(&self) -> usize {
        self.deepest
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.out
    }

    pub(super) fn into_parts(self) -> (Vec<u8>, Vec<usize>) {
        (self.out, self.gaps)
    }

    fn deeper(&mut self) -> Result<()> {
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
        if self.depth > MAX_DEPTH { Err(CanonicalError::TooDeep) } else { Ok(()) }
    }

    fn string(&mut self, text: &str) {
        let mut rest = text.as_bytes();
        self.out.reserve(rest.len() + 2);
        self.out.push(b'"');
        if is_plain_text(rest) {
            self.out.extend_from_slice(rest);
            self.out.push(b'"');
            return;
        }
        loop {
            let (plain, tail) = rest.split_at(plain_len(rest));
            self.out.extend_from_slice(plain);
            let Some((byte, tail)) = tail.split_first() else { break };
            self.escape(*byte);
            rest = tail;
        }
        self.out.push(b'"');
    }

    fn escape(&mut self, byte: u8) {
        let short = match byte {
            b'"' => b'"',
            b'\\' => b'\\',
            0x08 => b'b',
            0x09 => b't',
            0x0A => b'n',
            0x0C => b'f',
            0x0D => b'r',
            other => {
                let mut hex = [0; 2];
                // Two bytes always hold the hex form of one.
                if const_hex::encode_to_slice([other], &mut hex).is_ok() {
                    self.out.extend_from_slice(b"\\u00");
                    self.out.extend_from_slice(&hex);
                }
                return;
            }
        };
        self.out.extend_from_slice(&[b'\\', short]);
    }

    fn object(&mut self) -> Result<Object<'_, 'o>> {
        self.deeper()?;
        self.out.push(b'{');
        let start = self.out.len();
        let (first, names) = (self.members.len(), self.names.len());
        Ok(Object { writer: self, start, first, names, sorted: true, skip: false, tagged: false })
    }

    fn array(&mut self) -> Result<Array<'_, 'o>> {
        self.deeper()?;
        self.out.push(b'[');
        Ok(Array { writer: self, empty: true, tagged: false })
    }

    /// Opens `{"variant":`, the form of an enum variant with content.
    fn tag(&mut self, variant: &str) -> Result<()> {
        self.deeper()?;
        self.out.push(b'{');
        self.string(variant);
        self.out.push(b':');
        Ok(())
    }

    fn untag(&mut self) {
        self.depth -= 1;
        self.out.push(b'}');
    }
}

/// Whether nothing in a text needs an escape, as is usual. Sixteen bytes are checked together, or
/// eight; those at the end once more with some before them.
fn is_plain_text(text: &[u8]) -> bool {
    let is_plain_block =
        |block: &[u8; 16]| !block.iter().fold(false, |found, byte| found | needs_escape(*byte));
    if let Some(end) = text.last_chunk() {
        return text.as_chunks().0.iter().all(is_plain_block) && is_plain_block(end);
    }
    match (text.first_chunk(), text.last_chunk()) {
        (Some(begin), Some(end)) => {
            is_plain(u64::from_le_bytes(*begin)) && is_plain(u64::from_le_bytes(*end))
        }
        _ => !text.iter().any(|byte| needs_escape(*byte)),
    }
}

/// How many bytes stand before the first that needs an escape.
///
/// Most text needs none, so eight bytes are checked together.
fn plain_len(text: &[u8]) -> usize {
    let (words, _) = text.as_chunks::<8>();
    let plain = 8 * words.iter().take_while(|word| is_plain(u64::from_le_bytes(**word))).count();
    let rest = text.get(plain..).unwrap_or_default();
    plain + rest.iter().take_while(|byte| !needs_escape(**byte)).count()
}

const fn needs_escape(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Whether none of eight bytes needs an escape.
///
/// A byte below n leaves its top bit set when n is taken from it and it had none; a byte that is
/// looked for becomes zero, thus below one, by exclusive or.
const fn is_plain(word: u64) -> bool {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const TOPS: u64 = ONES << 7;
    const fn below(word: u64, n: u64) -> u64 {
        word.wrapping_sub(ONES * n) & !word & TOPS
    }
    let quotes = word ^ (ONES * b'"' as u64);
    let backslashes = word ^ (ONES * b'\\' as u64);
    below(word, 0x20) | below(quotes, 1) | below(backslashes, 1) == 0
}

/// An array that is being written.
pub(super) struct Array<'w, 'o> {
    writer: &'w mut Writer<'o>,
    empty: bool,
    /// Whether `{"variant":` stands before it.
    tagged: bool,
}

impl Array<'_, '_> {
    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        if !self.empty {
            self.writer.out.push(b',');
        }
        self.empty = false;
        value.serialize(&mut *self.writer)
    }

    fn close(self) {
        self.writer.depth -= 1;
        self.writer.out.push(b']');
        if self.tagged {
            self.writer.untag();
        }
    }
}

/// An object that is being written.
pub(super) struct Object<'w, 'o> {
    writer: &'w mut Writer<'o>,
    /// Where its members begin in the output.
    start: usize,
    /// Its first entry in [`Writer::members`].
    first: usize,
    /// The beginning of its names in [`Writer::names`].
    names: usize,
    /// Whether every member so far came after the one before it.
    sorted: bool,
    /// Whether the member that was named last is left out.
    skip: bool,
    /// Whether `{"variant":` stands before it.
    tagged: bool,
}

impl Object<'_, '_> {
    pub(super) fn name(&mut self, name: &str) -> Result<()> {
        let writer = &mut *self.writer;
        self.skip = writer.depth == 1 && writer.omit.contains(&name);
        if self.skip {
            writer.gaps.push(writer.out.len());
            return Ok(());
        }
        if let Some(last) = writer.members.get(self.first..).and_then(<[_]>::last) {
            let previous = writer.names.get(last.name.clone()).unwrap_or_default();
            // Equal names are found by the sort.
            self.sorted = self.sorted && compare(previous, name.as_bytes()).is_lt();
            writer.out.push(b',');
        }
        let name_start = writer.names.len();
        writer.names.extend_from_slice(name.as_bytes());
        let text_start = writer.out.len();
        writer.string(name);
        writer.out.push(b':');
        writer
            .members
            .push(Member { name: name_start..writer.names.len(), text: text_start..text_start });
        Ok(())
    }

    fn value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        if self.skip {
            return Ok(());
        }
        value.serialize(&mut *self.writer)?;
        let end = self.writer.out.len();
        if let Some(member) = self.writer.members.last_mut() {
            member.text.end = end;
        }
        Ok(())
    }

    fn close(self) -> Result<()> {
        let writer = self.writer;
        if !self.sorted {
            if writer.depth == 1 {
                writer.gaps.clear();
            }
            sort(writer, self.start, self.first)?;
        }
        writer.members.truncate(self.first);
        writer.names.truncate(self.names);
        writer.depth -= 1;
        writer.out.push(b'}');
        if self.tagged {
            writer.untag();
        }
        Ok(())
    }
}

/// Puts the members of the object that starts at `start` in order.
fn sort(writer: &mut Writer<'_>, start: usize, first: usize) -> Result<()> {
    let Writer { out, members, names, scratch, .. } = writer;
    let members = members.get_mut(first..).unwrap_or_default();
    let name = |member: &Member| names.get(member.name.clone()).unwrap_or_default();
    members.sort_unstable_by(|left, right| compare(name(left), name(right)));
    if let Some(pair) = members.array_windows::<2>().find(|[l, r]| name(l) == name(r)) {
        let twice = String::from_utf8_lossy(name(&pair[0])).into_owned();
        return Err(CanonicalError::DuplicateKey(twice));
    }
    scratch.clear();
    for member in members.iter() {
        if !scratch.is_empty() {
            scratch.push(b',');
        }
        scratch.extend_from_slice(out.get(member.text.clone()).unwrap_or_default());
    }
    out.truncate(start);
    out.extend_from_slice(scratch);
    Ok(())
}

/// Implements the methods that write an integer.
macro_rules! integers {
    ($($method:ident($type:ty))*) => {$(
        fn $method(self, value: $type) -> Result<()> {
            self.out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
            Ok(())
        }
    )*};
}

impl<'w, 'o> ser::Serializer for &'w mut Writer<'o> {
    type Ok = ();
    type Error = CanonicalError;
    type SerializeSeq = Array<'w, 'o>;
    type SerializeTuple = Array<'w, 'o>;
    type SerializeTupleStruct = Array<'w, 'o>;
    type SerializeTupleVariant = Array<'w, 'o>;
    type SerializeMap = Object<'w, 'o>;
    type SerializeStruct = Object<'w, 'o>;
    type SerializeStructVariant = Object<'w, 'o>;

    /// Not while text is copied: see [`super::Written`].
    fn is_human_readable(&self) -> bool {
        !self.copies
    }

    fn serialize_bool(self, value: bool) -> Result<()> {
        self.out.extend_from_slice(if value { b"true" } else { b"false" });
        Ok(())
    }

    integers! {
        serialize_i8(i8) serialize_i16(i16) serialize_i32(i32) serialize_i64(i64)
        serialize_u8(u8) serialize_u16(u16) serialize_u32(u32) serialize_u64(u64)
    }

    fn serialize_i128(self, value: i128) -> Result<()> {
        match (u64::try_from(value), i64::try_from(value)) {
            (Ok(value), _) => self.serialize_u64(value),
            (_, Ok(value)) => self.serialize_i64(value),
            _ => Err(CanonicalError::TooWide(value.to_string())),
        }
    }

    fn serialize_u128(self, value: u128) -> Result<()> {
        match u64::try_from(value) {
            Ok(value) => self.serialize_u64(value),
            Err(_) => Err(CanonicalError::TooWide(value.to_string())),
        }
    }

    fn serialize_f32(self, value: f32) -> Result<()> {
        self.serialize_f64(value.into())
    }

    fn serialize_f64(self, value: f64) -> Result<()> {
        if value.is_nan() {
            return Err(CanonicalError::NotFinite("NaN"));
        }
        if value.is_infinite() {
            return Err(CanonicalError::NotFinite("Infinity"));
        }
        self.out.extend_from_slice(ryu_js::Buffer::new().format_finite(value).as_bytes());
        Ok(())
    }

    fn serialize_char(self, value: char) -> Result<()> {
        self.string(value.encode_utf8(&mut [0; 4]));
        Ok(())
    }

    fn serialize_str(self, value: &str) -> Result<()> {
        if std::mem::take(&mut self.copies) {
            self.out.extend_from_slice(value.as_bytes());
            return Ok(());
        }
        self.string(value);
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<()> {
        let mut array = self.array()?;
        for byte in value {
            array.push(byte)?;
        }
        array.close();
        Ok(())
    }

    fn serialize_none(self) -> Result<()> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<()> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<()> {
        self.out.extend_from_slice(b"null");
        Ok(())
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<()> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
    ) -> Result<()> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<()> {
        self.copies = name == WRITTEN;
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<()> {
        self.tag(variant)?;
        value.serialize(&mut *self)?;
        self.untag();
        Ok(())
    }

    fn serialize_seq(self, _len: Option<usize>) -> Result<Array<'w, 'o>> {
        self.array()
    }

    fn serialize_tuple(self, _len: usize) -> Result<Array<'w, 'o>> {
        self.array()
    }

    fn serialize_tuple_struct(self, _name: &'static str, _len: usize) -> Result<Array<'w, 'o>> {
        self.array()
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Array<'w, 'o>> {
        self.tag(variant)?;
        Ok(Array { tagged: true, ..self.array()? })
    }

    fn serialize_map(self, _len: Option<usize>) -> Result<Object<'w, 'o>> {
        self.object()
    }

    fn serialize_struct(self, name: &'static str, _len: usize) -> Result<Object<'w, 'o>> {
        if name == RAW {
            // SECURITY: the sender may have written it in any form.
            let problem = "text of unknown form has no canonical form".to_owned();
            return Err(CanonicalError::Custom(problem));
        }
        self.object()
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Object<'w, 'o>> {
        self.tag(variant)?;
        Ok(Object { tagged: true, ..self.object()? })
    }
}

/// Implements the serde traits whose elements are plain values.
macro_rules! array_elements {
    ($($trait:ident :: $method:ident),*) => {$(
        impl ser::$trait for Array<'_, '_> {
            type Ok = ();
            type Error = CanonicalError;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
                self.push(value)
            }

            fn end(self) -> Result<()> {
                self.close();
                Ok(())
            }
        }
    )*};
}

array_elements!(
    SerializeSeq::serialize_element,
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field
);

impl ser::SerializeMap for Object<'_, '_> {
    type Ok = ();
    type Error = CanonicalError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<()> {
        key.serialize(Name(self))
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        self.value(value)
    }

    fn end(self) -> Result<()> {
        self.close()
    }
}

/// Implements the serde traits whose members are named by the type.
macro_rules! object_fields {
    ($($trait:ident),*) => {$(
        impl ser::$trait for Object<'_, '_> {
            type Ok = ();
            type Error = CanonicalError;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<()> {
                self.name(name)?;
                self.value(value)
            }

            fn end(self) -> Result<()> {
                self.close()
            }
        }
    )*};
}

object_fields!(SerializeStruct, SerializeStructVariant);

impl ser::Error for CanonicalError {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self::Custom(message.to_string())
    }
}
