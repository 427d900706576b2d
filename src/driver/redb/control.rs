//! The cold side of redb: version, settings, emptying, counting.

use super::{Store, TABLE, failure, spec};
use crate::driver::Control;
use crate::driver::embedded::only_count;
use crate::driver::spec::{Durability, Options};
use crate::op::Failure;
use crate::units::format_size;
use redb::{ReadableDatabase, ReadableTableMetadata};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub struct RedbControl {
    pub store: Arc<Store>,
    pub settings: Vec<(String, String)>,
    pub durability: Durability,
}

pub fn settings(options: &Options) -> Vec<(String, String)> {
    let cache = options.size("cache_size").unwrap_or_default();
    vec![
        (
            "durability".to_owned(),
            options.text("durability").unwrap_or_default(),
        ),
        ("cache_size".to_owned(), format_size(cache)),
        ("transaction".to_owned(), "one per write".to_owned()),
    ]
}

impl RedbControl {
    fn count(&self) -> Result<u64, Failure> {
        let transaction = self.store.database.begin_read().map_err(failure)?;
        let table = transaction.open_table(TABLE).map_err(failure)?;
        table.len().map_err(failure)
    }
}

impl Control for RedbControl {
    fn ready(&mut self, _: Duration) -> Result<(), Failure> {
        self.count().map(|_| ())
    }

    fn version(&mut self, _: Duration) -> Result<String, Failure> {
        Ok(format!("redb {}", spec::VERSION))
    }

    fn settings(&mut self, _: Duration) -> Result<Vec<(String, String)>, Failure> {
        Ok(self.settings.clone())
    }

    fn durability(&mut self, _: Duration) -> Result<Option<Durability>, Failure> {
        Ok(Some(self.durability))
    }

    fn reset(&mut self, _: Duration) -> Result<(), Failure> {
        let transaction = self.store.database.begin_write().map_err(failure)?;
        transaction.delete_table(TABLE).map_err(failure)?;
        transaction.open_table(TABLE).map_err(failure)?;
        transaction.commit().map_err(failure)
    }

    fn statement(&mut self, statement: &str, _: Duration) -> Result<String, Failure> {
        only_count(statement, "redb")?;
        Ok(self.count()?.to_string())
    }

    fn round_trip(&mut self, _: Duration) -> Result<Duration, Failure> {
        let start = Instant::now();
        let transaction = self.store.database.begin_read().map_err(failure)?;
        let table = transaction.open_table(TABLE).map_err(failure)?;
        table.get([].as_slice()).map_err(failure)?;
        Ok(start.elapsed())
    }
}
