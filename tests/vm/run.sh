#!/bin/bash
# run.sh [options] -- COMMAND [ARG]...
#
# Boot a Debian kernel in a small virtual machine, run COMMAND in it as root,
# print what it prints and exit with its exit status.
#
#   -k PACKAGE  kernel package, or meta-package (default linux-image-amd64)
#   -n NODES    NUMA nodes (default 1)
#   -c CPUS     virtual CPUs, as many on each node (default: one)
#   -m MIB      memory of each node in MiB (default 512 for one node, else 256)
#   -D "A,B,D"  distance D between nodes A and B, both ways; repeatable. The
#               others: 10 to itself, 12 in the same half, 32 across
#   -p          PCI (nine nodes at most): every node has its own host bridge, with
#               an "edu" device (1234:11e8, class 00ff) and a network card
#               (virtio: modprobe virtio_net) behind one PCIe switch, and an
#               NVMe disk (modprobe nvme) on a root port. The cards share a hub
#   -L A,B      a network card (virtio) joined to another machine's: this one
#               listens on the unix socket A, the other on B. Repeatable
#   -H          the command sees the host's file system, read-only (needs 9p)
#   -s DIR      share DIR, writable, at the same path (needs 9p); repeatable
#   -r DIR      share DIR, read-only, at the same path (needs 9p); repeatable. With -H
#               needed below /tmp, /run, /root and /var/tmp, where the guest has its own
#   -f FILE     copy FILE into the guest's folder $VMTEST; repeatable
#   -b PROGRAM  carry a host program with its libraries; repeatable
#   -M MODULE   carry a kernel module too, and load it first; repeatable
#   -q ARG      one more argument for QEMU; repeatable
#   -A ARG      one more argument for the kernel; repeatable
#   -t SECONDS  time limit (default 400)
#   -a ACCEL    kvm, tcg, or mttcg: tcg with a thread for each CPU (default: kvm
#               where it can run a plain kernel, else tcg)
#   -N NAME     host name in the guest (default vm)
#   -l FILE     keep the kernel's messages in FILE
#   -v          say what is run, and the times, on standard error
#
# Exit status: the command's; 124 past the time limit; 125 when there is no
# kernel, or the machine gave no status (its last messages are then shown); 126
# when the guest could not be set up; 2 for wrong use.
# Needs: an x86-64 host, qemu-system-x86 busybox-static cpio kmod xz-utils zstd lz4 and apt.
# Cache: $WITTY_VM_CACHE, by default ~/.cache/witty-profiler/vm.
set -Eeuo pipefail
trap 'echo "vmtest: failed at line $LINENO" >&2' ERR
here=$(cd "$(dirname "$0")" && pwd)
export WITTY_VM_CACHE=${WITTY_VM_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/witty-profiler/vm}

pkg=linux-image-amd64 nodes=1 cpus='' mem='' dists=() pci='' links=() hostroot='' shares=()
files=() bins=() load=() extra=() args=() limit=400 accel='' name=vm log='' verbose=''
while getopts k:n:c:m:D:pL:Hs:r:f:b:M:q:A:t:a:N:l:v o; do
    case $o in
        k) pkg=$OPTARG ;; n) nodes=$OPTARG ;; c) cpus=$OPTARG ;; m) mem=$OPTARG ;;
        D) dists+=("$OPTARG") ;; p) pci=1 ;; L) links+=("$OPTARG") ;; H) hostroot=1 ;;
        s) shares+=("$(readlink -f "$OPTARG"):rw") ;; r) shares+=("$(readlink -f "$OPTARG"):ro") ;;
        f) files+=("$OPTARG") ;; b) bins+=("$OPTARG") ;; M) load+=("$OPTARG") ;;
        q) extra+=("$OPTARG") ;; A) args+=("$OPTARG") ;; t) limit=$OPTARG ;;
        a) accel=$OPTARG ;; N) name=$OPTARG ;; l) log=$OPTARG ;; v) verbose=1 ;;
        *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
