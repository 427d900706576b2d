//! What every embedded store must do, beside what every driver must.

use crate::client::*;
use dbbench::driver::spec::Options;
use dbbench::driver::{Driver, Session};
use dbbench::op::{ErrorClass, Outcome, Reply, Verb};

pub fn an_operation_is_done_when_first_polled<H: Harness>() {
    assert!(H::Driver::spec().blocking());
    let Some(store) = H::start() else { return };
    let client = Client::of(&store);
    let mut session = now(client.open_session()).expect("a session");
    for verb in Verb::BUILT_IN {
        let wanted = operation(verb, verb.name().as_bytes(), b"value");
        let outcome = now(session.execute(&wanted, &mut Reply::default()));
        assert!(outcome.succeeded(), "{verb:?}: {outcome:?}");
    }
}

/// 150 keys, of which a scan reads at most `scan_limit` = 100.
pub fn a_scan_reads_on_from_its_key_in_order<H: Harness>() {
    let Some(store) = H::start() else { return };
    let client = Client::of(&store);
    let mut session = client.session();
    for number in (0..150).rev() {
        client.execute(&mut session, &set(&format!("key{number:03}"), b"0123"));
    }
    for (from, entries) in [
        ("key000", 100),
        ("key149", 1),
        ("key0495", 100),
        ("key100", 50),
    ] {
        let scan = operation(Verb::Scan, from.as_bytes(), b"");
        let (outcome, reply) = client.execute(&mut session, &scan);
        assert_eq!(outcome, Outcome::Found);
        assert_eq!(reply.bytes_received, entries * (6 + 4), "from {from}");
    }
    let beyond = operation(Verb::Scan, b"key2", b"");
    assert_eq!(client.execute(&mut session, &beyond).0, Outcome::Missing);
}

pub fn bytes_of_key_and_value_are_counted<H: Harness>() {
    let Some(store) = H::start() else { return };
    let client = Client::of(&store);
    let mut session = client.session();
    let long = [b'v'; 41_960];
    // (operation, bytes sent, bytes received)
    let cases = [
        (get("key"), 3, 0),
        (set("key", b"first"), 8, 0),
        (get("key"), 3, 5),
        (operation(Verb::ReadModifyWrite, b"key", &long), 41_963, 5),
        (verify(b"key", &long), 3, 41_960),
        (operation(Verb::Update, b"key", b"x"), 4, 0),
        (operation(Verb::Delete, b"key", b""), 3, 0),
    ];
    for (wanted, sent, received) in cases {
        let (_, reply) = client.execute(&mut session, &wanted);
        let counted = (reply.bytes_sent, reply.bytes_received);
        assert_eq!(counted, (sent, received), "{:?}", wanted.verb);
    }
}

pub fn only_a_plain_integer_with_a_next_one_is_incremented<H: Harness>() {
    let Some(store) = H::start() else { return };
    let client = Client::of(&store);
    let mut session = client.session();
    let increment = operation(Verb::Increment, b"n", b"");
    for content in ["", "007", "+1", "1.5", "9223372036854775807"] {
        client.execute(&mut session, &set("n", content.as_bytes()));
        let refused = failure(client.execute(&mut session, &increment).0);
        assert_eq!(refused.class, ErrorClass::Rejected, "{content}");
        assert_eq!(refused.code, "NOT_AN_INTEGER", "{content}");
        let kept = verify(b"n", content.as_bytes());
        assert_eq!(client.execute(&mut session, &kept).0, Outcome::Found);
    }
    for (content, next) in [
        ("-8", "-7"),
        ("-1", "0"),
        ("9223372036854775806", "9223372036854775807"),
    ] {
        client.execute(&mut session, &set("n", content.as_bytes()));
        assert_eq!(client.execute(&mut session, &increment).0, Outcome::Done);
        let read = verify(b"n", next.as_bytes());
        assert_eq!(client.execute(&mut session, &read).0, Outcome::Found);
    }
}

pub fn the_cold_side_tells_what_is_open<H: Harness>() {
    let Some(store) = H::start() else { return };
    let client = Client::of(&store);
    let mut control = client.control();
    control.ready(LIMIT).expect("the store is ready");
    let version = control.version(LIMIT).expect("a version");
    let number = version.rsplit(' ').next().expect("a last word");
    assert!(
        number.split('.').all(|part| part.parse::<u32>().is_ok()),
        "{version}"
    );
    let settings = control.settings(LIMIT).expect("settings");
    assert!(!settings.is_empty());
    assert!(
        settings
            .iter()
            .all(|(name, value)| !name.is_empty() && !value.is_empty())
    );
    let spec = H::Driver::spec();
    let claimed = (spec.durability)(&Options::new(spec.options, H::options()));
    assert_eq!(control.durability(LIMIT).expect("a durability"), claimed);
    assert!(control.round_trip(LIMIT).expect("a round trip") < LIMIT);
    let nonsense = control.statement("no such statement", LIMIT);
    assert_eq!(nonsense.expect_err("nonsense").class, ErrorClass::Client);
}
