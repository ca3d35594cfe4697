//! FNV-1a, a hash that is the same in every build, which the standard library's hashes do not guarantee.
//!
//! Its results may be stored. It is not cryptographic: collisions are easy to find.

/// The hash of 64 bits.
///
/// ```
/// assert_eq!(keys::fnv::hash_64(*b"foobar"), 0x8594_4171_f739_67e8);
/// ```
#[must_use]
pub fn hash_64(bytes: impl IntoIterator<Item = u8>) -> u64 {
    let (start, prime) = (0xcbf2_9ce4_8422_2325, 0x0100_0000_01b3);
    bytes.into_iter().fold(start, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(prime))
}

/// The hash of 128 bits.
///
/// ```
/// assert_eq!(keys::fnv::hash_128(*b"foobar"), 0x343e_1662_793c_64bf_6f0d_3597_ba44_6f18);
/// ```
#[must_use]
pub fn hash_128(bytes: impl IntoIterator<Item = u8>) -> u128 {
    let (start, prime) = (0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, 0x0000_0000_0100_0000_0000_0000_0000_013b);
    bytes.into_iter().fold(start, |hash: u128, byte| (hash ^ u128::from(byte)).wrapping_mul(prime))
}
