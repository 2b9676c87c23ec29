//! What a file's header says of a model: its sizes, its tokenizer, and that its tensors have
//! those sizes.
//!
//! All of it lies before the weights, so a file that cannot be run is refused before the rest of
//! it has come. What the numbers are used for is [`super::transformer`]'s.
//!
//! An architecture is the shape that all share (RMS norm, attention with rotary positions and
//! grouped heads, a gated feed-forward network, residuals around both) and what it has besides:
//! qwen2 adds biases to queries, keys and values; qwen3 normalises each head of queries and keys.

use std::collections::BTreeMap;

use super::{
    ModelInfo, Precision,
    gguf::{Container, Tensor, malformed, unsupported},
    quant::UnpackedRow,
    rope::{Pairs, Rope},
    tokenizer::Tokenizer,
};
use crate::{Error, TokenId, error::Result};

/// A model's header, checked.
pub(super) struct Blueprint<'a> {
    header: Header<'a>,
    pub(super) config: Config,
    rotary: Rotary,
    pub(super) tokenizer: Tokenizer,
}

/// The sizes that the file's metadata give.
#[derive(Debug, Clone, Copy)]
pub(super) struct Config {
    pub(super) embedding: usize,
    pub(super) layers: usize,
    pub(super) heads: usize,
    pub(super) kv_heads: usize,
    pub(super) head: usize,
    pub(super) feed_forward: usize,
    pub(super) context: usize,
    pub(super) epsilon: f32,
}

/// How positions turn queries and keys.
#[derive(Debug, Clone, Copy)]
struct Rotary {
    pairs: Pairs,
    /// Numbers of a head that turn.
    dimensions: usize,
    base: f64,
    divisor: f64,
}

/// Reads the metadata and tensors of one architecture.
#[derive(Clone, Copy)]
struct Header<'a> {
    container: &'a Container,
    architecture: &'a str,
}

/// Which numbers an architecture rotates together.
///
/// # Errors
/// `model_unsupported` for an architecture that this code cannot run.
pub(super) fn pairs_of(architecture: &str) -> Result<Pairs> {
    match architecture {
        "llama" => Ok(Pairs::Adjacent),
        "qwen2" | "qwen3" => Ok(Pairs::Halves),
        other => Err(unsupported(format!(
            "the model's architecture is {other:?}; llama, qwen2 and qwen3 are supported"
        ))),
    }
}

/// Metadata that would change what is computed, each with the values under which it does not.
/// Other architectures, and other programs' variants of these, give them meanings that are not
/// implemented here.
const NEUTRAL: [(&str, &[f64]); 14] = [
    ("expert_count", &[0.0]),
    ("attention.sliding_window", &[0.0]),
    ("attention.causal", &[1.0]),
    ("attention.scale", &[0.0]),
    ("attention.clamp_kqv", &[0.0]),
    ("attention.max_alibi_bias", &[0.0]),
    ("attn_logit_softcapping", &[0.0]),
    ("final_logit_softcapping", &[0.0]),
    ("embedding_scale", &[0.0, 1.0]),
    ("residual_scale", &[0.0, 1.0]),
    ("logit_scale", &[0.0, 1.0]),
    ("rope.scaling.attn_factor", &[1.0]),
    ("use_parallel_residual", &[0.0]),
    ("attention.temperature_scale", &[0.0]),
];

/// One dimension of a tensor.
#[derive(Clone, Copy)]
enum Size {
    Embedding,
    Vocabulary,
    /// All heads of queries.
    Queries,
    /// All heads of keys, or of values.
    Keys,
    Head,
    FeedForward,
    /// Pairs of a head that turn.
    Pairs,
}

/// Whether an architecture has a tensor.
#[derive(Clone, Copy)]
enum Presence {
    Always,
    /// As the file likes.
    Maybe,
    /// In qwen2; elsewhere as the file likes, each by itself, as llama.cpp reads them.
    Bias,
    /// In qwen3, and nowhere else.
    HeadNorm,
}

use Presence::{Always, Bias, HeadNorm, Maybe};

