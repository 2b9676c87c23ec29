//! Decoder-only transformers out of GGUF files: llama, qwen2 and qwen3.
//!
//! Owns the forward pass. Weights stay packed, where they lie in the file; a state holds
//! its tokens and a [`Cache`]. The products are [`super::kernel`]'s.
//!
//! The architectures share one shape: RMS norm, attention with rotary positions and grouped
//! heads, a gated feed-forward network, residuals around both. Qwen2 adds biases to
//! queries, keys and values; qwen3 normalises each head of queries and keys.
//!
//! Sources: Touvron et al. 2023, "LLaMA", <https://arxiv.org/abs/2302.13971>; Ainslie et al.
//! 2023, "GQA", <https://arxiv.org/abs/2305.13245>; Yang et al. 2025, "Qwen3 Technical
//! Report", <https://arxiv.org/abs/2505.09388>.

use std::{collections::BTreeMap, ops::Range, sync::Arc, sync::OnceLock};

use super::{
    Encoding, LanguageModel, ModelInfo, ModelState, Precision,
    activations::Activations,
    cache::{Cache, CacheShape, Half},
    fnv::fnv_1a,
    gguf::{Container, Tensor, malformed, unsupported},
    head::Head,
    kernel::{MatrixView, dot},
    quant::{TensorType, UnpackedRow},
    rope::{Pairs, Rope, Rotation},
    tokenizer::Tokenizer,
};
use crate::{Error, TokenId, Vocab, error::Result};

/// Positions that go through the layers together, so that each weight is unpacked once for all.
const BATCH: usize = 32;

/// A model of a GGUF file.
#[derive(Debug)]
pub(super) struct Transformer {
    weights: Arc<Weights>,
}

/// Everything that states share.
#[derive(Debug)]
struct Weights {
    container: Container,
    config: Config,
    precision: Precision,
    rope: Rope,
    embedding: Matrix,
    layers: Vec<Layer>,
    output_norm: Vec<f32>,
    output: Matrix,
    tokenizer: Tokenizer,
    info: ModelInfo,
    file_hash: OnceLock<u64>,
}

/// The sizes that the file's metadata give.
#[derive(Debug, Clone, Copy)]
struct Config {
    embedding: usize,
    layers: usize,
    heads: usize,
    kv_heads: usize,
    head: usize,
    feed_forward: usize,
    context: usize,
    epsilon: f32,
}

/// A matrix of the file.
#[derive(Debug, Clone)]
struct Matrix {
    kind: TensorType,
    range: Range<usize>,
    rows: usize,
    columns: usize,
}

#[derive(Debug)]
struct Layer {
    attention_norm: Vec<f32>,
    query: Projection,
    key: Projection,
    value: Projection,
    attention_output: Matrix,
    feed_forward_norm: Vec<f32>,
    gate: Matrix,
    up: Matrix,
    down: Matrix,
}

/// Makes queries, keys or values.
#[derive(Debug)]
struct Projection {
    matrix: Matrix,
    /// Added afterwards; qwen2 has it.
    bias: Option<Vec<f32>>,
    /// Weights of a norm over each head; qwen3 has it.
    head_norm: Option<Vec<f32>>,
}

/// Refuses a file whose header, which may be all that is there, shows that it cannot be run.
pub(super) fn check_header(container: &Container) -> Result<()> {
    let (architecture, _) = architecture(container)?;
    let reader = Reader::new(container, architecture);
    reader.refuse_variants()?;
    let config = reader.config()?;
    reader.refuse_unknown(config.layers)?;
    Tokenizer::read(container).map(|_| ())
}

/// The file's architecture, and which numbers it rotates together.
fn architecture(container: &Container) -> Result<(&str, Pairs)> {
    const KEY: &str = "general.architecture";
    let name = container.text(KEY)?.ok_or_else(|| malformed(format!("{KEY} is missing")))?;
    Ok((name, pairs_of(name)?))
}

