//! Opening a file never allocates more than the file justifies, however it lies.
//!
//! An allocator that keeps count stands in for the system's; the one test of this binary
//! runs alone, so that nobody else's memory is counted.
#![cfg(not(target_arch = "wasm32"))]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use logitscope::model::{Precision, open, synthetic::SplitMix64};

/// Bytes allocated since the count was last set to zero.
static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

#[derive(Debug)]
struct Counting;

#[expect(unsafe_code, reason = "an allocator cannot be written otherwise")]
// SAFETY: every call is handed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size(), Relaxed);
        // SAFETY: the caller's promises are the ones that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above; the pointer came from the same allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const FILE: &[u8] = include_bytes!("../models/default.gguf");

/// Bytes that opening allocates beyond the file itself, freed ones included.
fn cost(file: Vec<u8>) -> usize {
    ALLOCATED.store(0, Relaxed);
    let opened = open(file, Precision::Native);
    let cost = ALLOCATED.load(Relaxed);
    drop(opened);
    cost
}

#[test]
fn opening_costs_no_more_than_the_file_justifies() {
    let whole = cost(FILE.to_vec());
    assert!(whole < FILE.len(), "the file of {} bytes itself costs {whole}", FILE.len());
    // Lengths, counts and sizes are where lies pay: overwrite eight bytes at a time.
    let mut stream = SplitMix64::new(2);
    let mut worst = 0;
    for place in (4..60_000).step_by(41) {
        let mut file = FILE.to_vec();
        let lie = match stream.next_bits() % 4 {
            0 => u64::MAX,
            1 => 1 << 40,
            2 => FILE.len() as u64,
            _ => stream.next_bits() >> (stream.next_bits() % 64),
        };
        file[place..place + 8].copy_from_slice(&lie.to_le_bytes());
        worst = worst.max(cost(file));
    }
    assert!(worst < 2 * FILE.len(), "a file of {} bytes made the reader allocate {worst}", FILE.len());
}
