//! The generator: makes operation i of a group in place. What the engine calls, once per operation.
//!
//! Operation i is a function of (seed, repeat, phase, group, warm-up, i) and of the group's workload, so any number of
//! threads that share out the indices give the same operations. Keys and values come from `keys`, `distribution` and
//! `values`; who executes the operations and when is the engine's to say.

use super::distribution::KeySampler;
use super::keys::KeyFormatter;
use super::mix::Mix;
use super::querylog::spool::{Cursor, Spool};
use super::spec::{KeySpec, Stream, ValueSpec};
use super::values::ValueMaker;
use crate::op::{Operation, Verb};
use crate::random;
use std::sync::Arc;
use std::time::Duration;

/// What a group does, resolved: verbs instead of names.
#[derive(Clone, Debug)]
pub struct GroupWorkload {
    pub keys: KeySpec,
    pub values: ValueSpec,
    /// Weights are relative to their sum, each above 0; positions are the operations' slots.
    pub mix: Vec<(Verb, f64)>,
    /// What is read must be what was written.
    pub verify: bool,
    /// Keys there are, >= 1: the specification's count, or operations / uses_per_key where it has none.
    pub keys_total: u64,
}

/// What all sessions of a group share: parsed, checked, and with the content of files in memory once.
#[derive(Debug)]
pub struct Prepared {
    keys: KeySampler,
    format: KeyFormatter,
    values: ValueMaker,
    mix: Mix,
    slots: Vec<Slot>,
    /// A log to replay, instead of operations that are made.
    replay: Option<Replay>,
}

#[derive(Debug)]
struct Replay {
    spool: Spool,
    /// As fast as recorded times this; None: each statement when the one before has ended.
    speed: Option<f64>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    verb: Verb,
    verify: bool,
    /// Whether the operation carries the value: to write it, or to compare it.
    value: bool,
}

/// Makes the operations of one stream. Owned by one session or thread, and cheap to make.
#[derive(Debug)]
pub struct Generator {
    prepared: Arc<Prepared>,
    keys: KeySampler,
    format: KeyFormatter,
    value_base: u64,
    mix_base: u64,
    key_base: u64,
    random_base: u64,
    /// Where in the log it is.
    cursor: Option<Box<Replaying>>,
}

#[derive(Debug)]
struct Replaying {
    cursor: Cursor,
    /// The log is begun again when it ends.
    endless: bool,
    speed: Option<f64>,
}

impl Prepared {
    /// Errors are sentences about what cannot be made: a format, a law, a file. All of the user's own operations are taken
    /// to need the value.
    pub fn new(workload: &GroupWorkload) -> Result<Arc<Prepared>, String> {
        Prepared::with_custom(workload, |_| true)
    }

    /// As `new`, where `uses_value` says of the n-th operation of the user's own whether it uses `$value`: making values
    /// that nobody sends would cost the client's time.
    pub fn with_custom(
        workload: &GroupWorkload,
        uses_value: impl Fn(u16) -> bool,
    ) -> Result<Arc<Prepared>, String> {
        let slot = |verb: Verb| {
            let verify = workload.verify && reads_value(verb);
            let needed = match verb {
                Verb::Custom(n) => uses_value(n),
                verb => needs_value(verb),
            };
            Slot {
                verb,
                verify,
                value: needed || verify,
            }
        };
        let weights: Vec<f64> = workload.mix.iter().map(|(_, weight)| *weight).collect();
        Ok(Arc::new(Prepared {
            keys: KeySampler::new(&workload.keys, workload.keys_total)?,
            format: KeyFormatter::new(&workload.keys)?,
            values: ValueMaker::new(&workload.values)?,
            mix: Mix::new(&weights)?,
            slots: workload.mix.iter().map(|(verb, _)| slot(*verb)).collect(),
            replay: None,
        }))
    }

