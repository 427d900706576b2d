//! What every driver must do, on its real store; what every driver of a store that keeps values must; and what every
//! driver of a server must. What embedded stores must do beside is in `embedded_facts`.

use crate::client::*;
use dbbench::driver::scripted::{ScriptedServer, Step};
use dbbench::driver::{Driver, Session};
use dbbench::op::{ErrorClass, Operation, Outcome, Reply, Verb};
use std::time::{Duration, Instant};

const MIB: usize = 1 << 20;
const SESSIONS: usize = 50;

/// The value of key number `number`: another for every key.
pub fn value(number: usize, length: usize) -> Vec<u8> {
    let pattern = format!("{number:010}");
    pattern.bytes().cycle().take(length).collect()
}

pub fn a_value_is_found_overwritten_and_deleted<H: Harness>() {
    let Some(store) = H::start() else { return };
    let client = Client::of(&store);
    let mut session = client.session();
    assert_eq!(client.execute(&mut session, &get("k")).0, Outcome::Missing);
    for content in [b"first".as_slice(), b"the second, which is longer", b"3"] {
        assert_eq!(
            client.execute(&mut session, &set("k", content)).0,
            Outcome::Done
        );
        let (outcome, reply) = client.execute(&mut session, &verify(b"k", content));
        assert_eq!(outcome, Outcome::Found);
        assert_eq!(reply.value_length, Some(content.len() as u64));
        assert!(reply.ended.is_some());
    }
    if H::Driver::spec().can(Verb::Delete) {
        let delete = operation(Verb::Delete, b"k", b"");
        assert_eq!(client.execute(&mut session, &delete).0, Outcome::Done);
        assert_eq!(client.execute(&mut session, &get("k")).0, Outcome::Missing);
        let again = client.execute(&mut session, &delete).0;
        let expected = match H::TELLS_DELETED {
            true => Outcome::Missing,
            false => Outcome::Done,
        };
        assert_eq!(again, expected);
    }
}

pub fn empty_and_large_values_come_back_whole<H: Harness>() {
    let Some(store) = H::start() else { return };
    let client = Client::of(&store);
    let mut session = client.session();
    // Just below 1 MiB, too: memcached's own limit is 1 MiB with key and header.
    for length in [0, 1, 2_560, 12_287, 12_288, 41_960, MIB - 512, MIB] {
        let key = format!("size-{length}");
        let content = value(length, length);
        let written = client.execute(&mut session, &set(&key, &content)).0;
        assert_eq!(written, Outcome::Done, "{length} bytes");
        let (outcome, reply) = client.execute(&mut session, &verify(key.as_bytes(), &content));
        assert_eq!(outcome, Outcome::Found, "{length} bytes");
        assert_eq!(reply.value_length, Some(length as u64));
    }
}

pub fn any_byte_may_stand_in_a_value_and_where_allowed_in_a_key<H: Harness>() {
    let Some(store) = H::start() else { return };
    let client = Client::of(&store);
    let mut session = client.session();
    let all: Vec<u8> = (0..=255).collect();
    assert_eq!(
        client.execute(&mut session, &set("bytes", &all)).0,
        Outcome::Done
    );
    assert_eq!(
        client.execute(&mut session, &verify(b"bytes", &all)).0,
        Outcome::Found
    );
    let keys: [&[u8]; 4] = [b"a\0b\r\n c\xff", b"\0", b"quote'\"; --\n\xff\xfe", &all];
    for key in keys {
        let written = client.execute(&mut session, &operation(Verb::Set, key, key));
        if H::BINARY_KEYS {
            assert_eq!(written.0, Outcome::Done);
        } else {
            let failure = failure(written.0);
            assert_eq!(
                (failure.class, failure.broken),
                (ErrorClass::Rejected, false)
            );
        }
    }
    for key in keys.into_iter().filter(|_| H::BINARY_KEYS) {
        let read = client.execute(&mut session, &verify(key, key)).0;
        assert_eq!(read, Outcome::Found, "{}", key.escape_ascii());
    }
    let read = client.execute(&mut session, &verify(b"bytes", &all)).0;
    assert_eq!(read, Outcome::Found);
}

