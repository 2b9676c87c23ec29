//! The GGUF container: named metadata, and named tensors that stay where they lie.
//!
//! [`Container::read`] checks the whole header against the bytes that are there, so that
//! everything it hands out afterwards is in range. Strings, arrays and tensors are ranges
//! of the file, not copies. It knows nothing of what the metadata mean (see
//! `transformer`) nor how tensors are packed (see [`super::quant`]).
//!
//! Source: the GGUF specification, versions 2 and 3, little-endian.

use std::{borrow::Cow, collections::BTreeMap, fmt, ops::Range};

use super::quant::TensorType;
use crate::{Error, ErrorCode, error::Result};

/// How tensor data are aligned when the file does not say.
const DEFAULT_ALIGNMENT: u64 = 32;
/// The least a metadata entry takes: an empty key, a type, one byte of value.
const LEAST_METADATA_BYTES: u64 = 13;
/// The least a tensor entry takes: an empty name, no dimensions, a type, an offset.
const LEAST_TENSOR_BYTES: u64 = 24;
/// More dimensions than this the format does not allow.
const MOST_DIMENSIONS: u32 = 4;
/// Arrays of arrays nest no deeper than this.
const MOST_NESTING: u32 = 4;

/// The type of a metadata value, as the file numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    F32,
    Bool,
    String,
    Array,
    U64,
    I64,
    F64,
}

impl Kind {
    /// The type that a file gives to what it calls `owner`.
    fn from_code(code: u32, owner: &str) -> Result<Self> {
        Ok(match code {
            0 => Self::U8,
            1 => Self::I8,
            2 => Self::U16,
            3 => Self::I16,
            4 => Self::U32,
            5 => Self::I32,
            6 => Self::F32,
            7 => Self::Bool,
            8 => Self::String,
            9 => Self::Array,
            10 => Self::U64,
            11 => Self::I64,
            12 => Self::F64,
            _ => return Err(malformed(format!("{owner} has metadata type {code}, which does not exist"))),
        })
    }

    /// Bytes of one value; `None` where they differ from value to value.
    fn size(self) -> Option<usize> {
        match self {
            Self::U8 | Self::I8 | Self::Bool => Some(1),
            Self::U16 | Self::I16 => Some(2),
            Self::U32 | Self::I32 | Self::F32 => Some(4),
            Self::U64 | Self::I64 | Self::F64 => Some(8),
            Self::String | Self::Array => None,
        }
    }
}

/// Where a metadata value lies.
#[derive(Debug, Clone)]
struct Entry {
    kind: Kind,
    /// For an array, what it holds and how many.
    elements: Option<(Kind, usize)>,
    /// The value's bytes; for a string, without its length.
    range: Range<usize>,
}

/// A tensor of the file: its shape and where its bytes lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    /// How its numbers are packed.
    pub kind: TensorType,
    /// Its sizes, the fastest-varying first: a matrix is `[columns, rows]`.
    pub dimensions: Vec<usize>,
    /// Its bytes in the file.
    pub range: Range<usize>,
}

/// A GGUF file in memory.
///
/// # Examples
/// ```
/// use logitscope::model::gguf::Container;
///
/// let file: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/models/default.gguf"));
/// let container = Container::read(file)?;
/// assert_eq!(container.text("general.architecture")?, Some("llama"));
/// assert_eq!(container.tensor("output_norm.weight")?.dimensions.len(), 1);
///
/// let error = Container::read(&file[..100]).unwrap_err();
/// assert_eq!(error.code.as_str(), "model_format");
/// # Ok::<(), logitscope::Error>(())
/// ```
#[derive(Debug)]
pub struct Container {
    bytes: Cow<'static, [u8]>,
    metadata: BTreeMap<String, Entry>,
    tensors: BTreeMap<String, Tensor>,
}

pub(super) fn malformed(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::ModelFormat, format!("the model file is malformed: {}", message.into()))
}

pub(super) fn unsupported(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::ModelUnsupported, message)
}

