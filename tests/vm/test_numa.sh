#!/bin/bash
# test_numa.sh [run.sh options] - nodes and distances as asked for, and the pages of a program
# that is bound to the CPUs of node 0 and the memory of node 3 are on node 3.
# TOUCH: the program that writes to memory (touch.c).
set -Eeuo pipefail
cd "$(dirname "$0")"

[ "$(uname -m)" = x86_64 ] || { echo 'skip: the guest is x86-64, this host is not'; exit 77; }
./fetch-kernel.sh linux-image-amd64 >/dev/null
touch=$(readlink -f "${TOUCH:?names the program built from touch.c}")
# shellcheck disable=SC2016 # for the shell in the guest
exec ./run.sh -n 4 -c 4 -D 0,3,40 -f "$touch" -f numa.guest -b numactl "$@" -- \
    sh -c '. $VMTEST/numa.guest'
