#!/usr/bin/python3
"""Checks what the probes say against traffic and work whose amounts are known.

usage: test_probe.py PROBE_DUMP [NAME ...]     names are to be refused (rungs, hooks)

Every case runs in a process of its own, which counts what its calls returned.
"""
import ctypes
import json
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

SKIP = 77
PATIENCE_S = 90  # for what a busy machine makes late
MSG_ERRQUEUE = 0x2000
SOF_TX_SOFTWARE_AND_MORE = 0x2 | 0x10 | 0x80 | 0x800  # TX_SOFTWARE, SOFTWARE, OPT_ID, OPT_TSONLY
SO_TIMESTAMPING = 37


class Count:
    """Bytes and messages by (protocol, direction)."""

    def __init__(self):
        self.sums = {}

    def add(self, proto, direction, size, messages=1):
        row = self.sums.setdefault(f"{proto} {direction}", [0, 0])
        row[0] += size
        row[1] += messages
        return size


def pair_tcp(family, host, target=None):
    listener = socket.socket(family, socket.SOCK_STREAM)
    if family == socket.AF_INET6:
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    listener.bind((host, 0))
    listener.listen()
    port = listener.getsockname()[1]
    one = socket.create_connection((target or host, port))
    two = listener.accept()[0]
    listener.close()
    return one, two


def exchange(count, proto, one, two, sizes=((1000, 3), (77, 5))):
    """Different amounts each way."""
    for (sender, receiver), (size, times) in zip(((one, two), (two, one)), sizes):
        for _ in range(times):
            count.add(proto, "sent", sender.send(b"x" * size))
        left = size * times
        while left:
            got = len(receiver.recv(1 << 16))
            count.add(proto, "received", got)
            left -= got


def case_tcp4(c):
    one, two = pair_tcp(socket.AF_INET, "127.0.0.1")
    exchange(c, "tcp", one, two)
    one.close()
    assert two.recv(10) == b""  # the end of a stream is no message


def case_tcp6(c):
    exchange(c, "tcp", *pair_tcp(socket.AF_INET6, "::1"))


def case_tcp_mapped(c):
    exchange(c, "tcp", *pair_tcp(socket.AF_INET6, "::", "127.0.0.1"))


def case_tcp_peek(c):
    one, two = pair_tcp(socket.AF_INET, "127.0.0.1")
    c.add("tcp", "sent", one.send(b"y" * 500))
    two.recv(500, socket.MSG_PEEK | socket.MSG_WAITALL)
    c.add("tcp", "received", len(two.recv(500, socket.MSG_WAITALL)))


def case_tcp_vectors(c):
    one, two = pair_tcp(socket.AF_INET, "127.0.0.1")
    c.add("tcp", "sent", one.sendmsg([b"a" * 10, b"b" * 20, b"c" * 30]))
    c.add("tcp", "sent", os.writev(one.fileno(), [b"d" * 40, b"e" * 50]))
    buffers = [bytearray(50), bytearray(100)]
    c.add("tcp", "received", two.recvmsg_into(buffers, 0, socket.MSG_WAITALL)[0])


def case_tcp_nonblocking(c):
    one, two = pair_tcp(socket.AF_INET, "127.0.0.1")
    one.setblocking(False)
    total = 0
    try:
        while True:  # partial writes, then EAGAIN, which is no message
            total += c.add("tcp", "sent", one.send(b"z" * 300000))
    except BlockingIOError:
        pass
    while total:
        total -= c.add("tcp", "received", len(two.recv(70000)))
    two.setblocking(False)
    try:
        two.recv(1)
    except BlockingIOError:
        pass


def case_sendfile(c):
    with tempfile.TemporaryFile() as f:
        f.write(b"f" * 300000)
        f.flush()
        one, two = pair_tcp(socket.AF_INET, "127.0.0.1")
        sent, left = 0, 300000
        while sent < 300000:
            sent += c.add("tcp", "sent", os.sendfile(one.fileno(), f.fileno(), sent, 60000))
            while left > 300000 - sent:
                left -= c.add("tcp", "received", len(two.recv(left)))
    c.sums["tcp sent"][1] = None  # the kernel may cut a sendfile(2) into several messages


def case_splice(c):
    """A receiver by splice(2): seen where its functions can be hooked, else not at all."""
    tcp = pair_tcp(socket.AF_INET, "127.0.0.1")
    unix = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    source, sink = os.pipe()
    for proto, (one, two) in (("tcp", tcp), ("unix_stream", unix)):
        left = c.add(proto, "sent", one.send(b"s" * 3000))
        while left:
            got = os.splice(two.fileno(), sink, left)
            left -= c.add(f"splice {proto}", "received", len(os.read(source, got)))


