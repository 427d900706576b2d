#!/bin/sh
# node.sh NUMBER OF ADDRESS PORT STORAGE_PORT SEEDS: runs node NUMBER (from 1) of a cluster of OF in the working directory,
# which is the node's own. SEEDS is `address:storage_port,...` of all nodes; with every node a seed the order of starting
# does not matter. Ready when it says "Startup complete" and every other node "is now UP". It is java itself after the
# start, so that a signal reaches it. HEAP (256m) is the largest heap; about twice that is resident.
set -eu
number=$1 of=$2 address=$3 port=$4 storage_port=$5 seeds=$6
here=$(cd "$(dirname "$0")" && pwd)
node=$(pwd)
[ -e "$here/lib" ] || sh "$here/fetch.sh" "$here/lib"
lib=$(readlink -f "$here/lib")
mkdir -p tmp store
# One token each, evenly spread: -2^63 + (number - 1) * 2^64 / of, in a shell of 64 bits.
step=$(( (9223372036854775807 / of) * 2 ))
token=$(( -9223372036854775807 - 1 + (number - 1) * step ))
cat > cassandra.yaml <<YAML
cluster_name: dbbench
num_tokens: 1
initial_token: "$token"
auto_bootstrap: false
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
endpoint_snitch: SimpleSnitch
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters: [{seeds: "$seeds"}]
listen_address: $address
rpc_address: $address
storage_port: $storage_port
native_transport_port: $port
commitlog_sync: periodic
commitlog_sync_period: 10s
commitlog_segment_size: 8MiB
commitlog_total_space: 128MiB
memtable_heap_space: 64MiB
memtable_offheap_space: 64MiB
file_cache_size: 32MiB
networking_cache_size: 16MiB
key_cache_size: 4MiB
counter_cache_size: 0MiB
concurrent_reads: 8
concurrent_writes: 8
concurrent_compactors: 1
auto_snapshot: false
YAML
export MALLOC_ARENA_MAX=2
exec java "@$here/jvm17.args" -Xms64m "-Xmx${HEAP:-256m}" -Xss512k -XX:+UseSerialGC -XX:TieredStopAtLevel=1 \
  -XX:ReservedCodeCacheSize=48m -XX:+ExitOnOutOfMemoryError \
  "-Djava.io.tmpdir=$node/tmp" "-Djna.tmpdir=$node/tmp" \
  "-Dcassandra.config=file://$node/cassandra.yaml" "-Dcassandra.storagedir=$node/store" \
  "-Dlogback.configurationFile=$here/logback.xml" -Dcassandra-foreground=yes \
  -Dcassandra.ring_delay_ms=0 -Dcassandra.skip_wait_for_gossip_to_settle=0 -Dcassandra.consistent.rangemovement=false \
  -Dcassandra.superuser_setup_delay_ms=0 -Dcassandra.memtable.row_overhead_size=180 \
  -Dcassandra.shutdown_announce_in_ms=0 -Dcassandra.skip_sync=true \
  -cp "$lib/*" org.apache.cassandra.service.CassandraDaemon
