//! Stands in for a run, so that strings which wait for one can be checked before anything starts.

use crate::diag::did_you_mean;
use crate::template::{RunContext, which_instance};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Gives placeholder ports, addresses and directories of the servers that the scenario has, and notes which were asked for.
pub struct Placeholders<'a> {
    servers: &'a BTreeMap<String, Option<Vec<String>>>,
    /// How many instances servers have in the run; one where not said, None where it cannot be told.
    instances: BTreeMap<String, Option<u32>>,
    /// The server whose strings are rendered.
    current: Option<&'a str>,
    asked: RefCell<Vec<String>>,
}

/// Reads as a number, as a host and as a password.
const ANY_TEXT: &str = "1";
const FIRST_PORT: u16 = 20_000;

impl<'a> Placeholders<'a> {
    pub fn new(
        servers: &'a BTreeMap<String, Option<Vec<String>>>,
        instances: BTreeMap<String, Option<u32>>,
        current: Option<&'a str>,
    ) -> Self {
        Placeholders {
            servers,
            instances,
            current,
            asked: RefCell::default(),
        }
    }

    /// Servers that were asked for.
    pub fn asked(&self) -> Vec<String> {
        self.asked.borrow().clone()
    }

    fn server(&self, name: &str) -> Result<&Option<Vec<String>>, String> {
        let Some(ports) = self.servers.get(name) else {
            let meant = did_you_mean(name, self.servers.keys().map(String::as_str));
            return Err(match meant {
                Some(meant) => format!("there is no server `{name}`; did you mean `{meant}`?"),
                None => format!("there is no server `{name}`"),
            });
        };
        self.asked.borrow_mut().push(name.to_owned());
        Ok(ports)
    }

    /// Which instance is meant, and of how many.
    fn instance_of(
        &self,
        server: &str,
        instance: Option<u32>,
        function: &str,
    ) -> Result<(u32, Option<u32>), String> {
        self.server(server)?;
        let instances = self.instances.get(server).copied().unwrap_or(Some(1));
        let own = (self.current == Some(server)).then_some(1);
        match instances {
            Some(count) => which_instance(server, instance, own, count, function)
                .map(|instance| (instance, instances)),
            None => Ok((instance.or(own).unwrap_or(1), None)),
        }
    }
}

impl RunContext for Placeholders<'_> {
    fn port(&self, server: &str, name: &str) -> Result<u16, String> {
        let Some(ports) = self.server(server)? else {
            return Ok(FIRST_PORT);
        };
        match ports.iter().position(|port| port == name) {
            Some(position) => Ok(FIRST_PORT + position as u16),
            None => {
                let known = ports.join("`, `");
                Err(format!(
                    "the server `{server}` has no port `{name}`; it has `{known}`"
                ))
            }
        }
    }

    fn address(&self, server: &str, instance: Option<u32>) -> Result<String, String> {
        let (instance, _) = self.instance_of(server, instance, "address")?;
        Ok(format!("127.0.0.{instance}"))
    }

    fn directory(&self, server: &str, instance: Option<u32>) -> Result<String, String> {
        Ok(match self.instance_of(server, instance, "dir")? {
            (_, Some(1)) => format!("/tmp/{server}"),
            (instance, _) => format!("/tmp/{server}-{instance}"),
        })
    }

    fn instance(&self) -> Option<u32> {
        self.current.map(|_| 1)
    }

    fn dataset_file(&self, dataset: &str, file: &str) -> Result<String, String> {
        Ok(format!("/tmp/datasets/{dataset}/{file}"))
    }

    fn run_directory(&self) -> Result<String, String> {
        Ok("/tmp/run".to_owned())
    }

    fn environment(&self, _: &str) -> Result<String, String> {
        Ok(ANY_TEXT.to_owned())
    }

    fn secret(&self, _: &str) -> Result<String, String> {
        Ok(ANY_TEXT.to_owned())
    }
}
