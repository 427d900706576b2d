#!/bin/sh
# node.sh: copies the release of the `riak` that is on the path to ./release. A release knows one node: its configuration,
# its cookie and its pipes lie inside it.
set -eu
riak=$(readlink -f "$(command -v riak)")
root=$(dirname "$(dirname "$riak")")
if [ ! -d "$root/releases" ]; then
  echo "$riak is not in the bin directory of a release of Riak: there is no $root/releases" >&2
  exit 1
fi
mkdir -p release data log
cp -a "$root/." release/
rm -rf release/data release/log
