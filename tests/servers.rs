//! Managed servers, real ones: memcached, Redis, a forking Apache, and small shell scripts for what servers do wrong.
//!
//! Every test has a guard and a directory of its own and kills nothing but what it started. `servers_killed` has the tests in
//! which dbbench or its guard is killed.

#[path = "support/guarded.rs"]
mod support;

use dbbench::op::{ErrorClass, Failure};
use dbbench::server::{
    CommandFault, CommandSpec, FileContent, FileSpec, Guard, PortFault, PortLease, PrivateRoot,
    ReadySpec, Sampler, ServerSpec, StartFault, missing_program,
};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use support::*;

fn ask(port: u16, request: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = [0; 256];
    let read = stream.read(&mut answer).unwrap();
    String::from_utf8_lossy(&answer[..read]).into_owned()
}

#[test]
fn memcached_as_nobody_starts_answers_and_stops_cleanly() {
    let scratch = scratch();
    let guard = guard(scratch.path());
    let port = PortLease::reserve(None).unwrap();
    let server = start(&guard, &memcached(&guard, scratch.path(), &port)).unwrap();
    assert!(ask(port.port(), "version\r\n").starts_with("VERSION 1."));
    assert!(server.alive().is_ok());
    let pid = server.pid();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    if nix::unistd::geteuid().is_root() {
        assert!(status.contains("Uid:\t65534"), "{status}");
    }
    assert!(server.ready_after() < Duration::from_secs(2));
    let report = server.stop().unwrap();
    assert!(report.status.unwrap().success(), "{report:?}");
    assert!(!report.killed && !report.killed_descendants, "{report:?}");
    assert!(!lives(pid));
    let root = guard.private_root().path().to_owned();
    assert!(root.exists());
    drop(guard);
    assert!(!root.exists());
    assert!(
        scratch.path().join("memcached.log").exists(),
        "the log is kept"
    );
}

#[test]
fn redis_keeps_its_data_over_a_stop_and_setup_is_not_run_again() {
    let scratch = scratch();
    let guard = guard(scratch.path());
    let port = PortLease::reserve(None).unwrap();
    let spec = ServerSpec {
        setup: vec![shell("echo set up >> setup-was-here")],
        ..redis(&guard, scratch.path(), &port)
    };
    let server = start(&guard, &spec).unwrap();
    assert!(server.was_fresh());
    assert_eq!(ask(port.port(), "SET k v\r\n"), "+OK\r\n");
    assert_eq!(ask(port.port(), "SAVE\r\n"), "+OK\r\n");
    assert!(server.stop().unwrap().status.unwrap().success());
    let server = start(&guard, &spec).unwrap();
    assert!(!server.was_fresh());
    assert_eq!(ask(port.port(), "GET k\r\n"), "$1\r\nv\r\n");
    let times = std::fs::read_to_string(spec.directory.join("setup-was-here")).unwrap();
    assert_eq!(times, "set up\n");
    let log = std::fs::read_to_string(&spec.log).unwrap();
    assert!(log.contains("Ready to accept connections"), "{log}");
    server.stop().unwrap();
}

#[test]
fn a_forking_apache_is_ready_by_http_and_leaves_no_child() {
    let scratch = scratch();
    let guard = guard(scratch.path());
    let port = PortLease::reserve(None).unwrap();
    let spec = apache(&guard, scratch.path(), &port);
    let server = start(&guard, &spec).unwrap();
    let mark = spec.directory.display().to_string();
    assert!(within(Duration::from_secs(5), || living_with(&mark).len() == 9));
    let report = server.stop().unwrap();
    assert!(
        report.status.unwrap().success() && !report.killed,
        "{report:?}"
    );
    assert_eq!(living_with(&mark), Vec::<i32>::new());
}

