#!/bin/sh
# Puts ferretdb-server beside this script: built once per machine and version of the sources, then kept in a cache.
# Who comes while another builds waits for it. XDG_CACHE_HOME says where the cache is, else ~/.cache.
set -eu
cd "$(dirname "$0")"
key=$(cat main.go go.mod go.sum build.sh | sha256sum | cut -c 1-16)
cache="${XDG_CACHE_HOME:-${HOME:?}/.cache}/dbbench"
kept="$cache/ferretdb-$key"
mkdir -p "$cache"
exec 9> "$kept.lock"
flock 9
if [ ! -x "$kept/ferretdb-server" ]; then
    fresh=$(mktemp -d "$kept.XXXXXX")
    trap 'rm -rf "$fresh"' EXIT
    # The lock is not the compiler's to inherit: it may leave processes behind.
    go build -trimpath -tags ferretdb_no_postgresql -ldflags '-s -w' -o "$fresh/ferretdb-server" . 9>&-
    chmod 755 "$fresh"
    rm -rf "$kept"
    mv "$fresh" "$kept"
fi
ln -sf "$kept/ferretdb-server" ferretdb-server
