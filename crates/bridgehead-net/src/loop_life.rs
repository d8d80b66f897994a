//! Whether the loop of a worker lives that shares its port with nobody: asked at intervals, for whoever reads the figures.
//!
//! Of several workers `rota` asks. The question is answered by the loop; it is asked in whichever thread turns the network,
//! so it goes on while Python blocks.

use std::sync::Arc;

use crate::accept::Worker;
use crate::meters::Meters;
use crate::rota::{LOOK, Life};
use crate::shutdown::Stage;

/// Asks until the worker's last connection may be gone.
pub(crate) async fn run(meters: Meters, worker: Arc<Worker>) {
    let mut watch = worker.watch.clone();
    let mut life = Life::default();
    loop {
        life.look(&*worker.app);
        if life.has_answered() {
            meters.beats();
        }
        tokio::select! {
            biased;
            _ = watch.reached(Stage::Draining) => return,
            () = worker.executor.sleep(LOOK) => {}
        }
    }
}
