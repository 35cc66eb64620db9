#!/bin/bash
# test_guest.sh KERNEL_PACKAGE - under another kernel the same binary records the ground truth.
# WITTY: the product; TRUTH: the program that makes known traffic; SHM: shares memory;
# WAITS: blocks in every way; PATHS: uses every other path between processes (tests/live).
set -Eeuo pipefail
here=$(cd "$(dirname "$0")" && pwd)
pkg=${1:?usage: test_guest.sh KERNEL_PACKAGE}
witty=$(readlink -f "${WITTY:?names the product}")
truth=$(readlink -f "${TRUTH:?names the ground-truth program}")
shm=$(readlink -f "${SHM:?names the program that shares memory}")
waits=$(readlink -f "${WAITS:?names the program that waits}")
paths=$(readlink -f "${PATHS:?names the program of known paths}")
checker=$(readlink -f "$here/../live/check_truth.py")

[ "$(uname -m)" = x86_64 ] || { echo 'skip: the guest is x86-64, this host is not'; exit 77; }
"$here/fetch-kernel.sh" "$pkg" >/dev/null

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# What the guest's own /tmp, /run, /root and /var/tmp would hide is shared.
shares=(-s "$tmp")
for f in "$witty" "$truth" "$shm" "$waits" "$paths" "$checker"; do
    case $f in
        /tmp/* | /run/* | /root/* | /var/tmp/*) shares+=(-r "$(dirname "$f")") ;;
    esac
done
rc=0
# shellcheck disable=SC2016 # for the shell in the guest
"$here/run.sh" -k "$pkg" -c 2 -m 1024 -H -t 1600 "${shares[@]}" -f "$here/record.guest" \
    -M veth -M unix_diag -M inet_diag -M tcp_diag -M udp_diag -M udmabuf -M overlay -- \
    sh -c '. $VMTEST/record.guest' sh "$witty" "$truth" "$checker" "$tmp" "$shm" "$waits" "$paths" || rc=$?
[ "$rc" = 0 ] || echo "test_guest: failed on $pkg with status $rc"
exit "$rc"
