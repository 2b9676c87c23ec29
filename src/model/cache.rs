//! What attention remembers: keys and values, in blocks of positions that states share.
//!
//! A fork copies pointers. A block is copied only when a state writes into one that
//! another state also holds, which is at most the last, partly filled one.

use std::sync::Arc;

/// Positions in a block.
const POSITIONS: usize = 16;

/// The shape of every position's entry.
#[derive(Debug, Clone, Copy)]
pub(super) struct CacheShape {
    pub(super) layers: usize,
    /// Numbers in one layer's keys at one position, and in its values.
    pub(super) width: usize,
}

/// Keys and values of one context, `[position, layer, 2, width]`.
#[derive(Debug, Clone)]
pub(super) struct Cache {
    shape: CacheShape,
    /// Each `[layer, 2, POSITIONS, width]`.
    blocks: Vec<Arc<Vec<f32>>>,
}

/// Which half of an entry is meant.
#[derive(Debug, Clone, Copy)]
pub(super) enum Half {
    Keys = 0,
    Values = 1,
}

impl Cache {
    pub(super) fn new(shape: CacheShape) -> Self {
        Self { shape, blocks: Vec::new() }
    }

    /// Makes positions `from..to` writable by this state alone.
    pub(super) fn reserve(&mut self, from: usize, to: usize) {
        let size = self.shape.layers * 2 * POSITIONS * self.shape.width;
        while self.blocks.len() * POSITIONS < to {
            self.blocks.push(Arc::new(vec![0.0; size]));
        }
        for block in &mut self.blocks[from / POSITIONS..to.div_ceil(POSITIONS)] {
            Arc::make_mut(block);
        }
    }

    /// Forgets all but the first `length` positions.
    pub(super) fn truncate(&mut self, length: usize) {
        self.blocks.truncate(length.div_ceil(POSITIONS));
    }

    fn offset(&self, layer: usize, half: Half) -> usize {
        (layer * 2 + half as usize) * POSITIONS * self.shape.width
    }

    /// Stores one entry. The position must have been reserved.
    pub(super) fn write(&mut self, position: usize, layer: usize, half: Half, entry: &[f32]) {
        let start = self.offset(layer, half) + position % POSITIONS * self.shape.width;
        let block = Arc::make_mut(&mut self.blocks[position / POSITIONS]);
        block[start..start + entry.len()].copy_from_slice(entry);
    }

    /// The entries of positions `0..length`, in order, in stretches of some `[n, width]`.
    pub(super) fn stretches(&self, length: usize, layer: usize, half: Half) -> impl Iterator<Item = &[f32]> {
        let start = self.offset(layer, half);
        self.blocks.iter().enumerate().map_while(move |(index, block)| {
            let count = length.saturating_sub(index * POSITIONS).min(POSITIONS);
            (count > 0).then(|| &block[start..start + count * self.shape.width])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_values(cache: &Cache, length: usize) -> Vec<f32> {
        cache.stretches(length, 1, Half::Values).flatten().step_by(3).copied().collect()
    }

    #[test]
    fn forks_share_until_one_writes() {
        let mut cache = Cache::new(CacheShape { layers: 2, width: 3 });
        cache.reserve(0, 20);
        for position in 0..20 {
            cache.write(position, 1, Half::Values, &[position as f32; 3]);
        }
        let mut fork = cache.clone();
        assert!(Arc::ptr_eq(&cache.blocks[0], &fork.blocks[0]));
        fork.truncate(18);
        fork.reserve(18, 19);
        fork.write(18, 1, Half::Values, &[99.0; 3]);
        assert!(Arc::ptr_eq(&cache.blocks[0], &fork.blocks[0]), "a full block stays shared");
        assert_eq!(first_values(&cache, 20)[17..], [17.0, 18.0, 19.0]);
        assert_eq!(first_values(&fork, 19)[17..], [17.0, 99.0]);
    }
}
