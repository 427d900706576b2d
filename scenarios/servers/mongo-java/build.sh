#!/bin/sh
# Puts mongo-java-server's jars and Srv.class into `lib` beside this script: made once per machine and version of the
# sources, then kept in a cache. Who comes while another builds waits for it. XDG_CACHE_HOME says where the cache is,
# else ~/.cache.
set -eu
cd "$(dirname "$0")"
key=$(cat pom.xml Srv.java build.sh | sha256sum | cut -c 1-16)
cache="${XDG_CACHE_HOME:-${HOME:?}/.cache}/dbbench"
kept="$cache/mongo-java-$key"
mkdir -p "$cache"
exec 9> "$kept.lock"
flock 9
if [ ! -e "$kept/Srv.class" ]; then
    fresh=$(mktemp -d "$kept.XXXXXX")
    trap 'rm -rf "$fresh"' EXIT
    mvn -q -B dependency:copy-dependencies "-DoutputDirectory=$fresh" 9>&-
    javac -cp "$fresh/*" -d "$fresh" Srv.java 9>&-
    chmod 755 "$fresh"
    rm -rf "$kept"
    mv "$fresh" "$kept"
fi
ln -sfn "$kept" lib
