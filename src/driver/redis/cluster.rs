//! A session of a Redis Cluster: a connection to each primary, and the slots that say which one an operation goes to.
//!
//! The sessions of a thread share what is known of the slots (`links`). A node that is not the owner says who is: the
//! operation follows it (MOVED, ASK), within its own time, and each redirection counts as a warning of the answer. What is
//! lost with a connection is a failure and is not sent again by itself; the slots are then asked anew, so that the next
//! operation finds the replica that took over. One lost or late connection costs that connection, not the others.

use super::Settings;
use super::links::{Link, Map};
use super::session::{Session, Shared};
use super::slots::{Ranges, Refusal, slot_of};
use super::spec::{self, Login};
use crate::driver::Session as _;
use crate::driver::spec::{Endpoint, Transport};
use crate::op::{ErrorClass, Failure, Operation, Outcome, Reply, Verb};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An operation that was sent on so often goes round in circles.
const MOST_REDIRECTIONS: u32 = 16;

/// How long one node may take to tell of the slots, or to let a session in that is being opened: others know, too.
const PATIENCE: Duration = Duration::from_millis(250);

/// Before an operation is tried again whose keys are on their way.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(1);

pub struct ClusterSession {
    settings: Arc<Settings>,
    shared: Arc<Shared>,
    map: Rc<Map>,
    /// Of the endpoint that this session was opened at.
    login: Login,
    /// By the numbers of the nodes.
    links: Vec<Link>,
    /// Some link may be busy.
    in_use: bool,
    /// Which of the primaries is scanned.
    scanned: usize,
    /// Connections that were lost and made anew.
    replaced: u64,
    key: Vec<u8>,
}

impl ClusterSession {
    /// Asks for the slots, where nobody of this thread has, and connects to all primaries. One of them that does not
    /// answer is no failure: only its slots' operations fail.
    pub async fn open(
        endpoint: &Endpoint,
        settings: Arc<Settings>,
        shared: Arc<Shared>,
        map: Rc<Map>,
    ) -> Result<ClusterSession, Failure> {
        let (_, login) = spec::parse(&endpoint.text)
            .map_err(|fault| Failure::new(ErrorClass::Connect, fault.message))?;
        let mut session = ClusterSession {
            settings,
            shared,
            map,
            login,
            links: Vec::new(),
            in_use: false,
            scanned: 0,
            replaced: 0,
            key: Vec::new(),
        };
        if session.map.slots.borrow().is_empty() || session.map.stale.get() {
            session.ask_seeds(endpoint).await?;
        }
        let primaries = session.map.slots.borrow().primaries();
        let mut last = Failure::new(ErrorClass::Connect, "no node of the cluster owns a slot");
        for node in primaries {
            let opened = tokio::time::timeout(PATIENCE, session.connect(node)).await;
            match opened {
                Ok(Ok(())) => {}
                Ok(Err(failure)) => last = failure,
                Err(_) => session.miss(node),
            }
        }
        match session.connections() {
            0 => Err(last),
            _ => Ok(session),
        }
    }

    pub fn connections(&self) -> u32 {
        let open = self.links.iter().filter(|link| link.session.is_some());
        open.count() as u32
    }

    pub fn take_replaced(&mut self) -> u64 {
        std::mem::take(&mut self.replaced)
    }

    pub fn take_answered(&mut self) -> Vec<(SocketAddr, u64)> {
        let slots = self.map.slots.borrow();
        let answered = self
            .links
            .iter_mut()
            .enumerate()
            .filter(|(_, link)| link.answered > 0);
        answered
            .filter_map(|(node, link)| match &slots.endpoint(node)?.transport {
                Transport::Tcp { addresses, .. } => {
                    Some((*addresses.first()?, std::mem::take(&mut link.answered)))
                }
                _ => None,
            })
            .collect()
    }

    pub async fn execute(&mut self, operation: &Operation, reply: &mut Reply) -> Outcome {
        if self.in_use || self.map.is_due() {
            Box::pin(self.settle()).await;
        }
        let node = self.node_for(operation);
        let open = self.links.get_mut(node);
        let open = open.and_then(|link| Some((link.session.as_mut()?, &mut link.busy)));
        let Some((session, busy)) = open else {
            return Box::pin(self.follow(operation, reply, node, None)).await;
        };
        self.in_use = true;
        *busy = true;
        let outcome = session.execute(operation, reply).await;
        if is_refused_or_lost(&outcome) {
            return Box::pin(self.follow(operation, reply, node, Some(outcome))).await;
        }
        self.answered(operation.verb, node, outcome)
    }

