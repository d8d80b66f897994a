//! The bridge: requests to coroutines. This file lists what Python sees, and nothing else.
//!
//! Python runs on the loop's thread only. Tokio's threads never touch a Python object; what they have to say goes
//! through the `inbox`.

mod admin;
mod all_tasks;
mod app;
mod awaitable;
mod bell;
mod board;
mod books;
mod bounds;
mod budget;
mod callables;
mod cancelling;
mod census;
mod compression;
mod control;
mod counted;
mod default_headers;
mod drain;
mod drive;
mod driver;
mod due;
mod early;
mod factory_task;
mod ffi;
mod figures;
mod file_send;
mod flusher;
mod forked;
mod function;
mod fused;
mod gate;
mod gate_tally;
mod heading;
mod health;
mod http;
mod http_file;
mod http_state;
mod http_wait;
mod idleness;
mod inbox;
mod just_over;
mod kept;
mod last_words;
mod lent;
mod lifespan;
mod listening;
mod load;
mod logs;
mod lookout;
mod message;
mod names;
mod nested;
mod network;
mod options;
mod outcome;
mod own_runtime;
mod pace;
mod paced;
mod parked;
mod poll_descriptor;
mod presence;
mod proxying;
mod raise;
mod real_task;
mod request_task;
mod resume;
mod rota;
mod runtime;
mod runtime_handle;
mod scope;
mod server;
mod sheets;
mod soon;
mod spans;
mod stack;
mod standby;
mod static_files;
mod stepper;
mod suspicion;
mod threaded;
mod tls;
mod told;
mod trace;
mod trailing;
mod turner;
mod under_gil;
mod upstream;
mod vigil;
mod wait;
mod wake;
mod watch;
mod websocket;
mod websocket_message;
mod websocket_state;
mod whereabouts;
mod whose;
mod yielded;

use pyo3::prelude::*;

#[pymodule(gil_used = true)]
mod _native {
    #[pymodule_export]
    use crate::admin::Admin;
    #[pymodule_export]
    use crate::board::{Board, shut_gates};
    #[pymodule_export]
    use crate::control::Control;
    #[pymodule_export]
    use crate::driver::Driver;
    #[pymodule_export]
    use crate::early::{early_signals_heard, give_back_early_signals, take_early_signals};
    #[pymodule_export]
    use crate::forked::disown_descriptors;
    #[pymodule_export]
    use crate::gate::{Entry, Gate, NotAdmitted, QueueFull, WaitedTooLong};
    #[pymodule_export]
    use crate::http::Http;
    #[pymodule_export]
    use crate::lifespan::LifespanRules;
    #[pymodule_export]
    use crate::load::LoadRun;
    #[pymodule_export]
    use crate::parked::Parked;
    #[pymodule_export]
    use crate::raise::{ClientDisconnected, MisuseError};
    #[pymodule_export]
    use crate::server::Server;
    #[pymodule_export]
    use crate::sheets::{Sheet, Sheets, ShownGates};
    #[pymodule_export]
    use crate::tls::{Tls, self_signed};
    #[pymodule_export]
    use crate::upstream::Upstream;
    #[pymodule_export]
    use crate::vigil::Vigil;
    #[pymodule_export]
    use crate::wait::Wait;
    #[pymodule_export]
    use crate::watch::Watcher;

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
