//! The protocol-buffers interface: one connection, one request in flight. Values are sent from and compared where they lie.

use super::fault::{Asked, of_message};
use super::messages::{
    Fixed, HEAD, Part, Put, RpbBucketProps, RpbErrorResp, RpbGetBucketReq, RpbGetBucketResp,
    RpbGetServerInfoResp, RpbListKeysReq, RpbListKeysResp, RpbSetBucketReq, code, object,
    push_head, push_message,
};
use super::properties::Properties;
use super::settings::{Quorum, Settings, milliseconds};
use crate::driver::net::connection::GATHER_FROM;
use crate::driver::net::{self, Connection, lost, malformed};
use crate::driver::spec::Endpoint;
use crate::op::{Failure, Operation, Outcome, Reply};
use prost::Message;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// No answer is longer: a node takes objects of 50 MB, and of siblings a hundred.
const LONGEST: usize = 256 << 20;

/// Deletions that are sent before the first answer is read.
const PIPELINED: usize = 64;

pub struct Pb {
    settings: Arc<Settings>,
    fixed: Arc<Fixed>,
    connection: Connection,
    request: Vec<u8>,
    tail: Vec<u8>,
    /// Of the last read that was to keep it; empty where it found none.
    vclock: Vec<u8>,
}

impl Pb {
    pub async fn open(
        settings: &Arc<Settings>,
        fixed: &Arc<Fixed>,
        endpoint: &Endpoint,
    ) -> Result<Pb, Failure> {
        Ok(Pb {
            settings: Arc::clone(settings),
            fixed: Arc::clone(fixed),
            connection: net::connect(endpoint).await?,
            request: Vec::new(),
            tail: Vec::new(),
            vclock: Vec::new(),
        })
    }

    pub fn peer(&self) -> Option<SocketAddr> {
        self.connection.peer()
    }

    pub async fn get(
        &mut self,
        operation: &Operation,
        part: Part,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        self.begin()?;
        self.fixed.push_get(&mut self.request, &operation.key, part);
        self.send(b"", reply).await?;
        let total = self.answer(code::GET_ANSWER, Asked::Read, reply).await?;
        let body = &self.connection.received()[HEAD..total];
        let wanted = operation.verify.then_some(operation.value.as_slice());
        let object = object(body, wanted).ok_or_else(|| malformed("no object", body))?;
        if part != Part::Value {
            self.vclock.clear();
            self.vclock.extend_from_slice(object.vclock);
        }
        reply.warnings += u32::from(object.contents > 1);
        let outcome = match (object.value, part) {
            (None, _) => Outcome::Missing,
            (Some(_), Part::Clock) => Outcome::Found,
            (Some(value), _) => reply.found(operation, value),
        };
        self.take(total, reply);
        Ok(outcome)
    }

    pub async fn put(
        &mut self,
        operation: &Operation,
        put: Put,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        self.begin()?;
        let vclock = match put {
            Put::Carrying => self.vclock.as_slice(),
            Put::Plain | Put::Insert => b"",
        };
        let value = operation.value.as_slice();
        let (key, fixed) = (&operation.key, &self.fixed);
        fixed.push_put(&mut self.request, key, vclock, value.len(), put);
        // A large one is gathered from where it lies.
        if value.len() >= GATHER_FROM {
            fixed.push_put_end(&mut self.tail, put);
            self.send(value, reply).await?;
        } else {
            self.request.extend_from_slice(value);
            fixed.push_put_end(&mut self.request, put);
            self.send(b"", reply).await?;
        }
        let total = self.answer(code::PUT_ANSWER, Asked::Write, reply).await?;
        if total > HEAD {
            let body = &self.connection.received()[HEAD..total];
            let object = object(body, None).ok_or_else(|| malformed("no object", body))?;
            reply.warnings += u32::from(object.contents > 1);
        }
        self.take(total, reply);
        Ok(Outcome::Done)
    }

    /// A node does not tell whether the key was there.
    pub async fn delete(
        &mut self,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        self.begin()?;
        self.fixed.push_delete(&mut self.request, &operation.key);
        self.send(b"", reply).await?;
        let total = self
            .answer(code::DELETE_ANSWER, Asked::Write, reply)
            .await?;
        self.take(total, reply);
        Ok(Outcome::Done)
    }

    /// An answer that nobody asked for would be taken for that of the next request.
    fn begin(&mut self) -> Result<(), Failure> {
        self.request.clear();
        self.tail.clear();
        match self.connection.received() {
            b"" => Ok(()),
            stray => Err(malformed("it came unasked", stray)),
        }
    }

    async fn send(&mut self, value: &[u8], reply: &mut Reply) -> Result<(), Failure> {
        reply.bytes_sent += (self.request.len() + value.len() + self.tail.len()) as u64;
        let sent = self.connection.send(&self.request, value, &self.tail).await;
        sent.map_err(|error| lost(&error))
    }

