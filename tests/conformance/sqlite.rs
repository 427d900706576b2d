//! The sqlite driver's harnesses: each way to keep the journal and the table. SQLite's locks are not fair, so a session
//! among fifty is given longer than by default.

use crate::inside::inside;
use dbbench::driver::sqlite::Sqlite;

inside!(Wal, Sqlite, { "busy_timeout": "60s" });
inside!(Delete, Sqlite, { "journal_mode": "delete", "synchronous": "off", "busy_timeout": "60s" });
inside!(Memory, Sqlite, { "journal_mode": "memory", "page_size": "16KiB", "busy_timeout": "60s" });
inside!(WithoutRowid, Sqlite, { "without_rowid": true, "mmap_size": "64MiB", "busy_timeout": "60s" });