#[test]
fn a_server_that_dies_at_start_is_told_with_the_end_of_its_log() {
    let scratch = scratch();
    let guard = guard(scratch.path());
    let spec = spec(
        &guard,
        scratch.path(),
        "dying",
        shell("echo cannot read x; exit 3"),
    );
    let since = Instant::now();
    let fault = start(&guard, &spec).err().unwrap();
    assert!(
        since.elapsed() < Duration::from_secs(5),
        "does not wait for readiness"
    );
    let text = fault.to_string();
    assert!(
        text.starts_with("dying exited with status 3 after "),
        "{text}"
    );
    assert!(
        text.ends_with("last lines of its log:\n    cannot read x"),
        "{text}"
    );
}

#[test]
fn a_server_that_is_never_ready_is_told_and_ended() {
    let scratch = scratch();
    let guard = guard(scratch.path());
    let port = PortLease::reserve(None).unwrap();
    let spec = ServerSpec {
        ready: ReadySpec::Tcp(([127, 0, 0, 1], port.port()).into()),
        ready_timeout: Duration::from_millis(400),
        ..spec(
            &guard,
            scratch.path(),
            "deaf",
            shell("sleep 321 & sleep 321"),
        )
    };
    let text = start(&guard, &spec).err().unwrap().to_string();
    assert!(
        text.starts_with("deaf was not ready within 400ms: cannot connect to"),
        "{text}"
    );
    let mark = spec.directory.display().to_string();
    assert_eq!(living_with(&mark), Vec::<i32>::new());
}

#[test]
fn a_driver_is_asked_until_it_says_ready_and_its_answer_is_told() {
    let scratch = scratch();
    let guard = guard(scratch.path());
    let mut spec = ServerSpec {
        ready: ReadySpec::Driver,
        ..spec(&guard, scratch.path(), "shy", shell("exec sleep 332"))
    };
    let refuse = || Failure::new(ErrorClass::Server, "LOADING the dataset in memory");
    let mut asked = 0;
    let mut third_time = |limit: Duration| {
        asked += 1;
        assert!(limit <= Duration::from_secs(1));
        if asked < 3 { Err(refuse()) } else { Ok(()) }
    };
    let server = guard.start_server(&spec, &mut third_time, &NEVER).unwrap();
    server.stop().unwrap();
    assert_eq!(asked, 3);
    spec.ready_timeout = Duration::from_millis(100);
    let fault = guard.start_server(&spec, &mut |_| Err(refuse()), &NEVER);
    let text = fault.err().unwrap().to_string();
    assert!(
        text.contains("within 100ms: LOADING the dataset in memory"),
        "{text}"
    );
}

#[test]
fn a_private_root_whose_name_is_taken_is_refused_and_left_alone() {
    let scratch = scratch();
    let root = PrivateRoot::in_directory(scratch.path());
    std::fs::create_dir(root.path()).unwrap();
    std::fs::write(root.path().join("precious"), "x").unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_dbbench"));
    let fault = Guard::start_with(program, root.clone()).err().unwrap();
    assert!(fault.to_string().contains("cannot make"), "{fault}");
    assert!(root.path().join("precious").exists());
}

#[test]
fn waiting_for_readiness_ends_when_interrupted() {
    let scratch = scratch();
    let guard = guard(scratch.path());
    let spec = spec(&guard, scratch.path(), "slow", shell("sleep 322"));
    let interrupted = AtomicBool::new(false);
    let since = Instant::now();
    let fault = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(200));
            interrupted.store(true, Ordering::Relaxed);
        });
        guard
            .start_server(&spec, &mut |_| Ok(()), &interrupted)
            .err()
    });
    assert!(matches!(fault, Some(StartFault::Interrupted)), "{fault:?}");
    assert!(since.elapsed() < Duration::from_secs(3));
    assert_eq!(
        living_with(&spec.directory.display().to_string()),
        Vec::<i32>::new()
    );
}

#[test]
fn a_server_that_ignores_its_stop_signal_is_killed_with_its_children() {
    let scratch = scratch();
    let guard = guard(scratch.path());
    let spec = ServerSpec {
        stop_timeout: Duration::from_millis(300),
        ..spec(
            &guard,
            scratch.path(),
            "stubborn",
            shell("trap '' TERM; echo ready; while :; do sleep 0.05; done"),
        )
    };
    let report = start(&guard, &spec).unwrap().stop().unwrap();
    assert!(report.killed);
    assert_eq!(report.status.unwrap().to_string(), "signal: 9 (SIGKILL)");
    assert!(report.took < Duration::from_secs(3), "{report:?}");
    assert_eq!(
        living_with(&spec.directory.display().to_string()),
        Vec::<i32>::new()
    );
}