pub fn a_wrong_value_is_told_from_the_right_one<H: Harness>() {
    let Some(store) = H::start() else { return };
    let client = Client::of(&store);
    let mut session = client.session();
    let content = value(1, 41_960);
    client.execute(&mut session, &set("k", &content));
    let mut last_byte = content.clone();
    last_byte[41_959] ^= 1;
    for wrong in [&last_byte[..], &content[..41_959], b""] {
        let outcome = client.execute(&mut session, &verify(b"k", wrong)).0;
        assert_eq!(outcome, Outcome::WrongValue);
    }
    let outcome = client.execute(&mut session, &verify(b"k", &content)).0;
    assert_eq!(outcome, Outcome::Found);
}

pub fn insert_and_update_keep_to_their_conditions<H: Harness>() {
    let Some(store) = H::start() else { return };
    let client = Client::of(&store);
    let mut session = client.session();
    if H::Driver::spec().can(Verb::Update) {
        let update = operation(Verb::Update, b"k", b"zero");
        assert_eq!(client.execute(&mut session, &update).0, Outcome::Missing);
        assert_eq!(client.execute(&mut session, &get("k")).0, Outcome::Missing);
    }
    if H::Driver::spec().can(Verb::Insert) {
        let insert = operation(Verb::Insert, b"k", b"one");
        assert_eq!(client.execute(&mut session, &insert).0, Outcome::Done);
        let again = operation(Verb::Insert, b"k", b"two");
        let failure = failure(client.execute(&mut session, &again).0);
        assert_eq!(failure.class, ErrorClass::Rejected);
        assert!(!failure.broken && !failure.unanswered);
        let kept = client.execute(&mut session, &verify(b"k", b"one")).0;
        assert_eq!(kept, Outcome::Found);
    }
    if H::Driver::spec().can(Verb::Update) && H::Driver::spec().can(Verb::Insert) {
        let update = operation(Verb::Update, b"k", &value(3, 5_000));
        assert_eq!(client.execute(&mut session, &update).0, Outcome::Done);
        let read = verify(b"k", &value(3, 5_000));
        assert_eq!(client.execute(&mut session, &read).0, Outcome::Found);
    }
}

pub fn increments_add_up_and_begin_at_nothing<H: Harness>() {
    if !H::Driver::spec().can(Verb::Increment) {
        return;
    }
    let Some(store) = H::start() else { return };
    let client = Client::of(&store);
    let mut session = client.session();
    let increment = operation(Verb::Increment, b"n", b"");
    for _ in 0..12 {
        assert_eq!(client.execute(&mut session, &increment).0, Outcome::Done);
    }
    let (outcomes, _) = client.execute_batch(&mut session, &vec![increment; 3]);
    assert_eq!(outcomes, vec![Outcome::Done; 3]);
    let read = client
        .execute(&mut session, &verify(b"n", &H::counter(15)))
        .0;
    assert_eq!(read, Outcome::Found);
}

pub fn a_value_that_is_no_number_is_not_incremented<H: Harness>() {
    if !H::Driver::spec().can(Verb::Increment) {
        return;
    }
    let Some(store) = H::start() else { return };
    let client = Client::of(&store);
    let mut session = client.session();
    for content in [b"text".as_slice(), b"1.5", b"\xff"] {
        client.execute(&mut session, &set("n", content));
        let increment = operation(Verb::Increment, b"n", b"");
        let failure = failure(client.execute(&mut session, &increment).0);
        assert!(!failure.broken && !failure.unanswered, "{failure}");
        let kept = client.execute(&mut session, &verify(b"n", content)).0;
        assert_eq!(kept, Outcome::Found);
    }
}