impl Transformer {
    /// Checks that the file is a model that this code can run. Copies only vectors.
    pub(super) fn open(container: Container, precision: Precision) -> Result<Self> {
        let (name, pairs) = architecture(&container)?;
        let reader = Reader::new(&container, name);
        reader.refuse_variants()?;
        let config = reader.config()?;
        reader.refuse_unknown(config.layers)?;
        let tokenizer = Tokenizer::read(&container)?;
        let vocabulary = tokenizer.vocab().len();
        let embedding = reader.matrix("token_embd.weight", config.embedding, vocabulary)?;
        let output = match container.find_tensor("output.weight") {
            Some(_) => reader.matrix("output.weight", config.embedding, vocabulary)?,
            None => embedding.clone(),
        };
        let output_norm = reader.vector("output_norm.weight", config.embedding)?;
        let mut layers = Vec::new();
        for index in 0..config.layers {
            layers.push(reader.layer(index, &config)?);
        }
        // After the layers, whose shapes have shown that the head's size is no lie.
        let rope = reader.rope(pairs, config.head)?;
        let info = reader.info(&config, &tokenizer, precision)?;
        let weights = Weights {
            container,
            config,
            precision,
            rope,
            embedding,
            layers,
            output_norm,
            output,
            tokenizer,
            info,
            file_hash: OnceLock::new(),
        };
        Ok(Self { weights: Arc::new(weights) })
    }
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

/// Reads the metadata and tensors of one architecture.
struct Reader<'a> {
    container: &'a Container,
    architecture: &'a str,
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

/// The tensors that are read, those of a layer without its number.
const TENSORS: [&str; 18] = [
    "token_embd.weight",
    "output_norm.weight",
    "output.weight",
    "rope_freqs.weight",
    "blk.attn_norm.weight",
    "blk.attn_q.weight",
    "blk.attn_q.bias",
    "blk.attn_q_norm.weight",
    "blk.attn_k.weight",
    "blk.attn_k.bias",
    "blk.attn_k_norm.weight",
    "blk.attn_v.weight",
    "blk.attn_v.bias",
    "blk.attn_output.weight",
    "blk.ffn_norm.weight",
    "blk.ffn_gate.weight",
    "blk.ffn_up.weight",
    "blk.ffn_down.weight",
];

impl<'a> Reader<'a> {
    fn new(container: &'a Container, architecture: &'a str) -> Self {
        Self { container, architecture }
    }

    fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.architecture)
    }

    /// Whether each head of queries and keys is normalised.
    fn has_head_norms(&self) -> bool {
        self.architecture == "qwen3"
    }

    /// Whether something is always added to queries, keys and values; elsewhere it may be.
    fn has_biases(&self) -> bool {
        self.architecture == "qwen2"
    }

    /// Whether a tensor of this name is read in a model of so many layers.
    fn is_read(&self, name: &str, layers: usize) -> bool {
        let Some((number, part)) = name.strip_prefix("blk.").and_then(|rest| rest.split_once('.')) else {
            return TENSORS.contains(&name);
        };
        number.parse().is_ok_and(|number: usize| number < layers)
            && TENSORS.iter().any(|known| known.strip_prefix("blk.") == Some(part))
            && (self.has_head_norms() || !matches!(part, "attn_q_norm.weight" | "attn_k_norm.weight"))
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

    fn rope(&self, pairs: Pairs, head: usize) -> Result<Rope> {
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
        let factors = match self.container.find_tensor("rope_freqs.weight") {
            Some(_) => self.vector("rope_freqs.weight", dimensions / 2)?,
            None => Vec::new(),
        };
        if let Some((index, factor)) =
            (0..).zip(&factors).find(|(_, factor)| !factor.is_finite() || **factor <= 0.0)
        {
            return Err(malformed(format!("number {index} of tensor \"rope_freqs.weight\" is {factor}")));
        }
        Ok(Rope::new(pairs, dimensions, base, divisor, &factors))
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

    fn matrix(&self, name: &str, columns: usize, rows: usize) -> Result<Matrix> {
        let tensor = self.shaped(name, &[columns, rows])?;
        Ok(Matrix { kind: tensor.kind, range: tensor.range.clone(), rows, columns })
    }

    fn vector(&self, name: &str, length: usize) -> Result<Vec<f32>> {
        let tensor = self.shaped(name, &[length])?;
        let mut values = vec![0.0; length];
        let mut scratch = UnpackedRow::new(if tensor.kind.is_quantised() { length } else { 0 });
        tensor.kind.dequantise(&self.container.bytes()[tensor.range.clone()], &mut scratch, &mut values);
        Ok(values)
    }

    fn shaped(&self, name: &str, shape: &[usize]) -> Result<&Tensor> {
        let tensor = self.container.tensor(name)?;
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
        Ok(tensor)
    }

    fn projection(&self, layer: usize, name: &str, config: &Config, rows: usize) -> Result<Projection> {
        let tensor = |part: &str| format!("blk.{layer}.attn_{name}{part}");
        let bias = tensor(".bias");
        let has_bias = self.has_biases() || self.container.find_tensor(&bias).is_some();
        let has_norm = self.has_head_norms() && name != "v";
        Ok(Projection {
            matrix: self.matrix(&tensor(".weight"), config.embedding, rows)?,
            bias: has_bias.then(|| self.vector(&bias, rows)).transpose()?,
            head_norm: has_norm.then(|| self.vector(&tensor("_norm.weight"), config.head)).transpose()?,
        })
    }

    fn layer(&self, index: usize, config: &Config) -> Result<Layer> {
        let name = |part: &str| format!("blk.{index}.{part}.weight");
        let (embedding, feed_forward) = (config.embedding, config.feed_forward);
        let (wide, narrow) = (config.heads * config.head, config.kv_heads * config.head);
        Ok(Layer {
            attention_norm: self.vector(&name("attn_norm"), embedding)?,
            query: self.projection(index, "q", config, wide)?,
            key: self.projection(index, "k", config, narrow)?,
            value: self.projection(index, "v", config, narrow)?,
            attention_output: self.matrix(&name("attn_output"), wide, embedding)?,
            feed_forward_norm: self.vector(&name("ffn_norm"), embedding)?,
            gate: self.matrix(&name("ffn_gate"), embedding, feed_forward)?,
            up: self.matrix(&name("ffn_up"), embedding, feed_forward)?,
            down: self.matrix(&name("ffn_down"), feed_forward, embedding)?,
        })
    }

    fn info(&self, config: &Config, tokenizer: &Tokenizer, precision: Precision) -> Result<ModelInfo> {
        let mut tensor_types = BTreeMap::new();
        let mut parameters = 0;
        for (_, tensor) in self.container.tensors() {
            *tensor_types.entry(tensor.kind.to_string()).or_insert(0) += 1;
            // A tensor without numbers may claim any other dimension.
            let numbers =
                tensor.dimensions.iter().fold(1, |product: u64, size| product.saturating_mul(*size as u64));
            parameters = numbers.saturating_add(parameters);
        }
        Ok(ModelInfo {
            name: self.container.text("general.name")?.map(str::to_owned),
            architecture: self.architecture.to_owned(),
            license: self.container.text("general.license")?.map(str::to_owned),
            parameters,
            file_bytes: self.container.bytes().len() as u64,
            layers: config.layers,
            embedding_length: config.embedding,
            heads: config.heads,
            key_heads: config.kv_heads,
            feed_forward_length: config.feed_forward,
            context_length: config.context,
            vocabulary_size: tokenizer.vocab().len(),
            tokenizer: tokenizer.name().to_owned(),
            tensor_types,
            chat_template: self.container.text("tokenizer.chat_template")?.map(str::to_owned),
            cache_bytes_per_token: (config.layers as u64)
                .saturating_mul(8 * (config.kv_heads * config.head) as u64),
            precision,
        })
    }
}

impl LanguageModel for Transformer {
    fn vocab(&self) -> &Vocab {
        self.weights.tokenizer.vocab()
    }

    fn context_length(&self) -> usize {
        self.weights.config.context
    }

    fn info(&self) -> &ModelInfo {
        &self.weights.info
    }

    fn hash(&self) -> u64 {
        *self.weights.file_hash.get_or_init(|| fnv_1a(self.weights.container.bytes().iter().copied()))
    }

    fn encode(&self, text: &str, parse_special: bool, add_bos: bool) -> Result<Encoding> {
        Ok(self.weights.tokenizer.encode(text, parse_special, add_bos))
    }

    fn head(&self) -> Option<Head<'_>> {
        Some(self.weights.head())
    }

    fn start(&self) -> Box<dyn ModelState> {
        let weights = Arc::clone(&self.weights);
        let shape = CacheShape {
            layers: weights.config.layers,
            width: weights.config.kv_heads * weights.config.head,
        };
        Box::new(State { weights, tokens: Vec::new(), cache: Cache::new(shape) })
    }
}

