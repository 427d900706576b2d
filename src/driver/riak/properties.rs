//! The bucket's properties: set before the first operation where the options say any, read back until every node that is
//! used has them.

use super::link::Link;
use super::settings::Settings;
use super::spec::QUORUMS;
use crate::op::{ErrorClass, Failure};
use std::collections::HashSet;
use std::time::Duration;
use tokio::sync::Mutex;

/// Between two looks at a node that has not heard of the properties yet.
const PAUSE: Duration = Duration::from_millis(100);

/// Looks at a node, after which it is told itself; and after which it is given up.
const PATIENCE: u32 = 20;
const ATTEMPTS: u32 = 100;

/// What matters of a bucket's properties; what a node does not say, or nobody wants, is None.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Properties {
    pub n_val: Option<u32>,
    pub allow_mult: Option<bool>,
    /// `r`, `w`, `dw`, `pr`, `pw`, as a parameter has them.
    pub quorums: [Option<String>; QUORUMS.len()],
}

impl Properties {
    /// What the options want; None where they want nothing of the bucket.
    pub fn wanted(settings: &Settings) -> Option<Properties> {
        let wanted = Properties {
            n_val: settings.n_val,
            allow_mult: settings.allow_mult,
            ..Properties::default()
        };
        (wanted != Properties::default()).then_some(wanted)
    }

    fn holds(&self, wanted: &Properties) -> bool {
        (wanted.n_val.is_none() || wanted.n_val == self.n_val)
            && (wanted.allow_mult.is_none() || wanted.allow_mult == self.allow_mult)
    }

    /// (name, value) in a fixed order.
    pub fn listed(&self) -> Vec<(String, String)> {
        let numbers = [
            ("n_val", self.n_val.map(|copies| copies.to_string())),
            ("allow_mult", self.allow_mult.map(|allow| allow.to_string())),
        ];
        let quorums = QUORUMS.into_iter().zip(self.quorums.iter().cloned());
        let all = numbers.into_iter().chain(quorums);
        all.map(|(name, value)| (name.to_owned(), value.unwrap_or_default()))
            .collect()
    }
}

/// Which nodes are known to have the wanted properties.
#[derive(Default)]
pub struct Prepared {
    /// Labels of endpoints. Held while one is asked, so that only one session does.
    nodes: Mutex<HashSet<String>>,
}

impl Prepared {
    /// Sees to it that the node has the properties. One node tells the others in its own time, so that a node which was
    /// not told is waited for, and told after a while.
    pub async fn prepare(
        &self,
        wanted: &Properties,
        link: &mut Link,
        label: &str,
    ) -> Result<(), Failure> {
        let mut nodes = self.nodes.lock().await;
        if nodes.contains(label) {
            return Ok(());
        }
        let told = !nodes.is_empty();
        for attempt in 0..ATTEMPTS {
            if link.properties().await?.holds(wanted) {
                nodes.insert(label.to_owned());
                return Ok(());
            }
            let is_due = attempt % PATIENCE == 0;
            if is_due && (attempt > 0 || !told) {
                link.set_properties(wanted).await?;
            } else {
                tokio::time::sleep(PAUSE).await;
            }
        }
        Err(Failure::new(
            ErrorClass::Rejected,
            format!("{label} does not take the bucket's properties as the options say them"),
        ))
    }
}
