//! Numbers that look random and are the same for the same seed (SplitMix64).
//!
//! Not for secrets.
//!
//! Invariant: costs a few instructions, and no lock.

/// A sequence of its own.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// The sequence of a seed and of whoever draws.
    pub(crate) fn new(seed: u64, who: u64) -> Self {
        let mut random = Self(seed ^ who.wrapping_mul(0xd1b5_4a32_d192_ed03));
        random.next();
        random
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is above 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        let wide = u128::from(self.next()) * u128::from(bound);
        u64::try_from(wide >> 64).expect("the upper half of 128 bits has 64")
    }

    /// A number of an inclusive range.
    pub(crate) fn between(&mut self, least: u64, most: u64) -> u64 {
        match (most - least).checked_add(1) {
            Some(width) => least + self.below(width),
            None => self.next(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_both_its_ends_and_nothing_beyond() {
        let mut random = Random::new(7, 0);
        let drawn: Vec<u64> = (0..1000).map(|_| random.between(3, 5)).collect();
        assert!(drawn.iter().all(|each| (3..=5).contains(each)));
        assert!([3, 4, 5].iter().all(|each| drawn.contains(each)));
        assert_eq!(random.between(9, 9), 9);
        random.between(0, u64::MAX);
    }

    #[test]
    fn the_same_seed_gives_the_same_numbers_and_another_drawer_gets_others() {
        let draw = |seed, who| Random::new(seed, who).next();
        assert_eq!(draw(1, 2), draw(1, 2));
        assert_ne!(draw(1, 2), draw(1, 3));
        assert_ne!(draw(1, 2), draw(2, 2));
    }
}
