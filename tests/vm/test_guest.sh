#!/bin/bash
# test_guest.sh KERNEL_PACKAGE - the product records the ground truth under another kernel.
# WITTY and TRUTH name the built programs; without WITTY only the workload runs in the guest.
set -Eeuo pipefail
cd "$(dirname "$0")"
pkg=${1:?usage: test_guest.sh KERNEL_PACKAGE}

./fetch-kernel.sh "$pkg" >/dev/null || { echo "skip: kernel package $pkg cannot be had"; exit 77; }
TRUTH=$(readlink -f "${TRUTH:?names the ground-truth program}")
WITTY=${WITTY:+$(readlink -f "$WITTY")}
CHECK=$(readlink -f ../live/check_truth.py)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# The guest has its own /tmp and /root: what lies there is shared by name, as are the programs.
opts=(-k "$pkg" -H -c 2 -m 1024 -t 240 -s "$tmp" -f record.guest
    -M inet_diag -M tcp_diag -M udp_diag -M unix_diag -M veth)
for f in "$TRUTH" "$CHECK" ${WITTY:+"$WITTY"}; do
    case $f in /tmp/* | /root/* | /run/* | /var/tmp/*) opts+=(-r "$(dirname "$f")") ;; esac
done
# shellcheck disable=SC2016 # for the shell in the guest
if [ -n "$WITTY" ]; then
    ./run.sh "${opts[@]}" -- env WITTY="$WITTY" TRUTH="$TRUTH" CHECK="$CHECK" \
        sh -c '. $VMTEST/record.guest' sh "$tmp"
else
    ./run.sh "${opts[@]}" -- sh -c 'uname -r; "$1" --out "$2"' sh "$TRUTH" "$tmp/truth.json"
    /usr/bin/python3 -c 'import json, sys
n = len(json.load(open(sys.argv[1]))["flows"])
print(n, "flows in the truth")
sys.exit(n == 0)' "$tmp/truth.json"
fi
