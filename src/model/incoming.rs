//! A model's file as it arrives: piece by piece, into memory that was reserved before.
//!
//! Whoever loads a file knows here, before the first byte, whether it will fit; and of
//! something that is no model at all, or is one that cannot run, no more is taken than its
//! beginning.

use std::{fmt::Write as _, sync::Arc};

use sha2::{Digest, Sha256};

use super::{
    LanguageModel, Precision,
    blueprint::{Blueprint, pairs_of},
    gguf,
    gguf::{Container, malformed},
    open,
};
use crate::{Error, ErrorCode, error::Result};

/// No file in memory is larger. What the header promises is held to this while the file arrives, and
/// to the file at its end: whoever announced its size may have been wrong.
const MOST_BYTES: usize = isize::MAX.unsigned_abs();

/// A file that is not complete yet.
///
/// # Examples
/// ```
/// use logitscope::model::incoming::Incoming;
///
/// let file: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/models/default.gguf"));
/// let mut incoming = Incoming::reserve(Some(file.len() as u64))?;
/// for piece in file.chunks(65_536) {
///     incoming.push(piece)?;
/// }
/// let (model, sha256) = incoming.open()?;
/// assert_eq!(model.info().file_bytes, file.len() as u64);
/// assert_eq!(sha256.len(), 64);
///
/// let refused = Incoming::reserve(Some(1 << 62)).unwrap_err();
/// assert_eq!(refused.code.as_str(), "out_of_memory");
/// # Ok::<(), logitscope::Error>(())
/// ```
#[derive(Debug)]
pub struct Incoming {
    bytes: Vec<u8>,
    expected: Option<u64>,
    hash: Sha256,
    /// How many bytes must be there before the header is looked for (again).
    look_at: usize,
}

impl Incoming {
    /// Reserves memory for a file of so many bytes; of an unknown size, as it comes.
    ///
    /// # Errors
    /// `out_of_memory` when there is not as much.
    pub fn reserve(expected: Option<u64>) -> Result<Self> {
        let mut incoming = Self { bytes: Vec::new(), expected, hash: Sha256::new(), look_at: 0 };
        incoming.make_room(expected.unwrap_or(0))?;
        Ok(incoming)
    }

    fn make_room(&mut self, more: u64) -> Result<()> {
        let room = usize::try_from(more).ok().and_then(|more| self.bytes.try_reserve_exact(more).ok());
        room.ok_or_else(|| {
            let needed = more.saturating_add(self.bytes.len() as u64);
            Error::new(
                ErrorCode::OutOfMemory,
                format!(
                    "the model needs {} MB of memory in one piece, which this device does not give \
                     (at most {} MB can be asked for)",
                    needed / 1_000_000,
                    isize::MAX / 1_000_000
                ),
            )
        })
    }

    /// Bytes that have arrived.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether none has.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    /// `model_format` when there are more than were announced, or the first ones show that it
    /// is no GGUF file; either of `model_format` and `model_unsupported` as soon as the header shows
    /// that it cannot be run; `out_of_memory` when a file of unknown size grows too large.
    pub fn push(&mut self, piece: &[u8]) -> Result<()> {
        let length = self.bytes.len() as u64 + piece.len() as u64;
        match self.expected {
            Some(expected) if length > expected => {
                return Err(malformed(format!("{expected} bytes were announced, but more came")));
            }
            None if self.bytes.capacity() < self.bytes.len() + piece.len() => {
                // Doubling, so that growing costs a constant factor.
                self.make_room(piece.len().max(self.bytes.len()) as u64)?;
            }
            _ => {}
        }
        self.bytes.extend_from_slice(piece);
        self.hash.update(piece);
        if self.bytes.len() >= 4 && !self.bytes.starts_with(b"GGUF") {
            return Err(malformed("it does not begin with \"GGUF\""));
        }
        if self.bytes.len() >= self.look_at {
            // Once found, never again; before, seldom enough not to read the beginning too often.
            self.look_at = 2 * self.bytes.len();
            if let Some(architecture) = gguf::architecture_in(&self.bytes) {
                pairs_of(architecture)?;
            }
            if let Some(header) = Container::read_beginning(&self.bytes, MOST_BYTES)? {
                self.look_at = usize::MAX;
                Blueprint::read(&header)?;
            }
        }
        Ok(())
    }