    /// The operations of each node are sent before the first answer is read; those that are sent on go one by one.
    pub async fn execute_batch(
        &mut self,
        operations: &[Operation],
        replies: &mut [Reply],
        outcomes: &mut Vec<Outcome>,
    ) {
        if self.in_use || self.map.is_due() {
            Box::pin(self.settle()).await;
        }
        let nodes: Vec<usize> = operations.iter().map(|one| self.node_for(one)).collect();
        let mut done: Vec<Option<Outcome>> = vec![None; operations.len()];
        let mut asked = nodes.clone();
        asked.sort_unstable();
        asked.dedup();
        self.in_use = true;
        for node in &asked {
            let of_node = (0..nodes.len()).filter(|position| nodes[*position] == *node);
            let sent = match Box::pin(self.connected(*node)).await {
                Ok(session) => {
                    session
                        .send_batch(operations, of_node.clone(), replies)
                        .await
                }
                Err(failure) => Err(failure),
            };
            if let Err(failure) = sent {
                let outcome = self.failed(*node, failure);
                of_node.for_each(|position| done[position] = Some(outcome.clone()));
            }
        }
        for node in &asked {
            let waits = |position: &usize| nodes[*position] == *node && done[*position].is_none();
            let of_node: Vec<usize> = (0..nodes.len()).filter(waits).collect();
            let Some(link) = self.links.get_mut(*node).filter(|_| !of_node.is_empty()) else {
                continue;
            };
            let Some(session) = link.session.as_mut() else {
                continue;
            };
            let give = |position: usize, outcome| done[position] = Some(outcome);
            let read = session
                .read_batch(operations, of_node.iter().copied(), replies, give)
                .await;
            link.busy = false;
            if let Err(failure) = read {
                let outcome = self.failed(*node, failure);
                for position in of_node {
                    done[position].get_or_insert_with(|| outcome.clone());
                }
            }
        }
        self.in_use = false;
        for (position, outcome) in done.into_iter().enumerate() {
            let (operation, reply) = (&operations[position], &mut replies[position]);
            let node = nodes[position];
            let outcome = match outcome {
                Some(outcome) if !is_refused(&outcome) => {
                    if !outcome.breaks_session()
                        && let Some(link) = self.links.get_mut(node)
                    {
                        link.misses = 0;
                        link.answered += u64::from(!is_unanswered(&outcome));
                    }
                    self.end_scan(operation.verb, node);
                    outcome
                }
                refused => Box::pin(self.follow(operation, reply, node, refused)).await,
            };
            outcomes.push(outcome);
        }
    }

    /// The node that should know; any where the slot is nobody's, which will say so.
    #[inline]
    fn node_for(&mut self, operation: &Operation) -> usize {
        let slots = self.map.slots.borrow();
        let slot = match operation.verb {
            Verb::Scan => {
                let primaries = slots.primaries();
                return primaries
                    .get(self.scanned % primaries.len().max(1))
                    .copied()
                    .unwrap_or(0);
            }
            Verb::Custom(number) => {
                let custom = self.shared.operations.get(usize::from(number));
                match custom.and_then(Option::as_ref) {
                    Some(custom) if custom.key(operation, &mut self.key) => slot_of(&self.key),
                    _ => 0,
                }
            }
            _ => slot_of(&operation.key),
        };
        slots.owner(slot).unwrap_or(0)
    }

    /// A scan that has come to a node's end goes on at the next.
    #[inline]
    fn end_scan(&mut self, verb: Verb, node: usize) {
        if verb == Verb::Scan {
            let session = self.links.get(node).and_then(|link| link.session.as_ref());
            if session.is_none_or(Session::scanned_all) {
                self.scanned += 1;
            }
        }
    }

    /// Leaves connections whose operation was given up, and asks for the slots where they may be other nodes' by now.
    async fn settle(&mut self) {
        if std::mem::take(&mut self.in_use) {
            for link in self.links.iter_mut().filter(|link| link.busy) {
                link.lose();
                self.map.stale.set(true);
            }
        }
        if self.map.is_due() {
            // Nobody who knows: what is known is kept, and asked for again.
            let _ = self.ask_nodes().await;
        }
    }