/// What `general.architecture` says in the beginning of a file, if it has arrived.
///
/// What is wrong with the file is for [`Container::read`] to say.
pub(super) fn architecture_in(beginning: &[u8]) -> Option<&str> {
    const KEY: &str = "general.architecture";
    let mut cursor = Cursor::new(beginning, beginning.len());
    // Magic, version, and the number of tensors.
    cursor.take(16, "the header").ok()?;
    for _ in 0..cursor.u64("the metadata count").ok()? {
        let key = cursor.string("a metadata key").ok()?;
        let kind = Kind::from_code(cursor.u32(key).ok()?, key).ok()?;
        let entry = cursor.entry(kind, key).ok()?;
        if key == KEY && kind == Kind::String {
            return std::str::from_utf8(&beginning[entry.range]).ok();
        }
    }
    None
}

impl Container {
    /// Reads the header and checks every range. Nothing is copied but names.
    ///
    /// # Errors
    /// `model_format` for a file that is not GGUF, is cut short, or contradicts itself;
    /// `model_unsupported` for another version of the format or an unknown tensor type.
    pub fn read(bytes: impl Into<Cow<'static, [u8]>>) -> Result<Self> {
        let bytes = bytes.into();
        let header = Cursor::new(&bytes, bytes.len()).header()?;
        let size = bytes.len();
        Self::placed(bytes, header, size)
    }