    /// The statements of a log, in their order; at their recorded times where `speed` says how much faster.
    pub fn replay(
        workload: &GroupWorkload,
        spool: Spool,
        speed: Option<f64>,
    ) -> Result<Arc<Prepared>, String> {
        let mut prepared = Prepared::new(workload)?;
        if let Some(prepared) = Arc::get_mut(&mut prepared) {
            prepared.replay = Some(Replay { spool, speed });
        }
        Ok(prepared)
    }
}

impl Generator {
    /// A generator with a preparation of its own; sessions of one group should share one by `of`.
    pub fn new(workload: &GroupWorkload, stream: Stream) -> Result<Generator, String> {
        Ok(Generator::of(&Prepared::new(workload)?, stream))
    }

    pub fn of(prepared: &Arc<Prepared>, stream: Stream) -> Generator {
        let base = |purpose: u64| {
            random::base(&[
                stream.seed,
                u64::from(stream.repeat),
                u64::from(stream.phase),
                u64::from(stream.group),
                u64::from(stream.warmup),
                purpose,
            ])
        };
        Generator {
            prepared: Arc::clone(prepared),
            keys: prepared.keys.seeded(stream.seed),
            format: prepared.format.clone(),
            value_base: ValueMaker::base(stream.seed),
            mix_base: base(1),
            key_base: base(2),
            random_base: base(3),
            cursor: None,
        }
    }

    /// The part of a log that is this thread's, from its beginning; nothing changes where no log is replayed. `endless`:
    /// it is begun again when it ends.
    ///
    /// # Panics
    /// Where the spool, which dbbench has just written, cannot be read.
    pub fn for_thread(mut self, thread: u32, endless: bool) -> Generator {
        self.cursor = self.prepared.replay.as_ref().map(|replay| {
            let cursor = replay.spool.cursor(thread);
            Box::new(Replaying {
                cursor: cursor.expect("the spool of the log is there"),
                endless,
                speed: replay.speed,
            })
        });
        self
    }

    /// When the operation that was filled last is meant to start, after the start of its pass; None in a closed loop.
    #[inline]
    pub fn intended(&self) -> Option<Duration> {
        let replaying = self.cursor.as_deref()?;
        let speed = replaying.speed?;
        let offset = Duration::from_micros(replaying.cursor.offset_us());
        Some(offset.div_f64(speed))
    }

    /// Makes operation `index` in place. `operation` is new (`Operation::default()`) or was last filled by a generator of
    /// the same preparation and seed; its key and value are kept where they are this operation's too. False where a log has
    /// ended: there is no such operation.
    #[inline]
    pub fn fill(&mut self, index: u64, operation: &mut Operation) -> bool {
        match &mut self.cursor {
            None => {
                self.make(index, operation);
                true
            }
            Some(replaying) => replaying.fill(index, operation),
        }
    }

    fn make(&mut self, index: u64, operation: &mut Operation) {
        let prepared = &*self.prepared;
        let slot = match prepared.mix.is_single() {
            true => 0,
            false => prepared.mix.slot(random::word(self.mix_base, index)),
        };
        let Slot {
            verb,
            verify,
            value,
        } = prepared.slots[usize::from(slot)];
        operation.verb = verb;
        operation.slot = slot;
        operation.index = index;
        operation.random = random::word(self.random_base, index);
        operation.verify = verify;

        let number = self.keys.number(index, self.key_base);
        // A key is never empty, so an empty one is that of a new operation.
        if operation.key_index != number || operation.key.is_empty() {
            let held = operation.key_index;
            self.format.write(number, held, &mut operation.key);
            operation.key_index = number;
            operation.value.clear();
        }
        if !value {
            operation.value.clear();
        } else if operation.value.is_empty() {
            let values = &prepared.values;
            values.write(self.value_base, number, &mut operation.value);
        }
    }
}

