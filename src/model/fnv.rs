//! FNV-1a: a small hash that names files. It detects accidents, not forgery.

/// The 64-bit FNV-1a hash of some bytes.
///
/// Source: Fowler, Noll, Vo, <http://www.isthe.com/chongo/tech/comp/fnv/>.
///
/// # Examples
/// ```
/// use logitscope::model::fnv::fnv_1a;
///
/// assert_eq!(fnv_1a(*b"a"), 0xaf63_dc4c_8601_ec8c);
/// ```
pub fn fnv_1a(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes
        .into_iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
