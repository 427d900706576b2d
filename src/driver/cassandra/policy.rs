//! What the crate asks of us: which node an operation is sent to, whom to connect to at all, and whether an attempt that
//! failed is made again.

use scylla::cluster::metadata::Peer;
use scylla::cluster::{ClusterState, NodeAddr, NodeRef};
use scylla::errors::{DbError, RequestAttemptError, RequestError};
use scylla::observability::history::{AttemptId, HistoryListener, RequestId, SpeculativeId};
use scylla::policies::host_filter::HostFilter;
use scylla::policies::load_balancing::{FallbackPlan, LoadBalancingPolicy, RoutingInfo};
use scylla::policies::retry::{RequestInfo, RetryDecision, RetryPolicy, RetrySession};
use scylla::routing::Shard;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The node at one of the addresses of an endpoint, and no other: neither is another connected to, nor does an operation
/// go to one because this one is down.
#[derive(Clone, Debug)]
pub struct Pinned {
    addresses: Arc<[SocketAddr]>,
}

impl Pinned {
    pub fn to(addresses: &[SocketAddr]) -> Pinned {
        Pinned {
            addresses: addresses.into(),
        }
    }

    pub fn node<'a>(&self, cluster: &'a ClusterState) -> Option<NodeRef<'a>> {
        let mut nodes = cluster.get_nodes_info().iter();
        nodes.find(|node| self.is(node.address))
    }

    fn is(&self, address: NodeAddr) -> bool {
        self.addresses.contains(&plain(address))
    }
}

/// An address without the crate's remark on where it learnt it.
pub fn plain(address: NodeAddr) -> SocketAddr {
    SocketAddr::new(address.ip(), address.port())
}

impl LoadBalancingPolicy for Pinned {
    fn pick<'a>(
        &'a self,
        _: &'a RoutingInfo,
        cluster: &'a ClusterState,
    ) -> Option<(NodeRef<'a>, Option<Shard>)> {
        self.node(cluster).map(|node| (node, None))
    }

    fn fallback<'a>(&'a self, _: &'a RoutingInfo, _: &'a ClusterState) -> FallbackPlan<'a> {
        Box::new(std::iter::empty())
    }

    fn name(&self) -> String {
        "Pinned".to_owned()
    }
}

impl HostFilter for Pinned {
    fn accept(&self, peer: &Peer) -> bool {
        self.is(peer.address)
    }
}

/// Repeats an attempt that failed so many times, where that may help and does no harm.
#[derive(Clone, Debug)]
pub struct Repeat {
    pub times: u32,
    pub same_node: bool,
}

impl RetryPolicy for Repeat {
    fn new_session(&self) -> Box<dyn RetrySession> {
        Box::new(Repeating {
            policy: self.clone(),
            left: self.times,
        })
    }
}

struct Repeating {
    policy: Repeat,
    left: u32,
}

impl RetrySession for Repeating {
    fn decide_should_retry(&mut self, request: RequestInfo) -> RetryDecision {
        if self.left == 0 || !may_help(request.error, request.is_idempotent) {
            return RetryDecision::DontRetry;
        }
        self.left -= 1;
        match self.policy.same_node {
            true => RetryDecision::RetrySameTarget(None),
            false => RetryDecision::RetryNextTarget(None),
        }
    }

    fn reset(&mut self) {
        self.left = self.policy.times;
    }
}

/// Whether the next attempt may fare better. One whose end is not known is repeated only where twice does no harm.
fn may_help(error: &RequestAttemptError, idempotent: bool) -> bool {
    match error {
        RequestAttemptError::DbError(said, _) => match said {
            DbError::Unavailable { .. }
            | DbError::Overloaded
            | DbError::IsBootstrapping
            | DbError::ReadTimeout { .. }
            | DbError::ReadFailure { .. }
            | DbError::RateLimitReached { .. } => true,
            DbError::WriteTimeout { .. } | DbError::WriteFailure { .. } | DbError::ServerError => {
                idempotent
            }
            _ => false,
        },
        RequestAttemptError::BrokenConnectionError(_) => idempotent,
        RequestAttemptError::UnableToAllocStreamId => true,
        _ => false,
    }
}

/// Counts the attempts of one session's operations.
#[derive(Debug, Default)]
pub struct Attempts(AtomicU32);

impl Attempts {
    /// Those since the last call.
    pub fn take(&self) -> u32 {
        self.0.swap(0, Ordering::Relaxed)
    }
}

impl HistoryListener for Attempts {
    fn log_request_start(&self) -> RequestId {
        RequestId(0)
    }

    fn log_request_success(&self, _: RequestId) {}

    fn log_request_error(&self, _: RequestId, _: &RequestError) {}

    fn log_new_speculative_fiber(&self, _: RequestId) -> SpeculativeId {
        SpeculativeId(0)
    }

    fn log_attempt_start(
        &self,
        _: RequestId,
        _: Option<SpeculativeId>,
        _: SocketAddr,
    ) -> AttemptId {
        self.0.fetch_add(1, Ordering::Relaxed);
        AttemptId(0)
    }

    fn log_attempt_success(&self, _: AttemptId) {}

    fn log_attempt_error(&self, _: AttemptId, _: &RequestAttemptError, _: &RetryDecision) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(said: DbError) -> RequestAttemptError {
        RequestAttemptError::DbError(said, String::new())
    }

    #[test]
    fn what_may_have_been_done_is_repeated_only_where_twice_does_no_harm() {
        assert!(may_help(&said(DbError::Overloaded), false));
        assert!(!may_help(&said(DbError::ServerError), false));
        assert!(may_help(&said(DbError::ServerError), true));
        assert!(!may_help(&said(DbError::SyntaxError), true));
    }

    #[test]
    fn attempts_are_counted_until_they_are_taken() {
        let attempts = Attempts::default();
        let address = SocketAddr::from(([127, 0, 0, 1], 9042));
        for _ in 0..3 {
            attempts.log_attempt_start(RequestId(0), None, address);
        }
        assert_eq!((attempts.take(), attempts.take()), (3, 0));
    }
}