    /// Takes an operation to whoever does it; `outcome` is what its first node said, if it was asked.
    async fn follow(
        &mut self,
        operation: &Operation,
        reply: &mut Reply,
        mut node: usize,
        mut outcome: Option<Outcome>,
    ) -> Outcome {
        let mut asking = false;
        let mut redirections = 0;
        loop {
            let said = match outcome.take() {
                Some(said) => said,
                None => match self.send(operation, reply, node, asking).await {
                    Ok(said) => said,
                    Err(failure) => return self.failed(node, failure),
                },
            };
            let Outcome::Failed(failure) = said else {
                return self.answered(operation.verb, node, said);
            };
            if failure.broken {
                return self.failed(node, *failure);
            }
            let Some(refusal) = Refusal::of(&failure) else {
                return self.answered(operation.verb, node, Outcome::Failed(failure));
            };
            redirections += 1;
            if redirections > MOST_REDIRECTIONS && refusal != Refusal::TryAgain {
                return self.answered(operation.verb, node, Outcome::Failed(failure));
            }
            self.release(node);
            match refusal {
                Refusal::Moved { slot, host, port } => {
                    node = self.node_at(&host, port, node);
                    self.map.slots.borrow_mut().move_slot(slot, node);
                    self.map.stale.set(true);
                    asking = false;
                }
                Refusal::Ask { host, port } => {
                    node = self.node_at(&host, port, node);
                    asking = true;
                }
                // Until its own time is over.
                Refusal::TryAgain => tokio::time::sleep(TRY_AGAIN_AFTER).await,
                Refusal::Down => {
                    self.map.stale.set(true);
                    return self.answered(operation.verb, node, Outcome::Failed(failure));
                }
            }
            reply.warnings += 1;
        }
    }

    /// A node that names no host means its own.
    fn node_at(&self, host: &str, port: u16, said_by: usize) -> usize {
        let mut slots = self.map.slots.borrow_mut();
        let own = slots.endpoint(said_by).map(|endpoint| &endpoint.transport);
        let own = match (host, own) {
            ("", Some(Transport::Tcp { host, .. })) => host.clone(),
            _ => host.to_owned(),
        };
        slots.node(&own, port)
    }

    async fn send(
        &mut self,
        operation: &Operation,
        reply: &mut Reply,
        node: usize,
        asking: bool,
    ) -> Result<Outcome, Failure> {
        let began = Instant::now();
        let is_open = self
            .links
            .get(node)
            .is_some_and(|link| link.session.is_some());
        let session = self.connected(node).await?;
        if !is_open {
            reply.connect_time += began.elapsed();
        }
        Ok(match asking {
            true => session.execute_asking(operation, reply).await,
            false => session.execute(operation, reply).await,
        })
    }

    /// The connection to a node, made where there is none; the link is busy from here on.
    async fn connected(&mut self, node: usize) -> Result<&mut Session, Failure> {
        if self
            .links
            .get(node)
            .is_none_or(|link| link.session.is_none())
        {
            self.connect(node).await?;
        }
        let link = self.links.get_mut(node);
        let link = link.ok_or_else(|| Failure::new(ErrorClass::Client, "no such node"))?;
        self.in_use = true;
        link.busy = true;
        let session = link.session.as_mut();
        session.ok_or_else(|| Failure::new(ErrorClass::Client, "no connection to the node"))
    }

    /// Waits until the node may be tried again, and connects.
    async fn connect(&mut self, node: usize) -> Result<(), Failure> {
        let endpoint = self.map.slots.borrow().endpoint(node).cloned();
        let endpoint = endpoint
            .ok_or_else(|| Failure::new(ErrorClass::Connect, "no node of the cluster is known"))?;
        if self.links.len() <= node {
            self.links.resize_with(node + 1, Link::default);
        }
        if let Some(at) = self.links[node].retry_at {
            tokio::time::sleep_until(at.into()).await;
        }
        // Should this be given up, the link counts as lost.
        self.in_use = true;
        self.links[node].busy = true;
        let opened = self
            .settings
            .session_as(&endpoint, &self.login, &self.shared)
            .await;
        let link = &mut self.links[node];
        link.busy = false;
        match opened {
            Ok(session) => {
                link.session = Some(session);
                link.retry_at = None;
                self.replaced += u64::from(std::mem::replace(&mut link.was_open, true));
                Ok(())
            }
            Err(failure) => {
                link.lose();
                self.map.stale.set(true);
                Err(failure)
            }
        }
    }

    fn miss(&mut self, node: usize) {
        if let Some(link) = self.links.get_mut(node) {
            link.lose();
        }
        self.map.stale.set(true);
    }

