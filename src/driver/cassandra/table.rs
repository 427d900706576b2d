//! The table `kv` of the built-in operations: its statements, and that it is ours before anything is written.

use super::fault::failure;
use super::value::{first_of, unreadable};
use crate::driver::spec::Options;
use crate::op::{ErrorClass, Failure};
use scylla::client::session::Session;
use scylla::deserialize::row::DeserializeRow;
use scylla::serialize::row::SerializeRow;
use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// Marks a table as one that dbbench has made.
const COMMENT: &str = "made by dbbench";

/// How long nodes that do not agree on the schema are waited for; one that is down never does.
const AGREEMENT: Duration = Duration::from_secs(10);

/// Statements by their position among the prepared ones.
pub const GET: usize = 0;
pub const SET: usize = 1;
pub const INSERT: usize = 2;
pub const UPDATE: usize = 3;
pub const DELETE: usize = 4;
pub const STATEMENTS: usize = 5;

/// What the table is made with.
pub struct Table {
    replication_factor: i64,
    /// Whether a keyspace that is there must have that many copies.
    factor_is_said: bool,
    compaction: Option<String>,
    compression: Option<String>,
    /// Keyspaces whose table is there, and ours. Held while one is made, so that only one session does.
    made: Mutex<HashSet<String>>,
}

/// The texts of the built-in operations.
pub fn statements(keyspace: &str) -> [String; STATEMENTS] {
    let kv = format!("\"{keyspace}\".kv");
    [
        format!("SELECT value FROM {kv} WHERE key = ?"),
        format!("INSERT INTO {kv} (key, value) VALUES (?, ?)"),
        format!("INSERT INTO {kv} (key, value) VALUES (?, ?) IF NOT EXISTS"),
        format!("UPDATE {kv} SET value = ? WHERE key = ? IF EXISTS"),
        format!("DELETE FROM {kv} WHERE key = ?"),
    ]
}

impl Table {
    pub fn new(options: &Options) -> Table {
        Table {
            replication_factor: options.integer("replication_factor").unwrap_or(1),
            factor_is_said: options.is_set("replication_factor"),
            compaction: options.text("compaction"),
            compression: options.text("compression"),
            made: Mutex::default(),
        }
    }

    /// Makes keyspace and table where there are none. A table that somebody else has made, or a keyspace with another
    /// number of copies than the options say, is a failure.
    pub async fn make(&self, cql: &Session, keyspace: &str) -> Result<(), Failure> {
        let mut made = self.made.lock().await;
        if made.contains(keyspace) {
            return Ok(());
        }
        match replication(cql, keyspace).await? {
            None => run(cql, &self.create_keyspace(keyspace)).await?,
            Some(found) => self.check_copies(keyspace, &found)?,
        }
        if !is_ours(cql, keyspace).await? {
            run(cql, &self.create_table(keyspace)).await?;
        }
        agree(cql).await?;
        made.insert(keyspace.to_owned());
        Ok(())
    }

    /// Drops the table where it is ours, and makes it anew: empty, and with these options.
    pub async fn renew(&self, cql: &Session, keyspace: &str) -> Result<(), Failure> {
        if !is_ours(cql, keyspace).await? {
            return Ok(());
        }
        self.made.lock().await.remove(keyspace);
        run(cql, &format!("DROP TABLE \"{keyspace}\".kv")).await?;
        agree(cql).await?;
        self.make(cql, keyspace).await
    }

    fn create_keyspace(&self, keyspace: &str) -> String {
        format!(
            "CREATE KEYSPACE IF NOT EXISTS \"{keyspace}\" WITH replication = \
             {{'class': 'NetworkTopologyStrategy', 'replication_factor': {}}}",
            self.replication_factor
        )
    }

    fn create_table(&self, keyspace: &str) -> String {
        let mut text = format!(
            "CREATE TABLE IF NOT EXISTS \"{keyspace}\".kv (key blob PRIMARY KEY, value blob) \
             WITH comment = '{COMMENT}'"
        );
        if let Some(class) = &self.compaction {
            text.push_str(&format!(" AND compaction = {{'class': '{class}'}}"));
        }
        match self.compression.as_deref() {
            Some("none") => text.push_str(" AND compression = {'enabled': 'false'}"),
            Some(class) => text.push_str(&format!(" AND compression = {{'class': '{class}'}}")),
            None => {}
        }
        text
    }

