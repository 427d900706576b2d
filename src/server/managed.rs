//! One server's life: prepared, started, waited for, watched, signalled, stopped.
//!
//! Knows a `ServerSpec` and the guard; which servers a run needs, and in what order, is `run`'s.

use super::client::{CommandSpec, Guard, Process, absolute};
use super::fault::{CommandFault, ExitFault, GuardFault, StartFault};
use super::files;
use super::messages::{Scope, Spawn};
use super::private;
use super::ready::{self, Look};
use super::spec::{ServerSpec, StopSignal, account, missing_program};
use crate::op::Failure;
use nix::sys::signal::Signal;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Pauses between two looks whether a server is ready.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
/// What descendants get to follow their main process before they are killed.
const FOLLOW: Duration = Duration::from_secs(1);
/// Limit of the kernel's own work on killed processes.
const KILLED: Duration = Duration::from_secs(5);

/// A server that was ready. Dropping it kills it with all its descendants.
pub struct Running {
    process: Process,
    label: String,
    log: PathBuf,
    log_start: u64,
    fresh: bool,
    ready_after: Duration,
    stop_signal: StopSignal,
    stop_timeout: Duration,
}

/// How a server ended when it was stopped.
#[derive(Clone, Copy, Debug)]
pub struct StopReport {
    /// Of the main process; None where even KILL did not end it.
    pub status: Option<ExitStatus>,
    /// The main process did not end on its stop signal.
    pub killed: bool,
    /// Descendants outlived the main process and were killed.
    pub killed_descendants: bool,
    pub took: Duration,
}

impl Guard {
    /// Prepares the server's directory (files; `setup` where it is fresh), starts it and waits until it is ready. Where that
    /// fails nothing of it is left running. `driver_ready` is called with a limit, for `ReadySpec::Driver` alone;
    /// `interrupted` ends the wait.
    pub fn start_server(
        &self,
        spec: &ServerSpec,
        driver_ready: &mut dyn FnMut(Duration) -> Result<(), Failure>,
        interrupted: &AtomicBool,
    ) -> Result<Running, StartFault> {
        let mut of_this = |_: &ServerSpec, limit| driver_ready(limit);
        let started = self.start_servers(std::slice::from_ref(spec), &mut of_this, interrupted)?;
        let mut started = started.into_iter();
        started.next().ok_or(StartFault::Interrupted)
    }

    /// The same for several servers that need each other, such as the instances of one: all are prepared, then all are
    /// started, then all are waited for. Where one fails none is left running.
    pub fn start_servers(
        &self,
        specs: &[ServerSpec],
        driver_ready: &mut DriverReady<'_>,
        interrupted: &AtomicBool,
    ) -> Result<Vec<Running>, StartFault> {
        if let Some(missing) = specs.iter().find_map(missing_program) {
            return Err(StartFault::Missing(missing));
        }
        let fresh = specs
            .iter()
            .map(|spec| self.prepare(spec, interrupted))
            .collect::<Result<Vec<_>, _>>()?;
        let mut starting = Vec::with_capacity(specs.len());
        for (spec, fresh) in specs.iter().zip(fresh) {
            starting.push(Starting {
                spec,
                since: Instant::now(),
                running: self.launch(spec, fresh)?,
                last_answer: Some("it was not asked yet".to_owned()),
            });
        }
        self.wait_ready(&mut starting, driver_ready, interrupted)?;
        Ok(starting.into_iter().map(|one| one.running).collect())
    }

    fn launch(&self, spec: &ServerSpec, fresh: bool) -> Result<Running, StartFault> {
        let log = absolute(&spec.log);
        let log_start = files::length(&log);
        Ok(Running {
            process: self.spawn_server(spec, &log)?,
            label: spec.label(),
            log,
            log_start,
            fresh,
            ready_after: Duration::ZERO,
            stop_signal: spec.stop_signal,
            stop_timeout: spec.stop_timeout,
        })
    }