impl Replaying {
    fn fill(&mut self, index: u64, operation: &mut Operation) -> bool {
        operation.verb = Verb::Statement;
        operation.slot = 0;
        operation.index = index;
        operation.verify = false;
        let mut next = || {
            let read = self.cursor.next(&mut operation.value);
            read.expect("the spool of the log can be read")
        };
        if next() {
            return true;
        }
        if !self.endless {
            return false;
        }
        self.cursor.rewind().expect("the spool of the log is there");
        let mut next = || {
            let read = self.cursor.next(&mut operation.value);
            read.expect("the spool of the log can be read")
        };
        next()
    }
}

/// Keys that a group uses, for `GroupWorkload::keys_total`: the specification's count, else as many as its operations
/// (of one pass) need, else, by duration, no limit.
pub fn keys_total(keys: &KeySpec, operations: Option<u64>) -> u64 {
    let needed = operations.map(|operations| operations.div_ceil(keys.uses_per_key.max(1)));
    keys.count.or(needed).unwrap_or(u64::MAX)
}

/// Whether an operation writes the value. Of the user's own it is not known here, so they are taken to.
pub fn needs_value(verb: Verb) -> bool {
    match verb {
        Verb::Set | Verb::Insert | Verb::Update | Verb::ReadModifyWrite | Verb::Custom(_) => true,
        Verb::Get | Verb::Delete | Verb::Increment | Verb::Scan | Verb::Statement => false,
    }
}