    fn check_copies(
        &self,
        keyspace: &str,
        found: &BTreeMap<String, String>,
    ) -> Result<(), Failure> {
        let wanted = self.replication_factor.to_string();
        let mut copies = found.iter().filter(|(name, _)| *name != "class");
        match copies.find(|(_, copies)| self.factor_is_said && **copies != wanted) {
            None => Ok(()),
            Some((place, copies)) => Err(Failure::new(
                ErrorClass::Rejected,
                format!(
                    "the keyspace `{keyspace}` is there with {copies} copies ({place}), not {wanted} as \
                     `replication_factor` says, and it is left alone; name another keyspace, or drop it yourself"
                ),
            )),
        }
    }
}

/// How a keyspace is replicated; None where there is no such keyspace.
pub async fn replication(
    cql: &Session,
    keyspace: &str,
) -> Result<Option<BTreeMap<String, String>>, Failure> {
    let question = "SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = ?";
    let rows: Vec<(BTreeMap<String, String>,)> = ask(cql, question, (keyspace,)).await?;
    Ok(rows.into_iter().next().map(|(map,)| map))
}

/// Whether there is a table `kv`, and dbbench has made it. Another one of that name is a failure.
async fn is_ours(cql: &Session, keyspace: &str) -> Result<bool, Failure> {
    let foreign = |what: &str| {
        Err(Failure::new(
            ErrorClass::Rejected,
            format!(
                "there is a table `{keyspace}.kv` {what}, and it is left alone; name another keyspace, or drop the table \
                 yourself"
            ),
        ))
    };
    let question =
        "SELECT comment FROM system_schema.tables WHERE keyspace_name = ? AND table_name = 'kv'";
    let tables: Vec<(Option<String>,)> = ask(cql, question, (keyspace,)).await?;
    let Some((comment,)) = tables.into_iter().next() else {
        return Ok(false);
    };
    let question = "SELECT column_name, kind, type FROM system_schema.columns \
        WHERE keyspace_name = ? AND table_name = 'kv'";
    let mut columns: Vec<(String, String, String)> = ask(cql, question, (keyspace,)).await?;
    columns.sort();
    let columns: Vec<String> = columns
        .iter()
        .map(|(name, kind, of)| format!("{name} {kind} {of}"))
        .collect();
    if columns != ["key partition_key blob", "value regular blob"] {
        return foreign("with other columns than dbbench's");
    }
    match comment.as_deref() {
        Some(COMMENT) => Ok(true),
        _ => foreign("that dbbench has not made"),
    }
}

/// Waits until the nodes that this one knows have one schema: a session on another may want the table at once.
async fn agree(cql: &Session) -> Result<(), Failure> {
    let deadline = Instant::now() + AGREEMENT;
    while schema_versions(cql).await? > 1 && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// Different schemas among the nodes that this one knows.
pub async fn schema_versions(cql: &Session) -> Result<usize, Failure> {
    let mut all = HashSet::new();
    for place in ["local", "peers"] {
        let question = format!("SELECT schema_version FROM system.{place}");
        all.extend(first_cells(cql, &question).await?);
    }
    Ok(all.len())
}

/// The first column of all rows, as it came; rows without a value are left out.
pub async fn first_cells(cql: &Session, question: &str) -> Result<Vec<Vec<u8>>, Failure> {
    let answer = cql.query_unpaged(question, ()).await;
    let answer = answer.map_err(|error| failure(&error))?;
    Ok(first_of(answer, usize::MAX)?
        .cells
        .into_iter()
        .flatten()
        .collect())
}

/// Executes a statement without an answer.
async fn run(cql: &Session, statement: &str) -> Result<(), Failure> {
    let answer = cql.query_unpaged(statement, ()).await;
    answer.map(drop).map_err(|error| failure(&error))
}

/// All rows of an answer.
pub async fn ask<R>(
    cql: &Session,
    question: &str,
    values: impl SerializeRow,
) -> Result<Vec<R>, Failure>
where
    R: for<'f> DeserializeRow<'f, 'f>,
{
    let answer = cql.query_unpaged(question, values).await;
    let answer = answer.map_err(|error| failure(&error))?;
    let rows = answer.into_rows_result().map_err(unreadable)?;
    let rows = rows.rows::<R>().map_err(unreadable)?;
    rows.map(|row| row.map_err(unreadable)).collect()
}
