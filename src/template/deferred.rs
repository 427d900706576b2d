//! Renders what waited for the run: ports, directories, secrets.
//!
//! Knows how a template asks and a `RunContext` answers. A template function must own what it uses, and a context is
//! borrowed: so a template that asks for something not yet known stops, the context is asked, and the template is
//! rendered again with the answer. Templates are small and this is before or between phases, so that costs nothing.

use super::engine::{Names, bare_environment, evaluate_in, from_json, invalid, to_json};
use super::scan::scan;
use super::{Deferred, RunContext, Text};
use minijinja::value::Value;
use minijinja::{Environment, Error};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Question {
    Port(String, String),
    Address(String, Option<u32>),
    Directory(String, Option<u32>),
    DatasetFile(String, String),
    Environment(String),
    Secret(String),
}

#[derive(Default)]
struct Answers {
    known: BTreeMap<Question, Result<Value, String>>,
    open: Option<Question>,
}

type Shared = Arc<Mutex<Answers>>;

impl Text {
    /// The text with everything filled in. Errors are sentences.
    pub fn render(&self, context: &dyn RunContext) -> Result<String, String> {
        match self {
            Text::Plain(text) => Ok(text.clone()),
            Text::Deferred(deferred) => deferred.value(context).map(|value| value.to_string()),
        }
    }

    /// The text as the scenario says it, for people.
    pub fn source(&self) -> &str {
        match self {
            Text::Plain(text) => text,
            Text::Deferred(deferred) => &deferred.template,
        }
    }
}

impl Deferred {
    /// Typed where the template is one whole expression.
    fn value(&self, context: &dyn RunContext) -> Result<Value, String> {
        let shared = Shared::default();
        let environment = asking_environment(&shared);
        let names = self.names(context)?;
        loop {
            let result = evaluate_in(&environment, &self.template, names.clone());
            let Some(question) = lock(&shared).open.take() else {
                return result.map_err(|fault| fault.message);
            };
            let answer = ask(&question, context);
            lock(&shared).known.insert(question, answer);
        }
    }

    /// The typed value as JSON.
    pub fn evaluate(&self, context: &dyn RunContext) -> Result<serde_json::Value, String> {
        to_json(&self.value(context)?)
    }

    fn names(&self, context: &dyn RunContext) -> Result<Names, String> {
        let mut names: Names = self
            .values
            .iter()
            .map(|(name, value)| (name.clone(), from_json(value)))
            .collect();
        let read = scan(&self.template).map_err(|fault| fault.message)?.names;
        if read.contains("run_dir") {
            names.insert("run_dir".to_owned(), Value::from(context.run_directory()?));
        }
        if read.contains("instance") {
            let instance = context
                .instance()
                .ok_or("`instance` is known only in the strings of a server")?;
            names.insert("instance".to_owned(), Value::from(instance));
        }
        Ok(names)
    }
}

/// A JSON value in which objects `{"template": .., "values": ..}` are replaced by what they evaluate to.
pub fn render_json(
    value: &serde_json::Value,
    context: &dyn RunContext,
) -> Result<serde_json::Value, String> {
    match value {
        serde_json::Value::Array(items) => items
            .iter()
            .map(|item| render_json(item, context))
            .collect::<Result<Vec<_>, _>>()
            .map(serde_json::Value::Array),
        serde_json::Value::Object(entries) => {
            if let Some(deferred) = as_deferred(entries) {
                return deferred.evaluate(context);
            }
            let rendered = entries
                .iter()
                .map(|(key, item)| Ok((key.clone(), render_json(item, context)?)));
            rendered
                .collect::<Result<serde_json::Map<_, _>, String>>()
                .map(serde_json::Value::Object)
        }
        other => Ok(other.clone()),
    }
}

fn as_deferred(entries: &serde_json::Map<String, serde_json::Value>) -> Option<Deferred> {
    let template = entries.get("template")?.as_str()?;
    let values = entries.get("values")?.as_object()?;
    (entries.len() == 2).then(|| Deferred {
        template: template.to_owned(),
        values: values.clone().into_iter().collect(),
    })
}

fn ask(question: &Question, context: &dyn RunContext) -> Result<Value, String> {
    match question {
        Question::Port(server, name) => context.port(server, name).map(Value::from),
        Question::Address(server, instance) => context.address(server, *instance).map(Value::from),
        Question::Directory(server, instance) => {
            context.directory(server, *instance).map(Value::from)
        }
        Question::DatasetFile(dataset, file) => {
            context.dataset_file(dataset, file).map(Value::from)
        }
        Question::Environment(name) => context.environment(name).map(Value::from),
        Question::Secret(name) => context.secret(name).map(Value::from),
    }
}

