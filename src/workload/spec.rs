//! What a workload is, as data: the resolved `[workload]`, as the plan keeps, hashes and prints it.
//!
//! Only data; `generator` makes operations of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[workload.keys]`, merged with those of the phase and group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KeySpec {
    /// With exactly one `%d`, `%0Nd` or `%Nd`, filled with the key's number.
    pub format: String,
    pub digest: Digest,
    /// Keys there are; without one as many as there are operations (sequential only).
    pub count: Option<u64>,
    /// Operations in a row that use the same key number: number = index / uses_per_key.
    pub uses_per_key: u64,
    pub distribution: KeyDistribution,
}

/// What the formatted key is replaced by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Digest {
    None,
    /// Lower-case hex, 32 bytes.
    Md5,
    /// FNV-1a, 64 bits, lower-case hex, 16 bytes.
    Fnv1a,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum KeyDistribution {
    /// index / uses_per_key, modulo `count`.
    Sequential,
    Uniform,
    /// Rank r in [1, count] with probability proportional to 1 / r^theta; `scrambled` spreads the ranks over the keys.
    Zipfian {
        theta: f64,
        scrambled: bool,
    },
    /// A share `hot_operations` in [0, 1] of the operations goes to the first `hot_keys` share of the keys, the rest to the others.
    Hotspot {
        hot_keys: f64,
        hot_operations: f64,
    },
    /// Zipfian by age: the highest key number is the most wanted.
    Latest {
        theta: f64,
    },
    /// 95 % of the operations go to the first `share` of the keys, by an exponential law cut off at `count`.
    Exponential {
        share: f64,
    },
}

/// `[workload.values]`, merged with those of the phase and group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ValueSpec {
    pub size: SizeSpec,
    pub content: Content,
    /// Share of each value, in [0, 1), that a compressor should save.
    pub compressible: f64,
}

/// Bytes of a value, a function of (seed, key number).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum SizeSpec {
    Fixed {
        bytes: u64,
    },
    /// Both ends in.
    Uniform {
        from_bytes: u64,
        to_bytes: u64,
    },
    Choices {
        choices: Vec<SizeChoice>,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SizeChoice {
    pub bytes: u64,
    /// Relative to the sum of all weights.
    pub weight: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Content {
    /// `%010d` of the key's number, repeated and cut to the size.
    RepeatIndex,
    Random,
    /// Words of ASCII letters, digits and spaces.
    Text,
    /// Cut from this file at a place that depends on (seed, key number); `sha256` of its content is in the plan's hash.
    File {
        path: String,
        sha256: String,
    },
}

/// One operation of a group's mix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MixEntry {
    /// The operation's name as the scenario says it: a built-in verb's or one of `[operations]`.
    pub operation: String,
    /// Relative to the sum of all weights, > 0.
    pub weight: f64,
}

/// Whose stream of operations: nothing else (no thread, target or time) enters an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stream {
    pub seed: u64,
    /// From 1.
    pub repeat: u32,
    /// Position of the phase in the scenario (phases left out by `when` count), from 0.
    pub phase: u32,
    /// Position of the group in its phase, from 0.
    pub group: u32,
    /// Warm-up has indices of its own.
    pub warmup: bool,
}