/// Whether an operation reads the one value of its key, so that it can be verified.
pub fn reads_value(verb: Verb) -> bool {
    matches!(verb, Verb::Get | Verb::ReadModifyWrite)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::spec::{Content, Digest, KeyDistribution, SizeSpec};
    use std::collections::HashSet;
    use std::thread;

    const STREAM: Stream = Stream {
        seed: 42,
        repeat: 1,
        phase: 0,
        group: 0,
        warmup: false,
    };

    fn workload(distribution: KeyDistribution, mix: &[(Verb, f64)]) -> GroupWorkload {
        GroupWorkload {
            keys: KeySpec {
                format: "user%06d".to_owned(),
                digest: Digest::None,
                count: Some(500),
                uses_per_key: 1,
                distribution,
            },
            values: ValueSpec {
                size: SizeSpec::Uniform {
                    from_bytes: 1,
                    to_bytes: 200,
                },
                content: Content::Random,
                compressible: 0.0,
            },
            mix: mix.to_vec(),
            verify: false,
            keys_total: 500,
        }
    }

    fn mixed() -> GroupWorkload {
        let law = KeyDistribution::Zipfian {
            theta: 0.99,
            scrambled: true,
        };
        let mix = [(Verb::Get, 80.0), (Verb::Set, 15.0), (Verb::Delete, 5.0)];
        let mut workload = workload(law, &mix);
        workload.verify = true;
        workload
    }

    fn operation(workload: &GroupWorkload, stream: Stream, index: u64) -> Operation {
        let mut operation = Operation::default();
        Generator::new(workload, stream)
            .unwrap()
            .fill(index, &mut operation);
        operation
    }

    fn hash(operation: &Operation) -> u64 {
        let o = operation;
        let mut bytes = format!("{} {} {} {}", o.verb.name(), o.slot, o.index, o.key_index);
        bytes.push_str(&format!(" {} {} {}:", o.random, o.verify, o.key.len()));
        let all = [bytes.as_bytes(), &o.key, &o.value].concat();
        xxhash_rust::xxh3::xxh3_64(&all)
    }

    /// Sum of the operations' hashes, made by this many threads from the indices that `deal` gives each.
    fn digest(workload: &GroupWorkload, threads: u64, deal: impl Fn(u64) -> Vec<u64>) -> u64 {
        let prepared = Prepared::new(workload).unwrap();
        thread::scope(|scope| {
            let running: Vec<_> = (0..threads)
                .map(|number| {
                    let indices = deal(number);
                    let mut generator = Generator::of(&prepared, STREAM);
                    scope.spawn(move || {
                        let mut operation = Operation::default();
                        indices.into_iter().fold(0u64, |sum, index| {
                            generator.fill(index, &mut operation);
                            sum.wrapping_add(hash(&operation))
                        })
                    })
                })
                .collect();
            running
                .into_iter()
                .fold(0u64, |sum, thread| sum.wrapping_add(thread.join().unwrap()))
        })
    }

    #[test]
    fn any_number_of_threads_makes_the_same_operations() {
        let total = 10_001;
        let blocks = |threads: u64| {
            move |number: u64| {
                let (each, more) = (total / threads, total % threads);
                let from = number * each + number.min(more);
                (from..from + each + u64::from(number < more)).collect()
            }
        };
        let interleaved =
            |threads: u64| move |number: u64| (number..total).step_by(threads as usize).collect();
        let expected = digest(&mixed(), 1, |_| (0..total).collect());
        for threads in [1, 3, 16] {
            assert_eq!(digest(&mixed(), threads, blocks(threads)), expected);
            assert_eq!(digest(&mixed(), threads, interleaved(threads)), expected);
        }
        assert_ne!(digest(&mixed(), 1, |_| (1..total).collect()), expected);
    }

    #[test]
    fn operations_do_not_change_between_versions() {
        // Results of different versions can be compared only while this holds: whoever must change it raises
        // `PLAN_FORMAT`.
        // The law is one without logarithms, whose last digits are not the same on every machine.
        let mut workload = mixed();
        workload.keys.distribution = KeyDistribution::Uniform;
        let digest = digest(&workload, 1, |_| (0..1000).collect());
        assert_eq!(digest, 13_062_478_451_745_178_532);
    }

    #[test]
    fn streams_differ_by_seed_repeat_phase_group_and_warmup() {
        let others = [
            STREAM,
            Stream { seed: 43, ..STREAM },
            Stream {
                repeat: 2,
                ..STREAM
            },
            Stream { phase: 1, ..STREAM },
            Stream { group: 1, ..STREAM },
            Stream {
                warmup: true,
                ..STREAM
            },
        ];
        let workload = workload(KeyDistribution::Uniform, &[(Verb::Get, 1.0)]);
        let streams: HashSet<Vec<(u64, u64)>> = others
            .iter()
            .map(|stream| {
                let operations = (0..20).map(|index| operation(&workload, *stream, index));
                operations.map(|o| (o.key_index, o.random)).collect()
            })
            .collect();
        assert_eq!(streams.len(), others.len());
    }

    #[test]
    fn what_one_phase_writes_another_can_verify() {
        let load = workload(KeyDistribution::Sequential, &[(Verb::Set, 1.0)]);
        let stored: Vec<Operation> = (0..500).map(|i| operation(&load, STREAM, i)).collect();
        let mut read = workload(KeyDistribution::Uniform, &[(Verb::Get, 1.0)]);
        read.verify = true;
        let later = Stream {
            repeat: 2,
            phase: 3,
            group: 1,
            ..STREAM
        };
        for index in 0..1000 {
            let operation = operation(&read, later, index);
            let written = &stored[operation.key_index as usize];
            assert!(operation.verify && !operation.value.is_empty());
            assert_eq!(operation.key, written.key);
            assert_eq!(operation.value, written.value);
        }
    }

    #[test]
    fn operations_of_the_first_experiment_use_each_key_ten_times() {
        let mut workload = workload(KeyDistribution::Sequential, &[(Verb::Set, 1.0)]);
        workload.keys.format = "stress-test-%010d".to_owned();
        workload.keys.digest = Digest::Md5;
        workload.keys.uses_per_key = 10;
        workload.keys_total = 1000;
        workload.values.content = Content::RepeatIndex;
        workload.values.size = SizeSpec::Fixed { bytes: 41_960 };
        for index in [9_990, 9_999] {
            let operation = operation(&workload, STREAM, index);
            assert_eq!(operation.key_index, 999);
            // printf stress-test-0000000999 | md5sum
            assert_eq!(operation.key, b"1ba97c5d9c739e2956f756cf5f1a5ef1");
            assert_eq!(operation.value, b"0000000999".repeat(4_196));
        }
        assert_eq!(operation(&workload, STREAM, 9_989).key_index, 998);
    }

    #[test]
    fn a_key_and_value_that_are_the_last_ones_are_not_made_again() {
        let mut workload = workload(KeyDistribution::Sequential, &[(Verb::Set, 1.0)]);
        workload.keys.uses_per_key = 2;
        let mut generator = Generator::new(&workload, STREAM).unwrap();
        let mut operation = Operation::default();
        generator.fill(0, &mut operation);
        operation.key = b"kept".to_vec();
        operation.value = b"kept too".to_vec();
        generator.fill(1, &mut operation);
        assert_eq!((operation.index, operation.key_index), (1, 0));
        assert_eq!(operation.key, b"kept");
        assert_eq!(operation.value, b"kept too");
        generator.fill(2, &mut operation);
        assert_eq!(operation.key, b"user000001");
        assert_ne!(operation.value, b"kept too");
    }

    #[test]
    fn values_are_made_only_for_operations_that_write_or_verify() {
        let carries = |verb: Verb, verify: bool| {
            let mut workload = workload(KeyDistribution::Sequential, &[(verb, 1.0)]);
            workload.verify = verify;
            let operation = operation(&workload, STREAM, 0);
            (!operation.value.is_empty(), operation.verify)
        };
        assert_eq!(carries(Verb::Set, false), (true, false));
        assert_eq!(carries(Verb::Get, false), (false, false));
        assert_eq!(carries(Verb::Get, true), (true, true));
        assert_eq!(carries(Verb::Delete, true), (false, false));
        assert_eq!(carries(Verb::Insert, true), (true, false));
        assert_eq!(carries(Verb::ReadModifyWrite, true), (true, true));
        assert_eq!(carries(Verb::Custom(0), false), (true, false));
    }

    #[test]
    fn a_mix_on_one_key_never_shows_one_operation_the_values_of_another() {
        let mix = [(Verb::Get, 1.0), (Verb::Set, 1.0), (Verb::Custom(1), 1.0)];
        let mut workload = workload(KeyDistribution::Sequential, &mix);
        workload.keys_total = 1;
        let prepared = Prepared::with_custom(&workload, |_| false).unwrap();
        let mut generator = Generator::of(&prepared, STREAM);
        let mut reused = Operation::default();
        let mut seen = HashSet::new();
        for index in 0..100 {
            generator.fill(index, &mut reused);
            assert_eq!(reused.value.is_empty(), reused.verb != Verb::Set);
            assert_eq!(reused.verb, mix[usize::from(reused.slot)].0);
            seen.insert(reused.slot);
        }
        assert_eq!(seen.len(), 3);
    }

    #[test]
    fn keys_are_as_many_as_said_or_as_the_operations_need() {
        let mut keys = workload(KeyDistribution::Sequential, &[]).keys;
        assert_eq!(keys_total(&keys, Some(10)), 500);
        keys.count = None;
        keys.uses_per_key = 10;
        assert_eq!(keys_total(&keys, Some(10_000)), 1_000);
        assert_eq!(keys_total(&keys, Some(10_001)), 1_001);
        assert_eq!(keys_total(&keys, None), u64::MAX);
    }

    #[test]
    fn a_workload_that_cannot_be_made_is_refused() {
        let good = workload(KeyDistribution::Sequential, &[(Verb::Get, 1.0)]);
        let mut bad = good.clone();
        bad.keys.format = "user".to_owned();
        assert!(Generator::new(&bad, STREAM).unwrap_err().contains("%d"));
        let mut bad = good.clone();
        bad.keys_total = 0;
        assert!(Generator::new(&bad, STREAM).unwrap_err().contains("key"));
        let mut bad = good;
        bad.mix.clear();
        assert!(Generator::new(&bad, STREAM).unwrap_err().contains("mix"));
    }
}
