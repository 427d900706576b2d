//! A stand-in for Kyoto Tycoon, which no package has: a process that speaks the three protocols of `ktserver` on one port as
//! a running 0.9.56 was seen to, on its in-memory tree databases. Where `ktserver` is on the PATH, `server` starts that.
//!
//! Answers that it knows of are byte for byte those recorded, dates apart. It is this test program, started once more for
//! the one test at the end. Not in it: expiry of anything but reads,
//! chunked requests, scripts, replication, cursors.
#![allow(dead_code)]

#[path = "kyototycoon_text.rs"]
mod text;

use crate::support::{Ready, TestServer, free_port};
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use text::{Columns, best_encoding, decode, encode, form};

/// Says to this test program that it is to be the stand-in: `port databases`.
const ASKED: &str = "DBBENCH_KYOTO_TYCOON_STAND_IN";

const LONGEST_LINE: usize = 8192;
const LARGEST: u64 = 1 << 28;
const NEVER: i64 = 0xff_ffff_ffff;

/// The real server where it is installed, else the stand-in, with so many databases `%`.
pub fn server(databases: usize) -> TestServer {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let real = std::env::split_paths(&path).any(|folder| folder.join("ktserver").is_file());
    if !real {
        return stand_in(databases);
    }
    let arguments = move |port: u16, _: &Path| {
        let port = port.to_string();
        let fixed = ["-host", "127.0.0.1", "-port", &port, "-th", "4", "-le"];
        let all = fixed.into_iter().chain(vec!["%"; databases]);
        all.map(str::to_owned).collect()
    };
    TestServer::start("ktserver", Ready::Port, arguments).expect("it is installed")
}

