//! The cold side of nothing: always ready, never anything to say.

use crate::driver::Control;
use crate::driver::spec::Durability;
use crate::op::{ErrorClass, Failure};
use crate::units::format_duration;
use std::time::Duration;

pub struct NullControl {
    pub delay: Duration,
}

impl Control for NullControl {
    fn ready(&mut self, _: Duration) -> Result<(), Failure> {
        Ok(())
    }

    fn version(&mut self, _: Duration) -> Result<String, Failure> {
        Ok(concat!("dbbench ", env!("CARGO_PKG_VERSION")).to_owned())
    }

    fn settings(&mut self, _: Duration) -> Result<Vec<(String, String)>, Failure> {
        Ok(vec![("delay".to_owned(), format_duration(self.delay))])
    }

    fn durability(&mut self, _: Duration) -> Result<Option<Durability>, Failure> {
        Ok(None)
    }

    fn reset(&mut self, _: Duration) -> Result<(), Failure> {
        Ok(())
    }

    fn statement(&mut self, statement: &str, _: Duration) -> Result<String, Failure> {
        Err(Failure::new(
            ErrorClass::Client,
            format!("null has no statements, so not `{statement}` either"),
        ))
    }

    fn round_trip(&mut self, _: Duration) -> Result<Duration, Failure> {
        Ok(Duration::ZERO)
    }
}
