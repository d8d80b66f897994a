//! A family of samples of each kind, as `prometheus-client` wants them written.
//!
//! Not which there are (`exposition`).
//!
//! Invariant: a family is written whole, with its help and its kind, also when it has no samples.

use std::fmt;

use bridgehead_metrics::{BOUNDS, Distribution};
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

pub(crate) const MICROSECOND: f64 = 1e-6;

pub(crate) const UNLABELLED: Pairs<0> = [];

pub(crate) type Pairs<const N: usize> = [(&'static str, String); N];

pub(crate) struct Page<'a>(pub(crate) DescriptorEncoder<'a>);

impl Page<'_> {
    pub(crate) fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.counters(name, help, [(UNLABELLED, value)])
    }

    pub(crate) fn counters<S: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        each: impl IntoIterator<Item = (S, u64)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        each.into_iter().try_for_each(|(labels, value)| {
            family.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&value, None)
        })
    }

    pub(crate) fn gauge(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        self.gauges(name, help, None, [(UNLABELLED, value)])
    }

    pub(crate) fn gauges<S: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        each: impl IntoIterator<Item = (S, f64)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, unit.as_ref(), MetricType::Gauge)?;
        each.into_iter().try_for_each(|(labels, value)| family.encode_family(&labels)?.encode_gauge(&value))
    }

    /// In seconds.
    pub(crate) fn histograms<S: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        each: impl IntoIterator<Item = (S, Distribution)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Histogram)?;
        each.into_iter().try_for_each(|(labels, seen)| {
            let bounds = BOUNDS.iter().map(|micros| *micros as f64 / 1e6).chain([f64::INFINITY]);
            let buckets: Vec<_> = bounds.zip(seen.counts).collect();
            let sum = seen.sum as f64 * MICROSECOND;
            family.encode_family(&labels)?.encode_histogram::<NoLabelSet>(sum, seen.count(), &buckets, None)
        })
    }
}