    /// Opens the complete file; the text is its SHA-256 hash in hexadecimal.
    ///
    /// # Errors
    /// `model_format` when bytes are missing, else as [`open`].
    pub fn open(self) -> Result<(Arc<dyn LanguageModel>, String)> {
        if let Some(expected) = self.expected
            && expected != self.bytes.len() as u64
        {
            let message = format!("{expected} bytes were announced, but {} came", self.bytes.len());
            return Err(malformed(message));
        }
        let sha256 = self.hash.finalize().iter().fold(String::new(), |mut text, byte| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        });
        Ok((open(self.bytes, Precision::Native)?, sha256))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &[u8] = include_bytes!("../../models/default.gguf");

    #[test]
    fn what_is_no_model_is_refused_at_its_first_bytes() {
        let mut incoming = Incoming::reserve(None).unwrap();
        incoming.push(b"<!").unwrap();
        let error = incoming.push(b"DOCTYPE html>").unwrap_err();
        assert_eq!(error.code, ErrorCode::ModelFormat);
        assert!(error.message.contains("GGUF"));
    }

    #[test]
    fn an_architecture_that_cannot_run_is_refused_at_its_name() {
        let place = FILE.windows(9).position(|bytes| bytes == b"\x05\0\0\0\0\0\0\0l").unwrap() + 8;
        let mut file = FILE.to_vec();
        file[place..place + 5].copy_from_slice(b"bloom");
        for size in [1, 7, 65_536] {
            let mut incoming = Incoming::reserve(Some(file.len() as u64)).unwrap();
            let error = file.chunks(size).find_map(|piece| incoming.push(piece).err()).expect("a refusal");
            assert_eq!(error.code, ErrorCode::ModelUnsupported);
            assert!(error.message.contains("bloom"), "{error}");
            assert!(incoming.len() <= (4 * place).max(size), "{} bytes were taken", incoming.len());
        }
    }

    /// The file with one place of its header overwritten, and how many bytes were taken of it.
    fn refused_after(place: usize, bytes: &[u8]) -> (String, usize) {
        let mut file = FILE.to_vec();
        file[place..place + bytes.len()].copy_from_slice(bytes);
        let mut incoming = Incoming::reserve(Some(file.len() as u64)).unwrap();
        let error = file.chunks(8192).find_map(|piece| incoming.push(piece).err()).expect("a refusal");
        (error.message, incoming.len())
    }

    #[test]
    fn what_cannot_run_is_refused_when_its_header_is_there() {
        let place = |text: &[u8]| FILE.windows(text.len()).position(|bytes| bytes == text).unwrap();
        // A tensor's type comes after its name, two dimensions and their count.
        let name = b"token_embd.weight";
        let kind = place(name) + name.len() + 4 + 2 * 8;
        let last = FILE.windows(7).rposition(|bytes| bytes == b".weight").unwrap();
        for (place, bytes, why) in [
            (kind, [10, 0, 0, 0].as_slice(), "\"token_embd.weight\" has type 10"),
            (place(b"gpt-2"), b"gpt9", "the pre-tokenizer \"gpt92\""),
            (place(b"blk.0.ffn_up.weight"), b"blk.0.ffn_xx", "a tensor \"blk.0.ffn_xx.weight\""),
        ] {
            let (message, taken) = refused_after(place, bytes);
            assert!(message.contains(why), "{message}");
            assert!(taken < 2 * last + 8192, "{taken} bytes were taken of a header of {last}");
        }
    }

    #[test]
    fn another_size_than_announced_is_refused() {
        let mut short = Incoming::reserve(Some(8)).unwrap();
        short.push(b"GGUF").unwrap();
        assert!(short.open().unwrap_err().message.contains("8 bytes were announced, but 4 came"));
        let mut long = Incoming::reserve(Some(4)).unwrap();
        assert!(long.push(b"GGUF\x03").unwrap_err().message.contains("more came"));
    }

    #[test]
    fn the_hash_is_that_of_the_file_however_it_came() {
        let hash = |size: usize, expected: Option<u64>| {
            let mut incoming = Incoming::reserve(expected).unwrap();
            FILE.chunks(size).for_each(|piece| incoming.push(piece).unwrap());
            incoming.open().unwrap().1
        };
        let known = hash(FILE.len(), Some(FILE.len() as u64));
        assert_eq!(hash(1000, None), known);
        // The hash of three letters, from FIPS 180-4.
        let abc = Sha256::digest(b"abc");
        assert_eq!(abc[..4], [0xba, 0x78, 0x16, 0xbf]);
    }

    #[test]
    fn an_impossible_size_is_refused_with_its_number() {
        let error = Incoming::reserve(Some(u64::MAX)).unwrap_err();
        assert_eq!(error.code, ErrorCode::OutOfMemory);
        assert!(error.message.contains("18446744073709 MB"), "{error}");
    }
}