    /// The node answered, and nothing is due of it.
    fn release(&mut self, node: usize) {
        self.in_use = false;
        if let Some(link) = self.links.get_mut(node) {
            link.busy = false;
            link.misses = 0;
        }
    }

    #[inline]
    fn answered(&mut self, verb: Verb, node: usize, outcome: Outcome) -> Outcome {
        self.in_use = false;
        if let Some(link) = self.links.get_mut(node) {
            link.got_answer();
        }
        self.end_scan(verb, node);
        outcome
    }

    /// A failure that has cost the connection to this node. The session lives on with the others.
    fn failed(&mut self, node: usize, failure: Failure) -> Outcome {
        let link = self.links.get_mut(node);
        if let Some(link) = link.filter(|link| link.session.is_some()) {
            link.lose();
        }
        self.map.stale.set(true);
        Outcome::from(Failure {
            broken: false,
            ..failure
        })
    }

    /// Asks the target's endpoints for the slots, from this one on.
    async fn ask_seeds(&mut self, first: &Endpoint) -> Result<(), Failure> {
        let map = Rc::clone(&self.map);
        let others = map.seeds.iter().filter(|seed| seed.label != first.label);
        let mut last = Failure::new(ErrorClass::Connect, "no node of the cluster is known");
        for seed in std::iter::once(first).chain(others) {
            let (settings, shared) = (Arc::clone(&self.settings), Arc::clone(&self.shared));
            let asked = async {
                let mut session = settings.session(seed, &shared).await?;
                ranges(&mut session, seed).await
            };
            match tokio::time::timeout(PATIENCE, asked).await {
                Ok(Ok(ranges)) => {
                    self.learn(&ranges);
                    return Ok(());
                }
                Ok(Err(failure)) => last = failure,
                Err(_) => {
                    let message = format!("{} does not tell of its slots", seed.label);
                    last = Failure::new(ErrorClass::Connect, message);
                }
            }
        }
        Err(last)
    }

    /// Asks the nodes that this session is connected to, then the endpoints.
    async fn ask_nodes(&mut self) -> Result<(), Failure> {
        self.map.asked.set(Some(Instant::now()));
        for node in 0..self.links.len() {
            let endpoint = self.map.slots.borrow().endpoint(node).cloned();
            let Some(endpoint) = endpoint.filter(|_| self.links[node].session.is_some()) else {
                continue;
            };
            // One whose last operation was lost is asked last.
            if self.links[node].misses > 0 {
                continue;
            }
            let Ok(session) = self.connected(node).await else {
                continue;
            };
            match tokio::time::timeout(PATIENCE, ranges(session, &endpoint)).await {
                Ok(Ok(ranges)) => {
                    self.release(node);
                    self.learn(&ranges);
                    return Ok(());
                }
                _ => self.links[node].lose(),
            }
        }
        let first = self.map.seeds.first().cloned();
        let first = first.ok_or_else(|| Failure::new(ErrorClass::Connect, "no endpoint"))?;
        self.ask_seeds(&first).await
    }

    fn learn(&self, ranges: &Ranges) {
        self.map.slots.borrow_mut().set(ranges);
        self.map.stale.set(false);
        self.map.asked.set(Some(Instant::now()));
    }
}

/// A node that has not heard of a failover yet tells what was; the next operation that fails asks again.
async fn ranges(session: &mut Session, node: &Endpoint) -> Result<Ranges, Failure> {
    let answer = session.query(redis::cmd("CLUSTER").arg("SLOTS")).await;
    let answer = answer.map_err(|failure| Failure {
        class: ErrorClass::Connect,
        message: format!(
            "{} is no node of a cluster: {}",
            node.label, failure.message
        ),
        ..failure
    })?;
    let host = match &node.transport {
        Transport::Tcp { host, .. } => host.as_str(),
        _ => "127.0.0.1",
    };
    Ranges::read(&answer, host)
}

fn is_refused(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Failed(failure) => Refusal::of(failure).is_some(),
        _ => false,
    }
}

fn is_refused_or_lost(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Failed(failure) => failure.broken || Refusal::of(failure).is_some(),
        _ => false,
    }
}

/// Whether no node said anything of it.
fn is_unanswered(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Failed(failure) => {
            failure.unanswered
                || matches!(failure.class, ErrorClass::Connect | ErrorClass::NoLocalPort)
        }
        _ => false,
    }
}
