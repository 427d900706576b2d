//! Stands in for a run, so that strings which wait for one can be checked before anything starts.

use crate::diag::did_you_mean;
use crate::template::RunContext;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Gives placeholder ports and directories of the servers that the scenario has, and notes which were asked for.
pub struct Placeholders<'a> {
    servers: &'a BTreeMap<String, Option<Vec<String>>>,
    asked: RefCell<Vec<String>>,
}

/// Reads as a number, as a host and as a password.
const ANY_TEXT: &str = "1";
const FIRST_PORT: u16 = 20_000;

impl<'a> Placeholders<'a> {
    pub fn new(servers: &'a BTreeMap<String, Option<Vec<String>>>) -> Self {
        Placeholders {
            servers,
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
        self.server(server)?;
        match instance {
            None | Some(1) => Ok("127.0.0.1".to_owned()),
            Some(other) => Err(format!("the server `{server}` has no instance {other}")),
        }
    }

    fn directory(&self, server: &str, instance: Option<u32>) -> Result<String, String> {
        self.address(server, instance)?;
        Ok(format!("/tmp/{server}"))
    }

    fn instance(&self) -> Option<u32> {
        Some(1)
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