die() { echo "vmtest: $*" >&2; exit 2; }
[ $# -gt 0 ] || die "no command; see the head of $0"
: "${cpus:=$nodes}" "${mem:=$((nodes > 1 ? 256 : 512))}"
per=$((cpus / nodes)) half=$(((nodes + 1) / 2))
if [ $((per * nodes)) != "$cpus" ] || [ "$per" = 0 ]; then die "$cpus CPUs on $nodes nodes"; fi
say() { [ -z "$verbose" ] || echo "vmtest: $*" >&2; }

# KVM: a /dev/kvm with no vmx or svm behind it (as in a sandbox that emulates)
# cannot run an unmodified kernel, so its mere presence proves nothing.
if [ -z "$accel" ]; then
    accel=tcg
    if [ -w /dev/kvm ] && grep -qwE 'vmx|svm' /proc/cpuinfo; then accel=kvm; fi
fi

kdir=$("$here/fetch-kernel.sh" "$pkg") || exit 125

# The initramfs depends on the kernel, the modules, the programs and these
# scripts: named by a hash of them, it is built once.
mods=(virtio_pci virtio_net 9p 9pnet_virtio veth dummy bridge rdma_rxe rdma_ucm crc32_generic
      ib_uverbs siw inet_diag tcp_diag udp_diag unix_diag sch_netem tcp_bbr nvme "${load[@]}")
margs=(); for m in "${mods[@]}"; do margs+=(-m "$m"); done
for b in "${bins[@]}"; do
    b=$(command -v "$b") || die "a program given by -b is missing"
    margs+=(-b "$b")
done
key=$({ echo "$kdir" "${margs[@]}"; cat "$here/init" "$here/mkinitrd.sh"
        for b in "${bins[@]}"; do stat -Lc '%n %s %Y' "$(command -v "$b")"; done
      } | sha256sum | cut -c1-16)
initrd=$WITTY_VM_CACHE/initrd-$key
[ -e "$initrd" ] || "$here/mkinitrd.sh" -k "$kdir" -o "$initrd" "${margs[@]}"

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
: "${log:=$tmp/console}"

# What this run adds: the command, settings and files, as a second cpio.
mkdir -p "$tmp/add/vmtest"
quote() { local a; for a; do printf "'%s' " "${a//\'/\'\\\'\'}"; done; echo; }
quote "$@" >"$tmp/add/vmtest/cmd"
# On the first bus: QEMU might choose that of a node (-p), which takes bridges only.
spec='' qshare=() i=0 p9=security_model=none,multidevs=remap
for s in "${shares[@]}"; do
    mode=${s##*:} s=${s%:*} ro=off
    [ "$mode" = rw ] || ro=on
    spec+="share$i:$s:$mode "
    qshare+=(-fsdev "local,id=share$i,path=$s,$p9,readonly=$ro"
        -device "virtio-9p-pci,bus=pcie.0,fsdev=share$i,mount_tag=share$i")
    i=$((i + 1))
done
[ -z "$hostroot" ] ||
    qshare+=(-fsdev "local,id=hostroot,path=/,$p9,readonly=on"
        -device "virtio-9p-pci,bus=pcie.0,fsdev=hostroot,mount_tag=hostroot")
{
    echo "SHARES='$spec' HOSTROOT=$hostroot NAME=$name LOAD='${load[*]}'"
    echo "CWD=$(quote "$PWD")"
} >"$tmp/add/vmtest/env"
for f in "${files[@]}"; do cp -L "$f" "$tmp/add/vmtest/"; done
(cd "$tmp/add" && find . -mindepth 1 | cpio -o -H newc --quiet -R 0:0) >"$tmp/add.cpio"
cat "$initrd" "$tmp/add.cpio" >"$tmp/initrd"

# CPU topology. The kernel warns of an L3 cache that spans nodes, and QEMU gives
# a die its own, so each node is a die: half of them in each of two sockets. An
# AMD processor's dies Linux reads otherwise, so there each node is a socket.
smp=$cpus,sockets=$nodes,dies=1
[ $((nodes % 2)) = 1 ] || [ "$accel" = kvm ] || smp=$cpus,sockets=2,dies=$half
q=(-machine "q35,vmport=off" -smp "$smp,cores=$per,threads=1" -m "$((mem * nodes))M"
   -nodefaults -no-user-config -display none -no-reboot -monitor none
   -kernel "$kdir/vmlinux" -initrd "$tmp/initrd"
   -chardev "file,id=c0,path=$log" -serial chardev:c0
   -chardev "stdio,id=c1,signal=off" -serial chardev:c1)
# QEMU 7.2 with a thread for each CPU now and then runs a stale breakpoint that
# the kernel has already patched away ("Oops: int3"), so: one thread for all.
cpu=max,la57=off,vendor=GenuineIntel
case $accel in
    kvm) q+=(-accel kvm -cpu "host,migratable=off") ;;
    tcg) q+=(-accel "tcg,thread=single,tb-size=256" -cpu "$cpu") ;;
    mttcg) q+=(-accel "tcg,thread=multi,tb-size=256" -cpu "$cpu") ;;
    *) die "-a kvm, tcg or mttcg" ;;
