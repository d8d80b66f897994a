//! RFC 6455's masking: what a client sends is combined with a key of four bytes, over and over.

/// As many bytes as the compiler makes vectors of.
const STRIDE: usize = 32;

/// Takes the mask off, or puts it on.
pub(crate) fn apply(data: &mut [u8], key: [u8; 4]) {
    let mut pattern = [0; STRIDE];
    pattern.chunks_exact_mut(4).for_each(|chunk| chunk.copy_from_slice(&key));
    let mut strides = data.chunks_exact_mut(STRIDE);
    for stride in &mut strides {
        stride.iter_mut().zip(pattern).for_each(|(byte, key)| *byte ^= key);
    }
    strides.into_remainder().iter_mut().zip(pattern).for_each(|(byte, key)| *byte ^= key);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_meets_its_own_byte_of_the_key() {
        let key = [1, 2, 4, 8];
        for length in [0, 1, 3, 4, 31, 32, 33, 100] {
            let plain: Vec<u8> = (0..length).collect();
            let mut masked = plain.clone();
            apply(&mut masked, key);
            let due: Vec<u8> = plain.iter().zip(key.iter().cycle()).map(|(byte, key)| byte ^ key).collect();
            assert_eq!(masked, due);
        }
    }
}
