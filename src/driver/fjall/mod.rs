//! The `fjall` driver.
