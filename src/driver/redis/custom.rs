//! Operations of the user's own: any command, its arguments filled in per operation, its answer held against a pattern.

use super::replication::Replication;
use super::spec::command_of;
use crate::arguments::ArgumentTemplate;
use crate::driver::CustomOperation;
use crate::driver::spec::OptionFault;
use crate::op::{ErrorClass, Failure, Operation, Outcome, Reply};
use redis::{Cmd, Value};
use regex::bytes::Regex;
use serde_json::Map;

/// A compiled operation.
#[derive(Debug)]
pub struct Custom {
    arguments: Vec<ArgumentTemplate>,
    expect: Option<Regex>,
    /// Its value is not what the server says but how far the replicas are behind, made of it.
    lag: bool,
    /// Which argument is the first key.
    key_at: Option<usize>,
}

impl Custom {
    pub fn compile(operation: &CustomOperation) -> Result<Custom, Failure> {
        compile(&operation.table).map_err(|fault| {
            let message = format!("operation {}: {}", operation.name, fault.message);
            Failure::new(ErrorClass::Client, message)
        })
    }

    /// Appends the request; `command` and `argument` are scratch that is reused.
    pub fn write(
        &self,
        operation: &Operation,
        command: &mut Cmd,
        argument: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) {
        command.clear();
        for template in &self.arguments {
            argument.clear();
            template.write(operation, argument);
            command.arg(argument.as_slice());
        }
        command.write_packed_command(out);
    }

    /// What came of a value that the command was answered with; None is a value that is not there.
    pub fn read(
        &self,
        value: Option<&[u8]>,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        if self.lag {
            let information = String::from_utf8_lossy(value.unwrap_or_default());
            let lag = Replication::read(&information).lag()?;
            reply.keep_text(lag.to_string().as_bytes());
            return Ok(Outcome::Done);
        }
        self.check(value.unwrap_or_default())?;
        Ok(match value {
            Some(value) => reply.found(operation, value),
            None => Outcome::Missing,
        })
    }

    /// The key that tells which node of a cluster is asked, written to `key`; false where any node will do.
    pub fn key(&self, operation: &Operation, key: &mut Vec<u8>) -> bool {
        key.clear();
        match self.key_at.and_then(|at| self.arguments.get(at)) {
            Some(template) => {
                template.write(operation, key);
                true
            }
            None => false,
        }
    }

    /// `unexpected_reply` where the answer's text does not match.
    pub fn check(&self, text: &[u8]) -> Result<(), Failure> {
        match &self.expect {
            Some(expect) if !expect.is_match(text) => {
                let shown = text[..text.len().min(60)].escape_ascii();
                let message = format!("the answer `{shown}` does not match `{expect}`");
                Err(Failure::new(ErrorClass::UnexpectedReply, message))
            }
            _ => Ok(()),
        }
    }

    pub fn expects(&self) -> bool {
        self.expect.is_some()
    }
}

/// Faults of an operation's table that its rows cannot show.
pub fn check(table: &Map<String, serde_json::Value>) -> Result<(), OptionFault> {
    compile(table).map(|_| ())
}

fn compile(table: &Map<String, serde_json::Value>) -> Result<Custom, OptionFault> {
    let fault = |key: &str, message: String, help: &str| OptionFault::new(key, message, help);
    let (mut command, expect) = command_of(table);
    let lag = table.get("replication_lag") == Some(&serde_json::Value::Bool(true));
    if lag && !(command.is_empty() && expect.is_none()) {
        let message = "`replication_lag` asks by itself what it needs".to_owned();
        let help = "replication_lag = true";
        return Err(fault("replication_lag", message, help));
    }
    if lag {
        command = ["INFO", "replication"].map(str::to_owned).to_vec();
    }
    if command.first().is_none_or(|name| name.trim().is_empty()) {
        let message = "a command begins with its name".to_owned();
        return Err(fault("command", message, "command = [\"GET\", \"$key\"]"));
    }
    if command[0].contains(char::is_whitespace) && command.len() == 1 {
        let words: Vec<String> = command[0]
            .split_whitespace()
            .map(|word| format!("\"{word}\""))
            .collect();
        let message = "every argument is a string of its own".to_owned();
        let help = format!("command = [{}]", words.join(", "));
        return Err(fault("command", message, &help));
    }
    let expect = match expect {
        None => None,
        Some(pattern) => {
            Some(Regex::new(&pattern).map_err(|error| fault("expect", error.to_string(), ""))?)
        }
    };
    let arguments = ArgumentTemplate::parse_all(command.iter().map(String::as_str))
        .map_err(|(_, wrong)| fault("command", wrong.message, &wrong.help))?;
    Ok(Custom {
        arguments,
        expect,
        lag,
        key_at: key_position(&command),
    })
}