/// One context of a [`Transformer`].
#[derive(Debug, Clone)]
struct State {
    weights: Arc<Weights>,
    tokens: Vec<TokenId>,
    cache: Cache,
}

impl ModelState for State {
    fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    fn advance(&mut self, tokens: &[TokenId], rows: usize) -> Result<Vec<Vec<f32>>> {
        let before = self.tokens.len();
        let hidden = self.advance_hidden(tokens, rows)?;
        let logits: Vec<Vec<f32>> = hidden.chunks(BATCH).flat_map(|rows| self.weights.logits(rows)).collect();
        self.finite_or_back(before, &logits, "logit")?;
        Ok(logits)
    }

    fn advance_hidden(&mut self, tokens: &[TokenId], rows: usize) -> Result<Vec<Vec<f32>>> {
        super::check_advance(
            &self.tokens,
            tokens,
            rows,
            self.weights.tokenizer.vocab().len(),
            self.weights.config.context,
        )?;
        let before = self.tokens.len();
        let mut last = Vec::with_capacity(rows);
        let mut left = tokens.len();
        for batch in tokens.chunks(BATCH) {
            left -= batch.len();
            // Of the last `rows` tokens, those in this batch.
            let rows_here = rows.saturating_sub(left).min(batch.len());
            let hidden = self.weights.forward(&mut self.cache, self.tokens.len(), batch);
            last.extend(self.weights.last_norm(&hidden, rows_here));
            self.tokens.extend(batch);
        }
        self.finite_or_back(before, &last, "last hidden number")?;
        Ok(last)
    }

    fn truncate(&mut self, length: usize) {
        self.tokens.truncate(length);
        self.cache.truncate(self.tokens.len());
    }

    fn fork(&self) -> Box<dyn ModelState> {
        Box::new(self.clone())
    }
}

impl State {
    /// Refuses the rows of the last positions where one has a number that is none, and goes back to
    /// `before` tokens. Sound weights make no such number, however large: the file is at fault.
    fn finite_or_back(&mut self, before: usize, rows: &[Vec<f32>], what: &str) -> Result<()> {
        let first = self.tokens.len() - rows.len();
        for (position, row) in (first..).zip(rows) {
            if let Some(index) = row.iter().position(|number| !number.is_finite()) {
                let message = format!("after position {position}, {what} {index} is {}", row[index]);
                self.truncate(before);
                return Err(malformed(message));
            }
        }
        Ok(())
    }
}

