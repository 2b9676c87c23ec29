//! A GGUF file taken apart, so that a test can change one thing and write it again.
#![allow(dead_code, reason = "each test uses a part of it")]

/// A file's metadata and tensors, in their order.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    /// Key, type and the value's bytes.
    pub(crate) metadata: Vec<(String, u32, Vec<u8>)>,
    pub(crate) tensors: Vec<Part>,
    /// Where tensors begin: at multiples of this.
    pub(crate) alignment: usize,
}

/// A tensor.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) name: String,
    /// The fastest-varying first.
    pub(crate) dimensions: Vec<u64>,
    /// The number of its type; 0 is f32.
    pub(crate) kind: u32,
    pub(crate) bytes: Vec<u8>,
}

pub(crate) const U32: u32 = 4;
pub(crate) const F32: u32 = 6;
pub(crate) const BOOL: u32 = 7;
pub(crate) const STRING: u32 = 8;
pub(crate) const ARRAY: u32 = 9;

/// A text as a value.
pub(crate) fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat()
}

/// A list as a value: the type of its elements, and their bytes one after the other.
pub(crate) fn list(kind: u32, elements: &[Vec<u8>]) -> Vec<u8> {
    let head = [kind.to_le_bytes().as_slice(), &(elements.len() as u64).to_le_bytes()].concat();
    [head, elements.concat()].concat()
}

/// What is left of a file that is being read.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        taken
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take(4).try_into().expect("four bytes"))
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take(8).try_into().expect("eight bytes"))
    }

    fn size(&mut self) -> usize {
        usize::try_from(self.u64()).expect("a size that fits")
    }

    fn text(&mut self) -> String {
        let length = self.size();
        String::from_utf8(self.take(length).to_vec()).expect("UTF-8")
    }

    /// The bytes of a value of some type.
    fn value(&mut self, kind: u32) -> &'a [u8] {
        let before = self.0;
        match kind {
            0 | 1 | BOOL => self.take(1),
            2 | 3 => self.take(2),
            U32 | 5 | F32 => self.take(4),
            10..=12 => self.take(8),
            STRING => {
                let length = self.size();
                self.take(length)
            }
            ARRAY => {
                let element = self.u32();
                for _ in 0..self.u64() {
                    self.value(element);
                }
                &[]
            }
            _ => panic!("no type of metadata is {kind}"),
        };
        &before[..before.len() - self.0.len()]
    }
}

impl Parts {
    /// Takes a sound file apart.
    pub(crate) fn of(file: &[u8]) -> Self {
        let mut rest = Rest(&file[8..]);
        let (tensor_count, metadata_count) = (rest.u64(), rest.u64());
        let metadata = (0..metadata_count)
            .map(|_| {
                let (key, kind) = (rest.text(), rest.u32());
                (key, kind, rest.value(kind).to_vec())
            })
            .collect();
        let container = logitscope::model::gguf::Container::read(file.to_vec()).expect("a sound file");
        let tensors = (0..tensor_count).map(|_| {
            let name = rest.text();
            let dimensions = (0..rest.u32()).map(|_| rest.u64()).collect();
            let kind = rest.u32();
            rest.u64();
            let range = container.tensor(&name).expect("the tensor is there").range.clone();
            Part { name, dimensions, kind, bytes: file[range].to_vec() }
        });
        Self { metadata, tensors: tensors.collect(), alignment: 32 }
    }

    /// The file.
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut file = b"GGUF\x03\0\0\0".to_vec();
        file.extend((self.tensors.len() as u64).to_le_bytes());
        file.extend((self.metadata.len() as u64).to_le_bytes());
        for (key, kind, value) in &self.metadata {
            file.extend([text(key), kind.to_le_bytes().to_vec(), value.clone()].concat());
        }
        let mut offset = 0_usize;
        for Part { name, dimensions, kind, bytes } in &self.tensors {
            file.extend(text(name));
            file.extend(u32::try_from(dimensions.len()).expect("few").to_le_bytes());
            file.extend(dimensions.iter().flat_map(|size| size.to_le_bytes()));
            file.extend(kind.to_le_bytes());
            file.extend((offset as u64).to_le_bytes());
            offset = (offset + bytes.len()).next_multiple_of(self.alignment);
        }
        for Part { bytes, .. } in &self.tensors {
            file.resize(file.len().next_multiple_of(self.alignment), 0);
            file.extend(bytes);
        }
        file.resize(file.len().next_multiple_of(self.alignment), 0);
        file
    }

    /// Gives a value to a key, new or not.
    pub(crate) fn set(&mut self, key: &str, kind: u32, value: Vec<u8>) {
        self.metadata.retain(|(name, ..)| name != key);
        self.metadata.push((key.to_owned(), kind, value));
    }

    pub(crate) fn tensor(&mut self, name: &str) -> &mut Part {
        self.tensors.iter_mut().find(|part| part.name == name).unwrap_or_else(|| panic!("there is no {name}"))
    }

    /// The same without a tensor.
    pub(crate) fn without(&self, name: &str) -> Self {
        let tensors = self.tensors.iter().filter(|part| part.name != name).cloned().collect();
        Self { tensors, ..self.clone() }
    }
}
