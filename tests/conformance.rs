//! One suite for every driver, on its real store. A driver is one line at the end and a harness in its own file.

#[cfg(feature = "cassandra")]
#[path = "conformance/cassandra.rs"]
mod cassandra;
#[cfg(feature = "cassandra")]
#[path = "support/cassandra.rs"]
mod cassandra_nodes;
#[path = "conformance/client.rs"]
mod client;
#[path = "conformance/embedded_facts.rs"]
mod embedded_facts;
#[path = "conformance/facts.rs"]
mod facts;
#[path = "conformance/fjall.rs"]
mod fjall;
#[cfg(feature = "cassandra")]
#[path = "support/gate.rs"]
mod gate;
#[cfg(feature = "http")]
#[path = "conformance/http.rs"]
mod http;
#[path = "conformance/inside.rs"]
mod inside;
#[cfg(feature = "kyototycoon")]
#[path = "conformance/kyototycoon.rs"]
mod kyototycoon;
#[cfg(feature = "kyototycoon")]
#[path = "support/kyototycoon.rs"]
mod kyototycoon_server;
#[path = "conformance/memcached.rs"]
mod memcached;
#[cfg(feature = "mongodb")]
#[path = "conformance/mongodb.rs"]
mod mongodb;
#[cfg(feature = "mysql")]
#[path = "conformance/mysql.rs"]
mod mysql;
#[path = "conformance/null.rs"]
mod null;
#[cfg(feature = "postgres")]
#[path = "conformance/postgres.rs"]
mod postgres;
#[path = "conformance/redb.rs"]
mod redb;
#[path = "conformance/redis.rs"]
mod redis;
#[path = "conformance/redis_cluster.rs"]
mod redis_cluster;
#[path = "conformance/redis_replicas.rs"]
mod redis_replicas;
#[cfg(feature = "riak")]
#[path = "conformance/riak.rs"]
mod riak;
#[cfg(feature = "riak")]
#[path = "support/riak.rs"]
mod riak_stand_in;
#[path = "conformance/sqlite.rs"]
mod sqlite;
mod support;

/// Makes a test of each fact of a module.
macro_rules! tests {
    ($facts:ident, $harness:ty: $($fact:ident),* $(,)?) => {
        $(
            #[test]
            fn $fact() {
                crate::$facts::$fact::<$harness>();
            }
        )*
    };
}

