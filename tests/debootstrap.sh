#!/bin/bash
# debootstrap.sh [quickstart|check]... - run them (default: both) in a fresh Debian 12 that has
# only git, made in a temporary folder by debootstrap. Takes minutes; needs root. The package
# sources and their keys are those of this host.
set -Eeuo pipefail
top=$(cd "$(dirname "$0")/.." && pwd)
[ "$(id -u)" = 0 ] || { echo "debootstrap.sh: run as root" >&2; exit 1; }
command -v debootstrap >/dev/null || { echo "debootstrap.sh: install debootstrap" >&2; exit 1; }
[ $# -gt 0 ] || set -- quickstart check

# shellcheck disable=SC2016 # apt expands these
mirror=$(apt-get indextargets --format '$(CREATED_BY) $(RELEASE) $(REPO_URI)' |
    awk '$1 == "Packages" && $2 == "bookworm" { print $3; exit }')
[ -n "$mirror" ] || { echo "debootstrap.sh: this host's apt has no bookworm" >&2; exit 1; }
root=$(mktemp -d)
cleanup() {
    local m
    for m in dev sys proc; do
        mountpoint -q "$root/$m" && { umount -R "$root/$m" || return; }
    done
    # A mount that stays would take the host's files with it.
    rm -rf --one-file-system "$root"
}
trap cleanup EXIT

debootstrap --variant=minbase --include=git,ca-certificates bookworm "$root" "$mirror"
# shellcheck disable=SC2016 # apt expands these
apt-get indextargets --format '$(CREATED_BY) $(RELEASE) $(REPO_URI)' |
    awk '$1 == "Packages" && $2 ~ /^bookworm/ { print "deb", $3, $2, "main" }' | sort -u \
    >"$root/etc/apt/sources.list"
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
git clone -q "$top" "$root/root/witty-profiler"
for m in proc sys dev; do
    mount --rbind "/$m" "$root/$m"
    mount --make-rslave "$root/$m"
done
for script; do
    echo "== $script"
    # shellcheck disable=SC2016 # for the shell inside
    env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin CI=true \
        chroot "$root" bash -c 'cd /root/witty-profiler && exec "./$1"' bash "$script" </dev/null
done
