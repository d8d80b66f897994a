//! What files answer, as Python has read it.
//!
//! Not the answers, which are `bridgehead-static`'s, nor the waiting, which is the network's.

use std::path::PathBuf;
use std::sync::Arc;

use bridgehead_admission::{Admission, AdmissionLimits};
use pyo3::prelude::*;

/// `bridgehead.static_files.StaticFiles`.
#[derive(FromPyObject)]
pub(crate) struct StaticFiles {
    mounts: Vec<Mount>,
    max_age: Option<u64>,
    /// How many may be open.
    limit: Option<usize>,
}

/// `bridgehead.static_files.Mount`.
#[derive(FromPyObject)]
struct Mount {
    url: String,
    folder: Option<PathBuf>,
    fallback: Option<String>,
}

impl StaticFiles {
    /// Who waits for one to be closed waits as requests wait for the application.
    pub(crate) fn read(&self, root_path: &str, waiting: AdmissionLimits) -> bridgehead_net::StaticFiles {
        let mounts = self.mounts.iter().map(Mount::read).collect();
        bridgehead_net::StaticFiles {
            mounts: Arc::new(bridgehead_net::Mounts::new(mounts, self.max_age)),
            root_path: root_path.to_owned(),
            admission: Admission::new(AdmissionLimits { permits: self.limit, ..waiting }),
        }
    }
}

impl Mount {
    fn read(&self) -> bridgehead_net::Mount {
        bridgehead_net::Mount {
            url: self.url.clone(),
            folder: self.folder.clone(),
            fallback: self.fallback.clone(),
        }
    }
}
