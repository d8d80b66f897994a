//! Which requests are kept: `OTEL_TRACES_SAMPLER` as OpenTelemetry names it.
//!
//! Invariant: a request whose client says that its trace is kept, or not, is treated so, where the sampler goes by parents.

use crate::context::{SpanContext, TraceId};

/// By what those are judged that have no parent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Root {
    /// All of them.
    On,
    /// None.
    Off,
    /// This part, by their traces' numbers, so that everybody who goes by them judges alike.
    Ratio(f64),
}

/// What judges.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampler {
    root: Root,
    by_parents: bool,
}

impl Sampler {
    /// By its name, and its argument: a ratio, 1 if there is none or it is none. `None` for another name.
    #[must_use]
    pub fn named(name: &str, argument: &str) -> Option<Self> {
        let (by_parents, root) = match name.strip_prefix("parentbased_") {
            Some(root) => (true, root),
            None => (false, name),
        };
        let ratio = argument.parse().ok().filter(|ratio| (0.0..=1.0).contains(ratio)).unwrap_or(1.0);
        let root = match root {
            "always_on" => Root::On,
            "always_off" => Root::Off,
            "traceidratio" => Root::Ratio(ratio),
            _ => return None,
        };
        Some(Self { root, by_parents })
    }

    pub(crate) fn keeps(self, parent: Option<SpanContext>, trace: TraceId) -> bool {
        match (self.root, parent) {
            (_, Some(parent)) if self.by_parents => parent.sampled,
            (Root::On, _) => true,
            (Root::Off, _) => false,
            // The last eight bytes, as the others' samplers have it.
            (Root::Ratio(ratio), _) => ((trace.0.get() as u64) as f64) < ratio * u64::MAX as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Numbers;

    fn kept(name: &str, argument: &str, parent: Option<bool>) -> usize {
        let sampler = Sampler::named(name, argument).expect("a sampler");
        let numbers = Numbers::default();
        let judged = (0..1000).filter(|_| {
            let (trace, span) = (numbers.trace(), numbers.span());
            sampler.keeps(parent.map(|sampled| SpanContext { trace, span, sampled }), trace)
        });
        judged.count()
    }

    #[test]
    fn samplers_keep_what_their_names_say() {
        assert_eq!([kept("always_on", "", Some(false)), kept("always_off", "", Some(true))], [1000, 0]);
        assert_eq!(
            [kept("parentbased_always_on", "", None), kept("parentbased_always_on", "", Some(false))],
            [1000, 0]
        );
        assert_eq!(kept("parentbased_always_off", "", Some(true)), 1000);
        assert!((300..700).contains(&kept("traceidratio", "0.5", None)));
        assert_eq!(kept("traceidratio", "nonsense", None), 1000);
        assert_eq!(Sampler::named("xray", ""), None);
    }
}
