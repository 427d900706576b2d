//! The one list of drivers; the only file that names them all.

use crate::driver::spec::DriverSpec;
use crate::engine::entry::DriverEntry;

/// Every driver of this build, in the order of `dbbench drivers`.
pub const DRIVERS: &[DriverEntry] = &[
    DriverEntry::of::<crate::driver::null::Null>(),
    #[cfg(feature = "redis")]
    DriverEntry::of::<crate::driver::redis::Redis>(),
    #[cfg(feature = "memcached")]
    DriverEntry::of::<crate::driver::memcached::Memcached>(),
    #[cfg(feature = "mysql")]
    DriverEntry::of::<crate::driver::mysql::Mysql>(),
    #[cfg(feature = "postgres")]
    DriverEntry::of::<crate::driver::postgres::Postgres>(),
    #[cfg(feature = "http")]
    DriverEntry::of::<crate::driver::http::Http>(),
    #[cfg(feature = "mongodb")]
    DriverEntry::of::<crate::driver::mongodb::MongoDb>(),
    #[cfg(feature = "cassandra")]
    DriverEntry::of::<crate::driver::cassandra::Cassandra>(),
    #[cfg(feature = "kyototycoon")]
    DriverEntry::of::<crate::driver::kyototycoon::KyotoTycoon>(),
    #[cfg(feature = "riak")]
    DriverEntry::of::<crate::driver::riak::Riak>(),
    #[cfg(feature = "redb")]
    DriverEntry::of::<crate::driver::redb::Redb>(),
    #[cfg(feature = "sqlite")]
    DriverEntry::of::<crate::driver::sqlite::Sqlite>(),
    #[cfg(feature = "fjall")]
    DriverEntry::of::<crate::driver::fjall::Fjall>(),
];

/// Their specifications, for whoever must not know more of them.
pub fn specs() -> Vec<&'static DriverSpec> {
    DRIVERS.iter().map(|entry| (entry.spec)()).collect()
}