pub fn read_modify_write_reads_and_writes<H: Harness>() {
    if !H::Driver::spec().can(Verb::ReadModifyWrite) {
        return;
    }
    let Some(store) = H::start() else { return };
    let client = Client::of(&store);
    let mut session = client.session();
    client.execute(&mut session, &set("k", b"old"));
    let change = operation(Verb::ReadModifyWrite, b"k", &value(9, 41_960));
    let (outcome, reply) = client.execute(&mut session, &change);
    assert!(outcome.succeeded(), "{outcome:?}");
    assert_eq!(reply.value_length, Some(3));
    let read = verify(b"k", &value(9, 41_960));
    assert_eq!(client.execute(&mut session, &read).0, Outcome::Found);
    let batch = [
        operation(Verb::ReadModifyWrite, b"k", b"new"),
        verify(b"k", b"new"),
    ];
    let (outcomes, _) = client.execute_batch(&mut session, &batch);
    assert!(outcomes[0].succeeded());
    assert_eq!(outcomes[1], Outcome::Found);
}

pub fn a_batch_answers_in_its_order<H: Harness>() {
    let Some(store) = H::start() else { return };
    let client = Client::of(&store);
    let mut session = client.session();
    let mut batch = Vec::new();
    for number in 0..40 {
        let length = if number % 7 == 0 { 41_960 } else { number * 11 };
        let key = format!("key-{number}");
        batch.push(set(&key, &value(number, length)));
        batch.push(verify(key.as_bytes(), &value(number, length)));
        batch.push(verify(key.as_bytes(), b"not this"));
        batch.push(get(&format!("missing-{number}")));
    }
    let (outcomes, replies) = client.execute_batch(&mut session, &batch);
    assert_eq!(outcomes.len(), batch.len());
    let expected = [
        Outcome::Done,
        Outcome::Found,
        Outcome::WrongValue,
        Outcome::Missing,
    ];
    for (position, outcome) in outcomes.iter().enumerate() {
        assert_eq!(*outcome, expected[position % 4], "operation {position}");
    }
    assert_eq!(replies[1].value_length, Some(41_960));
    assert_eq!(replies[5].value_length, Some(11));
}

/// A batch whose requests and answers are far larger than the sockets hold, in an order that lets neither side finish
/// before the other reads.
pub fn a_large_batch_does_not_lock_up<H: Harness>() {
    let Some(store) = H::start() else { return };
    let client = Client::of(&store);
    let mut session = client.session();
    let content = value(5, 500_000);
    client.execute(&mut session, &set("big", &content));
    let mut batch = vec![verify(b"big", &content); 40];
    batch.extend(vec![set("other", &content); 40]);
    let (outcomes, _) = client.execute_batch(&mut session, &batch);
    assert!(outcomes[..40].iter().all(|one| *one == Outcome::Found));
    assert!(outcomes[40..].iter().all(|one| *one == Outcome::Done));
}

pub fn what_it_cannot_do_is_never_a_success<H: Harness>() {
    let Some(store) = H::start() else { return };
    let client = Client::of(&store);
    let mut session = client.session();
    client.execute(&mut session, &set("k", b"v"));
    let verbs = Verb::BUILT_IN.into_iter().chain([Verb::Custom(0)]);
    for verb in verbs.filter(|verb| !H::Driver::spec().verbs.contains(verb)) {
        let wanted = operation(verb, b"k", b"v");
        let outcome = client.execute(&mut session, &wanted).0;
        assert!(!outcome.succeeded(), "{verb:?} was {outcome:?}");
        let (outcomes, _) = client.execute_batch(&mut session, &[wanted, get("k")]);
        assert!(!outcomes[0].succeeded(), "{verb:?} was {:?}", outcomes[0]);
    }
}