esac
for ((i = 0; i < nodes; i++)); do
    q+=(-object "memory-backend-ram,id=mem$i,size=${mem}M"
        -numa "node,nodeid=$i,cpus=$((i * per))-$(((i + 1) * per - 1)),memdev=mem$i")
done
declare -A dist=()
for ((i = 0; i < nodes; i++)); do for ((j = i + 1; j < nodes; j++)); do
    dist[$i,$j]=$((i / half == j / half ? 12 : 32))
done; done
for d in "${dists[@]}"; do
    IFS=, read -r a b v <<<"$d"
    if [ "$a" -gt "$b" ]; then t=$a a=$b b=$t; fi
    dist[$a,$b]=$v
done
for k in "${!dist[@]}"; do q+=(-numa "dist,src=${k%,*},dst=${k#*,},val=${dist[$k]}"); done

# A PCI host bridge on each node. ACPI says the node of its buses (_PXM), and
# every device below inherits it. 24 bus numbers for each bridge, from 32.
if [ -n "$pci" ]; then
    for ((i = 0; i < nodes; i++)); do
        q+=(-device "pxb-pcie,id=pxb$i,bus_nr=$((32 + i * 24)),bus=pcie.0,numa_node=$i"
            -device "pcie-root-port,id=rpa$i,bus=pxb$i,addr=0,chassis=$((10 + i)),slot=0"
            -device "x3130-upstream,id=up$i,bus=rpa$i"
            -device "xio3130-downstream,id=dna$i,bus=up$i,chassis=$((30 + i)),slot=0"
            -device "edu,bus=dna$i"
            -device "xio3130-downstream,id=dnb$i,bus=up$i,chassis=$((30 + i)),slot=1"
            -netdev "hubport,id=hub$i,hubid=0"
            -device "virtio-net-pci,bus=dnb$i,netdev=hub$i,mac=52:54:00:00:01:0$i,romfile="
            -device "pcie-root-port,id=rpb$i,bus=pxb$i,addr=1,chassis=$((50 + i)),slot=1"
            -blockdev "null-co,node-name=nv$i,size=16777216,read-zeroes=on"
            -device "nvme,bus=rpb$i,drive=nv$i,serial=vm$i")
    done
fi
i=0
for l in "${links[@]}"; do
    sum=$(printf %s "${l%,*}" | cksum | cut -d' ' -f1)
    mac=$(printf '52:54:01:%02x:%02x:%02x' \
        $((sum % 256)) $((sum / 256 % 256)) $((sum / 65536 % 256)))
    ends=local.type=unix,local.path=${l%,*},remote.type=unix,remote.path=${l#*,}
    q+=(-netdev "dgram,id=link$i,$ends"
        -device "virtio-net-pci,netdev=link$i,mac=$mac,romfile=")
    i=$((i + 1))
done
# An emulator on a busy host may miss the few ticks by which the kernel tests its timer.
kargs=(console=ttyS0 quiet loglevel=5 panic=-1 printk.devkmsg=on mitigations=off nowatchdog
       tsc=reliable no_timer_check "${args[@]}")
q+=("${qshare[@]}" "${extra[@]}" -append "${kargs[*]}")
say "$accel, $(basename "$kdir"), initrd $(($(stat -c %s "$tmp/initrd") / 1024)) KiB"
[ -z "$verbose" ] || { printf '%q ' qemu-system-x86_64 "${q[@]}"; echo; } >&2

: >"$log"
start=$EPOCHREALTIME rc=0
timeout --foreground -k 5 "$limit" qemu-system-x86_64 "${q[@]}" </dev/null 2>"$tmp/qemu" &
trap 'kill %1 2>/dev/null' INT TERM
wait %1 || rc=$?
# "[    3.835313] vmtest-status: 0"
from_log() { tr -d '\r' <"$log" | sed -n "$1" | tail -1; }
status=$(from_log 's/.*\] vmtest-status: \([0-9]*\)$/\1/p')
ready=$(from_log 's/^\[ *\([0-9.]*\)\] vmtest-ready$/\1/p')
took_ms=$(((${EPOCHREALTIME/./} - ${start/./}) / 1000))
say "guest ready ${ready:-never} s after its start; $took_ms ms in all"
grep -aE 'vmtest: |BUG: |WARNING: CPU|Oops|Kernel panic|Call Trace' "$log" >&2 || true
if [ -n "$status" ]; then exit "$status"; fi
cat "$tmp/qemu" >&2
tail -n 15 "$log" | tr -d '\r\033' >&2
if [ "$rc" = 124 ]; then echo "vmtest: past the limit of $limit s" >&2; exit 124; fi
echo "vmtest: the machine ended without a status (QEMU: $rc)" >&2
exit 125
