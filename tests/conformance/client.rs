//! The other side of the facts: a driver opened on a store, its sessions run to their ends one call at a time.
#![allow(dead_code)]

use dbbench::driver::scripted::Framing;
use dbbench::driver::spec::{Endpoint, Options, Store, Transport};
use dbbench::driver::{Control, CustomOperation, Driver, Session, Target, Worker};
use dbbench::op::{Failure, Operation, Outcome, Reply, Verb};
use serde_json::{Map, Value};
use std::future::{Future, poll_fn};
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// No fact takes longer than this; an operation that does hangs.
pub const LIMIT: Duration = Duration::from_secs(20);

/// A store that the facts are tried on: what a driver adds to the suite.
pub trait Harness: Sized {
    type Driver: Driver;

    /// Whether a key may hold any bytes.
    const BINARY_KEYS: bool = true;

    /// Why sessions that count together lose increments on this store, where they do: the store's fault, not the driver's.
    const LOSES_INCREMENTS: Option<&'static str> = None;

    /// Whether a delete tells of a key that was not there.
    const TELLS_DELETED: bool = true;

    /// What a counter is read back as: most stores keep it as decimal text.
    fn counter(number: i64) -> Vec<u8> {
        number.to_string().into_bytes()
    }

    /// Starts the store; None where it is not installed.
    fn start() -> Option<Self>;

    /// None for stores inside the client.
    fn endpoint(&self) -> Option<String> {
        None
    }

    fn options() -> Map<String, Value> {
        Map::new()
    }
}

/// What the facts do to a server.
pub trait Hurt {
    /// It accepts connections, and answers nothing.
    fn hang(&self);
    fn go_on(&self);
    fn kill(&self);
    /// Waits until a killed server is gone, and its port with it.
    fn wait_ended(&self);
}

impl Hurt for crate::support::TestServer {
    fn hang(&self) {
        self.hang();
    }

    fn go_on(&self) {
        self.go_on();
    }

    fn kill(&self) {
        self.kill();
    }

    fn wait_ended(&self) {
        self.wait_ended();
    }
}

/// And what a store adds that is a server.
pub trait ServerHarness: Harness {
    const FRAMING: Framing;

    fn server(&self) -> &dyn Hurt;

    /// An endpoint at another port of 127.0.0.1.
    fn endpoint_at(port: u16) -> String;

    /// What a well-behaved server answers while a connection is new; None for any other request.
    fn greet(request: &[u8]) -> Option<Vec<u8>>;

    /// The answer to a get of `key`.
    fn value(key: &str, value: &[u8]) -> Vec<u8>;

    /// Answers to a get that no server of this kind would give.
    fn malformed() -> Vec<&'static [u8]>;
}

pub type SessionOf<D> = <<D as Driver>::Worker as Worker>::Session;

/// A driver, one of its workers, and the worker's event loop.
pub struct Client<D: Driver> {
    pub driver: D,
    worker: D::Worker,
    runtime: Runtime,
    endpoints: Vec<Endpoint>,
    _directory: TempDir,
}

impl<D: Driver> Client<D> {
    pub fn of<H: Harness<Driver = D>>(harness: &H) -> Client<D> {
        let endpoints: Vec<String> = harness.endpoint().into_iter().collect();
        Client::open(&endpoints, H::options(), Vec::new()).expect("the driver opens")
    }

    pub fn open(
        endpoints: &[String],
        options: Map<String, Value>,
        operations: Vec<Option<CustomOperation>>,
    ) -> Result<Client<D>, Failure> {
        let directory = tempfile::tempdir().expect("a private directory");
        let endpoints = endpoints_of::<D>(endpoints, directory.path().to_owned());
        let driver = D::open(Target {
            name: "target".to_owned(),
            endpoints: endpoints.clone(),
            options: Options::new(D::spec().options, options),
            operations,
            directory: directory.path().to_owned(),
            connect_timeout: LIMIT,
        })?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("an event loop");
        let worker = {
            let _inside = runtime.enter();
            driver.worker()?
        };
        Ok(Client {
            driver,
            worker,
            runtime,
            endpoints,
            _directory: directory,
        })
    }