/// Many sessions at a time, each of which sees its own values and no other's.
pub fn fifty_sessions_do_not_mix<H: Harness>() {
    let Some(store) = H::start() else { return };
    let client = Client::of(&store);
    client.at_the_same_time(SESSIONS, own_values);
    let mut session = client.session();
    for number in 0..SESSIONS {
        for round in ROUNDS - 3..ROUNDS {
            let (key, content) = own(number, round);
            let read = client.execute(&mut session, &verify(key.as_bytes(), &content));
            assert_eq!(read.0, Outcome::Found, "{key}");
        }
    }
}

pub fn sessions_that_count_together_lose_nothing<H: Harness>() {
    const EACH: usize = 10;
    if !H::Driver::spec().can(Verb::Increment) {
        return;
    }
    if let Some(reason) = H::LOSES_INCREMENTS {
        eprintln!("SKIPPED: {reason}");
        return;
    }
    let Some(store) = H::start() else { return };
    let client = Client::of(&store);
    client.at_the_same_time(SESSIONS, |mut session, _| async move {
        for _ in 0..EACH {
            let increment = operation(Verb::Increment, b"n", b"");
            let counted = session.execute(&increment, &mut Reply::default()).await;
            assert_eq!(counted, Outcome::Done);
        }
    });
    let total = H::counter((SESSIONS * EACH) as i64);
    let read = client.execute(&mut client.session(), &verify(b"n", &total));
    assert_eq!(read.0, Outcome::Found);
}

pub fn a_reset_empties_the_store<H: Harness>() {
    let Some(store) = H::start() else { return };
    let client = Client::of(&store);
    let mut session = client.session();
    client.execute(&mut session, &set("k", b"v"));
    client.control().reset(LIMIT).expect("a reset");
    assert_eq!(client.execute(&mut session, &get("k")).0, Outcome::Missing);
    let written = client.execute(&mut session, &set("k", b"again")).0;
    assert_eq!(written, Outcome::Done);
    let read = client.execute(&mut session, &verify(b"k", b"again")).0;
    assert_eq!(read, Outcome::Found);
}

const ROUNDS: usize = 20;

/// Key and value of a session of `fifty_sessions_do_not_mix`; it has three keys, written in turn.
fn own(number: usize, round: usize) -> (String, Vec<u8>) {
    (
        format!("session-{number}-{}", round % 3),
        value(number * 1000 + round, 100 + 977 * round),
    )
}

async fn own_values<S: Session>(mut session: S, number: usize) {
    for round in 0..ROUNDS {
        let (key, content) = own(number, round);
        let mut reply = Reply::default();
        let written = session.execute(&set(&key, &content), &mut reply).await;
        assert_eq!(written, Outcome::Done);
        let read = session
            .execute(&verify(key.as_bytes(), &content), &mut reply)
            .await;
        assert_eq!(read, Outcome::Found, "session {number}, round {round}");
    }
}

// Servers only.

pub fn after_a_timeout_no_late_reply_is_read<H: ServerHarness>() {
    let Some(store) = H::start() else { return };
    let client = Client::of(&store);
    let mut session = client.session();
    for number in 0..10 {
        let content = value(number, 2_560);
        client.execute(&mut session, &set(&format!("k{number}"), &content));
    }
    for number in 0..10 {
        let limit = Duration::from_millis(30);
        store.server().hang();
        let start = Instant::now();
        let answer = client.execute_within(&mut session, &get(&format!("k{number}")), limit);
        let waited = start.elapsed();
        store.server().go_on();
        assert_eq!(answer, None);
        assert!(waited < Duration::from_millis(500), "{waited:?}");
        session = client.session();
        let next = (number + 1) % 10;
        let read = verify(format!("k{next}").as_bytes(), &value(next, 2_560));
        assert_eq!(client.execute(&mut session, &read).0, Outcome::Found);
    }
}

