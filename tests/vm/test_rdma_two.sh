#!/bin/bash
# test_rdma_two.sh KERNEL_PACKAGE - soft RoCE between two guests: each recorded by itself, then merged.
# WITTY: the product. Needs rping and ib_send_bw on this host, which the guests borrow.
set -Eeuo pipefail
here=$(cd "$(dirname "$0")" && pwd)
pkg=${1:?usage: test_rdma_two.sh KERNEL_PACKAGE}
witty=$(readlink -f "${WITTY:?names the product}")

[ "$(uname -m)" = x86_64 ] || { echo 'skip: the guests are x86-64, this host is not'; exit 77; }
for tool in rdma rping ib_send_bw; do
    command -v $tool >/dev/null || { echo "skip: $tool is not installed"; exit 77; }
done
"$here/fetch-kernel.sh" "$pkg" >/dev/null

tmp=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$tmp"' EXIT
mkdir "$tmp/shared"
shares=(-s "$tmp/shared")
case $witty in
    /tmp/* | /run/* | /root/* | /var/tmp/*) shares+=(-r "$(dirname "$witty")") ;;
esac
guest() {                                # guest SIDE OTHER
    # shellcheck disable=SC2016 # for the shell in the guest
    exec "$here/run.sh" -k "$pkg" -N "$1" -m 768 -H -t 1300 "${shares[@]}" -L "$tmp/$1,$tmp/$2" -f "$here/rdma_two.guest" \
        -M virtio_net -M rdma_rxe -M rdma_ucm -- sh -c '. $VMTEST/rdma_two.guest' sh "$1" "$witty" "$tmp/shared"
}
guest a b & first=$!
guest b a & second=$!
# When one fails the other would wait for it until its time is up.
rc=0
wait -n || rc=$?
if [ "$rc" = 0 ]; then wait -n || rc=$?; fi
if [ "$rc" != 0 ]; then
    echo "test_rdma_two: a guest failed on $pkg with status $rc; reached: $(cd "$tmp/shared" && echo *)"
    kill $first $second 2>/dev/null || true
    exit "$rc"
fi
cd "$tmp/shared"
"$witty" merge a.wpdb b.wpdb -o merged.json 2>merge.log
python3 "$here/check_rdma_two.py" merged.json "$tmp/shared"