    /// Directory, files, owner, setup; whether the directory was fresh.
    fn prepare(&self, spec: &ServerSpec, interrupted: &AtomicBool) -> Result<bool, StartFault> {
        let server = spec.label();
        let account = account(spec.user.as_deref()).map_err(|reason| StartFault::User {
            server: server.clone(),
            reason,
        })?;
        let fault = |path: &Path, source| StartFault::Directory {
            server: server.clone(),
            path: path.to_owned(),
            source,
        };
        let directory = &spec.directory;
        let fresh = is_fresh(directory);
        private::prepare(directory, None).map_err(|error| fault(directory, error))?;
        let working = working_directory(spec);
        if working.starts_with(absolute(directory)) {
            private::prepare(&working, None).map_err(|error| fault(&working, error))?;
        }
        files::write_all(directory, &spec.files).map_err(|(path, error)| fault(&path, error))?;
        private::prepare(directory, account.as_ref()).map_err(|error| fault(directory, error))?;
        if fresh && let Err(fault) = self.set_up(spec, interrupted) {
            // Half a setup must not pass for a whole one at the next start.
            let _ = std::fs::remove_dir_all(directory);
            return Err(fault);
        }
        Ok(fresh)
    }

    fn set_up(&self, spec: &ServerSpec, interrupted: &AtomicBool) -> Result<(), StartFault> {
        let directory = working_directory(spec);
        let log = absolute(&spec.log);
        for argv in &spec.setup {
            let command = CommandSpec {
                argv,
                environment: &spec.environment,
                directory: &directory,
                user: spec.user.as_deref(),
                limit: spec.setup_timeout,
            };
            self.run_logged(&command, &log, None, interrupted)
                .map_err(|fault| match fault {
                    CommandFault::Interrupted => StartFault::Interrupted,
                    CommandFault::Guard(fault) => StartFault::Guard(fault),
                    fault => StartFault::Setup {
                        server: spec.label(),
                        fault,
                    },
                })?;
        }
        Ok(())
    }

    fn spawn_server(&self, spec: &ServerSpec, log: &Path) -> Result<Process, StartFault> {
        let refused = |reason| StartFault::Spawn {
            server: spec.label(),
            reason,
        };
        let spawn = Spawn {
            argv: spec.command.clone(),
            environment: spec.environment.clone(),
            directory: working_directory(spec),
            account: account(spec.user.as_deref()).map_err(refused)?,
            cpus: spec.cpus.clone(),
            stdout: log.to_owned(),
            stderr: None,
        };
        self.spawn(spawn)?.map_err(refused)
    }

    /// Until all are ready; one that has ended ends the wait for all.
    fn wait_ready(
        &self,
        starting: &mut [Starting<'_>],
        driver_ready: &mut DriverReady<'_>,
        interrupted: &AtomicBool,
    ) -> Result<(), StartFault> {
        let mut pause = FIRST_PAUSE;
        loop {
            for one in starting.iter_mut().filter(|one| one.last_answer.is_some()) {
                one.look(self, driver_ready, interrupted);
            }
            let mut pause_now = match starting.iter().any(|one| one.last_answer.is_some()) {
                true => pause,
                false => Duration::ZERO,
            };
            // The exit first: an answer to a dead server's address would be another's. The first one's wait is the pause.
            for one in starting.iter() {
                one.lives(std::mem::take(&mut pause_now), interrupted)?;
            }
            if starting.iter().all(|one| one.last_answer.is_none()) {
                return Ok(());
            }
            if interrupted.load(Ordering::Relaxed) {
                return Err(StartFault::Interrupted);
            }
            starting.iter().try_for_each(Starting::in_time)?;
            pause = (pause * 3 / 2).min(LONGEST_PAUSE);
        }
    }
}

/// Says whether a server is ready, within a limit.
pub type DriverReady<'a> = dyn FnMut(&ServerSpec, Duration) -> Result<(), Failure> + 'a;

/// A server that was started and is waited for.
struct Starting<'s> {
    spec: &'s ServerSpec,
    since: Instant,
    running: Running,
    /// Why it is not ready; None once it is.
    last_answer: Option<String>,
}