    /// Receives an answer of this kind, or an error, which is taken off. Returns its length with its head. What cannot be
    /// one is told before its body is waited for.
    async fn answer(
        &mut self,
        expected: u8,
        asked: Asked,
        reply: &mut Reply,
    ) -> Result<usize, Failure> {
        let connection = &mut self.connection;
        while connection.received().len() < 4 {
            let received = connection.receive().await;
            received.map_err(|error| lost(&error))?;
        }
        let received = connection.received();
        let length = [received[0], received[1], received[2], received[3]];
        let length = u32::from_be_bytes(length) as usize;
        if length == 0 || length > LONGEST {
            return Err(malformed("the length of an answer", received));
        }
        while connection.received().len() < HEAD {
            let received = connection.receive().await;
            received.map_err(|error| lost(&error))?;
        }
        let received = connection.received();
        let kind = received[4];
        if kind != expected && kind != code::ERROR {
            return Err(malformed("it is not of the kind that was due", received));
        }
        let total = 4 + length;
        let received = connection.receive_total(total).await;
        received.map_err(|error| lost(&error))?;
        if kind == expected {
            return Ok(total);
        }
        let body = &connection.received()[HEAD..total];
        let said = RpbErrorResp::decode(body);
        let said = said.map_err(|_| malformed("an error without its message", body))?;
        let failure = of_message(&said.errmsg, asked);
        self.take(total, reply);
        Err(failure)
    }

    fn take(&mut self, count: usize, reply: &mut Reply) {
        reply.bytes_received += count as u64;
        self.connection.consume(count);
    }
}

/// The cold side.
impl Pb {
    /// Sends what `push` appends, and reads the answer of this kind.
    async fn ask<M: Message + Default>(
        &mut self,
        expected: u8,
        push: impl FnOnce(&mut Vec<u8>),
    ) -> Result<M, Failure> {
        let mut reply = Reply::default();
        self.begin()?;
        push(&mut self.request);
        self.send(b"", &mut reply).await?;
        self.next(expected, &mut reply).await
    }

    async fn next<M: Message + Default>(
        &mut self,
        expected: u8,
        reply: &mut Reply,
    ) -> Result<M, Failure> {
        let total = self.answer(expected, Asked::Read, reply).await?;
        let body = &self.connection.received()[HEAD..total];
        let message = M::decode(body).map_err(|error| malformed(&error.to_string(), body))?;
        self.take(total, reply);
        Ok(message)
    }

    pub async fn ping(&mut self) -> Result<(), Failure> {
        self.ask(code::PING_ANSWER, |out| push_head(out, code::PING, 0))
            .await
    }

    pub async fn version(&mut self) -> Result<String, Failure> {
        let push = |out: &mut Vec<u8>| push_head(out, code::SERVER_INFO, 0);
        let said: RpbGetServerInfoResp = self.ask(code::SERVER_INFO_ANSWER, push).await?;
        let version = said.server_version.unwrap_or_default();
        Ok(String::from_utf8_lossy(&version).into_owned())
    }

    pub async fn properties(&mut self) -> Result<Properties, Failure> {
        let message = RpbGetBucketReq {
            bucket: self.bucket(),
            r#type: self.bucket_type(),
        };
        let push = |out: &mut Vec<u8>| push_message(out, code::GET_BUCKET, &message);
        let said: RpbGetBucketResp = self.ask(code::GET_BUCKET_ANSWER, push).await?;
        let said = said.props.unwrap_or_default();
        let quorums = [said.r, said.w, said.dw, said.pr, said.pw];
        Ok(Properties {
            n_val: said.n_val,
            allow_mult: said.allow_mult,
            quorums: quorums.map(|number| Some(Quorum::of_number(number?).word())),
        })
    }

    pub async fn set_properties(&mut self, wanted: &Properties) -> Result<(), Failure> {
        let message = RpbSetBucketReq {
            bucket: self.bucket(),
            props: Some(RpbBucketProps {
                n_val: wanted.n_val,
                allow_mult: wanted.allow_mult,
                ..RpbBucketProps::default()
            }),
            r#type: self.bucket_type(),
        };
        let push = |out: &mut Vec<u8>| push_message(out, code::SET_BUCKET, &message);
        self.ask(code::SET_BUCKET_ANSWER, push).await
    }

    /// All keys of the bucket, as the nodes list them within the limit.
    pub async fn keys(&mut self, limit: Duration) -> Result<Vec<Vec<u8>>, Failure> {
        let message = RpbListKeysReq {
            bucket: self.bucket(),
            timeout: Some(milliseconds(limit)),
            r#type: self.bucket_type(),
        };
        let push = |out: &mut Vec<u8>| push_message(out, code::LIST_KEYS, &message);
        let mut part: RpbListKeysResp = self.ask(code::LIST_KEYS_ANSWER, push).await?;
        let mut keys = part.keys;
        while part.done != Some(true) {
            part = self
                .next(code::LIST_KEYS_ANSWER, &mut Reply::default())
                .await?;
            keys.append(&mut part.keys);
        }
        Ok(keys)
    }

    /// Deletes these keys, many at a time.
    pub async fn delete_all(&mut self, keys: &[Vec<u8>]) -> Result<(), Failure> {
        for keys in keys.chunks(PIPELINED) {
            self.begin()?;
            for key in keys {
                self.fixed.push_delete(&mut self.request, key);
            }
            let sent = self.connection.send_batch(&self.request).await;
            sent.map_err(|error| lost(&error))?;
            for _ in keys {
                self.next::<()>(code::DELETE_ANSWER, &mut Reply::default())
                    .await?;
            }
        }
        Ok(())
    }

    fn bucket(&self) -> Vec<u8> {
        self.settings.bucket.clone().into_bytes()
    }

    fn bucket_type(&self) -> Option<Vec<u8>> {
        self.settings.bucket_type.clone().map(String::into_bytes)
    }
}
