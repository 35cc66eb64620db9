#!/bin/bash
# test_rdma.sh KERNEL_PACKAGE - soft RoCE in a guest: devices, queue pairs, memory, packets.
# WITTY: the product. Needs rping and ib_send_bw on this host, which the guest borrows.
set -Eeuo pipefail
here=$(cd "$(dirname "$0")" && pwd)
pkg=${1:?usage: test_rdma.sh KERNEL_PACKAGE}
witty=$(readlink -f "${WITTY:?names the product}")

[ "$(uname -m)" = x86_64 ] || { echo 'skip: the guest is x86-64, this host is not'; exit 77; }
for tool in rdma rping ib_send_bw; do
    command -v $tool >/dev/null || { echo "skip: $tool is not installed"; exit 77; }
done
"$here/fetch-kernel.sh" "$pkg" >/dev/null

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
shares=(-s "$tmp")
for f in "$witty" "$here/check_rdma.py"; do
    case $f in
        /tmp/* | /run/* | /root/* | /var/tmp/*) shares+=(-r "$(dirname "$f")") ;;
    esac
done
rc=0
# shellcheck disable=SC2016 # for the shell in the guest
"$here/run.sh" -k "$pkg" -c 2 -m 1024 -H -t 1100 "${shares[@]}" -f "$here/rdma.guest" -M dummy -M rdma_rxe -M rdma_ucm -- \
    sh -c '. $VMTEST/rdma.guest' sh "$witty" "$here/check_rdma.py" "$tmp" || rc=$?
[ "$rc" = 0 ] || echo "test_rdma: failed on $pkg with status $rc"
exit "$rc"
