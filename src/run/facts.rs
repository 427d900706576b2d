//! What a run learns of its target, into the manifest: version, settings, durability claimed and found, round trips; and
//! what its templates asked of the environment.

use super::context::Asked;
use super::once::Facts;
use crate::driver::spec::{DriverSpec, Durability};
use crate::plan::TargetPlan;
use crate::results::RunWriter;
use crate::results::manifest::{DriverFacts, RoundTrip, Setting, TargetFacts};

/// Secrets are hidden in everything that is written from here on.
pub fn write_asked(writer: &mut RunWriter<'_, '_>, asked: Asked) {
    writer.manifest().environment.extend(asked.environment);
    writer.hide(asked.secrets);
}

pub fn write(writer: &mut RunWriter<'_, '_>, target: &TargetPlan, spec: &DriverSpec, facts: Facts) {
    let name = |durability: Option<Durability>| {
        durability.map_or(String::new(), |found| found.name().to_owned())
    };
    let manifest = writer.manifest();
    manifest.set_target(TargetFacts {
        target: target.name.clone(),
        driver: target.driver.clone(),
        server_version: facts.version,
        settings: facts
            .settings
            .into_iter()
            .map(|(name, value)| Setting { name, value })
            .collect(),
        durability_claimed: name(target.durability),
        durability_found: name(facts.durability),
        round_trips: facts.round_trips.into_iter().map(round_trip).collect(),
    });
    if manifest.drivers.iter().all(|known| known.name != spec.name) {
        manifest.drivers.push(DriverFacts {
            name: spec.name.to_owned(),
            library: spec.library.to_owned(),
            sessions: spec.sessions.to_owned(),
        });
    }
}

fn round_trip((endpoint, ns): (String, u64)) -> RoundTrip {
    RoundTrip {
        endpoint,
        round_trip_us: ns as f64 / 1_000.0,
    }
}
