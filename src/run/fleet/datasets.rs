//! The fleet's side of datasets: which server is restored from which, what holds one in place, and how one is let go.

use super::{Fleet, NotUp, Station, stop};
use crate::plan::{Restore, Shape};
use crate::run::snapshot::{Snapshot, copy_tree};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

impl Fleet {
    /// The dataset that a server of the run is to be restored from.
    pub(super) fn snapshot_of(&self, shape: &Shape, server: &str) -> Option<(String, Snapshot)> {
        let dataset = shape.dataset.as_ref()?;
        let holds = dataset.servers.iter().any(|name| name == server);
        let snapshot = self.datasets.get(&dataset.identity)?.as_ref().ok()?;
        (holds && dataset.restore == Restore::Copy)
            .then(|| (dataset.identity.clone(), snapshot.clone()))
    }

    /// The dataset of the run, where it is loaded.
    pub fn dataset_of<'s>(&self, shape: &'s Shape) -> Option<(&'s str, &Snapshot)> {
        let dataset = shape.dataset.as_ref()?;
        let snapshot = self.datasets.get(&dataset.identity)?.as_ref().ok()?;
        Some((&dataset.name, snapshot))
    }

    /// The directory of an embedded store: fresh, or a copy of the dataset's.
    pub fn store(&mut self, shape: &Shape, interrupted: &AtomicBool) -> Result<PathBuf, NotUp> {
        let directory = self.directory("store")?;
        let loaded = self.dataset_of(shape).map(|(_, snapshot)| snapshot.store());
        if let Some(loaded) = loaded.filter(|loaded| loaded.exists()) {
            copy_tree(&loaded, &directory, interrupted).map_err(uncopied)?;
        }
        Ok(directory)
    }

    /// Servers of this shape hold its dataset where they are from now on.
    pub fn hold(&mut self, shape: &Shape, identity: &str) {
        for plan in &shape.servers {
            if let Some(station) = self.stations.get_mut(&plan.name) {
                identity.clone_into(&mut station.dataset);
                station.in_place = true;
            }
        }
    }

    /// Stops the servers of this shape, whatever their policy; their directories stay.
    pub fn stop_all(&mut self, shape: &Shape) {
        for name in self.in_stop_order() {
            if shape.servers.iter().any(|plan| plan.name == name)
                && let Some(station) = self.stations.get_mut(&name)
                && let Some(running) = station.running.take()
            {
                stop(running);
            }
        }
    }

    /// Stops the servers of this shape and forgets their places.
    pub fn forget(&mut self, shape: &Shape) {
        self.stop_all(shape);
        for plan in &shape.servers {
            self.discard(&plan.name);
        }
    }
}

/// Fills a place with a server's directory as the dataset left it.
pub(super) fn restore(
    from: &Path,
    station: &Station,
    interrupted: &AtomicBool,
) -> Result<(), NotUp> {
    copy_tree(from, &station.place.directory, interrupted).map_err(uncopied)
}

fn uncopied(error: std::io::Error) -> NotUp {
    match error.kind() {
        std::io::ErrorKind::Interrupted => NotUp::Interrupted,
        _ => NotUp::Fault(format!("cannot restore the dataset: {error}")),
    }
}
