//! The `null` driver.
