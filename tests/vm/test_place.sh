#!/bin/bash
# test_place.sh NODES KERNEL_PACKAGE - where programs run and where their memory lies, on NODES nodes
# with CPUs and one more of memory only. WITTY: the product; PLACE: the program built from place.c.
set -Eeuo pipefail
here=$(cd "$(dirname "$0")" && pwd)
nodes=${1:?usage: test_place.sh NODES KERNEL_PACKAGE} pkg=${2:?a kernel package}
witty=$(readlink -f "${WITTY:?names the product}")
place=$(readlink -f "${PLACE:?names the program built from place.c}")
checker=$here/check_place.py
mem=256

[ "$(uname -m)" = x86_64 ] || { echo 'skip: the guest is x86-64, this host is not'; exit 77; }
"$here/fetch-kernel.sh" "$pkg" >/dev/null

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
shares=(-s "$tmp")
for f in "$witty" "$checker"; do
    case $f in
        /tmp/* | /run/* | /root/* | /var/tmp/*) shares+=(-r "$(dirname "$f")") ;;
    esac
done
# The node of memory only is as far as it can be from all others.
extra=(-q -m -q "$(((nodes + 1) * mem))M"
       -q -object -q "memory-backend-ram,id=memx,size=${mem}M"
       -q -numa -q "node,nodeid=$nodes,memdev=memx")
for ((i = 0; i < nodes; i++)); do extra+=(-q -numa -q "dist,src=$i,dst=$nodes,val=40"); done
rc=0
# The CPU time that a program knows of itself leaves interrupts out, unless the kernel is told not to.
# shellcheck disable=SC2016 # for the shell in the guest
"$here/run.sh" -A tsc=noirqtime -k "$pkg" -n "$nodes" -c "$nodes" -m "$mem" -H -t 1600 "${extra[@]}" "${shares[@]}" \
    -f "$here/place.guest" -f "$place" -- \
    sh -c '. $VMTEST/place.guest' sh "$witty" "$checker" "$tmp" "$nodes" || rc=$?
[ "$rc" = 0 ] || echo "test_place: failed on $pkg with $nodes nodes: status $rc"
exit "$rc"