/// `conformance!(name, Harness)` for an embedded store, `conformance!(server name, Harness)` for a server, and
/// `conformance!(nothing name, Harness)` for a driver that keeps nothing.
macro_rules! conformance {
    (server $name:ident, $harness:ty) => {
        conformance!($name, $harness, {
            kept!($harness);
            tests!(facts, $harness:
                after_a_timeout_no_late_reply_is_read,
                a_late_reply_belongs_to_its_own_connection,
                a_reply_cut_off_anywhere_is_a_lost_connection,
                a_reply_in_pieces_is_read_whole,
                a_malformed_reply_is_told_at_once_and_breaks_the_session,
                an_answer_nobody_asked_for_is_not_taken_for_the_next,
                a_server_killed_under_an_operation_is_a_lost_connection,
                a_refused_connection_is_a_failure_to_connect,
                the_cold_side_keeps_to_its_limit,
                bytes_on_the_wire_are_counted,
            );
        });
    };
    ($name:ident, $harness:ty) => {
        conformance!($name, $harness, {
            kept!($harness);
            tests!(embedded_facts, $harness:
                an_operation_is_done_when_first_polled,
                a_scan_reads_on_from_its_key_in_order,
                bytes_of_key_and_value_are_counted,
                only_a_plain_integer_with_a_next_one_is_incremented,
                the_cold_side_tells_what_is_open,
            );
        });
    };
    // Through a client that is a crate's own. Not for it: `a_late_reply_belongs_to_its_own_connection` (it opens a
    // connection of its monitor's beside, so that none has the number of a session), `bytes_on_the_wire_are_counted` (it
    // tells nobody), `an_answer_nobody_asked_for_is_not_taken_for_the_next` (it does not look which request an answer
    // belongs to; a connection with an answer due is closed, so that only a server that answers unasked can mislead it).
    (client $name:ident, $harness:ty) => {
        conformance!($name, $harness, {
            kept!($harness);
            tests!(facts, $harness:
                after_a_timeout_no_late_reply_is_read,
                a_reply_cut_off_anywhere_is_a_lost_connection,
                a_reply_in_pieces_is_read_whole,
                a_malformed_reply_is_told_at_once_and_breaks_the_session,
                a_server_killed_under_an_operation_is_a_lost_connection,
                a_refused_connection_is_a_failure_to_connect,
                the_cold_side_keeps_to_its_limit,
            );
        });
    };
    // On a stand-in whose answers carry a clock and headers. Not for it: `bytes_on_the_wire_are_counted` (answers are longer;
    // its own test counts them).
    (stand_in $name:ident, $harness:ty) => {
        conformance!($name, $harness, {
            kept!($harness);
            tests!(facts, $harness:
                after_a_timeout_no_late_reply_is_read,
                a_late_reply_belongs_to_its_own_connection,
                a_reply_cut_off_anywhere_is_a_lost_connection,
                a_reply_in_pieces_is_read_whole,
                a_malformed_reply_is_told_at_once_and_breaks_the_session,
                an_answer_nobody_asked_for_is_not_taken_for_the_next,
                a_server_killed_under_an_operation_is_a_lost_connection,
                a_refused_connection_is_a_failure_to_connect,
                the_cold_side_keeps_to_its_limit,
            );
        });
    };
    // Keys are paths. Not for it: `any_byte_may_stand_in_a_value_and_where_allowed_in_a_key` (the web server refuses some),
    // `the_cold_side_keeps_to_its_limit` (it only connects, which a hung server's kernel still answers),
    // `bytes_on_the_wire_are_counted` (heads are longer; its own test counts them).
    (web $name:ident, $harness:ty, { $($more:tt)* }) => {
        mod $name {
            tests!(facts, $harness:
                empty_and_large_values_come_back_whole,
                a_large_batch_does_not_lock_up,
                what_it_cannot_do_is_never_a_success,
                fifty_sessions_do_not_mix,
                a_value_is_found_overwritten_and_deleted,
                a_wrong_value_is_told_from_the_right_one,
                a_batch_answers_in_its_order,
                after_a_timeout_no_late_reply_is_read,
                a_late_reply_belongs_to_its_own_connection,
                a_reply_cut_off_anywhere_is_a_lost_connection,
                a_reply_in_pieces_is_read_whole,
                a_malformed_reply_is_told_at_once_and_breaks_the_session,
            );
            $($more)*
        }
    };
    (nothing $name:ident, $harness:ty) => {
        conformance!($name, $harness, {});
    };
    ($name:ident, $harness:ty, { $($more:tt)* }) => {
        mod $name {
            tests!(facts, $harness:
                empty_and_large_values_come_back_whole,
                any_byte_may_stand_in_a_value_and_where_allowed_in_a_key,
                increments_add_up_and_begin_at_nothing,
                a_large_batch_does_not_lock_up,
                what_it_cannot_do_is_never_a_success,
                fifty_sessions_do_not_mix,
                sessions_that_count_together_lose_nothing,
            );
            $($more)*
        }
    };
}

/// What only a store that keeps what it was given can show.
macro_rules! kept {
    ($harness:ty) => {
        tests!(facts, $harness:
            a_value_is_found_overwritten_and_deleted,
            a_wrong_value_is_told_from_the_right_one,
            insert_and_update_keep_to_their_conditions,
            a_value_that_is_no_number_is_not_incremented,
            read_modify_write_reads_and_writes,
            a_batch_answers_in_its_order,
            a_reset_empties_the_store,
        );
    };
}