#[test]
fn a_descendant_in_a_session_of_its_own_does_not_escape() {
    let scratch = scratch();
    let guard = guard(scratch.path());
    // Forked twice, so that its parent is gone when the server is stopped.
    let script = "(setsid sh -c 'sleep 323 & sleep 323' &) ; echo ready; exec sleep 323";
    let spec = spec(&guard, scratch.path(), "leaky", shell(script));
    let server = start(&guard, &spec).unwrap();
    let mark = spec.directory.display().to_string();
    assert!(within(Duration::from_secs(5), || living_with(&mark).len() == 4));
    let report = server.stop().unwrap();
    assert!(!report.killed && report.killed_descendants, "{report:?}");
    assert_eq!(living_with(&mark), Vec::<i32>::new());
}

#[test]
fn a_server_that_forks_without_end_is_ended() {
    let scratch = scratch();
    let guard = guard(scratch.path());
    let script = "echo ready; while :; do (sleep 0.2; setsid sleep 324) & sleep 0.003; done";
    let spec = spec(&guard, scratch.path(), "storm", shell(script));
    let server = start(&guard, &spec).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    server.kill().unwrap();
    assert!(
        server
            .alive()
            .unwrap_err()
            .to_string()
            .starts_with("storm was killed by SIGKILL")
    );
    assert_eq!(
        living_with(&spec.directory.display().to_string()),
        Vec::<i32>::new()
    );
}

#[test]
fn a_paused_server_does_not_answer_until_resumed_and_can_be_stopped() {
    let scratch = scratch();
    let guard = guard(scratch.path());
    let port = PortLease::reserve(None).unwrap();
    let server = start(&guard, &redis(&guard, scratch.path(), &port)).unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", port.port())).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    server.pause().unwrap();
    std::thread::sleep(Duration::from_millis(100));
    stream.write_all(b"PING\r\n").unwrap();
    let mut answer = [0; 7];
    assert!(stream.read(&mut answer).is_err());
    server.resume().unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"+PONG\r\n");
    server.pause().unwrap();
    assert!(!server.stop().unwrap().killed);
}

#[test]
fn a_server_that_dies_later_is_seen() {
    let scratch = scratch();
    let guard = guard(scratch.path());
    let script = "echo ready; sleep 0.3; echo out of memory; exit 7";
    let server = start(
        &guard,
        &spec(&guard, scratch.path(), "frail", shell(script)),
    )
    .unwrap();
    assert!(server.alive().is_ok());
    assert!(within(Duration::from_secs(5), || server.alive().is_err()));
    let text = server.alive().unwrap_err().to_string();
    assert!(
        text.contains("frail exited with status 7") && text.contains("out of memory"),
        "{text}"
    );
}

#[test]
fn words_are_not_split_and_the_environment_arrives() {
    let scratch = scratch();
    let guard = guard(scratch.path());
    let mut command =
        shell("echo \"$1|$2|$GREETING|$PWD\"; echo ready; echo oops >&2; exec sleep 325");
    command.extend(["name", "a  b $HOME", "*"].map(str::to_owned));
    let spec = ServerSpec {
        environment: vec![("GREETING".to_owned(), "good day".to_owned())],
        ..spec(&guard, scratch.path(), "words", command)
    };
    start(&guard, &spec).unwrap().stop().unwrap();
    let log = std::fs::read_to_string(&spec.log).unwrap();
    let expected = format!(
        "a  b $HOME|*|good day|{}\nready\n",
        spec.directory.display()
    );
    assert!(log.starts_with(&expected), "{log}");
    assert!(log.contains("oops"), "standard error is in the log too");
}

