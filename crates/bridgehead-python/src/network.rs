//! Starts the network under the runtime that was asked for, or under the one that can be had.
//!
//! What the runtimes are, and how they differ, is `runtime`'s.

use std::os::fd::RawFd;
use std::sync::Arc;

use bridgehead_net::{Config, Listener};
use pyo3::prelude::*;

use crate::bell::Bell;
use crate::ffi;
use crate::fused::{Fused, FusedWorker, Nest};
use crate::inbox::Inbox;
use crate::nested::Nested;
use crate::presence::Presence;
use crate::runtime::Runtime;
use crate::threaded::Threaded;
use crate::turner::LoopNames;
use crate::wake::{Descriptor, Turn, Wake};

/// Who is to turn the network.
#[derive(FromPyObject)]
pub(crate) enum Wanted {
    /// The loop's thread, in its selector.
    Selector(Polled),
    /// `"nested"`: the loop's thread, in callbacks, if that can be had. `"threaded"`: a thread of its own.
    Named(String),
}

/// `bridgehead.selector.Polled`: the selector's descriptor, and what the loop is asked for between polls.
#[derive(FromPyObject)]
pub(crate) struct Polled {
    descriptor: RawFd,
    pub(crate) names: LoopNames,
}

/// A network that serves, and what the loop's side needs of it.
pub(crate) struct Started {
    pub(crate) network: Box<dyn Runtime>,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) presence: Arc<Presence>,
    pub(crate) reach: Reach,
}

/// How the loop's side comes to the network.
pub(crate) enum Reach {
    /// The inbox has a descriptor; with the reason, if the loop's thread was to turn the network.
    Descriptor(Option<String>),
    /// It turns it, in the place of its selector.
    Selector(Arc<Fused>),
    /// It turns it, in callbacks.
    Callbacks(Nested),
}

/// Begins to serve.
pub(crate) fn start(
    py: Python<'_>,
    wanted: &Wanted,
    config: Config,
    listeners: Vec<Listener>,
) -> PyResult<Started> {
    match wanted {
        Wanted::Selector(selector) => {
            let nest = Nest::around(ffi::duplicate(selector.descriptor)?)?;
            fuse(config, listeners, nest, Arc::default(), Reach::Selector)
        }
        Wanted::Named(name) if name == "nested" => {
            let presence = Arc::new(Presence::beside_network()?);
            let bell = Arc::new(Bell::new(Arc::clone(&presence))?);
            match Nest::inside(Arc::clone(&bell)) {
                Ok(nest) => {
                    let reach = |fused| Reach::Callbacks(Nested::new(fused, bell));
                    fuse(config, listeners, nest, presence, reach)
                }
                Err(error) => thread(py, config, listeners, Some(error.to_string())),
            }
        }
        Wanted::Named(_) => thread(py, config, listeners, None),
    }
}

fn thread(
    py: Python<'_>,
    config: Config,
    listeners: Vec<Listener>,
    fallback: Option<String>,
) -> PyResult<Started> {
    let presence = Arc::new(Presence::default());
    let inbox = Arc::new(Inbox::new(Wake::Descriptor(Descriptor::new()?)));
    let (ours, theirs) = (Arc::clone(&inbox), Arc::clone(&presence));
    let network = Box::new(py.detach(|| Threaded::start(config, listeners, ours, theirs))?);
    Ok(Started { network, inbox, presence, reach: Reach::Descriptor(fallback) })
}

fn fuse(
    config: Config,
    listeners: Vec<Listener>,
    nest: Nest,
    presence: Arc<Presence>,
    reach: impl FnOnce(Arc<Fused>) -> Reach,
) -> PyResult<Started> {
    let inbox = Arc::new(Inbox::new(Wake::Turn(Turn::default())));
    let fused = Fused::start(config, listeners, Arc::clone(&inbox), nest, Arc::clone(&presence))?;
    let network = Box::new(FusedWorker::start(Arc::clone(&fused))?);
    Ok(Started { network, inbox, presence, reach: reach(fused) })
}
