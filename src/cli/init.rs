//! `dbbench init`: a commented scenario to begin with.

use super::exit::Exit;
use crate::rows::NameKind;
use std::io::Write;
use std::path::{Path, PathBuf};

/// What is written, adapted: itself a scenario that tests check and run.
pub const TEMPLATE: &str = include_str!("../../scenarios/template.toml");

const SCHEMA: &str = "scenario.schema.json";

const EXAMPLES: &str = "\
Examples:
  dbbench init my-stores                        writes my-stores.toml
  dbbench init cache-sizes --title \"Value sizes from 1 KiB to 1 MiB\"";

/// Write a commented scenario to begin with.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Name of the scenario: lower-case letters, digits, `.`, `_` and `-`; the file is NAME.toml
    name: String,
    /// One line for reports
    #[arg(long)]
    title: Option<String>,
}

pub fn main(args: Args) -> Exit {
    let name = args.name.strip_suffix(".toml").unwrap_or(&args.name);
    if !NameKind::Scenario.allows(name) {
        eprintln!(
            "error: `{name}` cannot be the name of a scenario: lower-case letters, digits, `.`, `_` and `-`, \
             beginning with a letter or digit"
        );
        return Exit::WrongScenario;
    }
    let path = PathBuf::from(format!("{name}.toml"));
    let here = std::env::current_dir().unwrap_or_default();
    let schema = schema_line(&here);
    let title = args.title.unwrap_or_else(|| name.replace(['-', '_'], " "));
    match create(&path, &adapted(name, &title, &schema)) {
        Ok(()) => {
            println!("wrote {}", path.display());
            println!("next: dbbench scenario {} --quick", path.display());
            if schema == SCHEMA && !here.join(SCHEMA).exists() {
                println!("for completion in an editor: dbbench schema > {SCHEMA}");
            }
            Exit::Done
        }
        Err(error) => {
            eprintln!("error: {error}");
            Exit::CouldNotRun
        }
    }
}

/// Refuses to overwrite: what stands there may be work.
fn create(path: &Path, text: &str) -> Result<(), String> {
    let shown = path.display();
    let file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path);
    let mut file = file.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            format!("{shown} exists already; choose another name or remove it")
        }
        _ => format!("cannot write {shown}: {error}"),
    })?;
    file.write_all(text.as_bytes())
        .map_err(|error| format!("cannot write {shown}: {error}"))
}

/// The template under another name.
pub fn adapted(name: &str, title: &str, schema: &str) -> String {
    let title = toml::Value::String(title.to_owned()).to_string();
    TEMPLATE
        .replace("../schemas/scenario.schema.json", schema)
        .replace("title = \"Template\"", &format!("title = {title}"))
        .replace("\"template\"", &format!("\"{name}\""))
        .replace("template.toml", &format!("{name}.toml"))
}

/// The schema that an editor should use: that of the checkout around, else one beside the file.
fn schema_line(directory: &Path) -> String {
    let relative = Path::new("schemas").join(SCHEMA);
    let mut up = PathBuf::new();
    for above in directory.ancestors() {
        if above.join(&relative).is_file() {
            return up.join(&relative).display().to_string();
        }
        up.push("..");
    }
    SCHEMA.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_the_template_s_own_name_is_left() {
        let text = adapted("my-stores", "A \"fine\" title", "scenario.schema.json");
        for own in [
            "\"template\"",
            "template.toml",
            "\"Template\"",
            "../schemas",
        ] {
            assert!(!text.contains(own), "{own}");
        }
        let table: toml::Table = text.parse().expect("valid TOML");
        assert_eq!(table["name"].as_str(), Some("my-stores"));
        assert_eq!(table["title"].as_str(), Some("A \"fine\" title"));
        assert!(text.starts_with("#:schema scenario.schema.json\n"));
        assert!(text.contains("dbbench check my-stores.toml"));
    }

    #[test]
    fn a_file_that_is_there_is_not_overwritten() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a.toml");
        create(&path, "first").expect("a new file");
        assert!(
            create(&path, "second")
                .unwrap_err()
                .contains("exists already")
        );
        assert_eq!(std::fs::read_to_string(&path).expect("there"), "first");
    }

    #[test]
    fn the_schema_of_the_checkout_around_is_found() {
        let directory = tempfile::tempdir().expect("a directory");
        let below = directory.path().join("a/b");
        std::fs::create_dir_all(&below).expect("made");
        assert_eq!(schema_line(&below), SCHEMA);
        std::fs::create_dir(directory.path().join("schemas")).expect("made");
        std::fs::write(directory.path().join("schemas").join(SCHEMA), "{}").expect("written");
        assert_eq!(schema_line(&below), "../../schemas/scenario.schema.json");
    }
}
