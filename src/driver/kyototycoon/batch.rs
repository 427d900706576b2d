//! A batch: the requests of all its operations are sent before the first answer is read.
//!
//! By HTTP that is one request after another. The binary protocol has requests of many records: reads that follow one
//! another share one, and so do writes. A server answers reads with the records that it has, in the order of the keys, and
//! writes with their number; deletes go alone, since a number would not say which of the keys were there.

use super::session::{Session, magic};
use super::{Protocol, binary};
use crate::op::{Failure, Operation, Outcome, Reply, Verb};

/// Records of one shared request at most, and bytes of their values from which on no further one joins.
const RECORDS: usize = 1_000;
const BYTES: usize = 4 << 20;

/// What the operations from one place on were sent as.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sent {
    /// Not at all.
    Refused,
    Alone,
    /// So many of them in one request.
    Together(usize),
}

impl Session {
    pub(super) async fn batch(
        &mut self,
        operations: &[Operation],
        replies: &mut [Reply],
        outcomes: &mut Vec<Outcome>,
    ) -> Result<(), Failure> {
        if let Some(reply) = replies.first_mut() {
            self.be_connected(reply).await?;
        }
        self.request.clear();
        let mut position = 0;
        while position < operations.len() {
            let (rest, replies) = (&operations[position..], &mut replies[position..]);
            position += self.push_first(rest, replies);
        }
        if !self.request.is_empty() {
            self.send_batch().await?;
        }
        let mut position = 0;
        while position < operations.len() {
            let (rest, replies) = (&operations[position..], &mut replies[position..]);
            position += self.read_first(rest, replies, outcomes).await?;
        }
        Ok(())
    }

    /// How the first of the operations is sent: a function of the operations alone, so that who reads the answers knows.
    fn sent(&self, operations: &[Operation]) -> Sent {
        let first = &operations[0];
        if self.refusal(first).is_some() {
            return Sent::Refused;
        }
        let shares = matches!(first.verb, Verb::Get | Verb::Set);
        if self.settings.protocol != Protocol::Binary || !shares {
            return Sent::Alone;
        }
        let mut bytes = 0;
        let alike = |operation: &&Operation| {
            let fits = bytes < BYTES;
            if first.verb == Verb::Set {
                bytes += operation.value.len();
            }
            fits && operation.verb == first.verb && self.refusal(operation).is_none()
        };
        let run = operations.iter().take(RECORDS).take_while(alike);
        Sent::Together(run.count())
    }

    /// Writes the request of the first operation, and of those that share it; returns how many.
    fn push_first(&mut self, operations: &[Operation], replies: &mut [Reply]) -> usize {
        let verb = operations[0].verb;
        let before = self.request.len();
        match self.sent(operations) {
            Sent::Refused => return 1,
            Sent::Alone if verb == Verb::ReadModifyWrite => {
                self.push(Verb::Get, &operations[0], false);
                self.push(Verb::Set, &operations[0], false);
            }
            Sent::Alone => {
                self.push(verb, &operations[0], false);
            }
            Sent::Together(count) => {
                binary::push_head(magic(verb), count, &mut self.request);
                let mut before = before;
                for (operation, reply) in operations[..count].iter().zip(replies) {
                    self.push_record(verb, operation, false);
                    reply.bytes_sent += (self.request.len() - before) as u64;
                    before = self.request.len();
                }
                return count;
            }
        }
        replies[0].bytes_sent += (self.request.len() - before) as u64;
        1
    }

    /// Reads the answer to the same operations' request; returns how many they are.
    async fn read_first(
        &mut self,
        operations: &[Operation],
        replies: &mut [Reply],
        outcomes: &mut Vec<Outcome>,
    ) -> Result<usize, Failure> {
        let (operation, verb) = (&operations[0], operations[0].verb);
        let reply = &mut replies[0];
        let outcome = match self.sent(operations) {
            Sent::Refused => self
                .refusal(operation)
                .map_or(Outcome::Missing, Outcome::from),
            Sent::Alone if verb == Verb::ReadModifyWrite => {
                let read = settled(self.answer(Verb::Get, operation, reply).await)?;
                let written = settled(self.answer(Verb::Set, operation, reply).await)?;
                reply.ended = None;
                read.and_written(written)
            }
            Sent::Alone => settled(self.answer(verb, operation, reply).await)?,
            Sent::Together(count) => {
                let (operations, replies) = (&operations[..count], &mut replies[..count]);
                self.read_together(operations, replies, outcomes).await?;
                return Ok(count);
            }
        };
        outcomes.push(outcome);
        Ok(1)
    }

    async fn read_together(
        &mut self,
        operations: &[Operation],
        replies: &mut [Reply],
        outcomes: &mut Vec<Outcome>,
    ) -> Result<(), Failure> {
        let (verb, asked) = (operations[0].verb, operations.len());
        let mut hits = self.bulk_head(magic(verb), asked, &mut replies[0]).await?;
        if verb == Verb::Set {
            let outcome = settled(self.all_stored(hits, asked))?;
            outcomes.resize(outcomes.len() + asked, outcome);
            return Ok(());
        }
        for (operation, reply) in operations.iter().zip(replies) {
            let outcome = self.next_record(&mut hits, operation, reply).await?;
            outcomes.push(outcome);
        }
        self.bulk_end(hits)
    }
}

/// A failure that leaves the connection usable is an outcome; others end the batch.
fn settled(result: Result<Outcome, Failure>) -> Result<Outcome, Failure> {
    match result {
        Err(failure) if !failure.broken => Ok(Outcome::from(failure)),
        other => other,
    }
}