fn asking_environment(shared: &Shared) -> Environment<'static> {
    let mut environment = bare_environment();
    let answers = shared.clone();
    environment.add_function("port", move |server: String, name: Option<String>| {
        let name = name.unwrap_or_else(|| "main".to_owned());
        answer(&answers, Question::Port(server, name))
    });
    let answers = shared.clone();
    environment.add_function("address", move |server: String, instance: Option<u32>| {
        answer(&answers, Question::Address(server, instance))
    });
    let answers = shared.clone();
    environment.add_function("dir", move |server: String, instance: Option<u32>| {
        answer(&answers, Question::Directory(server, instance))
    });
    let answers = shared.clone();
    environment.add_function("dataset_file", move |dataset: String, file: String| {
        answer(&answers, Question::DatasetFile(dataset, file))
    });
    let answers = shared.clone();
    environment.add_function("env", move |name: String| {
        answer(&answers, Question::Environment(name))
    });
    let answers = shared.clone();
    environment.add_function("secret", move |name: String| {
        answer(&answers, Question::Secret(name))
    });
    environment
}

fn answer(shared: &Shared, question: Question) -> Result<Value, Error> {
    let mut answers = lock(shared);
    match answers.known.get(&question) {
        Some(known) => known.clone().map_err(invalid),
        None => {
            answers.open = Some(question);
            Err(invalid("not asked yet"))
        }
    }
}

fn lock(shared: &Shared) -> std::sync::MutexGuard<'_, Answers> {
    shared
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    struct Context;

    impl RunContext for Context {
        fn port(&self, server: &str, name: &str) -> Result<u16, String> {
            match (server, name) {
                ("redis", "main") => Ok(20_001),
                ("redis", "other") => Ok(20_002),
                _ => Err(format!("no server `{server}` in this run")),
            }
        }
        fn address(&self, _: &str, instance: Option<u32>) -> Result<String, String> {
            Ok(format!("127.0.0.{}", instance.unwrap_or(1)))
        }
        fn directory(&self, server: &str, _: Option<u32>) -> Result<String, String> {
            Ok(format!("/private/{server}"))
        }
        fn instance(&self) -> Option<u32> {
            None
        }
        fn dataset_file(&self, dataset: &str, file: &str) -> Result<String, String> {
            Ok(format!("/datasets/{dataset}/{file}"))
        }
        fn run_directory(&self) -> Result<String, String> {
            Ok("/run".to_owned())
        }
        fn environment(&self, name: &str) -> Result<String, String> {
            Ok(format!("<{name}>"))
        }
        fn secret(&self, _: &str) -> Result<String, String> {
            Ok("hush".to_owned())
        }
    }

    fn deferred(template: &str, values: serde_json::Value) -> Deferred {
        let values = values.as_object().cloned().unwrap_or_default();
        Deferred {
            template: template.to_owned(),
            values: values.into_iter().collect(),
        }
    }

    #[test]
    fn ports_directories_and_plan_values_are_filled_in() {
        let text = "redis://:{{ secret('P') }}@{{ address('redis') }}:{{ port('redis') }}/{{ db }} \
                    {{ port('redis', 'other') }} {{ dir('redis') }} {{ run_dir }}\n";
        let text = Text::Deferred(deferred(text, json!({"db": 3})));
        assert_eq!(
            text.render(&Context).as_deref(),
            Ok("redis://:hush@127.0.0.1:20001/3 20002 /private/redis /run\n")
        );
    }

    #[test]
    fn what_the_context_does_not_know_is_its_sentence() {
        let text = Text::Deferred(deferred("{{ port('radish') }}", json!({})));
        let error = text.render(&Context).unwrap_err();
        assert_eq!(error, "no server `radish` in this run");
        let text = Text::Deferred(deferred("{{ instance }}", json!({})));
        assert!(
            text.render(&Context)
                .unwrap_err()
                .contains("strings of a server")
        );
    }

    #[test]
    fn deferred_objects_in_tables_become_typed_values() {
        let table = json!({
            "port": {"template": "{{ port('redis') + n }}", "values": {"n": 1}},
            "command": ["GET", {"template": "x{{ port('redis') }}", "values": {}}],
        });
        assert_eq!(
            render_json(&table, &Context),
            Ok(json!({"port": 20_002, "command": ["GET", "x20001"]}))
        );
    }
}