/// Starts the stand-in.
pub fn stand_in(databases: usize) -> TestServer {
    for _ in 0..5 {
        let port = free_port();
        let module = module_path!().split_once("::").map_or("", |path| path.1);
        let test = format!("{module}::the_stand_in_serves_where_it_is_asked_to");
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command
            .args([&test, "--exact", "--nocapture"])
            .env(ASKED, format!("{port} {databases}"));
        let directory = tempfile::tempdir().expect("a private directory");
        let mut server = TestServer::spawn(command, port, directory);
        let deadline = Instant::now() + Duration::from_secs(15);
        while Instant::now() < deadline && !server.ended() {
            if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
                return server;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    panic!("the stand-in for Kyoto Tycoon does not get ready");
}

#[derive(Clone)]
struct Record {
    value: Vec<u8>,
    /// Seconds since the epoch.
    expires: i64,
}

/// What is wrong with a request: the status of its answer, and the words.
type Refusal = (u16, &'static str);

const INVALID: Refusal = (400, "invalid parameters");
const NO_DATABASE: Refusal = (400, "no such database");
const DUPLICATE: Refusal = (450, "DB: 6: record duplication: record duplication");
const NO_RECORD: Refusal = (450, "DB: 7: no record: no record");
const ILLOGICAL: Refusal = (450, "DB: 8: logical inconsistency: logical inconsistency");

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Set,
    Add,
    Replace,
}

struct Store {
    databases: Vec<Mutex<BTreeMap<Vec<u8>, Record>>>,
}

impl Store {
    fn database(
        &self,
        number: usize,
    ) -> Result<MutexGuard<'_, BTreeMap<Vec<u8>, Record>>, Refusal> {
        let database = self.databases.get(number).ok_or(NO_DATABASE)?;
        Ok(database.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn get(&self, database: usize, key: &[u8]) -> Result<Record, Refusal> {
        let records = self.database(database)?;
        let record = records.get(key).filter(|record| record.expires > now());
        record.cloned().ok_or(NO_RECORD)
    }

    fn put(
        &self,
        database: usize,
        key: &[u8],
        value: Vec<u8>,
        expires: i64,
        mode: Mode,
    ) -> Result<(), Refusal> {
        let mut records = self.database(database)?;
        match (mode, records.contains_key(key)) {
            (Mode::Add, true) => return Err(DUPLICATE),
            (Mode::Replace, false) => return Err(NO_RECORD),
            _ => {}
        }
        records.insert(key.to_vec(), Record { value, expires });
        Ok(())
    }

    fn remove(&self, database: usize, key: &[u8]) -> Result<(), Refusal> {
        let mut records = self.database(database)?;
        records.remove(key).map(drop).ok_or(NO_RECORD)
    }

    /// Counters are eight bytes, the highest first.
    fn increment(&self, database: usize, key: &[u8], by: i64) -> Result<i64, Refusal> {
        let mut records = self.database(database)?;
        let before = match records.get(key) {
            None => 0,
            Some(record) => match record.value.as_slice().try_into() {
                Ok(bytes) => i64::from_be_bytes(bytes),
                Err(_) => return Err(ILLOGICAL),
            },
        };
        let after = before.wrapping_add(by);
        let (value, expires) = (after.to_be_bytes().to_vec(), NEVER);
        records.insert(key.to_vec(), Record { value, expires });
        Ok(after)
    }
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs() as i64)
}

/// Seconds from now; negative ones are absolute.
fn expiry(seconds: i64) -> i64 {
    match seconds {
        ..0 => -seconds,
        _ => now().saturating_add(seconds).min(NEVER),
    }
}

/// Is the stand-in, on the calling thread and one for each connection; never returns.
pub fn serve(listener: &TcpListener, databases: usize) {
    let databases = (0..databases).map(|_| Mutex::default()).collect();
    let store = Arc::new(Store { databases });
    for stream in listener.incoming().flatten() {
        let store = Arc::clone(&store);
        // The end of a connection is no fault of the server.
        std::thread::spawn(move || drop(converse(&stream, &store)));
    }
}

/// The first byte of every request says which protocol it is of.
fn converse(stream: &TcpStream, store: &Store) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut input = BufReader::with_capacity(64 * 1024, stream);
    loop {
        let Some(first) = input.fill_buf()?.first().copied() else {
            return Ok(());
        };
        let mut answer = Vec::new();
        let goes_on = match first {
            0 | 0x80.. => binary(&mut input, store, &mut answer)?,
            _ => http(&mut input, store, &mut answer)?,
        };
        let mut output = stream;
        output.write_all(&answer)?;
        if !goes_on {
            return Ok(());
        }
    }
}

fn binary(input: &mut impl Read, store: &Store, answer: &mut Vec<u8>) -> io::Result<bool> {
    let magic = number(input, 1)?;
    if !matches!(magic, 0xb8..=0xba) {
        return Ok(false);
    }
    let (flags, count) = (number(input, 4)?, number(input, 4)?);
    let (mut hits, mut records) = (0_u32, Vec::new());
    for _ in 0..count {
        let database = number(input, 2)? as usize;
        let key_length = number(input, 4)?;
        let value_length = if magic == 0xb8 { number(input, 4)? } else { 0 };
        let seconds = if magic == 0xb8 { number(input, 8)? } else { 0 };
        if key_length > LARGEST || value_length > LARGEST {
            answer.push(0xbf);
            return Ok(false);
        }
        let (key, value) = (bytes(input, key_length)?, bytes(input, value_length)?);
        let done = match magic {
            0xb8 => {
                let expires = expiry(seconds as i64);
                store.put(database, &key, value, expires, Mode::Set).is_ok()
            }
            0xb9 => store.remove(database, &key).is_ok(),
            _ => match store.get(database, &key) {
                Ok(record) => {
                    records.extend_from_slice(&(database as u16).to_be_bytes());
                    records.extend_from_slice(&(key.len() as u32).to_be_bytes());
                    records.extend_from_slice(&(record.value.len() as u32).to_be_bytes());
                    records.extend_from_slice(&record.expires.to_be_bytes());
                    records.extend_from_slice(&key);
                    records.extend_from_slice(&record.value);
                    true
                }
                Err(_) => false,
            },
        };
        hits += u32::from(done);
    }
    if flags & 1 == 0 {
        answer.push(magic as u8);
        answer.extend_from_slice(&hits.to_be_bytes());
        answer.append(&mut records);
    }
    Ok(true)
}

fn number(input: &mut impl Read, bytes: usize) -> io::Result<u64> {
    let mut word = [0; 8];
    input.read_exact(&mut word[8 - bytes..])?;
    Ok(u64::from_be_bytes(word))
}

fn bytes(input: &mut impl Read, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length).expect("a length below 2^28")];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// A line without its end; None where it is too long or there is none.
fn line(input: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    input
        .take(LONGEST_LINE as u64)
        .read_until(b'\n', &mut line)?;
    if line.pop() != Some(b'\n') {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&line);
    Ok(Some(text.trim_end_matches('\r').to_owned()))
}