    /// As [`read`](Self::read), of a file of which only the beginning is there; `None` while the
    /// header is not. Tensors are where they will be, so their bytes cannot be asked for.
    ///
    /// # Errors
    /// As [`read`](Self::read), as soon as the beginning shows it.
    pub(super) fn read_beginning(beginning: &[u8], size: usize) -> Result<Option<Self>> {
        let mut cursor = Cursor::new(beginning, size);
        match cursor.header() {
            Ok(header) => Self::placed(beginning.to_vec().into(), header, size).map(Some),
            Err(_) if cursor.waits => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn placed(bytes: Cow<'static, [u8]>, header: Header, size: usize) -> Result<Self> {
        let Header { metadata, tensors, end } = header;
        let mut container = Self { bytes, metadata, tensors };
        container.place_tensors(end, size)?;
        Ok(container)
    }

    /// Turns offsets from the start of the data into ranges of the file of `size` bytes.
    fn place_tensors(&mut self, header_end: usize, size: usize) -> Result<()> {
        let alignment = self.unsigned("general.alignment")?.unwrap_or(DEFAULT_ALIGNMENT);
        let alignment = usize::try_from(alignment)
            .ok()
            .filter(|alignment| alignment.is_power_of_two())
            .ok_or_else(|| malformed(format!("general.alignment is {alignment}, not a power of two")))?;
        let data = header_end
            .checked_next_multiple_of(alignment)
            .ok_or_else(|| malformed("the alignment exceeds the address space"))?;
        for (name, tensor) in &mut self.tensors {
            let start = data.checked_add(tensor.range.start);
            let end = data.checked_add(tensor.range.end);
            match (start, end) {
                (Some(start), Some(end)) if end <= size => tensor.range = start..end,
                _ => {
                    return Err(malformed(format!(
                        "tensor {name:?} needs {} bytes at {}, but the file has {size} bytes",
                        tensor.range.len(),
                        data.saturating_add(tensor.range.start)
                    )));
                }
            }
            if tensor.range.start % alignment != 0 {
                return Err(malformed(format!("tensor {name:?} is not aligned to {alignment} bytes")));
            }
        }
        self.expect_no_gaps(data, alignment)
    }

    /// Each tensor begins where the one before it ends, but for the alignment. Where tensors overlap
    /// or leave a gap, an offset, a shape or a type is a lie, and the numbers would be noise.
    fn expect_no_gaps(&self, data: usize, alignment: usize) -> Result<()> {
        let mut placed: Vec<_> = self.tensors.iter().map(|(name, tensor)| (&tensor.range, name)).collect();
        placed.sort_unstable_by_key(|(range, _)| (range.start, range.end));
        let mut end = data;
        for (range, name) in placed {
            // No overflow: the next tensor begins at a multiple, and lies in the file.
            if range.start != end.next_multiple_of(alignment) {
                let start = range.start;
                return Err(malformed(format!(
                    "tensor {name:?} begins at {start}, but the one before it ends at {end}"
                )));
            }
            end = range.end;
        }
        Ok(())
    }

    /// The whole file.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The names of all metadata.
    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.metadata.keys().map(String::as_str)
    }

    /// How many elements a list has, of whatever type; `None` where there is no list.
    pub(super) fn count(&self, key: &str) -> Option<usize> {
        self.metadata.get(key)?.elements.map(|(_, count)| count)
    }

    /// Every tensor by name.
    pub fn tensors(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.tensors.iter().map(|(name, tensor)| (name.as_str(), tensor))
    }

    /// A tensor that must be there.
    ///
    /// # Errors
    /// `model_format`, naming it, when it is not.
    pub fn tensor(&self, name: &str) -> Result<&Tensor> {
        self.tensors.get(name).ok_or_else(|| malformed(format!("tensor {name:?} is missing")))
    }

    /// A tensor that may be there.
    #[must_use]
    pub fn find_tensor(&self, name: &str) -> Option<&Tensor> {
        self.tensors.get(name)
    }

    /// A non-negative whole number, whatever its width in the file.
    ///
    /// # Errors
    /// `model_format` when the value is something else.
    pub fn unsigned(&self, key: &str) -> Result<Option<u64>> {
        let Some(entry) = self.metadata.get(key) else { return Ok(None) };
        let bytes = &self.bytes[entry.range.clone()];
        let number = match entry.kind {
            Kind::U8 | Kind::U16 | Kind::U32 | Kind::U64 => Some(widen(bytes)),
            // A signed number whose top bit is clear reads like an unsigned one.
            Kind::I8 | Kind::I16 | Kind::I32 | Kind::I64 if bytes.last().is_some_and(|top| *top < 0x80) => {
                Some(widen(bytes))
            }
            _ => None,
        };
        number.map(Some).ok_or_else(|| malformed(format!("{key} is not a non-negative whole number")))
    }

    /// A real number.
    ///
    /// # Errors
    /// `model_format` when the value is something else.
    pub fn real(&self, key: &str) -> Result<Option<f64>> {
        let Some(entry) = self.metadata.get(key) else { return Ok(None) };
        let bits = widen(&self.bytes[entry.range.clone()]);
        match entry.kind {
            Kind::F32 => Ok(Some(f64::from(f32::from_bits(low_32(bits))))),
            Kind::F64 => Ok(Some(f64::from_bits(bits))),
            _ => Err(malformed(format!("{key} is not a real number"))),
        }
    }

    /// A number or a truth value, whatever its type in the file; true is 1.
    ///
    /// # Errors
    /// `model_format` when the value is something else.
    pub fn number(&self, key: &str) -> Result<Option<f64>> {
        match self.metadata.get(key).map(|entry| entry.kind) {
            None => Ok(None),
            Some(Kind::F32 | Kind::F64) => self.real(key),
            Some(Kind::Bool) => Ok(self.truth(key)?.map(|truth| f64::from(u8::from(truth)))),
            Some(_) => Ok(self.unsigned(key)?.map(|number| number as f64)),
        }
    }

    /// A truth value.
    ///
    /// # Errors
    /// `model_format` when the value is something else.
    pub fn truth(&self, key: &str) -> Result<Option<bool>> {
        let Some(entry) = self.metadata.get(key) else { return Ok(None) };
        match (entry.kind, &self.bytes[entry.range.clone()]) {
            (Kind::Bool, [0]) => Ok(Some(false)),
            (Kind::Bool, [1]) => Ok(Some(true)),
            _ => Err(malformed(format!("{key} is not a truth value"))),
        }
    }

    /// A text.
    ///
    /// # Errors
    /// `model_format` when the value is something else.
    pub fn text(&self, key: &str) -> Result<Option<&str>> {
        let Some(entry) = self.metadata.get(key) else { return Ok(None) };
        if entry.kind != Kind::String {
            return Err(malformed(format!("{key} is not a text")));
        }
        std::str::from_utf8(&self.bytes[entry.range.clone()])
            .map(Some)
            .map_err(|_| malformed(format!("{key} is not UTF-8")))
    }

    /// A list of texts, in place.
    ///
    /// # Errors
    /// `model_format` when the value is something else, or a text is not UTF-8.
    pub fn texts(&self, key: &str) -> Result<Option<Vec<&str>>> {
        let Some((Kind::String, count, range)) = self.array(key, |kind| kind == Kind::String)? else {
            return Ok(None);
        };
        let mut cursor = Cursor::new(&self.bytes[range.clone()], range.len());
        (0..count).map(|_| cursor.string(key)).collect::<Result<_>>().map(Some)
    }

    /// A list of whole numbers of 32 bits.
    ///
    /// # Errors
    /// `model_format` when the value is something else.
    pub fn integers(&self, key: &str) -> Result<Option<Vec<i32>>> {
        let Some((_, _, range)) = self.array(key, |kind| matches!(kind, Kind::I32 | Kind::U32))? else {
            return Ok(None);
        };
        let (values, _) = self.bytes[range].as_chunks::<4>();
        Ok(Some(values.iter().map(|bytes| i32::from_le_bytes(*bytes)).collect()))
    }

    /// A list of real numbers of 32 bits.
    ///
    /// # Errors
    /// `model_format` when the value is something else.
    pub fn reals(&self, key: &str) -> Result<Option<Vec<f32>>> {
        let Some((_, _, range)) = self.array(key, |kind| kind == Kind::F32)? else { return Ok(None) };
        let (values, _) = self.bytes[range].as_chunks::<4>();
        Ok(Some(values.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()))
    }

    fn array(
        &self,
        key: &str,
        accepts: impl Fn(Kind) -> bool,
    ) -> Result<Option<(Kind, usize, Range<usize>)>> {
        let Some(entry) = self.metadata.get(key) else { return Ok(None) };
        match entry.elements {
            Some((kind, count)) if accepts(kind) => Ok(Some((kind, count, entry.range.clone()))),
            _ => Err(malformed(format!("{key} is not a list of the expected type"))),
        }
    }
}

/// At most eight little-endian bytes as a number.
fn widen(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

fn low_32(bits: u64) -> u32 {
    let [a, b, c, d, ..] = bits.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// What comes before the tensors' data.
struct Header {
    metadata: BTreeMap<String, Entry>,
    /// Their ranges still count from the start of the data.
    tensors: BTreeMap<String, Tensor>,
    /// Bytes of the header.
    end: usize,
}

/// Reads forward and refuses to read past the end.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Bytes of the whole file, of which `bytes` may be the beginning.
    size: usize,
    /// Whether what was refused would lie in the rest of the file.
    waits: bool,
}

impl<'a> Cursor<'a> {
    fn new(bytes: &'a [u8], size: usize) -> Self {
        Self { bytes, at: 0, size, waits: false }
    }

    fn header(&mut self) -> Result<Header> {
        if self.take(4, "the magic")? != b"GGUF" {
            return Err(malformed("it does not begin with \"GGUF\""));
        }
        let version = self.u32("the version")?;
        if version != 2 && version != 3 {
            let hint = if version.swap_bytes() == 3 { " (big-endian)" } else { "" };
            return Err(unsupported(format!("GGUF version {version}{hint} is not supported, only 2 and 3")));
        }
        let tensor_count = self.u64("the tensor count")?;
        let metadata_count = self.u64("the metadata count")?;

        self.expect_room(metadata_count, LEAST_METADATA_BYTES, "metadata entries")?;
        let mut metadata = BTreeMap::new();
        for index in 0..metadata_count {
            let key = self.string(&format!("metadata key {index}"))?.to_owned();
            let kind = Kind::from_code(self.u32(&format!("the type of {key}"))?, &key)?;
            let entry = self.entry(kind, &key)?;
            if metadata.insert(key.clone(), entry).is_some() {
                return Err(malformed(format!("metadata key {key:?} occurs twice")));
            }
        }

        self.expect_room(tensor_count, LEAST_TENSOR_BYTES, "tensors")?;
        let mut tensors = BTreeMap::new();
        for index in 0..tensor_count {
            let (name, tensor) = self.tensor(index)?;
            if tensors.contains_key(&name) {
                return Err(malformed(format!("tensor {name:?} occurs twice")));
            }
            tensors.insert(name, tensor);
        }
        Ok(Header { metadata, tensors, end: self.at })
    }

    fn remaining(&self) -> usize {
        self.size - self.at
    }

    fn take(&mut self, count: usize, what: &str) -> Result<&'a [u8]> {
        if count > self.bytes.len() - self.at {
            self.waits = count <= self.remaining();
            return Err(malformed(format!(
                "{what} needs {count} bytes at {}, but the file has {} bytes",
                self.at, self.size
            )));
        }
        let taken = &self.bytes[self.at..self.at + count];
        self.at += count;
        Ok(taken)
    }

    fn u32(&mut self, what: &str) -> Result<u32> {
        self.take(4, what).map(|bytes| low_32(widen(bytes)))
    }

    fn u64(&mut self, what: &str) -> Result<u64> {
        self.take(8, what).map(widen)
    }

    /// Refuses a count that the rest of the file cannot hold, before anything is allocated for it.
    fn expect_room(&self, count: u64, least_bytes: u64, what: impl fmt::Display) -> Result<usize> {
        let fits = count.checked_mul(least_bytes).is_some_and(|bytes| bytes <= self.remaining() as u64);
        usize::try_from(count).ok().filter(|_| fits).ok_or_else(|| {
            malformed(format!("{count} {what} are declared, but only {} bytes are left", self.remaining()))
        })
    }

    fn string(&mut self, what: &str) -> Result<&'a str> {
        let range = self.string_range(what)?;
        std::str::from_utf8(&self.bytes[range]).map_err(|_| malformed(format!("{what} is not UTF-8")))
    }

