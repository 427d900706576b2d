//! The fleet's side of datasets: which server is restored from which, what holds one in place, and how one is let go.

use super::{Fleet, NotUp, Station, remove};
use crate::driver::spec::HeldIn;
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

    /// The directory of an embedded store: fresh, or a copy of the dataset's, or the dataset itself where it is used in place.
    pub fn store(&mut self, shape: &Shape, interrupted: &AtomicBool) -> Result<PathBuf, NotUp> {
        let loaded = self.dataset_of(shape).map(|(_, snapshot)| snapshot.store());
        let Some(loaded) = loaded.filter(|loaded| loaded.exists()) else {
            return Ok(self.directory("store")?);
        };
        if in_place(shape) {
            return Ok(loaded);
        }
        let directory = self.directory("store")?;
        copy_tree(&loaded, &directory, interrupted).map_err(uncopied)?;
        Ok(directory)
    }

    /// The run is over: its embedded store goes, unless later runs use it in place.
    pub fn release_store(&self, shape: &Shape, directory: &Path) {
        let dataset = self.dataset_of(shape).map(|(_, snapshot)| snapshot.store());
        if dataset.is_none_or(|dataset| dataset != directory) {
            remove(directory);
        }
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

    /// Lets go of datasets that were held in place by servers which a fault has ended, where they were held in memory alone:
    /// the next run that needs one loads it again.
    pub fn drop_lost_datasets(&mut self, held_in: HeldIn) {
        let is_lost = |station: &Station| {
            let ended = station.nodes.iter().any(|node| node.was_ended());
            station.in_place && ended && held_in == HeldIn::Memory
        };
        let stations = self.stations.values();
        let lost = stations.filter(|station| is_lost(station));
        let lost: Vec<String> = lost.map(|station| station.dataset.clone()).collect();
        for name in self.in_stop_order() {
            if lost.contains(&self.stations[&name].dataset) {
                self.discard(&name);
            }
        }
        self.datasets.retain(|identity, _| !lost.contains(identity));
    }

    /// Stops the servers of this shape, whatever their policy; their directories stay.
    pub fn stop_all(&mut self, shape: &Shape) {
        for name in self.in_stop_order() {
            if shape.servers.iter().any(|plan| plan.name == name)
                && let Some(station) = self.stations.get(&name)
            {
                station.stop();
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

fn in_place(shape: &Shape) -> bool {
    let dataset = shape.dataset.as_ref();
    dataset.is_some_and(|dataset| dataset.restore == Restore::InPlace)
}

/// Fills a place with a server's directories as the dataset left them.
pub(super) fn restore(
    snapshot: &Snapshot,
    station: &Station,
    interrupted: &AtomicBool,
) -> Result<(), NotUp> {
    for (instance, directory) in (1..).zip(&station.place.directories) {
        let from = snapshot.server(&station.plan.name, instance);
        copy_tree(&from, directory, interrupted).map_err(uncopied)?;
    }
    Ok(())
}

fn uncopied(error: std::io::Error) -> NotUp {
    match error.kind() {
        std::io::ErrorKind::Interrupted => NotUp::Interrupted,
        _ => NotUp::Fault(format!("cannot restore the dataset: {error}")),
    }
}
