//! Harnesses of stores inside the client: a line each.

/// The harness of a store inside the client: its driver and options.
macro_rules! inside {
    ($name:ident, $driver:ty, $options:tt) => {
        pub struct $name;

        impl crate::client::Harness for $name {
            type Driver = $driver;

            fn start() -> Option<Self> {
                Some($name)
            }

            fn options() -> serde_json::Map<String, serde_json::Value> {
                let options = serde_json::json!($options);
                options.as_object().expect("a table").clone()
            }
        }
    };
}
pub(crate) use inside;