    fn string_range(&mut self, what: &str) -> Result<Range<usize>> {
        let length = self.u64(what)?;
        let length = self.expect_room(length, 1, format_args!("bytes of {what}"))?;
        self.take(length, what)?;
        Ok(self.at - length..self.at)
    }

    fn entry(&mut self, kind: Kind, key: &str) -> Result<Entry> {
        let (range, elements) = match kind {
            Kind::String => (self.string_range(key)?, None),
            Kind::Array => {
                let (element, count, range) = self.array(key, MOST_NESTING)?;
                (range, Some((element, count)))
            }
            _ => {
                let start = self.at;
                self.take(kind.size().unwrap_or(0), key)?;
                (start..self.at, None)
            }
        };
        Ok(Entry { kind, elements, range })
    }

    fn array(&mut self, key: &str, depth: u32) -> Result<(Kind, usize, Range<usize>)> {
        if depth == 0 {
            return Err(malformed(format!("{key} nests lists too deeply")));
        }
        let kind = Kind::from_code(self.u32(key)?, key)?;
        let count = self.u64(key)?;
        // A string takes at least its length, a list its type and count.
        let least = match kind {
            Kind::Array => 12,
            _ => kind.size().unwrap_or(8) as u64,
        };
        let count = self.expect_room(count, least, format_args!("elements of {key}"))?;
        let start = self.at;
        match kind {
            Kind::String => {
                for _ in 0..count {
                    self.string_range(key)?;
                }
            }
            Kind::Array => {
                for _ in 0..count {
                    self.array(key, depth - 1)?;
                }
            }
            _ => {
                self.take(count * kind.size().unwrap_or(0), key)?;
            }
        }
        Ok((kind, count, start..self.at))
    }