#[test]
fn a_server_runs_as_its_user_in_a_directory_of_that_user() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let scratch = scratch();
    let guard = guard(scratch.path());
    let spec = ServerSpec {
        user: Some("nobody".to_owned()),
        files: vec![FileSpec {
            path: "conf/a".into(),
            content: FileContent::Text("x".to_owned()),
        }],
        setup: vec![shell("id -un > setup-user")],
        ..spec(
            &guard,
            scratch.path(),
            "modest",
            shell(
                "id -u; id -G; echo more >> conf/a && echo again >> /dev/stderr && echo ready; exec sleep 326",
            ),
        )
    };
    start(&guard, &spec).unwrap().stop().unwrap();
    let log = std::fs::read_to_string(&spec.log).unwrap();
    assert!(log.starts_with("65534\n65534\n"), "{log}");
    let user = std::fs::read_to_string(spec.directory.join("setup-user")).unwrap();
    assert_eq!(user, "nobody\n");
    let unknown = ServerSpec {
        user: Some("no-such-user".to_owned()),
        ..spec
    };
    let text = start(&guard, &unknown).err().unwrap().to_string();
    assert_eq!(
        text,
        "modest: there is no user `no-such-user` on this machine"
    );
}

#[test]
fn a_server_is_pinned_and_a_cpu_that_is_not_there_is_refused() {
    let scratch = scratch();
    let guard = guard(scratch.path());
    let mut spec = ServerSpec {
        cpus: vec![0],
        ..spec(
            &guard,
            scratch.path(),
            "pinned",
            shell("grep Cpus_allowed_list /proc/self/status; echo ready; exec sleep 327"),
        )
    };
    start(&guard, &spec).unwrap().stop().unwrap();
    let log = std::fs::read_to_string(&spec.log).unwrap();
    assert!(log.starts_with("Cpus_allowed_list:\t0\n"), "{log}");
    spec.cpus = vec![1000];
    let text = start(&guard, &spec).err().unwrap().to_string();
    assert!(
        text.starts_with("pinned: cannot pin it to the CPUs [1000]"),
        "{text}"
    );
}

#[test]
fn a_missing_program_is_known_before_anything_starts() {
    let scratch = scratch();
    let guard = guard(scratch.path());
    let spec = ServerSpec {
        install: "build it from source".to_owned(),
        ..spec(
            &guard,
            scratch.path(),
            "absent",
            words("no-such-program-here -x"),
        )
    };
    let missing = missing_program(&spec).unwrap();
    assert_eq!(
        missing.to_string(),
        "`no-such-program-here` is not installed; build it from source"
    );
    assert!(matches!(start(&guard, &spec), Err(StartFault::Missing(_))));
    assert!(!spec.directory.exists());
    let needs = ServerSpec {
        command: words("sh"),
        requires: words("sh /no/such/module.so"),
        ..spec
    };
    assert_eq!(
        missing_program(&needs).unwrap().program,
        "/no/such/module.so"
    );
}

#[test]
fn a_setup_that_fails_is_told_and_run_again_at_the_next_start() {
    let scratch = scratch();
    let guard = guard(scratch.path());
    let mut spec = ServerSpec {
        setup: vec![shell("touch half; echo disk full >&2; exit 1")],
        ..spec(
            &guard,
            scratch.path(),
            "unfit",
            shell("echo ready; exec sleep 328"),
        )
    };
    let text = start(&guard, &spec).err().unwrap().to_string();
    assert!(
        text.starts_with("unfit: setup failed: `sh -c touch half;"),
        "{text}"
    );
    assert!(
        text.contains("exited with status 1") && text.contains("disk full"),
        "{text}"
    );
    spec.setup = vec![shell("test ! -e half")];
    assert!(start(&guard, &spec).unwrap().was_fresh());
    spec.setup_timeout = Duration::from_millis(200);
    spec.setup = vec![shell("sleep 329")];
    std::fs::remove_dir_all(&spec.directory).unwrap();
    let text = start(&guard, &spec).err().unwrap().to_string();
    assert!(
        text.contains("`sh -c sleep 329` did not end within 200ms"),
        "{text}"
    );
}

