#!/bin/bash
# fetch-kernel.sh PACKAGE - fetch a Debian kernel without installing it.
#
# PACKAGE is an image package (linux-image-6.1.0-57-amd64) or a meta-package
# (linux-image-amd64, linux-image-6.12-amd64); a meta-package is resolved to
# the image it depends on. Prints one line: the folder that holds
#   vmlinuz    the kernel as packaged
#   vmlinux    the same kernel unpacked (it boots by PVH, and its BTF can be read:
#              bpftool btf dump file vmlinux format c)
#   config     its configuration
#   modules/   its modules, with modules.dep
#   version    what uname -r says in it
# A second call for the same package answers from the cache, also offline.
#
# Exit status: 0; 69 when the package cannot be had (no such package, no network); 1 for
# any other failure.
# Needs: apt, dpkg, kmod (depmod), xz-utils, zstd, lz4.
# Cache: $WITTY_VM_CACHE, by default ~/.cache/witty-profiler/vm.
set -Eeuo pipefail
trap 'echo "fetch-kernel: failed at line $LINENO" >&2' ERR

readonly UNAVAILABLE=69
pkg=${1:?usage: fetch-kernel.sh PACKAGE}
cache=${WITTY_VM_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/witty-profiler/vm}

unavailable() {
    echo "fetch-kernel: $*" >&2
    exit "$UNAVAILABLE"
}

mkdir -p "$cache"

# A meta-package holds no kernel: follow its dependency. The answer is kept, for a machine
# that has no package lists.
if ! [[ $pkg =~ ^linux-image-[0-9]+\.[0-9]+\.[0-9]+ ]]; then
    meta=$cache/meta-$pkg
    real=$({ apt-cache depends "$pkg" 2>/dev/null || true; } |
           sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p')
    if [ -n "$real" ]; then
        echo "$real" >"$meta"
    elif [ -e "$meta" ]; then
        real=$(cat "$meta")
    else
        unavailable "apt knows no kernel package '$pkg' (apt-get update?)"
    fi
    pkg=$real
fi
dir=$cache/$pkg
if [ -e "$dir/.done" ]; then echo "$dir"; exit 0; fi

exec 9>"$cache/.lock"
flock 9                                 # one download at a time
if [ -e "$dir/.done" ]; then echo "$dir"; exit 0; fi
tmp=$(mktemp -d "$cache/.tmp.XXXXXX")
trap 'rm -rf "$tmp"' EXIT

# As root apt warns that its sandbox user cannot write here: let it be root.
(cd "$tmp" && apt-get -qq -o APT::Sandbox::User=root download "$pkg" >&2) ||
    unavailable "cannot download '$pkg'"
deb=$(find "$tmp" -name "${pkg}_*.deb")
mkdir "$tmp/x"
dpkg-deb --fsys-tarfile "$deb" | tar -xC "$tmp/x" --wildcards './boot/*' '*lib/modules/*'
mods=$(find "$tmp/x" -path '*lib/modules/*' -prune -type d)
ver=$(basename "$mods")

mkdir -p "$tmp/out" "$tmp/root/lib/modules"
mv "$tmp"/x/boot/vmlinuz-* "$tmp/out/vmlinuz"
mv "$tmp"/x/boot/config-* "$tmp/out/config"
mv "$mods" "$tmp/root/lib/modules/$ver"
depmod -b "$tmp/root" "$ver"
mv "$tmp/root/lib/modules/$ver" "$tmp/out/modules"
echo "$ver" >"$tmp/out/version"

# Unpack vmlinux: the x86 boot header says where the payload is.
# 0x1f1 setup_sects (byte), 0x248 payload_offset, 0x24c payload_length.
word() { od -An -j "$1" -N "$2" -t "u$2" "$tmp/out/vmlinuz" | tr -d ' '; }
off=$(( ($(word $((0x1f1)) 1) + 1) * 512 + $(word $((0x248)) 4) ))
len=$(word $((0x24c)) 4)
payload() {
    dd if="$tmp/out/vmlinuz" bs=1M iflag=skip_bytes,count_bytes \
        skip="$off" count="${1:-$len}" status=none
}
# After the packed kernel come 4 bytes with its unpacked size (not for gzip).
case $(payload 4 | od -An -t x1 | tr -d ' ') in
    fd377a58) payload | xz -dcq --single-stream ;;
    28b52ffd) payload $((len - 4)) | zstd -dcq ;;
    02214c18) payload $((len - 4)) | lz4 -dcq ;;
    1f8b*)    payload | gzip -dcq ;;
    *) echo "fetch-kernel: unknown kernel compression" >&2; exit 1 ;;
esac >"$tmp/out/vmlinux"
touch "$tmp/out/.done"
rm -rf "$dir"
mv "$tmp/out" "$dir"
echo "$dir"
