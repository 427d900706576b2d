//! Looks at every template before any is evaluated: does it parse, may it read what it reads, which axes are those?
//!
//! Each fault is reported once, whatever the number of runs. `scope` evaluates what passed.

use super::nodes::for_each_string;
use super::scope::{Mask, REPEAT, Scope, Stage, Var, axis_names, is_run_name};
use crate::diag::{Diagnostic, did_you_mean};
use crate::scenario::tree::{Entry, Node, Table};
use crate::template::{self, Fault, Scan};
use std::collections::HashSet;
use std::rc::Rc;

impl Scope<'_> {
    /// Vars are inspected in the order of their need of each other.
    pub(super) fn add_vars(&mut self, vars: &Table) {
        let names: HashSet<&str> = vars.entries.iter().map(|e| e.key.as_str()).collect();
        let mut open = Vec::new();
        for entry in &vars.entries {
            self.add_var(vars, entry, &names, &mut open);
        }
    }

    fn add_var(
        &mut self,
        vars: &Table,
        entry: &Entry,
        names: &HashSet<&str>,
        open: &mut Vec<String>,
    ) {
        if let Some(start) = open.iter().position(|name| *name == entry.key) {
            let circle = [&open[start..], std::slice::from_ref(&entry.key)]
                .concat()
                .join(" -> ");
            let fault = Diagnostic::error(
                "var-circle",
                entry.node.span,
                format!("these vars need each other: {circle}"),
            )
            .help("give one of them a value of its own");
            self.faults.add_plain(fault);
            self.broken.insert(entry.node.span);
            return;
        }
        if self.vars.contains_key(&entry.key) {
            return;
        }
        // Known before it is inspected, so that a circle is reported as one and not as an unknown name, too.
        self.vars
            .insert(entry.key.clone(), Var::new(entry.node.clone()));
        open.push(entry.key.clone());
        for needed in self.names_under(&entry.node) {
            if names.contains(needed.as_str())
                && let Some(other) = vars.entry(&needed)
            {
                self.add_var(vars, other, names, open);
            }
        }
        open.pop();
        let mask = self.inspect(&entry.node, Stage::Plan);
        let reads_seed = self
            .names_under(&entry.node)
            .iter()
            .any(|name| name == "seed" || self.vars.get(name).is_some_and(|var| var.reads_seed));
        if let Some(var) = self.vars.get_mut(&entry.key) {
            var.mask = mask;
            var.reads_seed = reads_seed;
        }
    }

    /// Names that the templates under a node read; those that do not parse are reported by `inspect`.
    fn names_under(&mut self, node: &Node) -> Vec<String> {
        let mut names = Vec::new();
        for_each_string(node, &mut |text, _| {
            if let Ok(scan) = self.scan(text) {
                names.extend(scan.names.iter().cloned());
            }
        });
        names
    }

    pub(super) fn scan(&mut self, text: &str) -> Result<Rc<Scan>, Fault> {
        if let Some(known) = self.scans.get(text) {
            return Ok(known.clone());
        }
        let scan = match template::is_template(text) {
            true => Rc::new(template::scan(text)?),
            false => Rc::new(Scan {
                whole: None,
                names: Default::default(),
            }),
        };
        self.scans.insert(text.to_owned(), scan.clone());
        Ok(scan)
    }

    /// Reports every template under a node that does not parse or reads a name that its stage does not have. Gives the
    /// axes that they read, through vars too.
    pub fn inspect(&mut self, node: &Node, stage: Stage) -> Mask {
        let mut strings = Vec::new();
        for_each_string(node, &mut |text, span| {
            if template::is_template(text) {
                strings.push((text.to_owned(), span));
            }
        });
        let mut all = 0;
        for (text, span) in strings {
            match self.inspect_string(&text, stage) {
                Ok(mask) => {
                    self.masks.insert(span, mask);
                    all |= mask;
                }
                Err((code, fault)) => {
                    self.broken.insert(span);
                    let diagnostic = self.diagnostic(code, span, &text, fault);
                    self.faults.add_plain(diagnostic);
                }
            }
        }
        all
    }

    fn inspect_string(&mut self, text: &str, stage: Stage) -> Result<Mask, (&'static str, Fault)> {
        let scan = self
            .scan(text)
            .map_err(|fault| ("template-syntax", fault))?;
        let deferred = scan.names.iter().any(|name| is_run_name(name));
        let mut mask = 0;
        for name in &scan.names {
            mask |= self.mask_of_name(name, stage, text)?;
        }
        if deferred && scan.names.contains("file") {
            let fault = Fault {
                message:
                    "`file` is read before the run and cannot stand beside what only the run knows"
                        .to_owned(),
                help: "read the file in [vars] and use that name here".to_owned(),
                range: template::find_word(text, "file"),
            };
            return Err(("template-stage", fault));
        }
        Ok(mask)
    }

    fn mask_of_name(
        &self,
        name: &str,
        stage: Stage,
        text: &str,
    ) -> Result<Mask, (&'static str, Fault)> {
        let wrong_stage = |message: String, help: &str| {
            let range = template::find_word(text, name);
            Err((
                "template-stage",
                Fault {
                    message,
                    help: help.to_owned(),
                    range,
                },
            ))
        };
        if is_run_name(name) && !self.vars.contains_key(name) && self.axis(name).is_none() {
            return match stage {
                // Which instances there are decides what these can be asked for.
                Stage::Run if matches!(name, "address" | "dir") => Ok(self.instances_mask(text)),
                Stage::Run => Ok(0),
                _ => wrong_stage(
                    format!("`{name}` is known only when the servers of a run are started"),
                    "use it in strings of [servers], [targets] and [operations]",
                ),
            };
        }
        let mask = match name {
            "seed" | "repeat" if stage == Stage::Load => {
                return wrong_stage(
                    format!(
                        "`{name}` is not known yet: [sweep], [runs] and [client] are the same for all runs"
                    ),
                    "",
                );
            }
            "repeat" => REPEAT,
            "seed" => 0,
            _ if template::FUNCTIONS.contains(&name) => 0,
            _ => match (self.axis(name), self.vars.get(name)) {
                (Some(position), _) => 1 << position,
                (None, Some(var)) => var.mask,
                (None, None) => return Err(("unknown-name", self.unknown(name, text))),
            },
        };
        if stage == Stage::Load && self.vars.get(name).is_some_and(|var| var.reads_seed) {
            return wrong_stage(
                format!("`{name}` uses `seed`, which is not known yet here"),
                "",
            );
        }
        if stage == Stage::Load && mask != 0 {
            let axes = axis_names(&self.axes, mask);
            let message = match self.axis(name) {
                Some(_) => {
                    format!("`{name}` is an axis, and what stands here is the same for all runs")
                }
                None => format!(
                    "`{name}` uses the axis {axes}, and what stands here is the same for all runs"
                ),
            };
            return wrong_stage(message, "use vars that use no axis");
        }
        Ok(mask)
    }

    /// The axes that change how many instances those servers have which a string names; all of them where it names none.
    fn instances_mask(&self, text: &str) -> Mask {
        let named = |server: &str| {
            text.contains(&format!("'{server}'")) || text.contains(&format!("\"{server}\""))
        };
        let names_one = self.server_names().iter().any(|server| named(server));
        let counted = self.instances.iter();
        let meant = counted.filter(|(server, _)| !names_one || named(server));
        meant.fold(0, |all, (_, instances)| all | instances.mask)
    }

    fn unknown(&self, name: &str, text: &str) -> Fault {
        let axes = self.axes.iter().map(|axis| axis.name.as_str());
        let known = axes
            .chain(self.vars.keys().map(String::as_str))
            .chain(["seed", "repeat"])
            .chain(template::FUNCTIONS)
            .chain(template::RUN_NAMES);
        let help = match did_you_mean(name, known) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "axes stand in [sweep], values of your own in [vars]".to_owned(),
        };
        Fault {
            message: format!("unknown name `{name}`: no axis, no var, no function"),
            help,
            range: template::find_word(text, name),
        }
    }
}
