//! The cold side of fjall: version, settings, emptying, counting.

use super::{Store, failure, spec};
use crate::driver::Control;
use crate::driver::embedded::only_count;
use crate::driver::spec::{Durability, Options};
use crate::op::Failure;
use crate::units::format_size;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub struct FjallControl {
    pub store: Arc<Store>,
    pub settings: Vec<(String, String)>,
    pub durability: Durability,
}

pub fn settings(options: &Options) -> Vec<(String, String)> {
    let text = |name: &str| (name.to_owned(), options.text(name).unwrap_or_default());
    let cache = options.size("cache_size").unwrap_or_default();
    let separate = options.bool("separate_values");
    vec![
        text("persist"),
        ("cache_size".to_owned(), format_size(cache)),
        text("compression"),
        ("separate_values".to_owned(), separate.to_string()),
    ]
}

impl Control for FjallControl {
    fn ready(&mut self, _: Duration) -> Result<(), Failure> {
        self.store.contains(b"ready").map(|_| ())
    }

    fn version(&mut self, _: Duration) -> Result<String, Failure> {
        Ok(format!("fjall {}", spec::VERSION))
    }

    fn settings(&mut self, _: Duration) -> Result<Vec<(String, String)>, Failure> {
        Ok(self.settings.clone())
    }

    fn durability(&mut self, _: Duration) -> Result<Option<Durability>, Failure> {
        Ok(Some(self.durability))
    }

    fn reset(&mut self, _: Duration) -> Result<(), Failure> {
        self.store.keyspace.clear().map_err(failure)
    }

    fn statement(&mut self, statement: &str, _: Duration) -> Result<String, Failure> {
        only_count(statement, "fjall")?;
        let count = self.store.keyspace.len().map_err(failure)?;
        Ok(count.to_string())
    }

    fn round_trip(&mut self, _: Duration) -> Result<Duration, Failure> {
        let start = Instant::now();
        self.store.contains(b"round trip")?;
        Ok(start.elapsed())
    }
}