fn run(guard: &Guard, script: &str, limit: Duration) -> Result<String, CommandFault> {
    let argv = shell(script);
    let spec = CommandSpec {
        argv: &argv,
        environment: &[],
        directory: guard.private_root().path(),
        user: None,
        limit,
    };
    guard.run_command(&spec, &NEVER)
}

#[test]
fn a_command_gives_its_standard_output_or_its_errors_and_leaves_nothing() {
    let scratch = scratch();
    let guard = guard(scratch.path());
    let limit = Duration::from_secs(10);
    let output = run(&guard, "echo one; echo two >&2; sleep 330 & exit 0", limit);
    assert_eq!(output.unwrap(), "one\n");
    let text = run(&guard, "echo no >&2; exit 4", limit)
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("exited with status 4") && text.contains("    no"),
        "{text}"
    );
    let late = run(&guard, "sleep 330", Duration::from_millis(100));
    assert!(
        matches!(late, Err(CommandFault::TooLong { .. })),
        "{late:?}"
    );
    let mark = guard.private_root().path().display().to_string();
    let left: Vec<i32> = living_with(&mark)
        .into_iter()
        .filter(|&pid| pid != guard.pid())
        .collect();
    // Guard and keepers have the root in their command line; a keeper ends a moment after its tree.
    assert!(
        within(Duration::from_secs(2), || living_with(&mark).len() <= 1),
        "{left:?}"
    );
    assert_eq!(guard.private_root().path().read_dir().unwrap().count(), 0);
}

#[test]
fn a_port_that_a_server_holds_is_told_with_its_name() {
    let scratch = scratch();
    let guard = guard(scratch.path());
    let port = PortLease::reserve(None).unwrap();
    let number = port.port();
    let server = start(&guard, &memcached(&guard, scratch.path(), &port)).unwrap();
    drop(port);
    let fault = PortLease::reserve(Some(number)).unwrap_err();
    assert!(matches!(fault, PortFault::Taken { .. }));
    assert_eq!(
        fault.to_string(),
        format!("port {number} is taken by pid {} (memcached)", server.pid())
    );
}

#[test]
fn two_servers_of_two_guards_do_not_disturb_each_other() {
    let scratch = scratch();
    let (first, second) = (guard(scratch.path()), guard(scratch.path()));
    let ports = [(); 2].map(|()| PortLease::reserve(None).unwrap());
    let one = start(&first, &memcached(&first, scratch.path(), &ports[0])).unwrap();
    let two = start(&second, &memcached(&second, scratch.path(), &ports[1])).unwrap();
    drop(first);
    assert!(!lives(one.pid()));
    assert!(one.alive().is_err());
    assert!(two.alive().is_ok());
    assert!(ask(ports[1].port(), "version\r\n").starts_with("VERSION"));
    two.stop().unwrap();
}

#[test]
fn a_server_is_sampled_with_all_its_descendants_even_those_that_have_ended() {
    let scratch = scratch();
    let guard = guard(scratch.path());
    let script = "burn() { i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; }\n\
                  burn; (burn; dd if=/dev/zero of=f bs=1M count=4 conv=fsync 2>/dev/null); echo ready; sleep 331 & exec sleep 331";
    let spec = ServerSpec {
        instances: 2,
        instance: 2,
        ..spec(&guard, scratch.path(), "busy", shell(script))
    };
    let server = start(&guard, &spec).unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    let sampler = Sampler::start(Instant::now(), sender).unwrap();
    sampler.watch(&server);
    sampler.sample_now();
    sampler.forget("busy/2");
    sampler.sample_now();
    drop(sampler);
    let samples: Vec<_> = receiver
        .into_iter()
        .filter(|s| s.process == "busy/2")
        .collect();
    assert_eq!(samples.len(), 1);
    let sample = &samples[0];
    assert!(
        sample.cpu.unwrap() >= Duration::from_millis(50),
        "{sample:?}"
    );
    assert_eq!(sample.threads, Some(2));
    assert!(sample.rss_bytes.unwrap() > 100_000, "{sample:?}");
    assert!(sample.written_bytes.is_some(), "{sample:?}");
    server.stop().unwrap();
}
