#!/bin/bash
# test_devices.sh NODES KERNEL_PACKAGE - accelerators, disks and network cards behind each of NODES nodes, and the
# processes that use them. WITTY: the product; FAKES: the folder with the fake NVML, which puts its devices where the
# guest has PCI devices. Then control groups of version 2.
set -Eeuo pipefail
here=$(cd "$(dirname "$0")" && pwd)
nodes=${1:?usage: test_devices.sh NODES KERNEL_PACKAGE} pkg=${2:?a kernel package}
witty=$(readlink -f "${WITTY:?names the product}")
fakes=${FAKES:?names the folder with the fakes}

[ "$(uname -m)" = x86_64 ] || { echo 'skip: the guest is x86-64, this host is not'; exit 77; }
"$here/fetch-kernel.sh" "$pkg" >/dev/null

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cp "$fakes/libnvidia-ml.so.1" "$tmp"
shares=(-s "$tmp")
containers=$(readlink -f "$here/../live/test_containers.py")
for f in "$witty" "$here/check_devices.py" "$containers"; do
    case $f in
        /tmp/* | /run/* | /root/* | /var/tmp/*) shares+=(-r "$(dirname "$f")") ;;
    esac
done
rc=0
# shellcheck disable=SC2016 # for the shell in the guest
"$here/run.sh" -k "$pkg" -n "$nodes" -c "$nodes" -m 192 -p -H -t 800 -M nvme -M virtio_net "${shares[@]}" -f "$here/devices.guest" -- \
    sh -c '. $VMTEST/devices.guest' sh "$witty" "$here/check_devices.py" "$tmp" "$nodes" "$containers" || rc=$?
[ "$rc" = 0 ] || { echo "test_devices: failed on $pkg with status $rc"; cat "$tmp/record.log" 2>/dev/null || true; }
exit "$rc"
