#!/usr/bin/env python3
"""maplock.py FOLDER - a process that holds the lock of its memory map until it is told to let go.

A file system of our own (FUSE), whose one file is FOLDER/file, answers a write when its standard input ends. The process
has a dirty page of it and maps it once more through a descriptor with direct I/O: the kernel writes the
page out in the middle of that mmap(2), while it holds the lock for writing, and waits for the answer.

Says "holds PID" once that write has come, and ends after the lock was free again. Status 77: no FUSE here.
"""
import ctypes
import mmap
import os
import stat
import struct
import sys
import threading

OPEN, READ, WRITE, STATFS, RELEASE, FSYNC, FLUSH, INIT = 14, 15, 16, 17, 18, 20, 25, 26
GETATTR, SETATTR, INTERRUPT, FORGET, DESTROY = 3, 4, 36, 2, 38
FOPEN_DIRECT_IO = 1
SIZE = 4096
libc = ctypes.CDLL(None, use_errno=True)


def attributes():
    """struct fuse_attr_out, linux/fuse.h"""
    attr = struct.pack("<6Q10I", 1, SIZE, 8, 0, 0, 0, 0, 0, 0, stat.S_IFREG | 0o600, 1, 0, 0, 0, SIZE, 0)
    return struct.pack("<QII", 3600, 0, 0) + attr


def answer(fd, unique, payload=b"", error=0):
    os.write(fd, struct.pack("<IiQ", 16 + len(payload), error, unique) + payload)


def answer_late(fd, unique, written, child):
    print(f"holds {child}", flush=True)
    sys.stdin.read()
    answer(fd, unique, struct.pack("<II", written, 0))


def serve(fd, opens, child):
    while True:
        try:
            request = os.read(fd, 1 << 17)
        except OSError:
            return
        opcode, unique = struct.unpack_from("<IQ", request, 4)
        body = request[40:]
        if opcode == INIT:
            answer(fd, unique, struct.pack("<IIIIHHIIHHI7I", 7, 31, 0, 0, 16, 12, 1 << 16, 1, 1, 0, 0, *[0] * 7))
        elif opcode in (GETATTR, SETATTR):
            answer(fd, unique, attributes())
        elif opcode == OPEN:
            opens.append(1)
            # The first one caches pages, so that one of them can be dirty; the next does not.
            answer(fd, unique, struct.pack("<QII", len(opens), 0 if len(opens) == 1 else FOPEN_DIRECT_IO, 0))
        elif opcode == READ:
            answer(fd, unique, b"\0" * SIZE)
        elif opcode == WRITE:
            written = struct.unpack_from("<I", body, 16)[0]
            threading.Thread(target=answer_late, args=(fd, unique, written, child), daemon=True).start()
        elif opcode in (FLUSH, RELEASE, FSYNC):
            answer(fd, unique)
        elif opcode == DESTROY:
            return
        elif opcode not in (FORGET, INTERRUPT):
            answer(fd, unique, error=-38)


def skip(what):
    print(f"skip: {what}", flush=True)
    sys.exit(77)


def mount(path):
    try:
        fd = os.open("/dev/fuse", os.O_RDWR)
    except OSError as e:
        skip(f"/dev/fuse: {e.strerror}")
    options = f"fd={fd},rootmode=100600,user_id=0,group_id=0".encode()
    if libc.mount(b"maplock", path.encode(), b"fuse", 0, options) < 0:
        skip(f"mount: {os.strerror(ctypes.get_errno())}")
    return fd


def hold(path):
    """In a child, so that its memory map is not that of the file system."""
    cached = os.open(path, os.O_RDWR)
    direct = os.open(path, os.O_RDWR)
    dirty = mmap.mmap(cached, SIZE, mmap.MAP_SHARED)
    dirty[0] = 1
    # Pages that a sample could ask for.
    own = mmap.mmap(-1, 8 << 20)
    for i in range(0, len(own), 4096):
        own[i] = 1
    mmap.mmap(direct, SIZE, mmap.MAP_PRIVATE, mmap.PROT_READ)


def main():
    path = os.path.join(sys.argv[1], "file")
    with open(path, "w", encoding="ascii"):
        pass
    fd = mount(path)
    child = os.fork()
    if not child:
        os.close(fd)
        hold(path)
        os._exit(0)
    threading.Thread(target=serve, args=(fd, [], child), daemon=True).start()
    os.waitpid(child, 0)
    libc.umount2(path.encode(), 2)


if __name__ == "__main__":
    main()
