//! The `redb` driver.
