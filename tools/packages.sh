#!/bin/bash
# packages.sh build|test - install the Debian packages that building, or building and testing,
# needs. Installs only what is missing and fetches package lists only when they lack something.
# Servers that a package brings are neither started nor enabled.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive LC_ALL=C

readonly BUILD=(gcc libc6-dev meson ninja-build pkg-config clang llvm bpftool libbpf-dev
    libelf-dev zlib1g-dev libzstd-dev libhwloc-dev libsqlite3-dev libmicrohttpd-dev nodejs npm libncurses-dev)
readonly TEST=(libclang-rt-14-dev libcmocka-dev libjansson-dev liburing-dev python3 procps
    iproute2 nftables redis-server redis-tools nginx-light wrk iperf3 postgresql sqlite3 shellcheck
    qemu-system-x86 busybox-static cpio kmod xz-utils zstd lz4 numactl stress-ng rt-tests linux-perf
    openmpi-bin libopenmpi-dev mpich libmpich-dev python3-torch
    gunicorn make fio e2fsprogs runc rdmacm-utils perftest ibverbs-utils
    chromium prometheus python3-jsonschema openssl curl nats-server librdkafka-dev
    graphviz libxml2-utils python3-networkx tmux)
# Folders with a lock file of npm, whose packages tests need.
readonly NPM=(tests/export)
readonly SERVERS=(redis-server nginx postgresql prometheus nats-server)
readonly POLICY=/usr/sbin/policy-rc.d

die() {
    echo "packages: $*" >&2
    exit 1
}

case ${1:-} in
    build) wanted=("${BUILD[@]}") ;;
    test) wanted=("${BUILD[@]}" "${TEST[@]}") ;;
    *) die "usage: packages.sh build|test" ;;
esac

installed() {
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

command -v dpkg-query >/dev/null ||
    die "not a Debian system: install by hand what these give: ${wanted[*]}"
missing=()
for p in "${wanted[@]}"; do
    # Another web server package of the same kind does as well, and so does npm that came with node.
    if [ "$p" = nginx-light ] && [ -x /usr/sbin/nginx ]; then continue; fi
    if [ "$p" = nodejs ] && command -v node >/dev/null; then continue; fi
    if [ "$p" = npm ] && command -v npm >/dev/null; then continue; fi
    installed "$p" || missing+=("$p")
done
npm_packages() {
    local dir
    [ "$1" = test ] || return 0
    for dir in "${NPM[@]}"; do
        cmp -s "$dir/package-lock.json" "$dir/node_modules/.installed" && continue
        echo "packages: npm ci in $dir"
        (cd "$dir" && npm ci --loglevel=error </dev/null) || die "npm ci failed in $dir: is the network there?"
        cp "$dir/package-lock.json" "$dir/node_modules/.installed"
    done
}

cd "$(dirname "$(readlink -f "$0")")/.."
if [ ${#missing[@]} -eq 0 ]; then
    npm_packages "$1"
    exit 0
fi
[ "$(id -u)" = 0 ] || die "run as root, or first: apt-get install -y --no-install-recommends ${missing[*]}"

# Without a policy of its own a host starts what it installs; ours lasts as long as this script.
if ! [ -e "$POLICY" ] && ! [ -L "$POLICY" ]; then
    trap 'rm -f "$POLICY"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    printf '#!/bin/sh\nexit 101\n' >"$POLICY"
    chmod 755 "$POLICY"
fi

update() {
    echo "packages: fetching the package lists"
    apt-get -qq -o Acquire::Retries=3 update || die "apt-get update failed: is the network there?"
}
known() {
    local p
    for p in "${missing[@]}"; do
        [ -n "$(apt-cache show --no-all-versions "$p" 2>/dev/null)" ] || return 1
    done
}
install() {
    apt-get -qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 \
        install -y --no-install-recommends "${missing[@]}" </dev/null >"$log" 2>&1
}

# The next boot must not start what was only installed for a test; what was there stays as it was.
absent=()
for s in "${SERVERS[@]}"; do
    [ -e "/etc/init.d/$s" ] || absent+=("$s")
done
disable_servers() {
    local s
    for s in "${absent[@]}"; do
        [ -e "/etc/init.d/$s" ] || continue
        # With systemd or without, this changes both kinds of start-up.
        update-rc.d "$s" disable >>"$log" 2>&1 ||
            echo "packages: cannot disable the service $s, which was installed" >&2
    done
}

log=$(mktemp)
known || update
echo "packages: installing ${missing[*]}"
if ! install; then
    # The lists may be older than the archive, which then no longer has what they name.
    update
    install || { tail -n 20 "$log" >&2; die "apt-get install failed (all of its output: $log)"; }
fi
disable_servers
rm -f "$log"
npm_packages "$1"