conformance!(server redis_resp2, crate::redis::Resp2);
conformance!(server redis_resp3, crate::redis::Resp3);
conformance!(server redis_unix, crate::redis::Unix);
// What a node may do wrong is what a lone server may, and in the driver's own file what only a cluster can.
conformance!(redis_cluster_nodes, crate::redis_cluster::Cluster, {
    kept!(crate::redis_cluster::Cluster);
});
conformance!(server memcached_text, crate::memcached::Text);
conformance!(server memcached_multi_get, crate::memcached::Multi);
conformance!(server memcached_meta, crate::memcached::Meta);
conformance!(server memcached_unix, crate::memcached::Unix);
#[cfg(feature = "mongodb")]
conformance!(client mongodb_ferretdb, crate::mongodb::Ferret);
#[cfg(feature = "mongodb")]
conformance!(client mongodb_mongo_java, crate::mongodb::MongoJava);
#[cfg(feature = "mongodb")]
conformance!(mongodb_pooled, crate::mongodb::Pooled, {
    kept!(crate::mongodb::Pooled);
});
// The protocols of these two begin with a login, which no script speaks: what a server may do wrong is in their files.
#[cfg(feature = "mysql")]
conformance!(mysql_tcp, crate::mysql::Tcp, {
    kept!(crate::mysql::Tcp);
});
#[cfg(feature = "mysql")]
conformance!(mysql_pooled, crate::mysql::Pooled, {
    kept!(crate::mysql::Pooled);
});
#[cfg(feature = "postgres")]
conformance!(postgres_tcp, crate::postgres::Tcp, {
    kept!(crate::postgres::Tcp);
});
// What a server may do wrong is in its file: behind a gate that holds answers back, since no script speaks its login.
#[cfg(feature = "cassandra")]
conformance!(cassandra_one_node, crate::cassandra::Node, {
    kept!(crate::cassandra::Node);
});
#[cfg(feature = "http")]
conformance!(web http_keep_alive, crate::http::KeepAlive, {
    tests!(facts, crate::http::KeepAlive:
        an_answer_nobody_asked_for_is_not_taken_for_the_next,
        a_server_killed_under_an_operation_is_a_lost_connection,
        a_refused_connection_is_a_failure_to_connect,
    );
});
#[cfg(feature = "http")]
// Its sessions have no connection of their own to be refused, and none is used again.
conformance!(web http_connection_each, crate::http::Each, {});
#[cfg(feature = "riak")]
conformance!(stand_in riak_http, crate::riak::ByHttp);
#[cfg(feature = "riak")]
conformance!(stand_in riak_pb, crate::riak::ByPb);
conformance!(redb_immediate, crate::redb::Immediate);
conformance!(redb_none, crate::redb::None);
conformance!(sqlite_wal, crate::sqlite::Wal);
conformance!(sqlite_delete, crate::sqlite::Delete);
conformance!(sqlite_memory, crate::sqlite::Memory);
conformance!(sqlite_without_rowid, crate::sqlite::WithoutRowid);
conformance!(fjall_os, crate::fjall::Os);
conformance!(fjall_none, crate::fjall::None);
conformance!(fjall_fdatasync, crate::fjall::Fdatasync);
conformance!(fjall_separate_values, crate::fjall::SeparateValues);
conformance!(nothing null_at_once, crate::null::Null);

/// What holds for a server whose own file counts its bytes, since heads are longer than those that the suite expects.
#[cfg(feature = "kyototycoon")]
macro_rules! kyototycoon {
    ($name:ident, $harness:ty, { $($more:tt)* }) => {
        conformance!($name, $harness, {
            kept!($harness);
            tests!(facts, $harness:
                after_a_timeout_no_late_reply_is_read,
                a_late_reply_belongs_to_its_own_connection,
                a_reply_cut_off_anywhere_is_a_lost_connection,
                a_reply_in_pieces_is_read_whole,
                a_malformed_reply_is_told_at_once_and_breaks_the_session,
                an_answer_nobody_asked_for_is_not_taken_for_the_next,
                a_server_killed_under_an_operation_is_a_lost_connection,
                a_refused_connection_is_a_failure_to_connect,
                the_cold_side_keeps_to_its_limit,
            );
            $($more)*
        });
    };
}

#[cfg(feature = "kyototycoon")]
kyototycoon!(kyototycoon_rpc, crate::kyototycoon::Rpc, {});
#[cfg(feature = "kyototycoon")]
kyototycoon!(kyototycoon_rest, crate::kyototycoon::Rest, {});
#[cfg(feature = "kyototycoon")]
kyototycoon!(kyototycoon_binary, crate::kyototycoon::Binary, {
    tests!(facts, crate::kyototycoon::Binary: bytes_on_the_wire_are_counted);
});