/// Where the first key of a command stands. A node of a cluster that is asked for another's key says whose it is, so a
/// command that is not known here costs a redirection and no more.
fn key_position(command: &[String]) -> Option<usize> {
    let name = command.first()?.to_ascii_uppercase();
    match name.as_str() {
        "PING" | "ECHO" | "INFO" | "TIME" | "DBSIZE" | "LASTSAVE" | "COMMAND" | "CONFIG"
        | "CLIENT" | "CLUSTER" | "ROLE" | "LOLWUT" | "SCRIPT" | "FUNCTION" | "PUBLISH" | "SCAN"
        | "RANDOMKEY" | "KEYS" | "FLUSHDB" | "FLUSHALL" | "WAIT" => None,
        "EVAL" | "EVALSHA" | "EVAL_RO" | "EVALSHA_RO" | "FCALL" | "FCALL_RO" => {
            (command.get(2).map(String::as_str) != Some("0")).then_some(3)
        }
        "BITOP" | "OBJECT" | "MEMORY" | "XGROUP" | "XINFO" => Some(2),
        "XREAD" | "XREADGROUP" => {
            let mut words = command.iter();
            let streams = words.position(|word| word.eq_ignore_ascii_case("STREAMS"));
            streams.map(|at| at + 1)
        }
        "LMPOP" | "ZMPOP" | "SINTERCARD" | "ZUNION" | "ZINTER" | "ZDIFF" => Some(2),
        "BLMPOP" | "BZMPOP" => Some(3),
        _ => Some(1),
    }
}

/// The text of an answer: a list's elements on lines of their own, nothing for what is not there.
pub fn text_of(value: &Value) -> Vec<u8> {
    let mut lines = Vec::new();
    collect(value, &mut lines);
    lines.join(&b'\n')
}

/// The first value of an answer as text.
pub fn first_text(value: &Value) -> String {
    let mut lines = Vec::new();
    collect(value, &mut lines);
    lines
        .into_iter()
        .next()
        .map(|line| String::from_utf8_lossy(&line).into_owned())
        .unwrap_or_default()
}

fn collect(value: &Value, lines: &mut Vec<Vec<u8>>) {
    match value {
        Value::Nil => lines.push(Vec::new()),
        Value::Int(number) => lines.push(number.to_string().into_bytes()),
        Value::BulkString(bytes) => lines.push(bytes.clone()),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => {
            lines.push(text.clone().into_bytes());
        }
        Value::Okay => lines.push(b"OK".to_vec()),
        Value::Double(number) => lines.push(number.to_string().into_bytes()),
        Value::Boolean(yes) => lines.push(yes.to_string().into_bytes()),
        Value::Array(items) | Value::Set(items) => {
            items.iter().for_each(|item| collect(item, lines));
        }
        Value::Push { data, .. } => data.iter().for_each(|item| collect(item, lines)),
        Value::Map(pairs) => pairs.iter().for_each(|(name, value)| {
            collect(name, lines);
            collect(value, lines);
        }),
        Value::Attribute { data, .. } => collect(data, lines),
        other => lines.push(format!("{other:?}").into_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn compiled(table: serde_json::Value) -> Result<Custom, OptionFault> {
        compile(table.as_object().expect("a table"))
    }

    #[test]
    fn the_lag_needs_no_command_and_takes_none() {
        assert!(compiled(json!({ "replication_lag": true })).is_ok_and(|custom| custom.lag));
        for more in [
            json!({ "replication_lag": true, "command": ["PING"] }),
            json!({ "replication_lag": true, "expect": "^0$" }),
        ] {
            assert_eq!(compiled(more).unwrap_err().key, "replication_lag");
        }
        let neither = compiled(json!({ "replication_lag": false })).unwrap_err();
        assert_eq!(neither.key, "command");
    }

    #[test]
    fn the_key_of_a_command_stands_where_the_command_has_it() {
        let key_at = |command: &str| {
            let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
            key_position(&words)
        };
        assert_eq!(key_at("get k"), Some(1));
        assert_eq!(key_at("PING"), None);
        assert_eq!(key_at("EVAL script 1 k"), Some(3));
        assert_eq!(key_at("EVAL script 0"), None);
        assert_eq!(key_at("OBJECT ENCODING k"), Some(2));
        assert_eq!(key_at("XREAD COUNT 2 streams s 0"), Some(4));
        assert_eq!(key_at("BLMPOP 1 2 a b LEFT"), Some(3));
    }
}
