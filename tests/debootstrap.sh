#!/bin/bash
# debootstrap.sh [COMMAND]... - run COMMANDs (default: ./quickstart, then ./check) in a clone of
# this repository in a fresh Debian 12 that has only git; takes minutes, as root.
# Packages come from the mirror that this host's apt is configured with.
set -Eeuo pipefail
trap 'echo "debootstrap: failed at line $LINENO" >&2' ERR
repo=$(git -C "$(dirname "$(readlink -f "$0")")" rev-parse --show-toplevel)
[ $# -gt 0 ] || set -- ./quickstart ./check
die() { trap - ERR; echo "debootstrap: $*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || die "must run as root"
command -v debootstrap >/dev/null || die "needs: apt-get install -y debootstrap"

# shellcheck disable=SC2016 # for apt
mirror=$(apt-get indextargets --format '$(SITE) $(RELEASE)' |
    sed -n 's/ bookworm$//p' | head -n 1)
[ -n "$mirror" ] || die "apt on this host has no source for bookworm"
root=$(mktemp -d)
cleanup() {
    local m
    for m in dev sys proc .; do
        if mountpoint -q "$root/$m"; then umount -R "$root/$m" || umount -Rl "$root/$m"; fi
    done
    # Never remove through a mount that could not be undone.
    if ! grep -q " ${root}[/ ]" /proc/mounts; then rm -rf "$root"; fi
}
trap cleanup EXIT

# mktemp makes it for root alone; tests also run as nobody and postgres.
chmod 755 "$root"
# As on any host, / is a mount: its propagation can be changed.
mount --bind "$root" "$root"
mount --make-private "$root"
debootstrap --variant=minbase --include=git,ca-certificates bookworm "$root" "$mirror"
# shellcheck disable=SC2016 # for apt
apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' |
    grep -E ' bookworm(-updates|-security)? main$' | sort -u >"$root/etc/apt/sources.list"
cp /etc/resolv.conf /etc/hosts "$root/etc/"
mount -t proc proc "$root/proc"
for m in sys dev; do
    mount --rbind "/$m" "$root/$m"
    mount --make-rslave "$root/$m"
done
git clone -q "$repo" "$root/src"
for c; do
    echo "debootstrap: $c"
    # As its root, not in a chroot: paths of files that other mount namespaces opened begin at the root.
    # shellcheck disable=SC2016 # for the inner shell
    unshare --mount --propagation private sh -ec '
        cd "$1"
        mkdir -p .old
        pivot_root . .old
        umount -l .old
        rmdir .old
        exec env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin sh -c "cd /src && $2"
    ' sh "$root" "$c" </dev/null
done