impl Weights {
    fn multiply(&self, matrix: &Matrix, input: &mut Activations<'_>, positions: usize) -> Vec<f32> {
        let mut output = vec![0.0; positions * matrix.rows];
        let exact = self.precision == Precision::F32;
        self.view(matrix).multiply(input, exact, &mut output);
        output
    }

    fn view(&self, matrix: &Matrix) -> MatrixView<'_> {
        let bytes = &self.container.bytes()[matrix.range.clone()];
        let Matrix { kind, rows, columns, .. } = *matrix;
        MatrixView { kind, bytes, rows, columns, stride: bytes.len() / rows }
    }

    /// Runs tokens at positions `start..` through all layers: `[positions, embedding]`.
    fn forward(&self, cache: &mut Cache, start: usize, tokens: &[TokenId]) -> Vec<f32> {
        let embedding = self.config.embedding;
        cache.reserve(start, start + tokens.len());
        let mut hidden = vec![0.0; tokens.len() * embedding];
        let table = self.view(&self.embedding);
        for (row, token) in hidden.chunks_exact_mut(embedding).zip(tokens) {
            table.dequantise_row(token.index(), row);
        }
        let rotations: Vec<_> =
            (start..start + tokens.len()).map(|position| self.rope.at(position)).collect();
        for (index, layer) in self.layers.iter().enumerate() {
            let change = self.attention(cache, index, start, &rotations, &hidden);
            add(&mut hidden, &change);
            let change = self.feed_forward(layer, &hidden, tokens.len());
            add(&mut hidden, &change);
        }
        hidden
    }

    /// What a layer's attention adds. Stores the keys and values of these positions.
    fn attention(
        &self,
        cache: &mut Cache,
        index: usize,
        start: usize,
        rotations: &[Rotation],
        hidden: &[f32],
    ) -> Vec<f32> {
        let layer = &self.layers[index];
        let Config { embedding, epsilon, .. } = self.config;
        let normed = norm_rows(hidden, &layer.attention_norm, epsilon);
        let mut input = Activations::new(&normed, embedding);
        let queries = self.project(&layer.query, &mut input, rotations, true);
        let keys = self.project(&layer.key, &mut input, rotations, true);
        let values = self.project(&layer.value, &mut input, rotations, false);
        let width = layer.key.matrix.rows;
        for (i, (key, value)) in keys.chunks_exact(width).zip(values.chunks_exact(width)).enumerate() {
            cache.write(start + i, index, Half::Keys, key);
            cache.write(start + i, index, Half::Values, value);
        }
        let mixed = self.attend(cache, index, start, &queries);
        let mut input = Activations::new(&mixed, layer.query.matrix.rows);
        self.multiply(&layer.attention_output, &mut input, rotations.len())
    }

    /// Queries, keys or values of some positions, turned by their rotations if asked.
    fn project(
        &self,
        projection: &Projection,
        input: &mut Activations<'_>,
        rotations: &[Rotation],
        rotate: bool,
    ) -> Vec<f32> {
        let mut rows = self.multiply(&projection.matrix, input, rotations.len());
        for (row, rotation) in rows.chunks_exact_mut(projection.matrix.rows).zip(rotations) {
            if let Some(bias) = &projection.bias {
                add(row, bias);
            }
            for head in row.chunks_exact_mut(self.config.head) {
                if let Some(weights) = &projection.head_norm {
                    norm(head, weights, self.config.epsilon);
                }
                if rotate {
                    rotation.apply(head);
                }
            }
        }
        rows
    }

    /// What a layer's feed-forward network adds.
    fn feed_forward(&self, layer: &Layer, hidden: &[f32], positions: usize) -> Vec<f32> {
        let Config { embedding, feed_forward, epsilon, .. } = self.config;
        let normed = norm_rows(hidden, &layer.feed_forward_norm, epsilon);
        let mut input = Activations::new(&normed, embedding);
        let mut gate = self.multiply(&layer.gate, &mut input, positions);
        let up = self.multiply(&layer.up, &mut input, positions);
        for (gate, up) in gate.iter_mut().zip(&up) {
            // SwiGLU: gate times its logistic, times up.
            *gate = *gate / (1.0 + libm::expf(-*gate)) * up;
        }
        let mut input = Activations::new(&gate, feed_forward);
        self.multiply(&layer.down, &mut input, positions)
    }

    /// For each query, the values of its own and earlier positions, mixed by the softmax of
    /// query · key / √head.
    fn attend(&self, cache: &Cache, layer: usize, start: usize, queries: &[f32]) -> Vec<f32> {
        let Config { head, heads, kv_heads, .. } = self.config;
        let width = heads * head;
        let scale = 1.0 / libm::sqrtf(head as f32);
        let mut mixed = vec![0.0; queries.len()];
        let mut weights = Vec::new();
        for (i, (query, out)) in queries.chunks_exact(width).zip(mixed.chunks_exact_mut(width)).enumerate() {
            let length = start + i + 1;
            let heads_of = query.chunks_exact(head).zip(out.chunks_exact_mut(head));
            for (index, (query, out)) in heads_of.enumerate() {
                let from = index / (heads / kv_heads) * head;
                weights.clear();
                for stretch in cache.stretches(length, layer, Half::Keys) {
                    let entries = stretch.chunks_exact(kv_heads * head);
                    weights.extend(entries.map(|entry| dot(query, &entry[from..from + head]) * scale));
                }
                let total = exponentiate(&mut weights);
                let mut rest = weights.as_slice();
                for stretch in cache.stretches(length, layer, Half::Values) {
                    for entry in stretch.chunks_exact(kv_heads * head) {
                        let Some((weight, after)) = rest.split_first() else { break };
                        for (out, value) in out.iter_mut().zip(&entry[from..from + head]) {
                            *out += weight * value;
                        }
                        rest = after;
                    }
                }
                for out in out {
                    *out /= total;
                }
            }
        }
        mixed
    }

    /// What the head multiplies, for the last `rows` of these positions.
    fn last_norm(&self, hidden: &[f32], rows: usize) -> Vec<Vec<f32>> {
        let Config { embedding, epsilon, .. } = self.config;
        let last = hidden[hidden.len() - rows * embedding..].chunks_exact(embedding);
        last.map(|row| norm_rows(row, &self.output_norm, epsilon)).collect()
    }

    fn head(&self) -> Head<'_> {
        Head::of(self.view(&self.output), self.precision)
    }

    /// Logits of what [`last_norm`](Self::last_norm) returned, each weight unpacked once for all.
    fn logits(&self, rows: &[Vec<f32>]) -> Vec<Vec<f32>> {
        let logits = self.head().multiply(&rows.concat());
        logits.chunks_exact(self.output.rows).map(<[f32]>::to_vec).collect()
    }
}

fn add(to: &mut [f32], what: &[f32]) {
    for (to, what) in to.iter_mut().zip(what) {
        *to += what;
    }
}

/// Divides a row by its root mean square, then multiplies it by the weights.
fn norm(row: &mut [f32], weights: &[f32], epsilon: f32) {
    let mean = dot(row, row) / row.len() as f32;
    let factor = 1.0 / libm::sqrtf(mean + epsilon);
    for (value, weight) in row.iter_mut().zip(weights) {
        *value = *value * factor * weight;
    }
}

fn norm_rows(rows: &[f32], weights: &[f32], epsilon: f32) -> Vec<f32> {
    let mut normed = rows.to_vec();
    for row in normed.chunks_exact_mut(weights.len()) {
        norm(row, weights, epsilon);
    }
    normed
}

/// Replaces scores by `exp(score - max)`, whose largest is 1, and returns their sum.
fn exponentiate(scores: &mut [f32]) -> f32 {
    let max = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut total = 0.0;
    for score in scores {
        *score = libm::expf(*score - max);
        total += *score;
    }
    total
}
