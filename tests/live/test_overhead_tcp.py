#!/usr/bin/env python3
"""test_overhead_tcp.py - what is recorded of TCP while its messages are watched in turns.

A bound that is broken at once, and traffic that says what it was: connections that go on through many looks, one of
them used by two threads, and, once turns have begun, the ground-truth program's: opened and closed between two looks, to
another network namespace, with splice, peek and reset, beside UDP and Unix sockets. Bytes have to be right to the byte,
everywhere; messages of what is no TCP, too; the recording has to say what is estimated. Without a bound nothing is.

WITTY: the product. TRUTH: the ground-truth program. Needs root.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile

from test_overhead import intervals, show, until

WITTY, TRUTH = os.environ["WITTY"], os.environ["TRUTH"]
HERE = os.path.dirname(os.path.abspath(__file__))
ASKED, ANSWERED, LARGE, SMALL = 100, 40, 300, 100
INTERVALS = 5  # of a fifth of a second, with TCP watched in turns

# Where it is known without seeing a message who uses a socket: not those that are passed on, nor those that are gone before
# anybody looks at who has them.
CASES = ("tcp4 tcp6 tcpmap tcpany tcp4part tcp4iov tcp4peek tcp4half tcp4rst tcp4fin tcp4thr tcp4file tcp4spl tcp4ring "
         "tcp4sqp self exec prefork sameports veth manyconn udp4 udp6 udp4to shortudp unix unixdg unixseq").split()

# To and fro through one connection; two threads in turn through another. Until it is told to end.
PROGRAM = f"""
import json, os, signal, socket, sys, threading
def pair(serve):
    server = socket.create_server(("127.0.0.1", 0))
    pid = os.fork()
    if not pid:
        c = server.accept()[0]
        server.close()
        serve(c)
        os._exit(0)
    c = socket.create_connection(server.getsockname())
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    server.close()
    return c, pid
def echo(c):
    while len(c.recv({ASKED}, socket.MSG_WAITALL)) == {ASKED}:
        c.sendall(bytes({ANSWERED}))
def sink(c):
    while c.recv(1 << 16):
        pass
asking, echo_pid = pair(echo)
shared, sink_pid = pair(sink)
going, rounds, ended = [True], 0, []
first, second, both = (threading.Semaphore(0) for _ in range(3))
def send(mine, size, then):
    while True:
        mine.acquire()
        if ended:
            return
        shared.sendall(bytes(size))
        then.release()
signal.signal(signal.SIGUSR1, lambda *_: going.clear())
print(json.dumps([os.getpid(), echo_pid, sink_pid]), flush=True)
sys.stdin.readline()
two = [threading.Thread(target=send, args=a) for a in ((first, {LARGE}, second), (second, {SMALL}, both))]
for t in two:
    t.start()
while going:
    asking.sendall(bytes({ASKED}))
    asking.recv({ANSWERED}, socket.MSG_WAITALL)
    first.release()
    both.acquire()
    rounds += 1
ended.append(True)
first.release()
second.release()
for t in two:
    t.join()
