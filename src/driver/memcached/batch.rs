//! A batch: the requests of all its operations are sent, to all their servers, before the first answer is read.
//!
//! With `multi_get`, gets that follow one another on their way to the same server share one request; a server answers
//! such a request with the values that it has, in the order of the keys, and one `END`.

use super::session::Session;
use super::wire;
use crate::driver::net::lost;
use crate::op::{Failure, Operation, Outcome, Reply, Verb};

/// Keys and bytes of one shared get at most: servers cut longer lines to pieces (Kyoto Tycoon at 8192 bytes).
const KEYS_PER_GET: usize = 100;
const BYTES_PER_GET: usize = 4096;

/// Where an operation's request went.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    server: usize,
    /// Not sent at all.
    refused: bool,
    /// Its request is shared with the one before it.
    shares: bool,
    /// Its request is not shared with one after it.
    last: bool,
}

/// A get of a server that is not complete yet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OpenGet {
    keys: usize,
    begins_at: usize,
    last_operation: usize,
}

impl Session {
    pub(super) async fn batch(
        &mut self,
        operations: &[Operation],
        replies: &mut [Reply],
        outcomes: &mut Vec<Outcome>,
    ) -> Result<(), Failure> {
        self.push_all(operations, replies)?;
        for server in &mut self.servers {
            if !server.request.is_empty() {
                let sent = server.connection.send_batch(&server.request).await;
                sent.map_err(|error| lost(&error))?;
            }
        }
        let first = outcomes.len();
        self.read_all(operations, replies, outcomes).await?;
        // Counters that were not there are made when no answer is under way any more.
        for (position, (operation, reply)) in operations.iter().zip(replies).enumerate() {
            let outcome = &mut outcomes[first + position];
            if operation.verb == Verb::Increment && *outcome == Outcome::Missing {
                *outcome = settled(self.increment_again(operation, reply).await)?;
            }
        }
        Ok(())
    }

    /// Writes the requests of all operations, each behind those of its server.
    fn push_all(&mut self, operations: &[Operation], replies: &mut [Reply]) -> Result<(), Failure> {
        for server in &mut self.servers {
            server.check_idle()?;
            server.request.clear();
        }
        self.places.clear();
        // Only shared gets need to be remembered, and most batches have none.
        let mut open = vec![
            None;
            if self.multi_get {
                self.servers.len()
            } else {
                0
            }
        ];
        for (number, (operation, reply)) in operations.iter().zip(replies).enumerate() {
            let server = self.server_of(&operation.key);
            let refused = wire::refusal(operation).is_some();
            let mut place = Place {
                server,
                refused,
                shares: false,
                last: true,
            };
            if !refused {
                let before = self.servers[server].request.len();
                if self.multi_get && operation.verb == Verb::Get {
                    place.shares = self.push_shared(&mut open[server], number, server, operation);
                } else {
                    if let Some(get) = open.get_mut(server) {
                        self.close(get, server);
                    }
                    self.push_alone(server, operation);
                }
                reply.bytes_sent += (self.servers[server].request.len() - before) as u64;
            }
            self.places.push(place);
        }
        for (server, get) in open.iter_mut().enumerate() {
            self.close(get, server);
        }
        self.open_gets = open;
        Ok(())
    }

    fn push_alone(&mut self, server: usize, operation: &Operation) {
        let (server, protocol) = (&mut self.servers[server], self.protocol);
        match operation.verb {
            Verb::ReadModifyWrite => {
                server.push(protocol, Verb::Get, operation);
                server.push(protocol, Verb::Set, operation);
            }
            verb => server.push(protocol, verb, operation),
        }
    }

    /// Adds a key to the server's open get, or opens one. Returns whether there was one.
    fn push_shared(
        &mut self,
        open: &mut Option<OpenGet>,
        number: usize,
        server: usize,
        operation: &Operation,
    ) -> bool {
        let length = self.servers[server].request.len();
        let full = open.is_some_and(|get: OpenGet| {
            get.keys == KEYS_PER_GET || length - get.begins_at > BYTES_PER_GET - wire::LONGEST_KEY
        });
        if full {
            self.close(open, server);
        }
        let request = &mut self.servers[server].request;
        let shares = match open {
            Some(get) => {
                self.places[get.last_operation].last = false;
                get.keys += 1;
                get.last_operation = number;
                true
            }
            None => {
                *open = Some(OpenGet {
                    keys: 1,
                    begins_at: request.len(),
                    last_operation: number,
                });
                request.extend_from_slice(b"get");
                false
            }
        };
        request.push(b' ');
        request.extend_from_slice(&operation.key);
        shares
    }

    fn close(&mut self, open: &mut Option<OpenGet>, server: usize) {
        if open.take().is_some() {
            self.servers[server].request.extend_from_slice(b"\r\n");
        }
    }

    async fn read_all(
        &mut self,
        operations: &[Operation],
        replies: &mut [Reply],
        outcomes: &mut Vec<Outcome>,
    ) -> Result<(), Failure> {
        let protocol = self.protocol;
        for (number, (operation, reply)) in operations.iter().zip(replies).enumerate() {
            let place = self.places[number];
            let server = &mut self.servers[place.server];
            let outcome = if place.refused {
                wire::refusal(operation).map_or(Outcome::Missing, Outcome::from)
            } else if place.shares || !place.last {
                let found = server.next_value(protocol, operation, reply).await;
                // An error line ends the values of all the request's keys.
                let found = found.map_err(broken)?;
                if place.last {
                    server.end_of_values(reply).await?;
                }
                found.unwrap_or(Outcome::Missing)
            } else if operation.verb == Verb::ReadModifyWrite {
                let read = server.answer(protocol, Verb::Get, operation, reply).await;
                let read = settled(read)?;
                let written = server.answer(protocol, Verb::Set, operation, reply).await;
                reply.ended = None;
                read.and_written(settled(written)?)
            } else {
                let verb = operation.verb;
                settled(server.answer(protocol, verb, operation, reply).await)?
            };
            outcomes.push(outcome);
        }
        Ok(())
    }
}

fn broken(failure: Failure) -> Failure {
    Failure {
        broken: true,
        ..failure
    }
}

/// A failure that leaves the connection usable is an outcome; others end the batch.
fn settled(result: Result<Outcome, Failure>) -> Result<Outcome, Failure> {
    match result {
        Err(failure) if !failure.broken => Ok(Outcome::from(failure)),
        other => other,
    }
}