def case_udp_connected(c):
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        one = socket.socket(family, socket.SOCK_DGRAM)
        two = socket.socket(family, socket.SOCK_DGRAM)
        one.bind((host, 0))
        two.bind((host, 0))
        one.connect(two.getsockname())
        two.connect(one.getsockname())
        exchange(c, "udp", one, two)
        c.add("udp", "sent", one.send(b""))
        c.add("udp", "received", len(two.recv(10)))


def case_udp_sendto(c):
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    ports = {}
    for size, times in ((100, 4), (900, 2)):
        receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        receiver.bind(("127.0.0.1", 0))
        for _ in range(times):
            c.add("udp", "sent", sender.sendto(b"u" * size, receiver.getsockname()))
            c.add("udp", "received", len(receiver.recvfrom(2000)[0]))
        ports[receiver.getsockname()[1]] = size * times
    c.peers = {"udp_port": ports, "from_port": sender.getsockname()[1]}


def case_udp_errqueue(c):
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    two = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    two.bind(("127.0.0.1", 0))
    one.connect(two.getsockname())
    one.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, SOF_TX_SOFTWARE_AND_MORE)
    c.add("udp", "sent", one.send(b"t" * 123))
    c.add("udp", "received", len(two.recv(200)))
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        try:
            one.recvmsg(500, 500, MSG_ERRQUEUE | socket.MSG_DONTWAIT)
            return
        except BlockingIOError:
            time.sleep(0.01)
    raise AssertionError("no time stamp")


def case_unix(c):
    for kind, proto in ((socket.SOCK_STREAM, "unix_stream"), (socket.SOCK_DGRAM, "unix_dgram"),
                        (socket.SOCK_SEQPACKET, "unix_seqpacket")):
        one, two = socket.socketpair(socket.AF_UNIX, kind)
        exchange(c, proto, one, two)
        if kind == socket.SOCK_DGRAM:
            c.add(proto, "sent", one.send(b""))
            c.add(proto, "received", len(two.recv(10)))


def case_unix_sendto(c):
    sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    inodes = {}
    with tempfile.TemporaryDirectory() as folder:
        for n, name in enumerate((folder + "/bound", f"\0test_probe.{os.getpid()}")):
            receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            receiver.bind(name)
            for _ in range(n + 2):
                c.add("unix_dgram", "sent", sender.sendto(b"d" * (n * 10 + 5), name))
                c.add("unix_dgram", "received", len(receiver.recv(100)))
            inodes[os.fstat(receiver.fileno()).st_ino] = (n * 10 + 5) * (n + 2)
    c.peers = {"unix_ino": inodes}


def case_threads(c):
    one, two = pair_tcp(socket.AF_INET, "127.0.0.1")
    lock = threading.Lock()

    def send():
        for _ in range(50):
            size = one.send(b"q" * 10)
            with lock:
                c.add("tcp", "sent", size)

    threads = [threading.Thread(target=send) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    left = 2000
    while left:
        left -= c.add("tcp", "received", len(two.recv(left)))


class Mmsghdr(ctypes.Structure):
    _fields_ = [("name", ctypes.c_void_p), ("namelen", ctypes.c_uint),
                ("iov", ctypes.c_void_p), ("iovlen", ctypes.c_size_t),
                ("control", ctypes.c_void_p), ("controllen", ctypes.c_size_t),
                ("flags", ctypes.c_int), ("pad", ctypes.c_int), ("len", ctypes.c_uint)]


class Iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]


def case_udp_mmsg(c):
    libc = ctypes.CDLL(None, use_errno=True)
    receivers = []
    for _ in range(3):
        r = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        r.bind(("127.0.0.1", 0))
        receivers.append(r)
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    names = [ctypes.create_string_buffer(struct.pack("=H", socket.AF_INET) +
                                         struct.pack("!H", r.getsockname()[1]) +
                                         socket.inet_aton("127.0.0.1") + bytes(8), 16)
             for r in receivers]
    data = ctypes.create_string_buffer(1000)
    sizes = [100, 200, 300]
    vectors = [Iovec(ctypes.addressof(data), n) for n in sizes]
    headers = (Mmsghdr * 3)()
    for h, name, v in zip(headers, names, vectors):
        h.name, h.namelen = ctypes.addressof(name), 16
        h.iov, h.iovlen = ctypes.addressof(v), 1
    assert libc.sendmmsg(sender.fileno(), headers, 3, 0) == 3
    for size, r in zip(sizes, receivers):
        c.add("udp", "sent", size)
        c.add("udp", "received", len(r.recv(1000)))
    c.peers = {"udp_port": {r.getsockname()[1]: n for r, n in zip(receivers, sizes)}}


