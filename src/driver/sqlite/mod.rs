//! The `sqlite` driver.
