#!/bin/sh
# join.sh FIRST "DIRECTORY...": has the nodes in these directories join the node FIRST, in whose directory this runs, and
# waits until all agree and nothing is being transferred.
set -eu
first=$1
for node in $2; do
  "$node/release/bin/riak" admin cluster join "$first"
done
if [ -n "$(echo "$2" | tr -d ' ')" ]; then
  release/bin/riak admin cluster plan
  release/bin/riak admin cluster commit
fi
until release/bin/riak admin ringready | grep -q '^TRUE' && release/bin/riak admin transfers | grep -q 'No transfers active'; do
  sleep 1
done
