//! Pairs a driver with the operation loop: dispatch happens here, once per worker, never per operation.

use super::event::WorkerJob;
use crate::driver::spec::{DriverSpec, Endpoint};
use crate::driver::{Control, Driver, Target};
use crate::op::{Failure, Operation};
use std::sync::Arc;
use std::time::Duration;

/// One line of the registry.
pub struct DriverEntry {
    pub spec: fn() -> &'static DriverSpec,
    pub open: fn(Target) -> Result<Arc<dyn OpenDriver>, Failure>,
}

/// A driver opened on a target, its type erased.
pub trait OpenDriver: Send + Sync {
    fn control(&self, endpoint: &Endpoint) -> Result<Box<dyn Control>, Failure>;

    /// A worker's whole phase, on the calling thread.
    fn run_worker(&self, job: WorkerJob);

    /// One operation by a session of its own, on the calling thread, not measured: connecting and all within `limit`.
    /// Returns the first value of its answer, where it has one.
    fn once(
        &self,
        endpoints: &[Endpoint],
        operation: &Operation,
        limit: Duration,
    ) -> Result<Option<String>, Failure>;
}

impl DriverEntry {
    pub const fn of<D: Driver>() -> DriverEntry {
        DriverEntry {
            spec: D::spec,
            open: open::<D>,
        }
    }
}

fn open<D: Driver>(target: Target) -> Result<Arc<dyn OpenDriver>, Failure> {
    Ok(Arc::new(Opened {
        driver: D::open(target)?,
    }))
}

struct Opened<D> {
    driver: D,
}

impl<D: Driver> OpenDriver for Opened<D> {
    fn control(&self, endpoint: &Endpoint) -> Result<Box<dyn Control>, Failure> {
        self.driver.control(endpoint)
    }

    fn run_worker(&self, job: WorkerJob) {
        super::worker::run(&self.driver, job);
    }

    fn once(
        &self,
        endpoints: &[Endpoint],
        operation: &Operation,
        limit: Duration,
    ) -> Result<Option<String>, Failure> {
        super::single::execute(&self.driver, endpoints, operation, limit)
    }
}
