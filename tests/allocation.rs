//! The operation loop's side of a networked driver allocates nothing, once its buffers have grown to its values.
//!
//! A binary of its own, since it counts every allocation of the thread that runs it.

#[path = "conformance/client.rs"]
mod client;
#[cfg(feature = "kyototycoon")]
#[path = "support/kyototycoon.rs"]
mod kyototycoon_server;
#[cfg(feature = "riak")]
#[path = "support/riak.rs"]
mod riak_stand_in;
mod support;

use client::{Client, set, verify};
use dbbench::driver::memcached::Memcached;
use dbbench::driver::redis::Redis;
use dbbench::driver::{Driver, Session};
use dbbench::op::Reply;
use serde_json::{Map, Value, json};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    // A thread that ends may allocate when its counter is gone.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: all calls go to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Allocations of 200 gets and sets of each size, after some to grow the buffers.
fn allocations<D: Driver>(endpoint: String, options: Map<String, Value>) -> u64 {
    let client = Client::<D>::open(&[endpoint], options, Vec::new()).expect("the driver opens");
    let mut session = client.session();
    let operations: Vec<_> = [10, 2_560, 41_960]
        .iter()
        .flat_map(|length| {
            let value = vec![b'v'; *length];
            [set("k", &value), verify(b"k", &value)]
        })
        .collect();
    client.run(async {
        let mut reply = Reply::default();
        let mut counted = 0;
        for round in 0..210 {
            let before = ALLOCATIONS.get();
            for operation in &operations {
                reply.clear();
                let outcome = session.execute(operation, &mut reply).await;
                assert!(outcome.succeeded());
            }
            if round >= 10 {
                counted += ALLOCATIONS.get() - before;
            }
        }
        counted
    })
}

fn table(value: Value) -> Map<String, Value> {
    value.as_object().expect("a table").clone()
}

#[test]
fn a_redis_session_allocates_nothing_per_operation() {
    let Some(server) = support::TestServer::redis(&[]) else {
        return;
    };
    for protocol in [2, 3] {
        let endpoint = format!("redis://127.0.0.1:{}", server.port);
        let options = table(json!({ "protocol": protocol }));
        assert_eq!(allocations::<Redis>(endpoint, options), 0);
    }
}

#[test]
fn a_memcached_session_allocates_nothing_per_operation() {
    let Some(server) = support::TestServer::memcached(&[]) else {
        return;
    };
    for protocol in ["text", "meta"] {
        let endpoint = format!("memcached://127.0.0.1:{}", server.port);
        let options = table(json!({ "protocol": protocol }));
        assert_eq!(allocations::<Memcached>(endpoint, options), 0);
    }
}

#[cfg(feature = "kyototycoon")]
#[test]
fn a_kyototycoon_session_allocates_nothing_per_operation() {
    let server = kyototycoon_server::server(2);
    for protocol in ["rpc", "rest", "binary"] {
        let endpoint = format!("kyototycoon://127.0.0.1:{}", server.port);
        let options = table(json!({ "protocol": protocol, "database": 1 }));
        let counted = allocations::<dbbench::driver::kyototycoon::KyotoTycoon>(endpoint, options);
        assert_eq!(counted, 0, "{protocol}");
    }
}

#[cfg(feature = "riak")]
#[test]
fn a_riak_session_allocates_nothing_per_operation() {
    let server = riak_stand_in::StandIn::start();
    let node = server.node(0);
    for (interface, port) in [("http", node.http_port), ("pb", node.pb_port)] {
        let options = table(json!({ "interface": interface, "w": "one", "r": 1 }));
        let endpoint = format!("127.0.0.1:{port}");
        let counted = allocations::<dbbench::driver::riak::Riak>(endpoint, options);
        assert_eq!(counted, 0, "{interface}");
    }
}
