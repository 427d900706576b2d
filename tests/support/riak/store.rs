//! What the stand-in keeps: buckets with their properties, objects with their siblings, tombstones and clocks.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

/// How long a deletion is remembered (`delete_mode`).
const DELETE_MODE: Duration = Duration::from_secs(3);

/// A bucket's type and name.
pub type Name = (String, Vec<u8>);

#[derive(Default)]
pub struct Store {
    buckets: HashMap<Name, Bucket>,
    /// Numbers all writes.
    clock: u64,
}

#[derive(Clone)]
pub struct Bucket {
    pub properties: Properties,
    objects: BTreeMap<Vec<u8>, Object>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Properties {
    pub n_val: u32,
    pub allow_mult: bool,
}

/// One key: what was written and not superseded, and the last write that it knows of.
#[derive(Clone)]
pub struct Object {
    pub contents: Vec<Content>,
    pub clock: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Content {
    pub value: Vec<u8>,
    pub content_type: String,
    /// The write that made it.
    pub dot: u64,
    pub deleted: Option<Instant>,
}

impl Content {
    pub fn vtag(&self) -> String {
        format!("{:022X}", 0x0005_dead_beef_u128 * u128::from(self.dot))
    }
}

impl Object {
    pub fn is_deleted(&self) -> bool {
        self.contents
            .iter()
            .all(|content| content.deleted.is_some())
    }

    /// Opaque to clients, of the length that a real one has.
    pub fn vclock(&self) -> Vec<u8> {
        let mut clock = b"stand-in clock, opaque to whoever reads it ".to_vec();
        clock.extend_from_slice(&self.clock.to_be_bytes());
        clock
    }
}

/// The write that a clock of ours knows of; None where it is none of ours.
pub fn clock_of(vclock: &[u8]) -> Option<u64> {
    let number = vclock.strip_prefix(b"stand-in clock, opaque to whoever reads it ")?;
    Some(u64::from_be_bytes(number.try_into().ok()?))
}

impl Store {
    /// A type that was made has other properties than the default one.
    pub fn bucket(&mut self, name: &Name) -> &mut Bucket {
        let allow_mult = name.0 != "default";
        self.buckets.entry(name.clone()).or_insert_with(|| Bucket {
            properties: Properties {
                n_val: 3,
                allow_mult,
            },
            objects: BTreeMap::new(),
        })
    }

    /// The types that are active: the default one, and `siblings`.
    pub fn has_type(&self, name: &str) -> bool {
        ["default", "siblings"].contains(&name)
    }

    /// A tombstone that is old enough is gone.
    pub fn object(&mut self, name: &Name, key: &[u8]) -> Option<Object> {
        let objects = &mut self.bucket(name).objects;
        let object = objects.get(key)?.clone();
        let old = |content: &Content| {
            let since = content.deleted.map(|since| since.elapsed());
            since.is_some_and(|since| since >= DELETE_MODE)
        };
        if object.contents.iter().all(old) {
            objects.remove(key);
            return None;
        }
        Some(object)
    }

    /// Writes with the clock that the writer has seen, 0 where it has seen none.
    pub fn put(
        &mut self,
        name: &Name,
        key: &[u8],
        value: &[u8],
        content_type: &str,
        seen: u64,
    ) -> Object {
        self.write(name, key, value, content_type, seen, None)
    }

    /// As a delete does it: reads, then writes a tombstone with the clock that it read. False where there was nothing.
    pub fn delete(&mut self, name: &Name, key: &[u8]) -> bool {
        match self.object(name, key) {
            Some(object) if !object.is_deleted() => {
                let now = Some(Instant::now());
                self.write(name, key, b"", "", object.clock, now);
                true
            }
            _ => false,
        }
    }

    fn write(
        &mut self,
        name: &Name,
        key: &[u8],
        value: &[u8],
        content_type: &str,
        seen: u64,
        deleted: Option<Instant>,
    ) -> Object {
        let before = self.object(name, key);
        self.clock += 1;
        let clock = self.clock;
        let bucket = self.bucket(name);
        let mut contents = before.map_or_else(Vec::new, |object| object.contents);
        match bucket.properties.allow_mult {
            true => contents.retain(|content| content.dot > seen),
            false => contents.clear(),
        }
        contents.push(Content {
            value: value.to_vec(),
            content_type: content_type.to_owned(),
            dot: clock,
            deleted,
        });
        let object = Object { contents, clock };
        bucket.objects.insert(key.to_vec(), object.clone());
        object
    }

    /// Deleted ones among them, as long as they are remembered.
    pub fn keys(&mut self, name: &Name) -> Vec<Vec<u8>> {
        self.bucket(name).objects.keys().cloned().collect()
    }

    /// The value of a key of the bucket `dbbench`, as the tests look at it.
    pub fn values(&mut self, key: &str) -> Vec<Vec<u8>> {
        let name = ("default".to_owned(), b"dbbench".to_vec());
        let object = self.object(&name, key.as_bytes());
        let contents = object.map_or_else(Vec::new, |object| object.contents);
        let live = contents
            .into_iter()
            .filter(|content| content.deleted.is_none());
        live.map(|content| content.value).collect()
    }
}
