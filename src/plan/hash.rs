//! The hash of a plan: the same on any machine for what would be measured the same.
//!
//! SHA-256 over the plan's JSON as `file` lays it out (fields in a fixed order, parts once), without titles, notes,
//! labels, tables, the estimate, and where files were found: their contents' hashes are in it.

use super::file::PlanFile;
use super::{Estimate, PhasePlan, Plan, ScenarioInfo};
use crate::workload::spec::Content;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::sync::Arc;

/// Hex.
pub fn hash(plan: &Plan) -> String {
    let mut file = PlanFile::from(plan.clone());
    file.hash = String::new();
    file.scenario = ScenarioInfo {
        name: file.scenario.name,
        ..ScenarioInfo::default()
    };
    file.labels = BTreeMap::new();
    file.tables = Vec::new();
    file.notes = Vec::new();
    // Only tables read them.
    file.vars = Vec::new();
    for shape in &mut file.shapes {
        shape.estimate = Estimate::default();
        shape.vars = 0;
    }
    file.phases = file.phases.iter().map(without_places).collect();
    // The JSON comes in pieces of a few bytes, which are dear to hash one by one.
    let mut writer = BufWriter::with_capacity(64 * 1024, Hashing(Sha256::new()));
    serde_json::to_writer(&mut writer, &file).expect("a plan can be written as JSON");
    writer.flush().expect("hashing does not fail");
    super::extract::hex(&writer.get_ref().0.clone().finalize())
}

fn without_places(phase: &Arc<PhasePlan>) -> Arc<PhasePlan> {
    let has_file = |phase: &PhasePlan| {
        let mut groups = phase.groups.iter();
        groups.any(|group| matches!(group.values.content, Content::File { .. }))
    };
    if !has_file(phase) {
        return phase.clone();
    }
    let mut phase = PhasePlan::clone(phase);
    for group in &mut phase.groups {
        if let Content::File { path, .. } = &mut group.values.content {
            path.clear();
        }
    }
    Arc::new(phase)
}

struct Hashing(Sha256);

impl Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