/// The server answers each connection's first get late, with a value of its own.
pub fn a_late_reply_belongs_to_its_own_connection<H: ServerHarness>() {
    let server = ScriptedServer::start(H::FRAMING, |number, request| match H::greet(request) {
        Some(answer) => vec![Step::Send(answer)],
        None => {
            let delay = if number == 0 { 150 } else { 0 };
            let content = format!("of connection {number}");
            vec![
                Step::Wait(Duration::from_millis(delay)),
                Step::Send(H::value("k", content.as_bytes())),
            ]
        }
    })
    .expect("a server");
    let client = scripted::<H>(&server);
    let mut first = client.session();
    let answer = client.execute_within(&mut first, &get("k"), Duration::from_millis(50));
    assert_eq!(answer, None);
    drop(first);
    let mut second = client.session();
    std::thread::sleep(Duration::from_millis(200));
    let read = verify(b"k", b"of connection 1");
    assert_eq!(client.execute(&mut second, &read).0, Outcome::Found);
}

fn scripted<H: ServerHarness>(server: &ScriptedServer) -> Client<H::Driver> {
    let endpoint = H::endpoint_at(server.port());
    Client::open(&[endpoint], H::options(), Vec::new()).expect("the driver opens")
}

/// The client of a server that greets well, then does `steps` about anything.
fn misbehaving<H: ServerHarness>(steps: Vec<Step>) -> (ScriptedServer, Client<H::Driver>) {
    let server = ScriptedServer::start(H::FRAMING, move |_, request| match H::greet(request) {
        Some(answer) => vec![Step::Send(answer)],
        None => steps.clone(),
    })
    .expect("a server");
    let client = scripted::<H>(&server);
    (server, client)
}

pub fn a_reply_cut_off_anywhere_is_a_lost_connection<H: ServerHarness>() {
    let whole = H::value("k", b"some value");
    for cut in 0..whole.len() {
        let (_server, client) = misbehaving::<H>(vec![Step::send(&whole[..cut]), Step::Close]);
        let mut session = client.session();
        let failure = failure(client.execute(&mut session, &get("k")).0);
        assert_eq!(failure.class, ErrorClass::Reset, "cut at {cut}: {failure}");
        assert!(failure.broken && failure.unanswered);
        let mut session = client.session();
        let (outcomes, _) = client.execute_batch(&mut session, &[get("k"), get("k")]);
        assert_eq!(outcomes.len(), 2);
        // Where both share one request the first value may have come whole.
        let [first, second] = &outcomes[..] else {
            panic!("{outcomes:?}")
        };
        assert!(
            *first == Outcome::Found || first.breaks_session(),
            "cut at {cut}"
        );
        assert!(second.breaks_session(), "cut at {cut}");
    }
}

pub fn a_reply_in_pieces_is_read_whole<H: ServerHarness>() {
    let whole = H::value("k", b"some\r\nvalue");
    let mut steps = Vec::new();
    for byte in &whole {
        steps.push(Step::send([*byte]));
        steps.push(Step::Wait(Duration::from_millis(1)));
    }
    let (_server, client) = misbehaving::<H>(steps);
    let mut session = client.session();
    let read = verify(b"k", b"some\r\nvalue");
    assert_eq!(client.execute(&mut session, &read).0, Outcome::Found);
    assert_eq!(client.execute(&mut session, &read).0, Outcome::Found);
}

pub fn a_malformed_reply_is_told_at_once_and_breaks_the_session<H: ServerHarness>() {
    for wrong in H::malformed() {
        // The connection stays open: nothing but the bytes says that they are wrong.
        let (_server, client) = misbehaving::<H>(vec![Step::send(wrong), Step::Hang]);
        let mut session = client.session();
        let failure = failure(client.execute(&mut session, &get("k")).0);
        let shown = wrong.escape_ascii();
        assert_eq!(failure.class, ErrorClass::Protocol, "{shown}: {failure}");
        assert!(failure.broken);
    }
}

