//! What run-stage templates may ask for in one run: ports, directories, the environment. Remembers what was asked of the
//! environment, for the manifest, and which values are secret, so that they are hidden wherever they would be shown.

use crate::template::RunContext;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where one server of the run is.
#[derive(Clone, Debug)]
pub struct Place {
    pub directory: PathBuf,
    /// By the port's name.
    pub ports: BTreeMap<String, u16>,
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
    /// The server whose strings are rendered.
    current: Option<String>,
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

    /// From here on `instance` is that of this server.
    pub fn enter(&mut self, server: &str) {
        self.current = Some(server.to_owned());
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

    fn address(&self, server: &str, _: Option<u32>) -> Result<String, String> {
        self.known(server).map(|_| "127.0.0.1".to_owned())
    }

    fn directory(&self, server: &str, _: Option<u32>) -> Result<String, String> {
        Ok(self.known(server)?.directory.display().to_string())
    }

    fn instance(&self) -> Option<u32> {
        self.current.as_ref().map(|_| 1)
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