impl Starting<'_> {
    fn look(
        &mut self,
        guard: &Guard,
        driver_ready: &mut DriverReady<'_>,
        interrupted: &AtomicBool,
    ) {
        let spec = self.spec;
        let look = Look {
            guard,
            spec,
            log_start: self.running.log_start,
            left: spec.ready_timeout.saturating_sub(self.since.elapsed()),
            interrupted,
        };
        self.last_answer = ready::look(&look, &mut |limit| driver_ready(spec, limit)).err();
        self.running.ready_after = self.since.elapsed();
    }

    /// An error when it has ended, which is waited for so long.
    fn lives(&self, pause: Duration, interrupted: &AtomicBool) -> Result<(), StartFault> {
        match self.running.process.wait_exit(pause, interrupted)? {
            None => Ok(()),
            Some(status) => Err(StartFault::Died {
                server: self.spec.label(),
                status,
                after: self.since.elapsed(),
                last_lines: ready::last_lines(self.spec, self.running.log_start),
            }),
        }
    }

    fn in_time(&self) -> Result<(), StartFault> {
        match &self.last_answer {
            Some(last_answer) if self.since.elapsed() >= self.spec.ready_timeout => {
                Err(StartFault::NotReady {
                    server: self.spec.label(),
                    within: self.spec.ready_timeout,
                    last_answer: last_answer.clone(),
                    last_lines: ready::last_lines(self.spec, self.running.log_start),
                })
            }
            _ => Ok(()),
        }
    }
}

/// Missing or empty: `setup` is due.
fn is_fresh(directory: &Path) -> bool {
    directory
        .read_dir()
        .map_or(true, |mut entries| entries.next().is_none())
}

fn working_directory(spec: &ServerSpec) -> PathBuf {
    let directory = absolute(&spec.directory);
    match &spec.working_directory {
        Some(working) => directory.join(working),
        None => directory,
    }
}

impl Running {
    /// The process that was started.
    pub fn pid(&self) -> i32 {
        self.process.pid
    }

    /// Its keeper: the root of the tree that the sampler adds up.
    pub(super) fn keeper(&self) -> i32 {
        self.process.keeper
    }

    /// `redis`, or `redis/2` where there are several.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Its directory was fresh: `setup` was run, `after_ready` is due.
    pub fn was_fresh(&self) -> bool {
        self.fresh
    }

    /// From its start to its readiness.
    pub fn ready_after(&self) -> Duration {
        self.ready_after
    }

    /// An error when its main process has ended, or the guard.
    pub fn alive(&self) -> Result<(), ExitFault> {
        match self.process.exited()? {
            None => Ok(()),
            Some(status) => Err(ExitFault::Exited {
                server: self.label.clone(),
                status,
                last_lines: files::last_lines(&self.log, self.log_start),
            }),
        }
    }

    /// Kills it and all its descendants at once, as the fault `kill` asks.
    pub fn kill(&self) -> Result<(), GuardFault> {
        self.process.end(KILLED).map(drop)
    }

    /// Freezes it and all its descendants.
    pub fn pause(&self) -> Result<(), GuardFault> {
        self.process.signal(Signal::SIGSTOP, Scope::Tree)
    }

    /// Undoes `pause`.
    pub fn resume(&self) -> Result<(), GuardFault> {
        self.process.signal(Signal::SIGCONT, Scope::Tree)
    }

    /// Sends the stop signal to the main process, waits for its end and then for that of its descendants, and kills what is
    /// left: the main process after the stop timeout, descendants a second after it.
    pub fn stop(self) -> Result<StopReport, GuardFault> {
        let since = Instant::now();
        // A stop is finished even when dbbench is interrupted.
        let never = AtomicBool::new(false);
        self.process.signal(self.stop_signal.0, Scope::Main)?;
        self.resume()?;
        let mut status = self.process.wait_exit(self.stop_timeout, &never)?;
        let killed = status.is_none();
        let mut killed_descendants = false;
        if killed || !self.process.wait_end(FOLLOW)? {
            killed_descendants = !killed;
            self.process.end(KILLED)?;
            status = self.process.exited()?;
        }
        Ok(StopReport {
            status,
            killed,
            killed_descendants,
            took: since.elapsed(),
        })
    }
}