    /// A tensor entry; its range still counts from the start of the data.
    fn tensor(&mut self, index: u64) -> Result<(String, Tensor)> {
        let name = self.string(&format!("the name of tensor {index}"))?.to_owned();
        let entry = format!("the entry of tensor {name:?}");
        let dimension_count = self.u32(&entry)?;
        if dimension_count > MOST_DIMENSIONS {
            return Err(malformed(format!("tensor {name:?} has {dimension_count} dimensions")));
        }
        let mut dimensions = Vec::with_capacity(dimension_count as usize);
        for _ in 0..dimension_count {
            let size = self.u64(&entry)?;
            dimensions.push(
                usize::try_from(size)
                    .map_err(|_| malformed(format!("tensor {name:?} has a dimension of {size}")))?,
            );
        }
        let code = self.u32(&entry)?;
        let offset = self.u64(&entry)?;
        let kind = TensorType::from_code(code)
            .ok_or_else(|| unsupported(format!("tensor {name:?} has type {code}, which is not supported")))?;
        let columns = dimensions.first().copied().unwrap_or(1);
        let rows = dimensions.iter().skip(1).try_fold(1_usize, |rows, size| rows.checked_mul(*size));
        let size = kind.row_bytes(columns).zip(rows).and_then(|(row, rows)| row.checked_mul(rows));
        let range = usize::try_from(offset).ok().zip(size).and_then(|(start, size)| {
            let end = start.checked_add(size)?;
            Some(start..end)
        });
        let range = range.ok_or_else(|| {
            malformed(format!("tensor {name:?} of type {kind} cannot have dimensions {dimensions:?}"))
        })?;
        Ok((name, Tensor { kind, dimensions, range }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds little files by hand.
    fn header(tensors: u64, metadata: u64) -> Vec<u8> {
        let mut file = b"GGUF".to_vec();
        file.extend(3_u32.to_le_bytes());
        file.extend(tensors.to_le_bytes());
        file.extend(metadata.to_le_bytes());
        file
    }

    fn push_text(file: &mut Vec<u8>, text: &str) {
        file.extend((text.len() as u64).to_le_bytes());
        file.extend(text.as_bytes());
    }

    fn push_tensor(file: &mut Vec<u8>, name: &str, dimensions: &[u64], code: u32, offset: u64) {
        push_text(file, name);
        file.extend(u32::try_from(dimensions.len()).unwrap().to_le_bytes());
        for size in dimensions {
            file.extend(size.to_le_bytes());
        }
        file.extend(code.to_le_bytes());
        file.extend(offset.to_le_bytes());
    }

    fn refusal(file: Vec<u8>) -> (ErrorCode, String) {
        let error = Container::read(file).unwrap_err();
        (error.code, error.message)
    }

    #[test]
    fn reads_values_where_they_lie() {
        let mut file = header(1, 3);
        push_text(&mut file, "number");
        file.extend([5, 0, 0, 0, 7, 0, 0, 0]);
        push_text(&mut file, "words");
        file.extend([9, 0, 0, 0, 8, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
        push_text(&mut file, "one");
        push_text(&mut file, "two");
        push_text(&mut file, "real");
        file.extend(6_u32.to_le_bytes());
        file.extend(0.5_f32.to_le_bytes());
        push_tensor(&mut file, "t", &[2, 2], 0, 0);
        file.resize(file.len().next_multiple_of(32), 0);
        file.extend([1.0_f32, 2.0, 3.0, 4.0].iter().flat_map(|x| x.to_le_bytes()));
        let container = Container::read(file).unwrap();
        assert_eq!(container.unsigned("number").unwrap(), Some(7));
        assert_eq!(container.texts("words").unwrap().unwrap(), ["one", "two"]);
        assert_eq!(container.real("real").unwrap(), Some(0.5));
        assert_eq!(container.unsigned("absent").unwrap(), None);
        assert_eq!(container.text("number").unwrap_err().code, ErrorCode::ModelFormat);
        let tensor = container.tensor("t").unwrap();
        assert_eq!((tensor.dimensions.as_slice(), tensor.range.len()), ([2, 2].as_slice(), 16));
        assert_eq!(&container.bytes()[tensor.range.clone()][..4], 1.0_f32.to_le_bytes());
    }

    #[test]
    fn refuses_what_is_not_a_container() {
        assert_eq!(refusal(Vec::new()).0, ErrorCode::ModelFormat);
        assert_eq!(refusal(b"GGML\x03\0\0\0".to_vec()).0, ErrorCode::ModelFormat);
        let mut old = header(0, 0);
        old[4] = 1;
        assert_eq!(refusal(old).0, ErrorCode::ModelUnsupported);
    }

    #[test]
    fn refuses_counts_that_the_file_cannot_hold() {
        let (code, message) = refusal(header(0, u64::MAX));
        assert_eq!(code, ErrorCode::ModelFormat);
        assert!(message.contains("18446744073709551615 metadata entries"), "{message}");
        assert_eq!(refusal(header(1 << 60, 0)).0, ErrorCode::ModelFormat);
        let mut file = header(0, 1);
        push_text(&mut file, "list");
        file.extend(9_u32.to_le_bytes());
        file.extend(4_u32.to_le_bytes());
        file.extend((1_u64 << 62).to_le_bytes());
        assert!(refusal(file).1.contains("4611686018427387904 elements of list"));
    }

    #[test]
    fn refuses_tensors_that_lie() {
        let tensor = |dimensions: &[u64], code, offset| {
            let mut file = header(1, 0);
            push_tensor(&mut file, "t", dimensions, code, offset);
            file.resize(file.len().next_multiple_of(32) + 64, 0);
            refusal(file)
        };
        assert!(tensor(&[1 << 40], 0, 0).1.contains("needs"), "more than the file has");
        assert_eq!(tensor(&[u64::MAX, u64::MAX], 0, 0).0, ErrorCode::ModelFormat, "size overflows");
        assert_eq!(tensor(&[4], 0, u64::MAX).0, ErrorCode::ModelFormat, "offset overflows");
        assert!(tensor(&[4], 0, 8).1.contains("aligned"));
        assert_eq!(tensor(&[31], 8, 0).0, ErrorCode::ModelFormat, "half a block");
        assert_eq!(tensor(&[1, 1, 1, 1, 1], 0, 0).0, ErrorCode::ModelFormat);
        let (code, message) = tensor(&[4], 99, 0);
        assert_eq!(code, ErrorCode::ModelUnsupported);
        assert!(message.contains("99"));
    }

    /// Two tensors of 32 bytes each at these offsets.
    fn placed(offsets: [u64; 2]) -> Result<Container> {
        let mut file = header(2, 0);
        push_tensor(&mut file, "a", &[8], 0, offsets[0]);
        push_tensor(&mut file, "b", &[8], 0, offsets[1]);
        file.resize(file.len().next_multiple_of(32) + 128, 0);
        Container::read(file)
    }

    #[test]
    fn refuses_tensors_that_overlap_or_leave_gaps() {
        assert!(placed([0, 32]).is_ok() && placed([32, 0]).is_ok(), "in any order");
        for offsets in [[0, 0], [0, 64], [32, 64]] {
            let error = placed(offsets).unwrap_err();
            assert_eq!(error.code, ErrorCode::ModelFormat);
            assert!(error.message.contains("but the one before it ends at"), "{offsets:?}: {error}");
        }
    }

    #[test]
    fn a_beginning_waits_for_what_the_rest_may_hold_and_refuses_what_it_cannot() {
        let mut file = header(1, 1);
        push_text(&mut file, "general.name");
        file.extend(8_u32.to_le_bytes());
        push_text(&mut file, "a name");
        push_tensor(&mut file, "t", &[8], 0, 0);
        let end = file.len();
        let size = end.next_multiple_of(32) + 32;
        for length in 0..end {
            assert!(Container::read_beginning(&file[..length], size).unwrap().is_none(), "{length} bytes");
        }
        let container = Container::read_beginning(&file, size).unwrap().expect("the whole header");
        assert_eq!(container.text("general.name").unwrap(), Some("a name"));
        assert_eq!(container.tensor("t").unwrap().range.end, size);
        let short = Container::read_beginning(&file, size - 1).unwrap_err();
        assert!(short.message.contains("\"t\" needs 32 bytes"), "{short}");
        let lie = Container::read_beginning(&header(1 << 60, 0), size).unwrap_err();
        assert!(lie.message.contains("1152921504606846976 tensors"), "{lie}");
    }

    #[test]
    fn refusals_name_what_they_concern() {
        let entry = |kind: u32, length: u64| {
            let mut file = header(0, 1);
            push_text(&mut file, "general.name");
            file.extend(kind.to_le_bytes());
            file.extend(length.to_le_bytes());
            refusal(file).1
        };
        assert!(entry(8, 9).contains("9 bytes of general.name"));
        assert!(entry(13, 0).contains("general.name has metadata type 13"));
        let mut file = header(0, 1);
        file.extend(7_u64.to_le_bytes());
        file.extend([0; 5]);
        assert!(refusal(file).1.contains("7 bytes of metadata key 0"));
        let mut file = header(1, 0);
        push_text(&mut file, "output.weight");
        file.extend([0; 4]);
        assert!(refusal(file).1.contains("the entry of tensor \"output.weight\""));
    }

    #[test]
    fn refuses_deep_nesting_without_recursing_far() {
        let mut file = header(0, 1);
        push_text(&mut file, "deep");
        file.extend(9_u32.to_le_bytes());
        for _ in 0..10_000 {
            file.extend(9_u32.to_le_bytes());
            file.extend(1_u64.to_le_bytes());
        }
        assert!(refusal(file).1.contains("nests"));
    }
}