CASES = {name[5:]: f for name, f in sorted(globals().items()) if name.startswith("case_")}


def run_case(name):
    count = Count()
    count.peers = {}
    CASES[name](count)
    print(json.dumps({"sums": count.sums, "peers": count.peers}))


def fields_of(lines):
    """[(kind of a line, its fields)]"""
    rows = []
    for line in lines:
        kind, _, rest = line.strip("\n").partition(" ")
        rows.append((kind, dict(re.findall(r"(\w+)=(.*?)(?= \w+=|$)", rest))))
    return rows


class Dump:
    """probe_dump at work, until it is told to end."""

    def __init__(self, program, probe, refuse):
        self.process = subprocess.Popen([program, probe, "-", *refuse], text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if self.process.stdout.readline() != "ready\n":
            error = self.process.stderr.read().strip()
            code = self.process.wait()
            if code == SKIP or os.geteuid():
                print(f"skipped: {error}")
                sys.exit(SKIP)
            sys.exit(f"probe_dump {probe}: {error}")

        self.lines = []
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line)

    def until(self, good):
        """Let it go on until what it printed so far is good, or for as long as may be."""
        end = time.monotonic() + PATIENCE_S
        seen = 0
        while self.reader.is_alive() and time.monotonic() < end:
            ends = [i for i, line in enumerate(self.lines) if line.startswith("window ")]
            if len(ends) > seen and good(fields_of(self.lines[:ends[-1] + 1])):
                break
            seen = len(ends)
            time.sleep(0.05)

    def rows(self):
        """All that it printed: it ends after a last reading."""
        self.process.stdin.close()
        self.reader.join()
        if self.process.wait():
            sys.exit(f"probe_dump: {self.process.stderr.read().strip()}")
        return fields_of(self.lines)


failures = []


def expect(what, got, want):
    if got != want:
        failures.append(what)
        print(f"FAIL {what}: recorded {got}, happened {want}")


def check_sums(name, truth, flows, pid, splice):
    got = {}
    for key in [k for k in truth["sums"] if k.startswith("splice ")]:
        row = truth["sums"].pop(key)
        if splice:
            truth["sums"][key[7:]] = row
    for f in flows:
        if f["tgid"] != str(pid):
            continue
        row = got.setdefault(f"{f['proto']} {f['dir']}", [0, 0])
        row[0] += int(f["bytes"])
        row[1] += int(f["msgs"])
    for key, (size, messages) in truth["sums"].items():
        row = got.pop(key, [0, 0])
        expect(f"{name}: bytes {key}", row[0], size)
        if messages is not None:
            expect(f"{name}: messages {key}", row[1], messages)
    expect(f"{name}: anything else", got, {})


def check_peers(name, truth, flows, pid, refused):
    sent = [f for f in flows if f["tgid"] == str(pid) and f["dir"] == "sent"]
    ports = truth["peers"].get("udp_port", {})
    for port, size in ports.items():
        rows = [int(f["bytes"]) for f in sent if f["remote"] == f"127.0.0.1/{port}"]
        expect(f"{name}: bytes to port {port}", sum(rows), 0 if "udp_peer" in refused else size)
    if ports and "udp_peer" in refused:
        expect(f"{name}: unknown peers say so", {f["remote"] for f in sent}, {"-/0"})
    for ino, size in truth["peers"].get("unix_ino", {}).items():
        rows = [int(f["bytes"]) for f in sent if f["peer_ino"] == ino]
        expect(f"{name}: bytes to inode {ino}", sum(rows), 0 if "unix_peer" in refused else size)
    for f in flows:
        if f["tgid"] == str(pid) and f["proto"] in ("unix_stream", "unix_seqpacket"):
            expect(f"{name}: peer of a {f['proto']}", f["peer"] != "0", True)


