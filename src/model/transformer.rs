//! Decoder-only transformers out of GGUF files: llama, qwen2 and qwen3.
//!
//! Owns the forward pass. Weights stay packed, where they lie in the file; a state holds
//! its tokens and a [`Cache`]. The products are [`super::kernel`]'s.
//!
//! What the architectures share, and where they differ, is said in [`super::blueprint`].
//!
//! Sources: Touvron et al. 2023, "LLaMA", <https://arxiv.org/abs/2302.13971>; Ainslie et al.
//! 2023, "GQA", <https://arxiv.org/abs/2305.13245>; Yang et al. 2025, "Qwen3 Technical
//! Report", <https://arxiv.org/abs/2505.09388>.

use std::{ops::Range, sync::Arc, sync::OnceLock};

use super::{
    Encoding, LanguageModel, ModelInfo, ModelState, Precision,
    activations::Activations,
    blueprint::{Blueprint, Config},
    cache::{Cache, CacheShape, Half},
    fnv::fnv_1a,
    gguf::{Container, Tensor},
    head::Head,
    kernel::{self, dot},
    matrix::MatrixView,
    quant::TensorType,
    rope::{Rope, Rotation},
    tokenizer::Tokenizer,
};
use crate::{TokenId, Vocab, error::Result};

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
    /// Added afterwards. Of the three, and of the layers, each may have one by itself.
    bias: Option<Vec<f32>>,
    /// Weights of a norm over each head.
    head_norm: Option<Vec<f32>>,
}

impl Transformer {
    /// Checks that the file is a model that this code can run. Copies only vectors.
    pub(super) fn open(container: Container, precision: Precision) -> Result<Self> {
        let blueprint = Blueprint::read(&container)?;
        let embedding = blueprint.matrix("token_embd.weight")?;
        let output = match blueprint.find("output.weight") {
            Some(tensor) => Matrix::of(tensor),
            None => embedding.clone(),
        };
        let output_norm = blueprint.vector("output_norm.weight")?;
        let layers =
            (0..blueprint.config.layers).map(|index| blueprint.layer(index)).collect::<Result<_>>()?;
        let rope = blueprint.rope()?;
        let info = blueprint.info(precision)?;
        let Blueprint { config, tokenizer, .. } = blueprint;
        let weights = Weights {
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
            container,
        };
        Ok(Self { weights: Arc::new(weights) })
    }
}

impl Matrix {
    fn of(tensor: &Tensor) -> Self {
        let Tensor { kind, dimensions, range } = tensor;
        Self { kind: *kind, range: range.clone(), rows: dimensions[1], columns: dimensions[0] }
    }
}

/// What only this kind of model makes of a file.
impl Blueprint<'_> {
    fn matrix(&self, name: &str) -> Result<Matrix> {
        self.tensor(name).map(Matrix::of)
    }

    fn vector(&self, name: &str) -> Result<Vec<f32>> {
        self.tensor(name)?;
        Ok(self.numbers(name)?.unwrap_or_default())
    }

    fn layer(&self, index: usize) -> Result<Layer> {
        let name = |part: &str| format!("blk.{index}.{part}.weight");
        let projection = |part: &str| -> Result<Projection> {
            Ok(Projection {
                matrix: self.matrix(&name(part))?,
                bias: self.numbers(&format!("blk.{index}.{part}.bias"))?,
                head_norm: self.numbers(&name(&format!("{part}_norm")))?,
            })
        };
        Ok(Layer {
            attention_norm: self.vector(&name("attn_norm"))?,
            query: projection("attn_q")?,
            key: projection("attn_k")?,
            value: projection("attn_v")?,
            attention_output: self.matrix(&name("attn_output"))?,
            feed_forward_norm: self.vector(&name("ffn_norm"))?,
            gate: self.matrix(&name("ffn_gate"))?,
            up: self.matrix(&name("ffn_up"))?,
            down: self.matrix(&name("ffn_down"))?,
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
        let hidden = self.advance_hidden(tokens, rows)?;
        Ok(hidden.chunks(BATCH).flat_map(|rows| self.weights.logits(rows)).collect())
    }

    fn advance_hidden(&mut self, tokens: &[TokenId], rows: usize) -> Result<Vec<Vec<f32>>> {
        super::check_advance(
            &self.tokens,
            tokens,
            rows,
            self.weights.tokenizer.vocab().len(),
            self.weights.config.context,
        )?;
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

impl Weights {
    fn multiply(&self, matrix: &Matrix, input: &mut Activations<'_>, positions: usize) -> Vec<f32> {
        let mut output = vec![0.0; positions * matrix.rows];
        let exact = self.precision == Precision::F32;
        kernel::multiply(&self.view(matrix), input, exact, &mut output);
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
