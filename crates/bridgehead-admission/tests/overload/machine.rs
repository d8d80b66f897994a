//! A core that computes one thing at a time, and that others take away now and then.
//!
//! Not what is computed (`server`). Times are in nanoseconds; chance comes from a seed, so that a run repeats itself.
//!
//! Invariant: when it is taken away depends on the seed alone, and not on what is asked of it.

/// Chance by a seed: xorshift, which is enough for a simulation.
#[derive(Clone, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// From 0 to 1, and neither.
    pub(crate) fn part(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Of what comes by chance, at this distance on average.
    pub(crate) fn until(&mut self, mean: f64) -> f64 {
        -mean * self.part().ln()
    }
}

/// What else the machine does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noise {
    /// For how long the core is ours, on average, and for how long it is somebody else's.
    pub(crate) ours: f64,
    pub(crate) theirs: f64,
    /// Whether there are seconds of quiet in between.
    pub(crate) changes: bool,
}

impl Noise {
    pub(crate) const NONE: Self = Self { ours: 3600e9, theirs: 1.0, changes: false };
    /// Now and then something else for some milliseconds: half a machine's worth at times, nothing at others.
    pub(crate) const SOME: Self = Self { ours: 20e6, theirs: 4e6, changes: true };
    /// As with a load average of ten on two cores.
    pub(crate) const MUCH: Self = Self { ours: 8e6, theirs: 16e6, changes: true };
    /// Seldom, and long.
    pub(crate) const SPIKES: Self = Self { ours: 2e9, theirs: 250e6, changes: false };
}

/// When the core is ours.
#[derive(Debug)]
pub(crate) struct Core {
    chance: Chance,
    noise: Noise,
    quiet_until: f64,
    /// It is taken away then, until then.
    taken: (f64, f64),
}

impl Core {
    pub(crate) fn new(noise: Noise, seed: u64) -> Self {
        let mut core = Self { chance: Chance::new(seed), noise, quiet_until: 0.0, taken: (0.0, 0.0) };
        core.look_ahead();
        core
    }

    fn look_ahead(&mut self) {
        let mut from = self.taken.1 + self.chance.until(self.noise.ours);
        if self.noise.changes && self.chance.part() < self.noise.ours / 3e9 {
            // Some three seconds of it, then some two of quiet.
            self.quiet_until = from + self.chance.until(2e9);
        }
        from = from.max(self.quiet_until);
        self.taken = (from, from + self.chance.until(self.noise.theirs));
    }

    /// When work that begins then ends. Asked in the order of time.
    pub(crate) fn ends(&mut self, begins: f64, work: f64) -> f64 {
        let (mut at, mut left) = (begins, work);
        loop {
            while self.taken.1 <= at {
                self.look_ahead();
            }
            let (from, until) = self.taken;
            if at + left <= from {
                return at + left;
            }
            left -= (from - at).max(0.0);
            at = until;
        }
    }
}