def test_traffic(program, refuse):
    dump = Dump(program, "sock", refuse)
    truths = []
    for name in CASES:
        child = subprocess.Popen([sys.executable, __file__, "--case", name], text=True,
                                 stdout=subprocess.PIPE)
        out = child.communicate(timeout=PATIENCE_S)[0]
        if child.returncode:
            sys.exit(f"case {name} failed")
        truths.append((name, child.pid, json.loads(out)))
    rows = dump.rows()
    flows = [f for kind, f in rows if kind == "flow"]
    rungs = {f["name"]: f["rung"] for kind, f in rows if kind == "hook"}
    splice = rungs["recv"] != "tp_btf" or rungs["splice"] == "fexit"
    for name, pid, truth in truths:
        check_sums(name, truth, flows, pid, splice)
        check_peers(name, truth, flows, pid, refuse)
    for kind, f in rows:
        if kind == "health":
            expect("losses", [f["ring_full"], f["map_full"]], ["0"] * 2)
            # A few are told of any thread of the host; what they touch is compared above.
            expect(f"faults: {f['read_fault']} are few", int(f["read_fault"]) < 10, True)
    print(f"traffic: {len(truths)} cases, rungs {rungs}")


SPIN = "import time\nend = time.process_time() + %s\nwhile time.process_time() < end: pass\n"
TELL = "print(time.process_time_ns())\n"


class Threads:
    """What the probe says of the threads of the host, up to now."""

    def __init__(self, rows):
        self.rows = [f for kind, f in rows if kind == "sched"]
        self.window = sum(int(f["ns"]) for kind, f in rows if kind == "window")

    def sum(self, field, **of):
        return sum(int(f[field]) for f in self.rows if all(f[k] == str(v) for k, v in of.items()))

    def account(self, pid):
        """The part of the window that it ran or waited for a CPU."""
        return (self.sum("run_ns", tid=pid) + self.sum("runq_ns", tid=pid)) / self.window

    def last_records(self, pid):
        return sum(int(f["flags"]) >> 2 & 1 for f in self.rows if f["tid"] == str(pid))


def test_threads(program, refuse):
    # Each is on its CPU before the probe starts, and nothing ever makes it block.
    cpus = sorted(os.sched_getaffinity(0))
    busy = [subprocess.Popen([sys.executable, "-S", "-c", "print(flush=True)\nwhile True: pass"], stdout=subprocess.PIPE)
            for _ in cpus]
    for cpu, process in zip(cpus, busy):
        os.sched_setaffinity(process.pid, {cpu})
        process.stdout.readline()
    short = []

    def settled(rows):
        """The last records are there; and of waits that still go on, which nobody can tell yet, few are left."""
        t = Threads(rows)
        return all(t.last_records(pid) for pid, _ in short) and all(0.9 <= t.account(p.pid) <= 1.1 for p in busy)
    try:
        dump = Dump(program, "sched", refuse)
        for _ in range(10):
            child = subprocess.Popen([sys.executable, "-S", "-c", SPIN % 0.005 + TELL], text=True,
                                     stdout=subprocess.PIPE)
            short.append((child.pid, int(child.communicate()[0])))
        dump.until(settled)
        t = Threads(dump.rows())
    finally:
        for process in busy:
            process.kill()
            process.wait()
            process.stdout.close()
    for cpu, process in zip(cpus, busy):
        account = t.account(process.pid)
        # A wait may still go on at the end of the last reading.
        expect(f"busy thread: run + wait are the window ({account:.4f})", 0.8 <= account <= 1.1, True)
        shares = [part.split(":") for f in t.rows if f["tid"] == str(process.pid) for part in f["cpus"].split(",") if part]
        expect("busy thread: its CPU", {int(number) for number, _ in shares}, {cpu})
        expect("busy thread: run time by CPU", sum(int(ns) for _, ns in shares), t.sum("run_ns", tid=process.pid))
    total = t.sum("run_ns")
    if len(cpus) == os.sysconf("SC_NPROCESSORS_ONLN"):  # no CPU is ever idle
        expect(f"run times add up to all CPUs ({total / t.window / len(cpus):.4f})",
               abs(total - t.window * len(cpus)) <= t.window * len(cpus) * 0.1, True)
    for pid, cpu_ns in short:
        got = t.sum("run_ns", tgid=pid)
        expect(f"short process {pid}: run time {got} is at least {cpu_ns}", got >= cpu_ns, True)
        # Once more if shares of it came later than its end.
        ends = t.last_records(pid)
        expect(f"short process {pid}: last records {ends}", ends in (1, 2), True)
    print(f"threads: {total / t.window:.4f} of {len(cpus)} CPUs, {len(short)} short processes")


def main():
    if len(sys.argv) > 2 and sys.argv[1] == "--case":
        run_case(sys.argv[2])
        return 0
    program, refuse = sys.argv[1], sys.argv[2:]
    test_traffic(program, refuse)
    test_threads(program, refuse)
    print("failed" if failures else "passed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
