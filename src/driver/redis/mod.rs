//! The `redis` driver.
