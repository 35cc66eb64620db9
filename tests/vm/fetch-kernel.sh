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
# When apt does not know the package, or no longer gets it, and this is root, the package lists are
# fetched again.
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
exec 9>"$cache/.lock"

# As root apt warns that its sandbox user cannot write here: let it be root.
apt() { LC_ALL=C apt-get -qq -o APT::Sandbox::User=root -o Acquire::Retries=3 "$@" 9>&-; }

refresh() {                             # fetch the package lists
    [ "$(id -u)" = 0 ] || return 0
    echo "fetch-kernel: fetching the package lists" >&2
    apt update >&2 || echo "fetch-kernel: apt-get update failed" >&2
}

# The image that a meta-package depends on, as it holds no kernel itself; empty: not known.
image_of() {
    { apt-cache depends "$1" 2>/dev/null || true; } |
        sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1
}

# The answer of apt is kept, for a machine that has no package lists.
resolve() {                             # resolve META: sets pkg
    local meta=$cache/meta-$1 real
    real=$(image_of "$1")
    if [ -z "$real" ] && [ -e "$meta" ]; then real=$(cat "$meta"); fi
    if [ -z "$real" ]; then
        refresh
        real=$(image_of "$1")
    fi
    [ -n "$real" ] || unavailable "apt knows no kernel package '$1'; its sources need main" \
        "of bookworm and of bookworm-security, and its lists a recent apt-get update"
    echo "$real" >"$meta"
    pkg=$real
}

download() {                            # download PACKAGE, into this folder
    local pause
    for pause in 2 10; do
        if apt download "$1" >&2; then return; fi
        echo "fetch-kernel: cannot download '$1', trying again" >&2
        sleep "$pause"
        refresh                         # the archive may have a newer one instead
    done
    apt download "$1" >&2
}

flock 9                                 # one at a time
if ! [[ $pkg =~ ^linux-image-[0-9]+\.[0-9]+\.[0-9]+ ]]; then resolve "$pkg"; fi
dir=$cache/$pkg
if [ -e "$dir/.done" ]; then echo "$dir"; exit 0; fi
tmp=$(mktemp -d "$cache/.tmp.XXXXXX")
trap 'rm -rf "$tmp"' EXIT

(cd "$tmp" && download "$pkg") || unavailable "cannot download '$pkg': is the network there?"
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
