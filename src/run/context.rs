//! What run-stage templates may ask for in one run: ports, directories, the environment. Remembers what was asked of the
//! environment, for the manifest, and which values are secret, so that they are hidden wherever they would be shown.

use crate::template::{RunContext, which_instance};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

/// Where one server of the run is.
#[derive(Clone, Debug)]
pub struct Place {
    /// Of each instance, at least one.
    pub directories: Vec<PathBuf>,
    /// By the port's name; the same at the address of every instance.
    pub ports: BTreeMap<String, u16>,
}

impl Place {
    pub fn instances(&self) -> u32 {
        self.directories.len() as u32
    }

    /// Instances are counted from 1; one that is not there has the first one's.
    pub fn directory(&self, instance: u32) -> &Path {
        let first = &self.directories[0];
        let position = instance.saturating_sub(1) as usize;
        self.directories.get(position).unwrap_or(first)
    }
}

/// Of the instance of a server, from 1: any address of 127.0.0.0/8 works without being set up.
pub fn address(instance: u32) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 0, u8::try_from(instance).unwrap_or(1))
}

/// What templates have read of the environment.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    pub environment: BTreeMap<String, String>,
    pub secrets: Vec<String>,
}

pub struct Context<'a> {
    places: BTreeMap<String, Place>,
    run_directory: &'a Path,
    /// Where the artifacts of the run's dataset are: its name, and the folder.
    artifacts: Option<(String, PathBuf)>,
    /// The server whose strings are rendered, and its instance.
    current: Option<(String, u32)>,
    asked: RefCell<Asked>,
}

impl<'a> Context<'a> {
    pub fn new(places: BTreeMap<String, Place>, run_directory: &'a Path) -> Context<'a> {
        Context {
            places,
            run_directory,
            artifacts: None,
            current: None,
            asked: RefCell::default(),
        }
    }

    /// The run's dataset is there, and its artifacts in this folder.
    pub fn has_dataset(&mut self, name: &str, artifacts: PathBuf) {
        self.artifacts = Some((name.to_owned(), artifacts));
    }

    pub fn place(&self, server: &str) -> Option<&Place> {
        self.places.get(server)
    }

    /// From here on the strings of this instance of a server are rendered.
    pub fn enter(&mut self, server: &str, instance: u32) {
        self.current = Some((server.to_owned(), instance));
    }

    /// The place of a server, and which of its instances a string means.
    fn meant(
        &self,
        server: &str,
        named: Option<u32>,
        function: &str,
    ) -> Result<(&Place, u32), String> {
        let place = self.known(server)?;
        let own = self.current.as_ref().filter(|(name, _)| name == server);
        let own = own.map(|(_, instance)| *instance);
        let instance = which_instance(server, named, own, place.instances(), function)?;
        Ok((place, instance))
    }

    pub fn asked(&self) -> Asked {
        self.asked.borrow().clone()
    }

    fn known(&self, server: &str) -> Result<&Place, String> {
        self.places.get(server).ok_or_else(|| {
            let names: Vec<&str> = self.places.keys().map(String::as_str).collect();
            format!(
                "no server `{server}` in this run; it has: {}",
                names.join(", ")
            )
        })
    }

    fn variable(name: &str) -> Result<String, String> {
        std::env::var(name).map_err(|_| {
            format!("the environment has no variable {name}; set it: export {name}=...")
        })
    }
}

impl RunContext for Context<'_> {
    fn port(&self, server: &str, name: &str) -> Result<u16, String> {
        let place = self.known(server)?;
        place.ports.get(name).copied().ok_or_else(|| {
            let names: Vec<&str> = place.ports.keys().map(String::as_str).collect();
            format!(
                "server `{server}` has no port `{name}`; it has: {}",
                names.join(", ")
            )
        })
    }

    fn address(&self, server: &str, instance: Option<u32>) -> Result<String, String> {
        let (_, instance) = self.meant(server, instance, "address")?;
        Ok(address(instance).to_string())
    }

    fn directory(&self, server: &str, instance: Option<u32>) -> Result<String, String> {
        let (place, instance) = self.meant(server, instance, "dir")?;
        Ok(place.directory(instance).display().to_string())
    }

    fn instance(&self) -> Option<u32> {
        self.current.as_ref().map(|(_, instance)| *instance)
    }

    fn dataset_file(&self, dataset: &str, file: &str) -> Result<String, String> {
        match &self.artifacts {
            Some((name, folder)) if name == dataset => Ok(folder.join(file).display().to_string()),
            _ => Err(format!("the run has no dataset `{dataset}`")),
        }
    }

    fn run_directory(&self) -> Result<String, String> {
        Ok(self.run_directory.display().to_string())
    }

    fn environment(&self, name: &str) -> Result<String, String> {
        let value = Context::variable(name)?;
        self.asked
            .borrow_mut()
            .environment
            .insert(name.to_owned(), value.clone());
        Ok(value)
    }

    fn secret(&self, name: &str) -> Result<String, String> {
        let value = Context::variable(name)?;
        self.asked.borrow_mut().secrets.push(value.clone());
        Ok(value)
    }
}
