//! placeholder
use super::spec::Stream;
use crate::op::Operation;
use std::sync::Arc;
pub struct Prepared;
pub struct Generator;
impl Generator {
    pub fn of(_: &Arc<Prepared>, _: Stream) -> Generator {
        Generator
    }
    pub fn fill(&mut self, index: u64, op: &mut Operation) {
        op.index = index;
    }
}
