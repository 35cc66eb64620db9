#!/bin/bash
# mkinitrd.sh -k KERNEL_DIR -o OUT [-m MODULE]... [-b PROGRAM]...
#
# Build an initramfs for the test VM.
#   -k DIR      a folder that fetch-kernel.sh printed
#   -o OUT      the file to write (plain cpio: the VM unpacks it faster than
#               it could uncompress it)
#   -m MODULE   a kernel module to carry, with those it depends on; one that
#               this kernel lacks or has built in is skipped. They are not
#               loaded at boot: init is told which, or the kernel asks.
#   -b PROGRAM  a host program (name or path) to carry, with its shared
#               libraries, at the same path; an error if the host lacks it.
#               A file that is not an ELF program is carried as it is.
#
# Needs: busybox-static, cpio, kmod, xz-utils.
set -Eeuo pipefail
trap 'echo "mkinitrd: failed at line $LINENO" >&2' ERR
kdir='' out='' mods=() bins=()
while getopts k:o:m:b: o; do
    case $o in
        k) kdir=$OPTARG ;; o) out=$OPTARG ;;
        m) mods+=("$OPTARG") ;; b) bins+=("$OPTARG") ;;
        *) exit 2 ;;
    esac
done
if [ -z "$kdir" ] || [ -z "$out" ]; then
    echo "usage: mkinitrd.sh -k DIR -o OUT [-m MODULE]... [-b PROGRAM]..." >&2
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

mkdir -p "$root"/usr/{bin,sbin,lib,lib64}
mkdir -p "$root"/{proc,sys,dev,tmp,run,etc,root,busybox,vmtest,host}
for d in bin sbin lib lib64; do ln -s usr/$d "$root/$d"; done
cp "$(command -v busybox)" "$root/usr/bin/busybox"
ln -s ../bin/busybox "$root/usr/sbin/modprobe"     # the kernel's own requests
cp "$here/init" "$root/init"; chmod 755 "$root/init"
echo 'root:x:0:0:root:/root:/bin/sh' >"$root/etc/passwd"
echo 'root:x:0:' >"$root/etc/group"
echo '127.0.0.1 localhost' >"$root/etc/hosts"

# Host programs and their libraries, each at its own path.
put() { [ -e "$root$1" ] || { mkdir -p "$root$(dirname "$1")"; cp -L "$1" "$root$1"; }; }
put_elf() {
    put "$1"
    local lib
    # ldd prints "name => /path (0x...)" or "/path (0x...)"; nothing if static
    { ldd "$1" 2>/dev/null || true; } |
        sed -n 's|.*=> *\(/[^ ]*\) .*|\1|p; s|^[[:space:]]*\(/[^ ]*\) .*|\1|p' |
        while read -r lib; do put "$lib"; done
}
# Tests run under the host's dash and bash: busybox's own shell would prefer
# its applets (ip, say) to the programs carried, whatever PATH says.
verbs=
for b in dash bash "${bins[@]}"; do
    p=$(command -v "$b" || true)
    [ -n "$p" ] || { echo "mkinitrd: no program '$b' on this host" >&2; exit 1; }
    put_elf "$(readlink -f "$p")"
    [ -e "$root$p" ] || { mkdir -p "$root$(dirname "$p")"; ln -s "$(readlink -f "$p")" "$root$p"; }
    # captured, not piped into grep -q: that would end ldd early
    case $(ldd "$p" 2>/dev/null || true) in *libibverbs*) verbs=1 ;; esac
done
ln -sf dash "$root/usr/bin/sh"
put /lib/x86_64-linux-gnu/libgcc_s.so.1     # pthread_exit opens it at run time
# libibverbs opens its soft providers at run time, so ldd does not name them.
if [ -n "$verbs" ]; then
    for n in rxe siw; do
        put /etc/libibverbs.d/$n.driver
        for so in /usr/lib/x86_64-linux-gnu/libibverbs/lib"$n"-rdmav*.so; do put_elf "$so"; done
    done
fi

# Modules with what they depend on.
ver=$(cat "$kdir/version")
md=$root/usr/lib/modules/$ver; mkdir -p "$md"
cp "$kdir"/modules/modules.{order,builtin,builtin.modinfo} "$md/"
declare -A dep=() path=()
while IFS=: read -r f deps; do
    n=${f##*/}; n=${n%%.ko*}; n=${n//-/_}
    path[$n]=$f; dep[$n]=$deps
done <"$kdir/modules/modules.dep"
add_mod() {
    local f=$1 t
    t=${f%.xz}; t=${t%.zst}; t=${t%.gz}
    [ -e "$md/$t" ] && return
    mkdir -p "$md/$(dirname "$t")"
    case $f in
        *.xz) xz -dc "$kdir/modules/$f" ;; *.zst) zstd -dcq "$kdir/modules/$f" ;;
        *.gz) gzip -dc "$kdir/modules/$f" ;; *) cat "$kdir/modules/$f" ;;
    esac >"$md/$t"
}
for m in "${mods[@]}"; do
    m=${m//-/_}
    [ -n "${path[$m]:-}" ] || continue
    for f in ${path[$m]} ${dep[$m]}; do add_mod "$f"; done
done
depmod -b "$root" "$ver"

(cd "$root" && find . -print0 | LC_ALL=C sort -z | cpio -0 -o -H newc --quiet -R 0:0) >"$out.$$"
mv "$out.$$" "$out"                     # whole or not at all, for other runs
