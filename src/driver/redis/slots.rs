//! Slots of a Redis Cluster: which one a key is in, who owns which, and what a node says that is not the owner.

use crate::driver::net::malformed;
use crate::driver::spec::{Endpoint, Transport};
use crate::op::{ErrorClass, Failure};
use redis::Value;
use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};

pub const SLOTS: usize = 16_384;

/// The slot of a key: of what stands in its first braces, where something does.
#[inline]
pub fn slot_of(key: &[u8]) -> u16 {
    crc16(tagged(key)) % SLOTS as u16
}

fn tagged(key: &[u8]) -> &[u8] {
    let Some(open) = key.iter().position(|byte| *byte == b'{') else {
        return key;
    };
    let rest = &key[open + 1..];
    match rest.iter().position(|byte| *byte == b'}') {
        None | Some(0) => key,
        Some(close) => &rest[..close],
    }
}

/// CRC-16 as XMODEM has it: polynomial 0x1021, from 0.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (crc << 8) ^ REMAINDERS[usize::from((crc >> 8) as u8 ^ byte)]
    })
}

const REMAINDERS: [u16; 256] = {
    let mut table = [0_u16; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 {
                crc << 1
            } else {
                (crc << 1) ^ 0x1021
            };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

/// The answer to CLUSTER SLOTS, read.
#[derive(Debug, PartialEq)]
pub struct Ranges(Vec<Range>);

#[derive(Debug, PartialEq)]
struct Range {
    first: u16,
    last: u16,
    primary: (String, u16),
    replicas: Vec<(String, u16)>,
}

impl Ranges {
    /// `asked` is the host that the answer came from: a node that does not know its own address says none.
    pub fn read(answer: &Value, asked: &str) -> Result<Ranges, Failure> {
        let wrong = || malformed("no list of slots", b"*");
        let Value::Array(ranges) = answer else {
            return Err(wrong());
        };
        let read = ranges.iter().map(|range| range_of(range, asked));
        read.collect::<Option<_>>().map(Ranges).ok_or_else(wrong)
    }

    /// Each primary once.
    pub fn primaries(&self) -> BTreeSet<(String, u16)> {
        self.0.iter().map(|range| range.primary.clone()).collect()
    }
}

/// `3 primaries, 3 replicas, 16384 slots`.
impl Display for Ranges {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let replicas: BTreeSet<_> = self.0.iter().flat_map(|range| &range.replicas).collect();
        let slots = self.0.iter();
        let slots: usize = slots
            .map(|range| usize::from(range.last - range.first) + 1)
            .sum();
        let primaries = self.primaries().len();
        write!(
            f,
            "{primaries} primaries, {} replicas, {slots} slots",
            replicas.len()
        )
    }
}

fn range_of(range: &Value, asked: &str) -> Option<Range> {
    let Value::Array(parts) = range else {
        return None;
    };
    let [Value::Int(first), Value::Int(last), nodes @ ..] = parts.as_slice() else {
        return None;
    };
    let mut nodes = nodes.iter().map(|node| node_of(node, asked));
    let (first, last) = (u16::try_from(*first).ok()?, u16::try_from(*last).ok()?);
    (first <= last && usize::from(last) < SLOTS).then_some(())?;
    Some(Range {
        first,
        last,
        primary: nodes.next()??,
        // One that has no address yet serves nobody.
        replicas: nodes.flatten().collect(),
    })
}

fn node_of(node: &Value, asked: &str) -> Option<(String, u16)> {
    let Value::Array(parts) = node else {
        return None;
    };
    let [host, Value::Int(port), ..] = parts.as_slice() else {
        return None;
    };
    let host = match host {
        Value::BulkString(bytes) if !bytes.is_empty() => String::from_utf8(bytes.clone()).ok()?,
        Value::SimpleString(text) if !text.is_empty() => text.clone(),
        Value::BulkString(_) | Value::SimpleString(_) | Value::Nil => asked.to_owned(),
        _ => return None,
    };
    Some((host, u16::try_from(*port).ok()?))
}

/// Who owns which slot. A node keeps its number once it has one.
#[derive(Debug)]
pub struct Slots {
    owner: Box<[u16]>,
    nodes: Vec<Endpoint>,
}

/// The owner of a slot that nobody serves.
const NOBODY: u16 = u16::MAX;

impl Slots {
    pub fn new() -> Slots {
        Slots {
            owner: vec![NOBODY; SLOTS].into(),
            nodes: Vec::new(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub fn set(&mut self, ranges: &Ranges) {
        self.owner.fill(NOBODY);
        for range in &ranges.0 {
            let node = self.node(&range.primary.0, range.primary.1) as u16;
            self.owner[usize::from(range.first)..=usize::from(range.last)].fill(node);
            for (host, port) in &range.replicas {
                self.node(host, *port);
            }
        }
    }

    /// The number of the node that owns the slot.
    #[inline]
    pub fn owner(&self, slot: u16) -> Option<usize> {
        let owner = self.owner[usize::from(slot)];
        (owner != NOBODY).then_some(usize::from(owner))
    }

    pub fn move_slot(&mut self, slot: u16, node: usize) {
        if let Some(owner) = self.owner.get_mut(usize::from(slot)) {
            *owner = node as u16;
        }
    }

    /// The node's number; a new one for a new node.
    pub fn node(&mut self, host: &str, port: u16) -> usize {
        let is_it = |known: &Endpoint| matches!(&known.transport, Transport::Tcp { host: known, port: number, .. } if known == host && *number == port);
        if let Some(number) = self.nodes.iter().position(is_it) {
            return number;
        }
        self.nodes.push(Endpoint {
            text: String::new(),
            label: match host.contains(':') {
                true => format!("[{host}]:{port}"),
                false => format!("{host}:{port}"),
            },
            transport: Transport::Tcp {
                host: host.to_owned(),
                port,
                // A name that cannot be resolved now is tried again by whoever connects.
                addresses: crate::driver::net::resolve(host, port).unwrap_or_default(),
            },
        });
        self.nodes.len() - 1
    }

    pub fn endpoint(&self, node: usize) -> Option<&Endpoint> {
        self.nodes.get(node)
    }

    /// The numbers of all nodes that own a slot, in order.
    pub fn primaries(&self) -> Vec<usize> {
        let owners: BTreeSet<u16> = self.owner.iter().copied().collect();
        let owners = owners.into_iter().filter(|owner| *owner != NOBODY);
        owners.map(usize::from).collect()
    }
}

/// What a node answers that will not do it.
#[derive(Debug, PartialEq)]
pub enum Refusal {
    /// The slot is another node's for good.
    Moved { slot: u16, host: String, port: u16 },
    /// This key is at another node already, whose slot it is about to be.
    Ask { host: String, port: u16 },
    /// Some keys of the operation are here and some there, for now.
    TryAgain,
    /// No majority, or a slot that nobody serves.
    Down,
}

impl Refusal {
    pub fn of(failure: &Failure) -> Option<Refusal> {
        if failure.class != ErrorClass::Server {
            return None;
        }
        match failure.code.as_str() {
            "MOVED" | "ASK" => redirection(&failure.message),
            "TRYAGAIN" => Some(Refusal::TryAgain),
            "CLUSTERDOWN" => Some(Refusal::Down),
            _ => None,
        }
    }
}

/// `MOVED 3999 127.0.0.1:6381`; without a host it is the host of the node that says so.
fn redirection(message: &str) -> Option<Refusal> {
    let mut words = message.split(' ');
    let kind = words.next()?;
    let slot: u16 = words.next()?.parse().ok()?;
    let (host, port) = words.next()?.rsplit_once(':')?;
    let (host, port) = (host.to_owned(), port.parse().ok()?);
    match kind {
        "MOVED" => Some(Refusal::Moved { slot, host, port }),
        _ => Some(Refusal::Ask { host, port }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_specification() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(slot_of(b"foo"), 12_182);
        assert_eq!(slot_of(b"{foo}.bar"), slot_of(b"foo"));
        assert_eq!(slot_of(b"a{foo}{bar}"), slot_of(b"foo"));
        assert_eq!(tagged(b"foo{}{bar}"), b"foo{}{bar}");
        assert_eq!(tagged(b"foo{{bar}}zap"), b"{bar");
        assert_eq!(tagged(b"foo{bar"), b"foo{bar");
    }

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    fn node(host: Value, port: i64) -> Value {
        Value::Array(vec![
            host,
            Value::Int(port),
            bulk("id"),
            Value::Array(vec![]),
        ])
    }

    fn ranges() -> Ranges {
        let range = |first, last, nodes: Vec<Value>| {
            Value::Array([vec![Value::Int(first), Value::Int(last)], nodes].concat())
        };
        let answer = Value::Array(vec![
            range(
                0,
                99,
                vec![node(bulk("10.0.0.1"), 1), node(bulk("10.0.0.1"), 3)],
            ),
            range(100, 16_383, vec![node(Value::Nil, 2), node(bulk(""), 4)]),
        ]);
        Ranges::read(&answer, "10.0.0.9").unwrap()
    }

    #[test]
    fn owners_are_read_and_a_node_without_an_address_is_where_it_was_asked() {
        let mut slots = Slots::new();
        slots.set(&ranges());
        assert_eq!(
            slots.endpoint(slots.owner(99).unwrap()).unwrap().label,
            "10.0.0.1:1"
        );
        assert_eq!(
            slots.endpoint(slots.owner(100).unwrap()).unwrap().label,
            "10.0.0.9:2"
        );
        assert_eq!((slots.nodes.len(), slots.primaries().len()), (4, 2));
        assert_eq!(ranges().to_string(), "2 primaries, 2 replicas, 16384 slots");
    }

    #[test]
    fn a_node_keeps_its_number_when_slots_move() {
        let mut slots = Slots::new();
        slots.set(&ranges());
        let replica = slots.node("10.0.0.1", 3);
        slots.move_slot(5, replica);
        assert_eq!(slots.owner(5), Some(replica));
        slots.set(&Ranges(Vec::new()));
        assert_eq!(slots.owner(5), None);
        assert_eq!(slots.node("10.0.0.1", 3), replica);
    }

    #[test]
    fn what_is_no_list_of_slots_is_refused() {
        let wrong = [
            Value::Okay,
            Value::Array(vec![Value::Int(1)]),
            Value::Array(vec![Value::Array(vec![
                Value::Int(9),
                Value::Int(1),
                node(bulk("a"), 1),
            ])]),
            Value::Array(vec![Value::Array(vec![
                Value::Int(0),
                Value::Int(16_384),
                node(bulk("a"), 1),
            ])]),
            Value::Array(vec![Value::Array(vec![Value::Int(0), Value::Int(1)])]),
        ];
        for answer in wrong {
            assert!(Ranges::read(&answer, "h").is_err(), "{answer:?}");
        }
    }

    #[test]
    fn refusals_are_told_apart() {
        let said = |message: &str| {
            let code = message.split(' ').next().unwrap();
            Refusal::of(&Failure::new(ErrorClass::Server, message).with_code(code))
        };
        let moved = |host: &str, port| {
            let host = host.to_owned();
            Some(Refusal::Moved {
                slot: 3999,
                host,
                port,
            })
        };
        assert_eq!(said("MOVED 3999 127.0.0.1:6381"), moved("127.0.0.1", 6381));
        assert_eq!(said("MOVED 3999 ::1:6381"), moved("::1", 6381));
        assert_eq!(said("MOVED 3999 :6381"), moved("", 6381));
        let ask = Refusal::Ask {
            host: "db".to_owned(),
            port: 1,
        };
        assert_eq!(said("ASK 1 db:1"), Some(ask));
        assert_eq!(said("TRYAGAIN Multiple keys"), Some(Refusal::TryAgain));
        assert_eq!(
            said("CLUSTERDOWN Hash slot not served"),
            Some(Refusal::Down)
        );
        assert_eq!(said("READONLY no"), None);
    }
}
