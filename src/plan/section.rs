//! A section of the scenario, resolved once per combination of the axes that it reads.

use super::scope::{At, Evaluation, Key, Mask, Scope, Stage};
use crate::scenario::tree::Node;
use std::collections::HashMap;
use std::rc::Rc;

/// `T` is what the section becomes; each different one has a number of its own.
pub struct Section<T> {
    pub node: Node,
    pub mask: Mask,
    stage: Stage,
    known: HashMap<Key, Option<(u32, Rc<T>)>>,
}

impl<T> Section<T> {
    /// Inspects the section's templates; `more` are axes that enter otherwise.
    pub fn new(scope: &mut Scope<'_>, node: Node, stage: Stage, more: Mask) -> Section<T> {
        let mask = scope.inspect(&node, stage) | more;
        Section {
            node,
            mask,
            stage,
            known: HashMap::new(),
        }
    }

    /// What the section is in a run, and its number among the different ones. `extract` is called at most once per
    /// combination; None where there is a fault, which `extract` or the evaluation has reported. `variant` tells apart
    /// what is resolved differently for another reason than an axis.
    pub fn get(
        &mut self,
        scope: &mut Scope<'_>,
        at: At<'_>,
        variant: Option<u32>,
        extract: impl FnOnce(&mut Scope<'_>, &Evaluation) -> Option<T>,
    ) -> Option<(u32, Rc<T>)> {
        let mut key = at.key(self.mask);
        if let Some(variant) = variant {
            key = key.iter().copied().chain([variant]).collect();
        }
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let number = self.known.len() as u32;
        let made = scope
            .evaluate(&self.node, self.stage, at)
            .and_then(|evaluation| extract(scope, &evaluation))
            .map(|made| (number, Rc::new(made)));
        self.known.insert(key, made.clone());
        made
    }
}