struct Request {
    method: String,
    path: String,
    /// Names in small letters.
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

#[derive(Default)]
struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

fn http(input: &mut impl BufRead, store: &Store, answer: &mut Vec<u8>) -> io::Result<bool> {
    let Some(first) = line(input)? else {
        return Ok(false);
    };
    let words: Vec<&str> = first.split(' ').collect();
    let [method, path, version @ ("HTTP/1.0" | "HTTP/1.1")] = words[..] else {
        return Ok(false);
    };
    let mut headers = BTreeMap::new();
    loop {
        match line(input)? {
            None => return Ok(false),
            Some(line) if line.is_empty() => break,
            Some(line) => {
                if let Some((name, value)) = line.split_once(':') {
                    headers.insert(name.trim().to_ascii_lowercase(), value.trim().to_owned());
                }
            }
        }
    }
    let length = headers
        .get("content-length")
        .and_then(|text| text.parse().ok());
    let length: u64 = length.unwrap_or(0);
    if length > LARGEST {
        let text = b"HTTP/1.1 413 Request Entity Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
        answer.extend_from_slice(text);
        return Ok(false);
    }
    let keeps = match headers
        .get("connection")
        .map(|text| text.to_ascii_lowercase())
    {
        Some(said) if said == "close" => false,
        Some(said) if said == "keep-alive" => true,
        _ => version == "HTTP/1.1",
    };
    let request = Request {
        method: method.to_owned(),
        path: path.to_owned(),
        headers,
        body: bytes(input, length)?,
    };
    let head_only = request.method == "HEAD";
    let given = match request.path.strip_prefix("/rpc/") {
        Some(procedure) => by_procedure(store, procedure, &request),
        None => by_path(store, &request),
    };
    given.write(head_only, keeps, answer);
    Ok(keeps)
}

impl Answer {
    fn write(&self, head_only: bool, keeps: bool, out: &mut Vec<u8>) {
        let words = match self.status {
            200 => "OK",
            201 => "Created",
            204 => "No Content",
            400 => "Bad Request",
            404 => "Not Found",
            450 => "Logical Inconsistency",
            _ => "Not Implemented",
        };
        let mut head = format!(
            "HTTP/1.1 {} {words}\r\nServer: KyotoTycoon/0.9.56b\r\nDate: Mon, 30 Nov 2026 20:36:00 GMT\r\n\
             Content-Length: {}\r\n",
            self.status,
            self.body.len()
        );
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        if !keeps {
            head += "Connection: close\r\n";
        }
        out.extend_from_slice(head.as_bytes());
        out.extend_from_slice(b"\r\n");
        if !head_only {
            out.extend_from_slice(&self.body);
        }
    }
}

/// Which database a name means: numbers begin with a digit, and the names of these databases are all the same.
fn database_of(name: Option<&[u8]>) -> usize {
    match name {
        None | Some(b"%") => 0,
        Some(name) => std::str::from_utf8(name)
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(usize::MAX),
    }
}

fn by_procedure(store: &Store, procedure: &str, request: &Request) -> Answer {
    let (procedure, query) = procedure.split_once('?').unwrap_or((procedure, ""));
    let mut input = form(query.as_bytes());
    let kind = request
        .headers
        .get("content-type")
        .map_or("", String::as_str);
    if kind.starts_with("application/x-www-form-urlencoded") {
        input.extend(form(&request.body));
    } else if kind.starts_with("text/tab-separated-values") {
        let encoding = kind
            .split_once("colenc=")
            .and_then(|(_, name)| name.chars().next());
        let lines = request.body.split(|byte| *byte == b'\n');
        input.extend(lines.filter_map(|line| {
            let tab = line.iter().position(|byte| *byte == b'\t')?;
            Some((
                decode(&line[..tab], encoding),
                decode(&line[tab + 1..], encoding),
            ))
        }));
    }
    let mut output = Columns::new();
    let mut status = 200;
    if let Err((refused, words)) = call(store, procedure, &input, &mut output) {
        status = refused;
        let words = match refused {
            501 => format!("{words}: {procedure}"),
            _ => words.to_owned(),
        };
        output.insert(b"ERROR".to_vec(), words.into_bytes());
    }
    let encoding = best_encoding(&output);
    let kind = match encoding {
        None => "text/tab-separated-values".to_owned(),
        Some(letter) => format!("text/tab-separated-values; colenc={letter}"),
    };
    let mut body = Vec::new();
    for (name, value) in &output {
        body.extend(encode(name, encoding));
        body.push(b'\t');
        body.extend(encode(value, encoding));
        body.push(b'\n');
    }
    Answer {
        status,
        headers: vec![("Content-Type", kind)],
        body,
    }
}

fn call(
    store: &Store,
    procedure: &str,
    input: &Columns,
    output: &mut Columns,
) -> Result<(), Refusal> {
    let given = |name: &str| input.get(name.as_bytes()).map(Vec::as_slice);
    let wanted = |name: &str| given(name).ok_or(INVALID);
    let integer =
        |name: &str| -> Option<i64> { std::str::from_utf8(given(name)?).ok()?.parse().ok() };
    let database = database_of(given("DB"));
    let expires = integer("xt").map_or(NEVER, expiry);
    let put = |mode| {
        let (key, value) = (wanted("key")?, wanted("value")?);
        store.put(database, key, value.to_vec(), expires, mode)
    };
    match procedure {
        "void" => {}
        "echo" => output.extend(input.clone()),
        "set" => put(Mode::Set)?,
        "add" => put(Mode::Add)?,
        "replace" => put(Mode::Replace)?,
        "remove" => store.remove(database, wanted("key")?)?,
        "get" => {
            let record = store.get(database, wanted("key")?)?;
            output.insert(b"value".to_vec(), record.value);
            if record.expires < NEVER {
                output.insert(b"xt".to_vec(), record.expires.to_string().into_bytes());
            }
        }
        "increment" => {
            let by = integer("num").ok_or(INVALID)?;
            let number = store.increment(database, wanted("key")?, by)?;
            output.insert(b"num".to_vec(), number.to_string().into_bytes());
        }
        "clear" => store.database(database)?.clear(),
        "status" => {
            let records = store.database(database)?;
            let size: usize = records.values().map(|record| record.value.len()).sum();
            for (name, value) in [
                ("bnum", "65536".to_owned()),
                ("capcnt", "-1".to_owned()),
                ("capsiz", "-1".to_owned()),
                ("count", records.len().to_string()),
                ("ktcapsiz", "-1".to_owned()),
                ("opts", "0".to_owned()),
                ("path", "%".to_owned()),
                ("realtype", "33".to_owned()),
                ("size", size.to_string()),
            ] {
                output.insert(name.into(), value.into());
            }
        }
        "report" => {
            for (name, value) in [
                ("conf_kc_features", "(atomic)(zlib)(lzo)"),
                ("conf_kc_version", "1.2.76a (16.13)"),
                ("conf_kt_features", "(epoll)(lua)"),
                ("conf_kt_version", "0.9.56b (2.19)"),
                ("conf_os_name", "Linux"),
                ("serv_thread_count", "4"),
            ] {
                output.insert(name.into(), value.into());
            }
        }
        _ => return Err((501, "not implemented")),
    }
    Ok(())
}

fn by_path(store: &Store, request: &Request) -> Answer {
    let path = request.path.trim_start_matches('/').as_bytes();
    let (database, key) = match path.iter().position(|byte| *byte == b'/') {
        Some(slash) => (Some(decode(&path[..slash], Some('U'))), &path[slash + 1..]),
        None => (None, path),
    };
    let (database, key) = (database_of(database.as_deref()), decode(key, Some('U')));
    let (status, done) = match request.method.as_str() {
        "GET" | "HEAD" => (200, store.get(database, &key).map(|record| record.value)),
        "PUT" => {
            let mode = match request.headers.get("x-kt-mode").map(String::as_str) {
                Some("add") => Mode::Add,
                Some("replace") => Mode::Replace,
                _ => Mode::Set,
            };
            let put = store.put(database, &key, request.body.clone(), NEVER, mode);
            (201, put.map(|()| Vec::new()))
        }
        "DELETE" => (204, store.remove(database, &key).map(|()| Vec::new())),
        _ => (501, Ok(Vec::new())),
    };
    let mut answer = Answer::default();
    match done {
        Ok(body) => {
            answer.status = status;
            answer.body = body;
        }
        Err(NO_DATABASE) => {
            answer.status = 400;
            answer.body = b"no such database\n".to_vec();
        }
        // A condition of PUT that does not hold.
        Err(refusal) if status == 201 => answer.status = refusal.0,
        Err((_, words)) => {
            answer.status = 404;
            answer.headers.push(("X-Kt-Error", words.to_owned()));
        }
    }
    if answer.status == 201 {
        let place = format!("http://localhost{}", request.path);
        answer.headers.push(("Location", place));
    }
    answer
}

#[test]
fn the_stand_in_serves_where_it_is_asked_to() {
    let Ok(asked) = std::env::var(ASKED) else {
        return;
    };
    let (port, databases) = asked.split_once(' ').expect("port and databases");
    let port: u16 = port.parse().expect("a port");
    let databases: usize = databases.parse().expect("a number");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("a free port");
    serve(&listener, databases);
}