    pub fn run<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(async {
            let limited = tokio::time::timeout(LIMIT, future).await;
            limited.expect("no fact takes so long")
        })
    }

    pub async fn open_session(&self) -> Result<SessionOf<D>, Failure> {
        self.worker.session(&self.endpoints).await
    }

    pub fn try_session(&self) -> Result<SessionOf<D>, Failure> {
        self.run(self.open_session())
    }

    pub fn session(&self) -> SessionOf<D> {
        self.try_session().expect("a session opens")
    }

    pub fn execute(&self, session: &mut SessionOf<D>, operation: &Operation) -> (Outcome, Reply) {
        let mut reply = Reply::default();
        let outcome = self.run(session.execute(operation, &mut reply));
        (outcome, reply)
    }

    /// As the engine does it: None where the limit was over first. The session must then be dropped.
    pub fn execute_within(
        &self,
        session: &mut SessionOf<D>,
        operation: &Operation,
        limit: Duration,
    ) -> Option<Outcome> {
        let mut reply = Reply::default();
        let future = session.execute(operation, &mut reply);
        self.run(async { tokio::time::timeout(limit, future).await.ok() })
    }

    pub fn execute_batch(
        &self,
        session: &mut SessionOf<D>,
        operations: &[Operation],
    ) -> (Vec<Outcome>, Vec<Reply>) {
        let mut replies = vec![Reply::default(); operations.len()];
        let mut outcomes = Vec::new();
        self.run(session.execute_batch(operations, &mut replies, &mut outcomes));
        (outcomes, replies)
    }

    /// Runs `work` in so many sessions at the same time: on this thread, or where the driver blocks each on its own.
    pub fn at_the_same_time<F>(
        &self,
        sessions: usize,
        work: impl Fn(SessionOf<D>, usize) -> F + Sync,
    ) where
        F: Future<Output = ()>,
    {
        if !D::spec().blocking() {
            let sessions: Vec<_> = (0..sessions).map(|_| self.session()).collect();
            let all = sessions.into_iter().enumerate();
            let futures = all.map(|(number, session)| work(session, number));
            self.run(join_all(futures.collect()));
            return;
        }
        let (driver, endpoints, work) = (&self.driver, &self.endpoints, &work);
        std::thread::scope(|scope| {
            for number in 0..sessions {
                scope.spawn(move || {
                    let worker = driver.worker().expect("a worker");
                    let session = now(worker.session(endpoints)).expect("a session");
                    now(work(session, number));
                });
            }
        });
    }

    pub fn control(&self) -> Box<dyn Control> {
        let control = self.driver.control(&self.endpoints[0]);
        control.expect("the cold side opens")
    }
}

fn endpoints_of<D: Driver>(texts: &[String], directory: PathBuf) -> Vec<Endpoint> {
    match &D::spec().store {
        Store::Server { parse, .. } => texts
            .iter()
            .map(|text| parse(text).expect("an endpoint"))
            .collect(),
        Store::Embedded => vec![Endpoint {
            text: String::new(),
            label: String::new(),
            transport: Transport::Directory { path: directory },
        }],
        Store::Nothing => vec![Endpoint {
            text: String::new(),
            label: String::new(),
            transport: Transport::Nothing,
        }],
    }
}

pub fn operation(verb: Verb, key: &[u8], value: &[u8]) -> Operation {
    Operation {
        verb,
        key: key.to_vec(),
        value: value.to_vec(),
        ..Operation::default()
    }
}

pub fn get(key: &str) -> Operation {
    operation(Verb::Get, key.as_bytes(), b"")
}

/// A get that wants to see this value.
pub fn verify(key: &[u8], value: &[u8]) -> Operation {
    Operation {
        verify: true,
        ..operation(Verb::Get, key, value)
    }
}

pub fn set(key: &str, value: &[u8]) -> Operation {
    operation(Verb::Set, key.as_bytes(), value)
}

/// The failure of an outcome that must be one.
#[track_caller]
pub fn failure(outcome: Outcome) -> Failure {
    match outcome {
        Outcome::Failed(failure) => *failure,
        other => panic!("{other:?} is no failure"),
    }
}

/// The result of a future of an embedded store, which has no await points.
pub fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("an embedded store must not wait asynchronously"),
    }
}

/// Drives all futures at the same time, on this thread.
pub async fn join_all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut running: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    let mut results: Vec<Option<F::Output>> = running.iter().map(|_| None).collect();
    poll_fn(|cx| {
        for (future, result) in running.iter_mut().zip(&mut results) {
            if result.is_none()
                && let Poll::Ready(value) = future.as_mut().poll(cx)
            {
                *result = Some(value);
            }
        }
        match results.iter().all(Option::is_some) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
    results.into_iter().flatten().collect()
}
