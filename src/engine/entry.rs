//! Pairs a driver with the operation loop: dispatch happens here, once per worker, never per operation.

use crate::driver::spec::{DriverSpec, Endpoint};
use crate::driver::{Control, Driver, Target};
use crate::op::Failure;
use std::marker::PhantomData;
use std::sync::Arc;

/// One line of the registry.
pub struct DriverEntry {
    pub spec: fn() -> &'static DriverSpec,
    pub open: fn(Target) -> Result<Arc<dyn OpenDriver>, Failure>,
}

/// A driver opened on a target, its type erased.
pub trait OpenDriver: Send + Sync {
    fn control(&self, endpoint: &Endpoint) -> Result<Box<dyn Control>, Failure>;
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
    Ok(Arc::new(Opened::<D> {
        driver: D::open(target)?,
        marker: PhantomData,
    }))
}

struct Opened<D> {
    driver: D,
    marker: PhantomData<D>,
}

impl<D: Driver> OpenDriver for Opened<D> {
    fn control(&self, endpoint: &Endpoint) -> Result<Box<dyn Control>, Failure> {
        self.driver.control(endpoint)
    }
}
