#!/bin/sh
# fetch.sh DIR: makes DIR a link to Cassandra's jars, of the version that pom.xml beside this script pins. Maven fetches
# them once into a cache (DBBENCH_CACHE, else XDG_CACHE_HOME/dbbench, else ~/.cache/dbbench); later calls need no network.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
version=$(sed -n 's:.*cassandra-all</artifactId><version>\([^<]*\)<.*:\1:p' "$here/pom.xml")
cache=${DBBENCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/dbbench}/cassandra-$version
if [ ! -d "$cache" ]; then
  mkdir -p "$(dirname "$cache")"
  part=$(mktemp -d "$cache.XXXXXX")
  trap 'rm -rf "$part"' EXIT
  # Maven writes a target folder beside the pom: in the private folder, too.
  cp "$here/pom.xml" "$part/pom.xml"
  mvn -q -B -f "$part/pom.xml" dependency:copy-dependencies -DoutputDirectory="$part/lib" -DincludeScope=runtime
  # Whole or not at all; where two fetched at the same time, the first one's stays.
  mv -T "$part/lib" "$cache" 2>/dev/null || [ -d "$cache" ]
fi
ln -sfn "$cache" "$1"