pub fn an_answer_nobody_asked_for_is_not_taken_for_the_next<H: ServerHarness>() {
    let mut twice = H::value("k", b"first");
    twice.extend(H::value("k", b"second"));
    let (_server, client) = misbehaving::<H>(vec![Step::Send(twice)]);
    let mut session = client.session();
    assert_eq!(
        client.execute(&mut session, &verify(b"k", b"first")).0,
        Outcome::Found
    );
    let failure = failure(client.execute(&mut session, &get("k")).0);
    assert_eq!(failure.class, ErrorClass::Protocol);
}

pub fn a_server_killed_under_an_operation_is_a_lost_connection<H: ServerHarness>() {
    let Some(store) = H::start() else { return };
    let client = Client::of(&store);
    let mut session = client.session();
    store.server().hang();
    let mut reply = Reply::default();
    let wanted = get("k");
    let outcome = client.run(async {
        let mut running = std::pin::pin!(session.execute(&wanted, &mut reply));
        let early = tokio::time::timeout(Duration::from_millis(50), &mut running).await;
        assert!(early.is_err(), "a hung server answered");
        store.server().kill();
        running.await
    });
    let failure = failure(outcome);
    assert_eq!(failure.class, ErrorClass::Reset);
    assert!(failure.broken && failure.unanswered);
    store.server().wait_ended();
    let refused = client.try_session().err().expect("nobody is there");
    assert_eq!(refused.class, ErrorClass::Connect);
}

pub fn a_refused_connection_is_a_failure_to_connect<H: ServerHarness>() {
    let endpoint = H::endpoint_at(crate::support::free_port());
    let client = Client::<H::Driver>::open(&[endpoint], H::options(), Vec::new());
    let client = client.expect("opening connects to nothing");
    let failure = client.try_session().err().expect("nobody is there");
    assert_eq!(failure.class, ErrorClass::Connect);
    assert!(failure.broken);
    let limit = Duration::from_secs(2);
    let failure = client.control().ready(limit).expect_err("nobody is there");
    assert_eq!(failure.class, ErrorClass::Connect);
}

pub fn the_cold_side_keeps_to_its_limit<H: ServerHarness>() {
    let Some(store) = H::start() else { return };
    let client = Client::of(&store);
    let limit = Duration::from_millis(100);
    let mut control = client.control();
    control.ready(LIMIT).expect("the store is ready");
    assert!(!control.version(LIMIT).expect("a version").is_empty());
    assert!(!control.settings(LIMIT).expect("settings").is_empty());
    assert!(control.round_trip(LIMIT).expect("a round trip") < Duration::from_secs(1));
    store.server().hang();
    let start = Instant::now();
    let failure = control.ready(limit).expect_err("the server hangs");
    assert!(start.elapsed() < Duration::from_secs(1));
    assert_eq!(failure.class, ErrorClass::Timeout);
    store.server().go_on();
    control.ready(LIMIT).expect("it goes on");
}

pub fn bytes_on_the_wire_are_counted<H: ServerHarness>() {
    let Some(store) = H::start() else { return };
    let client = Client::of(&store);
    let mut session = client.session();
    for length in [100, 41_960] {
        let content = value(1, length);
        let (_, written) = client.execute(&mut session, &set("k", &content));
        let (_, read) = client.execute(&mut session, &get("k"));
        let framed = length as u64..length as u64 + 80;
        assert!(framed.contains(&written.bytes_sent), "{written:?}");
        assert!((2..20).contains(&written.bytes_received), "{written:?}");
        assert!((4..40).contains(&read.bytes_sent), "{read:?}");
        assert!(framed.contains(&read.bytes_received), "{read:?}");
    }
    let batch: Vec<Operation> = vec![get("k"), get("k")];
    let (_, replies) = client.execute_batch(&mut session, &batch);
    assert!(replies.iter().all(|one| one.bytes_received > 41_960));
}