/// The tensors that are read, those of a layer without its number, and their dimensions as the
/// file orders them: a matrix's columns first.
const TENSORS: [(&str, &[Size], Presence); 18] = [
    ("token_embd.weight", &[Size::Embedding, Size::Vocabulary], Always),
    ("output_norm.weight", &[Size::Embedding], Always),
    // Where it is missing, the embedding is used again.
    ("output.weight", &[Size::Embedding, Size::Vocabulary], Maybe),
    ("rope_freqs.weight", &[Size::Pairs], Maybe),
    ("blk.attn_norm.weight", &[Size::Embedding], Always),
    ("blk.attn_q.weight", &[Size::Embedding, Size::Queries], Always),
    ("blk.attn_q.bias", &[Size::Queries], Bias),
    ("blk.attn_q_norm.weight", &[Size::Head], HeadNorm),
    ("blk.attn_k.weight", &[Size::Embedding, Size::Keys], Always),
    ("blk.attn_k.bias", &[Size::Keys], Bias),
    ("blk.attn_k_norm.weight", &[Size::Head], HeadNorm),
    ("blk.attn_v.weight", &[Size::Embedding, Size::Keys], Always),
    ("blk.attn_v.bias", &[Size::Keys], Bias),
    ("blk.attn_output.weight", &[Size::Queries, Size::Embedding], Always),
    ("blk.ffn_norm.weight", &[Size::Embedding], Always),
    ("blk.ffn_gate.weight", &[Size::Embedding, Size::FeedForward], Always),
    ("blk.ffn_up.weight", &[Size::Embedding, Size::FeedForward], Always),
    ("blk.ffn_down.weight", &[Size::FeedForward, Size::Embedding], Always),
];

impl<'a> Blueprint<'a> {
    /// Reads a header, which may be all of the file that is there.
    ///
    /// # Errors
    /// `model_format` where it contradicts itself or lacks something, `model_unsupported` where it
    /// asks for what is not implemented.
    pub(super) fn read(container: &'a Container) -> Result<Self> {
        const KEY: &str = "general.architecture";
        let architecture = container.text(KEY)?.ok_or_else(|| malformed(format!("{KEY} is missing")))?;
        let pairs = pairs_of(architecture)?;
        let header = Header { container, architecture };
        header.refuse_variants()?;
        let config = header.config()?;
        header.refuse_unknown(config.layers)?;
        let tokenizer = Tokenizer::read(container)?;
        header.expect_vocabulary(tokenizer.vocab().len())?;
        let rotary = header.rotary(pairs, config.head)?;
        let blueprint = Self { header, config, rotary, tokenizer };
        blueprint.expect_tensors()?;
        Ok(blueprint)
    }

    fn size(&self, size: Size) -> usize {
        let Config { embedding, heads, kv_heads, head, feed_forward, .. } = self.config;
        match size {
            Size::Embedding => embedding,
            Size::Vocabulary => self.tokenizer.vocab().len(),
            Size::Queries => heads * head,
            Size::Keys => kv_heads * head,
            Size::Head => head,
            Size::FeedForward => feed_forward,
            Size::Pairs => self.rotary.dimensions / 2,
        }
    }

    /// Refuses a file that lacks a tensor, or has one of other dimensions.
    fn expect_tensors(&self) -> Result<()> {
        for (name, sizes, presence) in TENSORS {
            let shape: Vec<usize> = sizes.iter().map(|size| self.size(*size)).collect();
            let required = self.header.requires(presence);
            let Some(part) = name.strip_prefix("blk.") else {
                self.expect_tensor(name, &shape, required)?;
                continue;
            };
            for layer in 0..self.config.layers {
                self.expect_tensor(&format!("blk.{layer}.{part}"), &shape, required)?;
            }
        }
        Ok(())
    }

    fn expect_tensor(&self, name: &str, shape: &[usize], required: bool) -> Result<()> {
        let Some(tensor) = self.find(name) else {
            return if required { self.tensor(name).map(|_| ()) } else { Ok(()) };
        };
        // Trailing dimensions of 1 mean nothing.
        let rest = tensor.dimensions.iter().skip(shape.len());
        if tensor.dimensions.len() < shape.len()
            || tensor.dimensions[..shape.len()] != *shape
            || rest.into_iter().any(|size| *size != 1)
        {
            return Err(malformed(format!(
                "tensor {name:?} has dimensions {:?}, but the metadata ask for {shape:?}",
                tensor.dimensions
            )));
        }
        Ok(())
    }

