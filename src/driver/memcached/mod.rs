//! The `memcached` driver.
