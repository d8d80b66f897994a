//! Which answers are compressed, as Python has read it.
//!
//! Not how, which is `bridgehead-coding`'s and the network's.

use bridgehead_coding::{Kinds, Policy};
use pyo3::prelude::*;

/// `bridgehead.compress_options.Compression`.
#[derive(FromPyObject)]
pub(crate) struct Compression {
    types: Vec<String>,
    least: u64,
}

impl Compression {
    pub(crate) fn read(&self) -> bridgehead_net::Compression {
        let kinds = Kinds::new(self.types.iter().cloned());
        bridgehead_net::Compression::new(Policy { kinds, least: self.least })
    }
}
