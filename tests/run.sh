#!/usr/bin/env bash
# Installs the servers that the tests need, where they are missing, and runs all tests in one profile (dev).
#
#   tests/run.sh           everything but the long campaigns: within 25 minutes on two cores, the build included
#   tests/run.sh --full    the long campaigns too
#   tests/run.sh --help    prints this
#
# Packages are installed by apt-get as root (or with sudo) and start no service. A server that is missing all the same
# fails the tests that need it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# program=package, as Debian and Ubuntu call them
needed=(
  redis-server=redis-server
  redis-cli=redis-tools
  memcached=memcached
  memcaslap=libmemcached-tools
  apache2=apache2
  ab=apache2-utils
  mariadbd=mariadb-server
  /usr/lib/postgresql/15/bin/postgres=postgresql-15
  /usr/lib/apache2/modules/libphp8.2.so=libapache2-mod-php
  /usr/lib/php/20220829/pdo_mysql.so=php-mysql
  /usr/lib/php/20220829/redis.so=php-redis
  /usr/lib/php/20220829/mongodb.so=php-mongodb
  /usr/lib/apache2/modules/mod_log_sql_mysql.so=libapache2-mod-log-sql-mysql
  nginx=nginx-light
  ip=iproute2
  javac=openjdk-17-jdk-headless
  mvn=maven
)
policy=/usr/sbin/policy-rc.d
# Debian leaves the directories of servers off a plain user's PATH.
export PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"

say() { printf 'tests/run.sh: %s\n' "$*" >&2; }

# Prints the packages whose program is not installed.
missing_packages() {
  local entry
  for entry in "${needed[@]}"; do
    [ -e "${entry%%=*}" ] || command -v "${entry%%=*}" >/dev/null || printf '%s\n' "${entry##*=}"
  done
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}

apt() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 "$@" >&2
}

# A server package starts its service when it is installed, unless policy-rc.d forbids it. One that is there is the
# machine's own and stays as it is.
forbid_services() {
  [ -e "$policy" ] && return
  trap 'as_root rm -f "$policy"' EXIT
  printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
  as_root chmod 755 "$policy"
}

allow_services() {
  [ -n "$(trap -p EXIT)" ] || return 0
  trap - EXIT
  as_root rm -f "$policy"
}

install_servers() {
  local packages
  mapfile -t packages < <(missing_packages)
  if [ "${#packages[@]}" -eq 0 ]; then
    say "all servers are installed"
    return
  fi
  if ! command -v apt-get >/dev/null; then
    say "this machine has no apt-get; install what these Debian packages hold, and start again: ${packages[*]}"
    exit 1
  fi
  if [ "$(id -u)" -ne 0 ] && ! sudo -n true 2>/dev/null; then
    say "not root, and sudo asks for a password; run: sudo apt-get install ${packages[*]}"
    exit 1
  fi
  say "installing ${packages[*]} (no service is started)"
  forbid_services
  apt install --yes --no-install-recommends "${packages[@]}" || {
    say "once more with new package lists"
    apt update
    apt install --yes --no-install-recommends "${packages[@]}"
  }
  allow_services
}

arguments=()
case "${1-}" in
  "") ;;
  --full) arguments=(-- --include-ignored) ;;
  --help | -h)
    sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0"
    exit 0
    ;;
  *)
    say "unknown argument $1; there is --full"
    exit 2
    ;;
esac

install_servers
export DBBENCH_REQUIRE_SERVERS=1
say "cargo test --no-fail-fast ${arguments[*]}"
exec cargo test --no-fail-fast "${arguments[@]}"