    /// A tensor that the file may lack.
    pub(super) fn find(&self, name: &str) -> Option<&'a Tensor> {
        self.header.container.find_tensor(name)
    }

    /// A tensor that every file has.
    pub(super) fn tensor(&self, name: &str) -> Result<&'a Tensor> {
        self.header.container.tensor(name)
    }

    /// The numbers of a tensor that the file may lack.
    ///
    /// # Errors
    /// `model_format` for a number that is none. Every logit would be, and only this says why.
    pub(super) fn numbers(&self, name: &str) -> Result<Option<Vec<f32>>> {
        let Some(tensor) = self.find(name) else { return Ok(None) };
        let length = tensor.dimensions.first().copied().unwrap_or(0);
        let mut values = vec![0.0; length];
        let mut scratch = UnpackedRow::new(if tensor.kind.is_quantised() { length } else { 0 });
        let bytes = &self.header.container.bytes()[tensor.range.clone()];
        tensor.kind.dequantise(bytes, &mut scratch, &mut values);
        match values.iter().position(|value| !value.is_finite()) {
            None => Ok(Some(values)),
            Some(index) => Err(malformed(format!("number {index} of tensor {name:?} is {}", values[index]))),
        }
    }

    /// The rotations, once the file is there.
    pub(super) fn rope(&self) -> Result<Rope> {
        const NAME: &str = "rope_freqs.weight";
        let factors = self.numbers(NAME)?.unwrap_or_default();
        if let Some((index, factor)) = (0..).zip(&factors).find(|(_, factor)| **factor <= 0.0) {
            return Err(malformed(format!("number {index} of tensor {NAME:?} is {factor}")));
        }
        let Rotary { pairs, dimensions, base, divisor } = self.rotary;
        Ok(Rope::new(pairs, dimensions, base, divisor, &factors))
    }

    /// What the file says of itself.
    pub(super) fn info(&self, precision: Precision) -> Result<ModelInfo> {
        let Self { header: Header { container, architecture }, config, tokenizer, .. } = self;
        let vocab = tokenizer.vocab();
        let text = |token: Option<&TokenId>| {
            token.map(|token| String::from_utf8_lossy(vocab.bytes(*token)).into_owned())
        };
        let mut tensor_types = BTreeMap::new();
        let mut parameters = 0;
        for (_, tensor) in container.tensors() {
            *tensor_types.entry(tensor.kind.to_string()).or_insert(0) += 1;
            // A tensor without numbers may claim any other dimension.
            let numbers =
                tensor.dimensions.iter().fold(1, |product: u64, size| product.saturating_mul(*size as u64));
            parameters = numbers.saturating_add(parameters);
        }
        Ok(ModelInfo {
            name: container.text("general.name")?.map(str::to_owned),
            architecture: (*architecture).to_owned(),
            license: container.text("general.license")?.map(str::to_owned),
            parameters,
            file_bytes: container.bytes().len() as u64,
            layers: config.layers,
            embedding_length: config.embedding,
            heads: config.heads,
            key_heads: config.kv_heads,
            feed_forward_length: config.feed_forward,
            context_length: config.context,
            vocabulary_size: vocab.len(),
            tokenizer: tokenizer.name().to_owned(),
            tensor_types,
            bos_token: text(vocab.bos.as_ref()),
            eos_token: text(vocab.eos.first()),
            chat_template: container.text("tokenizer.chat_template")?.map(str::to_owned),
            cache_bytes_per_token: (config.layers as u64)
                .saturating_mul(8 * (config.kv_heads * config.head) as u64),
            precision,
        })
    }
}

