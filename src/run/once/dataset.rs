//! A dataset: filled before the first run that needs it, by servers of its own start, then kept as a snapshot or left
//! where it is.

use super::{Fault, Once, Store};
use crate::engine::entry::DriverEntry;
use crate::engine::phase::Stop;
use crate::measure::record::PhaseRecord;
use crate::plan::{DatasetPlan, PhasePlan, Restore, Shape};
use crate::run::context::Context;
use crate::run::fleet;
use crate::run::snapshot::{Snapshot, copy_tree, kept};
use crate::run::target;
use crate::server::Sampler;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;

impl Once<'_, '_, '_> {
    /// The run's dataset is loaded when this returns.
    pub(super) fn dataset(&mut self, entry: &DriverEntry) -> Result<(), Fault> {
        let Some(dataset) = self.shape.dataset.clone() else {
            return Ok(());
        };
        match self.fleet.datasets.get(&dataset.identity) {
            Some(Ok(_)) => return Ok(()),
            Some(Err(reason)) => return Err(Fault::Run(reason.clone())),
            None => {}
        }
        if dataset.keep
            && dataset.restore == Restore::Copy
            && let Some(found) = Snapshot::find(kept(&dataset.identity))
        {
            self.watcher
                .step(&format!("found dataset {}", dataset.name));
            self.fleet
                .datasets
                .insert(dataset.identity.clone(), Ok(found));
            return Ok(());
        }
        match self.load(entry, &dataset) {
            Ok(snapshot) => {
                let identity = dataset.identity.clone();
                self.fleet.datasets.insert(identity, Ok(snapshot));
                Ok(())
            }
            Err(Fault::Run(reason)) => {
                let reason = format!("dataset `{}`: {reason}", dataset.name);
                let failed = Err(reason.clone());
                self.fleet.datasets.insert(dataset.identity.clone(), failed);
                Err(Fault::Run(reason))
            }
            Err(fault) => Err(fault),
        }
    }

    /// Fills it with a run of its own, of which nothing is recorded.
    fn load(&mut self, entry: &DriverEntry, dataset: &DatasetPlan) -> Result<Snapshot, Fault> {
        self.watcher
            .step(&format!("loading dataset {}", dataset.name));
        let shape = shape_of(self.shape, dataset);
        let (sender, samples) = channel();
        let sampler = Sampler::start(self.began, sender)
            .map_err(|error| Fault::Results(format!("cannot start the sampler: {error}")))?;
        let mut loading = Once {
            surroundings: self.surroundings,
            run: self.run,
            shape: &shape,
            fleet: self.fleet,
            writer: self.writer,
            watcher: self.watcher,
            sampler,
            samples,
            stop: Stop::default(),
            began: self.began,
            doubts: Vec::new(),
            version: String::new(),
            unwritten: None,
            spools: HashMap::new(),
            loads: true,
        };
        let result = loading.fill(entry, dataset);
        match (&result, dataset.restore) {
            (Ok(_), Restore::InPlace) => loading.fleet.hold(&shape, &dataset.identity),
            _ => loading.fleet.forget(&shape),
        }
        result
    }

    fn fill(&mut self, entry: &DriverEntry, dataset: &DatasetPlan) -> Result<Snapshot, Fault> {
        let spec = (entry.spec)();
        self.fleet.forget(self.shape);
        let places = self
            .fleet
            .reserve(self.shape, self.surroundings.interrupted)?;
        let store = self.fleet.directory("store").map_err(Fault::Run)?;
        let snapshot = Snapshot {
            directory: self.fleet.directory("dataset").map_err(Fault::Run)?,
            ports: places
                .iter()
                .map(|(name, place)| (name.clone(), place.ports.clone()))
                .collect(),
        };
        let run_directory = self.writer.directory().path().to_owned();
        let mut context = Context::new(places, &run_directory);
        let resolved = target::resolve(&self.shape.target, spec, &store, &context);
        let resolved = resolved.map_err(Fault::Run)?;
        let driver = self.start(entry, spec, &resolved, &mut context)?;
        for phase in &dataset.phases {
            self.around(spec, &driver, &resolved, phase, &mut context)?;
        }
        drop(driver);
        let in_place = dataset.restore == Restore::InPlace;
        if !in_place {
            self.watcher.step("stopping servers");
            self.fleet.stop_all(self.shape);
        }
        let unkept = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::Interrupted => Fault::Interrupted,
            _ => Fault::Run(format!("cannot be kept: {error}")),
        };
        self.take(dataset, &snapshot, &context, spec.store, &store)
            .map_err(unkept)?;
        fleet::remove(&store);
        if dataset.keep && !in_place {
            let interrupted = self.surroundings.interrupted;
            let kept = snapshot
                .keep(&dataset.identity, interrupted)
                .map_err(unkept)?;
            fleet::remove(&snapshot.directory);
            return Ok(kept);
        }
        Ok(snapshot)
    }

    /// Puts what belongs to the dataset into its snapshot.
    fn take(
        &mut self,
        dataset: &DatasetPlan,
        snapshot: &Snapshot,
        context: &Context<'_>,
        store_kind: Store,
        store: &Path,
    ) -> std::io::Result<()> {
        let interrupted = self.surroundings.interrupted;
        std::fs::create_dir_all(snapshot.artifacts())?;
        for (name, path) in &dataset.artifacts {
            let path = path.render(context).map_err(std::io::Error::other)?;
            let copied = copy_tree(
                Path::new(&path),
                &snapshot.artifacts().join(name),
                interrupted,
            );
            copied
                .map_err(|error| std::io::Error::new(error.kind(), format!("{path}: {error}")))?;
        }
        if dataset.restore == Restore::Copy {
            std::fs::create_dir_all(snapshot.directory.join("servers"))?;
            for name in &dataset.servers {
                if let Some(place) = context.place(name) {
                    for (instance, directory) in (1..).zip(&place.directories) {
                        // On the same file system, so nothing is copied.
                        std::fs::rename(directory, snapshot.server(name, instance))?;
                    }
                }
            }
        }
        if matches!(store_kind, Store::Embedded) {
            std::fs::rename(store, snapshot.store())?;
        }
        snapshot.seal()
    }

    /// What a phase of a dataset did must have gone well.
    pub(super) fn loaded(phase: &PhasePlan, record: &PhaseRecord) -> Result<(), Fault> {
        let operations = record.groups.iter().flat_map(|group| &group.operations);
        let (mut all, mut unsuccessful) = (0, 0);
        for operation in operations {
            all += operation.counts.operations;
            unsuccessful += operation.counts.unsuccessful();
        }
        if unsuccessful == 0 {
            return Ok(());
        }
        let first = record
            .errors
            .first()
            .map(|error| error.first_message.as_str());
        Err(Fault::Run(format!(
            "phase `{}`: {unsuccessful} of {all} operations failed: {}",
            phase.name,
            first.unwrap_or("no message")
        )))
    }
}

/// The run that fills a dataset: its servers and phases, on the target of the runs that use it.
fn shape_of(run: &Shape, dataset: &DatasetPlan) -> Shape {
    let servers = run.servers.iter();
    Shape {
        servers: servers
            .filter(|server| dataset.servers.contains(&server.name))
            .map(Arc::clone)
            .collect(),
        phases: dataset.phases.clone(),
        dataset: None,
        probes: Vec::new(),
        left_out: Vec::new(),
        ..run.clone()
    }
}