print(json.dumps([rounds, [t.native_id for t in two]]), flush=True)
sys.stdin.readline()
asking.close()
shared.close()
os.wait()
os.wait()
"""


def turned(path, pid):
    """Whether something of that program went by unwatched."""
    try:
        edges = show(path, "edges", "--limit", "100000")
    except subprocess.CalledProcessError:
        return False
    return any(e["type"] == "send_to_socket" and e["source"] == f"thread:{pid}" and e.get("estimated_bytes")
               for e in edges)


def truth_meanwhile(folder, path, wait):
    """The file in which the ground-truth program says what it did, now."""
    out = os.path.join(folder, "truth.json")
    argv = [TRUTH, "--wait-start", "--recording", path, "--out", out]
    for case in CASES:
        argv += ["--case", case]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as truth:
        truth.stdout.readline()
        begin = intervals(path)
        wait("look at the connections", lambda: intervals(path) > begin)
        truth.send_signal(signal.SIGUSR1)
        if truth.wait():
            sys.exit("FAILED: the ground-truth program")
    return out


def record(folder, bound):
    """(path, pids, what the program did, file of what the ground-truth program did or None)"""
    path, said, out = os.path.join(folder, bound), os.path.join(folder, "said"), None
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as program:
        pids = json.loads(program.stdout.readline())
        with open(said, "w", encoding="utf-8") as err, \
                subprocess.Popen([WITTY, "record", "-d", "300s", "-i", "200ms", "-o", path, "--max-overhead", bound],
                                 stdout=err, stderr=err) as recorder:
            wait = lambda what, condition: until(what, condition, recorder, said)
            try:
                wait("recording", lambda: intervals(path))
                program.stdin.write("\n")
                program.stdin.flush()
                if bound != "off":
                    wait("turns", lambda: turned(path, pids[0]))
                    out = truth_meanwhile(folder, path, wait)
                begin = intervals(path)
                wait("intervals", lambda: intervals(path) >= begin + INTERVALS)
                program.send_signal(signal.SIGUSR1)
                did = json.loads(program.stdout.readline())
                # The connections are still there at the last reading.
                begin = intervals(path)
                wait("last interval", lambda: intervals(path) > begin)
            finally:
                recorder.send_signal(signal.SIGINT)
                recorder.wait()
                program.kill()
    return path, pids, did, out


def wrong_flows(path, pids, did):
    me, echo, sink = pids
    rounds, _ = did
    want = {(me, echo): (rounds * ASKED, rounds), (echo, me): (rounds * ANSWERED, rounds),
            (me, sink): (rounds * (LARGE + SMALL), 2 * rounds)}
    problems, flows = [], {(f["source"].get("pid"), f["target"].get("pid")): f
                           for f in show(path, "flows") if f["kind"] == "tcp"}
    for ends, (size, messages) in want.items():
        f = flows.get(ends, {})
        for side in ("sent", "received"):
            if f.get(f"bytes_{side}") != size:
                problems.append(f"{ends}: {f.get(f'bytes_{side}')} bytes {side} instead of {size}")
        # On a busy host the looks may have seen little.
        if not 0 < f.get("messages_sent", 0) <= messages * 2:
            problems.append(f"{ends}: {f.get('messages_sent')} messages instead of {messages}")
    return problems


def by_thread(path, pids):
    """{thread: (bytes, estimated bytes, messages)} of what they sent through TCP, and estimated bytes of other sockets."""
    threads, others = {}, 0
    for e in show(path, "edges", "--limit", "100000"):
        if e["type"] not in ("send_to_socket", "receive_from_socket"):
            continue
        estimated = e.get("estimated_bytes") or 0
        if e["connection_type"] != "TCP":
            others += estimated
        elif e["type"] == "send_to_socket":
            tid = int(e["source"].split(":")[1])
            old = threads.get(tid, (0, 0, 0))
            threads[tid] = old[0] + e["data_size"], old[1] + estimated, old[2] + e["packets_cnt"]
    return threads, others


def wrong_truth(path, out):
    """Bytes of every flow, and messages where each is watched."""
    flows = os.path.join(os.path.dirname(out), "flows.json")
    with open(flows, "w", encoding="utf-8") as f:
        json.dump(show(path, "flows"), f)
    checked = subprocess.run([os.path.join(HERE, "check_truth.py"), out, flows, "--json"], capture_output=True, text=True)
    problems = []
    if checked.returncode:
        told = subprocess.run([os.path.join(HERE, "check_truth.py"), out, flows], capture_output=True, text=True).stdout
        problems.append("ground truth: " + "\n    ".join(
            line for line in told.splitlines() if line.strip() and not line.endswith(" ok") and "messages:" not in line))
    with open(out, encoding="utf-8") as f:
        wanted = json.load(f)["flows"]
    got = {(f["source"].get("pid"), f["target"].get("pid"), f["kind"]): f for f in show(path, "flows")}
    for want in wanted:
        row = got.get((want["source_pid"], want["target_pid"], want["kind"]))
        # Datagrams of several senders that name none are split in proportion.
        if row and want["kind"] != "tcp" and want["case"] != "sameports" and want["target_pid"] and \
                row["messages_sent"] != want["messages_sent"]:
            problems.append(f"{want['case']}: {row['messages_sent']} messages instead of {want['messages_sent']}")
    return problems


def status(path):
    return [(r["state"], r["reason"] or "") for r in show(path, "summary")["status"]
            if r["source"] == "overhead of sockets"]


def main():
    if os.geteuid() or not os.path.exists("/sys/kernel/btf/vmlinux"):
        print("skipped: needs root, and a kernel with BTF")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        path, pids, did, _ = record(folder, "off")
        problems = wrong_flows(path, pids, did)
        threads, others = by_thread(path, pids)
        estimated = others + sum(e for _, e, _ in threads.values())
        if estimated or status(path) or threads.get(pids[0], (0, 0, 0))[2] != did[0]:
            problems.append(f"{estimated} bytes estimated, {threads.get(pids[0])} instead of {did[0]} messages, {status(path)}")
        problems = ["without a bound: " + text for text in problems]
        print(f"without a bound: {did[0]} rounds")
        rungs = {r["source"]: r["rung"] for r in show(path, "summary")["status"]}
        if rungs.get("sock.send") != "tp_btf" or rungs.get("sock.end") != "tp_btf" or rungs.get("sock.meet") != "iter":
            for text in problems:
                print("error:", text)
            print("skipped: this kernel has no sums beside sockets, so all is watched whatever it costs")
            return 1 if problems else 77
        path, pids, did, out = record(folder, "0.01")
        problems += wrong_flows(path, pids, did) + wrong_truth(path, out)
        threads, others = by_thread(path, pids)
        moved, estimated, _ = threads.get(pids[0], (0, 0, 0))
        if not 0 < estimated < moved:
            problems.append(f"{estimated} bytes of {moved} are estimated")
        if others:
            problems.append(f"{others} bytes of other sockets are estimated")
        for tid in did[1]:
            if not threads.get(tid, (0, 0, 0))[0]:
                problems.append(f"one of two threads has nothing of what both sent: {threads.get(tid)}")
        said = status(path)
        if not said or said[0][0] != "reduced" or "in turns" not in said[0][1]:
            problems.append(f"not told that TCP was watched in turns: {said}")
        print(f"in turns: {did[0]} rounds, {estimated * 100 / max(moved, 1):.1f} % of the bytes estimated; {said}")
    for text in problems:
        print("error:", text)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