impl Header<'_> {
    fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.architecture)
    }

    /// Whether a file must have a tensor.
    fn requires(&self, presence: Presence) -> bool {
        match presence {
            Always => true,
            Maybe => false,
            Bias => self.architecture == "qwen2",
            HeadNorm => self.architecture == "qwen3",
        }
    }

    /// Whether a tensor of this name is read in a model of so many layers.
    fn is_read(&self, name: &str, layers: usize) -> bool {
        let general = match name.strip_prefix("blk.").and_then(|rest| rest.split_once('.')) {
            None => name,
            // A number has one spelling: "00" and "+0" parse too, and would be looked for by nobody.
            Some((number, part)) => match number.parse::<usize>() {
                Ok(layer) if layer < layers && layer.to_string() == number => &format!("blk.{part}"),
                _ => return false,
            },
        };
        let known = TENSORS.iter().find(|(known, ..)| *known == general);
        known.is_some_and(|(.., presence)| self.requires(*presence) || !matches!(presence, HeadNorm))
    }

    /// A size that must be given and positive.
    fn size(&self, name: &str) -> Result<usize> {
        let key = self.key(name);
        self.optional_size(name)?.ok_or_else(|| malformed(format!("{key} is missing")))
    }

    fn optional_size(&self, name: &str) -> Result<Option<usize>> {
        let key = self.key(name);
        if self.container.count(&key).is_some() {
            let message = format!("{key} is a list, one size for each layer, which is not supported");
            return Err(unsupported(message));
        }
        let Some(value) = self.container.unsigned(&key)? else { return Ok(None) };
        // Larger ones could not be multiplied where addresses have 32 bits.
        match usize::try_from(value) {
            Ok(size) if size > 0 && value < 1 << 31 => Ok(Some(size)),
            _ => Err(malformed(format!("{key} is {value}"))),
        }
    }

    /// Refuses what would otherwise be computed wrongly.
    fn refuse_variants(&self) -> Result<()> {
        if let Some(count @ 2..) = self.container.unsigned("split.count")? {
            let message = format!("split.count is {count}: a model in several files is not supported");
            return Err(unsupported(message));
        }
        match self.container.text("general.type")? {
            None | Some("model") => {}
            Some(other) => return Err(unsupported(format!("general.type is {other:?}, not a model"))),
        }
        for (name, neutral) in NEUTRAL {
            let key = self.key(name);
            match self.container.number(&key)? {
                Some(value) if !neutral.contains(&value) => {
                    return Err(unsupported(format!("{key} is {value}, which is not supported")));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Refuses a tensor that is not read: without it, what is computed would be another model.
    fn refuse_unknown(&self, layers: usize) -> Result<()> {
        match self.container.tensors().find(|(name, _)| !self.is_read(name, layers)) {
            None => Ok(()),
            Some((name, _)) => Err(unsupported(format!(
                "the model has a tensor {name:?}, which is not supported in the architecture {}",
                self.architecture
            ))),
        }
    }

    /// Refuses another number of tokens than the tokenizer has; llama.cpp does not look at it.
    fn expect_vocabulary(&self, tokens: usize) -> Result<()> {
        match self.optional_size("vocab_size")? {
            Some(size) if size != tokens => {
                let key = self.key("vocab_size");
                Err(malformed(format!("{key} is {size}, but there are {tokens} tokens")))
            }
            _ => Ok(()),
        }
    }

    fn config(&self) -> Result<Config> {
        let embedding = self.size("embedding_length")?;
        let heads = self.size("attention.head_count")?;
        let kv_heads = self.optional_size("attention.head_count_kv")?.unwrap_or(heads);
        let head = match self.optional_size("attention.key_length")? {
            Some(length) => length,
            None if embedding % heads == 0 => embedding / heads,
            None => {
                return Err(self.not_a_multiple(
                    "embedding_length",
                    embedding,
                    "attention.head_count",
                    heads,
                ));
            }
        };
        if heads % kv_heads != 0 {
            return Err(self.not_a_multiple(
                "attention.head_count",
                heads,
                "attention.head_count_kv",
                kv_heads,
            ));
        }
        if let Some(length) = self.optional_size("attention.value_length")?
            && length != head
        {
            return Err(unsupported(format!(
                "{} is {length}, beside keys of {head}, which is not supported",
                self.key("attention.value_length")
            )));
        }
        // Any real model is far below this.
        if heads as u64 * head as u64 >= 1 << 31 {
            return Err(malformed(format!(
                "{} is {heads}, which is too many for heads of {head} numbers",
                self.key("attention.head_count")
            )));
        }
        let key = self.key("attention.layer_norm_rms_epsilon");
        let epsilon = self.container.real(&key)?.ok_or_else(|| malformed(format!("{key} is missing")))?;
        #[expect(clippy::cast_possible_truncation, reason = "the file holds it as f32")]
        let epsilon = epsilon as f32;
        if !(epsilon.is_finite() && epsilon >= 0.0) {
            return Err(malformed(format!("{key} is {epsilon}")));
        }
        Ok(Config {
            embedding,
            layers: self.size("block_count")?,
            heads,
            kv_heads,
            head,
            feed_forward: self.size("feed_forward_length")?,
            context: self.size("context_length")?,
            epsilon,
        })
    }

    /// That one size of the file must be a multiple of another, and is not.
    fn not_a_multiple(&self, whole: &str, size: usize, part: &str, count: usize) -> Error {
        let (whole, part) = (self.key(whole), self.key(part));
        malformed(format!("{whole} is {size}, which is no multiple of {part}, which is {count}"))
    }

    fn rotary(&self, pairs: Pairs, head: usize) -> Result<Rotary> {
        let dimensions = self.optional_size("rope.dimension_count")?.unwrap_or(head);
        if dimensions % 2 != 0 || dimensions > head {
            let key = self.key("rope.dimension_count");
            return Err(malformed(format!(
                "{key} is {dimensions}, which is not an even number of at most {head}, the size of a head"
            )));
        }
        let key = self.key("rope.freq_base");
        let base = self.container.real(&key)?.unwrap_or(10_000.0);
        if !(base.is_finite() && base > 0.0) {
            return Err(malformed(format!("{key} is {base}")));
        }
        let key = self.key("rope.scaling.type");
        let scaling = self.container.text(&key)?;
        let divisor = match scaling {
            Some("none") => 1.0,
            None | Some("linear") => self.linear_scaling()?,
            Some(other) => return Err(unsupported(format!("{key} is {other:?}, which is not supported"))),
        };
        Ok(Rotary { pairs, dimensions, base, divisor })
    }

    /// By how much positions are closer together; older files have another name for it.
    fn linear_scaling(&self) -> Result<f64> {
        for name in ["rope.scaling.factor", "rope.scale_linear"] {
            let key = self.key(name);
            match self.container.real(&key)? {
                None => {}
                Some(divisor) if divisor.is_finite() && divisor > 0.0 => return Ok(divisor),
                Some(divisor) => return Err(malformed(format!("{key} is {divisor}"))),
            }
        }
        Ok(1.0)
    }
}
