#!/usr/bin/python3
"""What the program says to bad input, bad surroundings and interruptions, and what it keeps.

usage: WITTY=PROGRAM test_cli.py [files | records | Class[.test_name]...]

files: what reads and writes files only; records: what records this host.

Every refusal must be one `error:` line with at most one `hint:` line, exit status 1 or 2, in little
time and memory. Tests that need root or a file outside the tree skip themselves and say why.
"""
import ctypes
import json
import math
import os
import random
import resource
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import unittest

WITTY = os.environ.get("WITTY", "witty-profiler")
HERE = os.path.dirname(os.path.abspath(__file__))
CAPTURE = os.environ.get("WITTY_CAPTURE", os.path.join(HERE, "../../../shared/data/openeuler-vllm-tp4.json"))
MEMORY_MAX = 400 << 20
LIMIT_S = 300   # ends what hangs
CPU_LIMIT_S = 60
NOBODY = 65534


def is_sanitized():
    """AddressSanitizer reserves terabytes of addresses, so RLIMIT_AS cannot be used with it."""
    with open(WITTY, "rb") as f:
        return b"__asan_init" in f.read()


SANITIZED = is_sanitized()


def limit_costs():
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_LIMIT_S, CPU_LIMIT_S))
    if not SANITIZED:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))


def small_graph():
    """A few entities and relations, as text."""
    process = {"entity_namespace": "local", "entity_type": "ProcessEntity", "details": {}, "pid": 7,
               "ppid": 1, "name": "a", "cmdline": "a b"}
    thread = {"entity_namespace": "local", "entity_type": "ThreadEntity", "details": {}, "tid": 7,
              "process": process, "name": "a"}
    sock = {"entity_namespace": "local", "entity_type": "SocketEntity", "details": {},
            "socket_type": "TCP", "socket_addr": "127.0.0.1", "socket_port": 80,
            "socket_thread": None, "socket_process": None}
    own = {"edge_type": "OwnEdge", "weight": None, "source_node": process, "target_node": thread}
    send = {"edge_type": "SendToSocketEdge", "weight": 0.5, "source_node": thread,
            "target_node": sock, "connection_type": "TCP",
            "data_flow": {"start_time": 1772608557762327490, "end_time": 1772608557762327491,
                          "data_size": 30006, "packets_cnt": 118}}
    return json.dumps({"nodes": [process, sock, thread], "edges": [own, send]})


class Case(unittest.TestCase):
    maxDiff = 2000
    records = False     # whether it records this host

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="witty-cli-")
        self.addCleanup(shutil.rmtree, self.dir, True)
        os.chmod(self.dir, 0o755)

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, content):
        with open(self.path(name), "w" if isinstance(content, str) else "wb") as f:
            f.write(content)
        return self.path(name)

    def witty(self, *args, **kw):
        kw.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run([WITTY, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=LIMIT_S, preexec_fn=limit_costs, errors="replace", **kw)

    def done(self, *args, **kw):
        r = self.witty(*args, **kw)
        self.assertEqual(r.returncode, 0, f"{args}: {r.stderr}")
        return r

    def check_refusal(self, r, what, codes=(1, 2)):
        lines = r.stderr.splitlines()
        errors = [x for x in lines if x.startswith("error: ")]
        hints = [x for x in lines if x.startswith("hint: ")]
        self.assertIn(r.returncode, codes, f"{what}: {r.stderr[-2000:]}")
        self.assertEqual(len(errors), 1, f"{what}: {r.stderr[-2000:]}")
        self.assertLessEqual(len(hints), 1, r.stderr)
        self.assertEqual(len(lines), 1 + len(hints), f"{what}: {r.stderr[-2000:]}")
        self.assertGreater(len(errors[0]), len("error: ") + 5)

    def refused(self, *args, **kw):
        codes = kw.pop("codes", (1, 2))
        r = self.witty(*args, **kw)
        self.check_refusal(r, args, codes)
        return r.stderr

    def refused_input(self, path):
        """By every reader of files."""
        out = self.path("refused.json")
        said = self.refused("convert", path, out, codes=(1,))
        for what in ("summary", "flows", "entities"):
            self.refused("show", path, what, codes=(1,))
        self.refused("report", path, codes=(1,))
        return said

    def summary(self, path):
        return json.loads(self.done("show", path, "summary", "--format", "json").stdout)

    def await_intervals(self, path, n, p):
        """Until another process can read that many, which process p makes; a slow machine may take its time."""
        end = time.monotonic() + LIMIT_S
        while time.monotonic() < end:
            r = self.witty("show", path, "summary", "--format", "json")
            if not r.returncode and json.loads(r.stdout)["intervals"] >= n:
                return
            if p.poll() is not None:
                self.fail(f"it ended before {n} intervals: {p.communicate()[1]}")
            time.sleep(0.1)
        p.kill()
        self.fail(f"no {n} intervals in time: {r.stderr}; {p.communicate()[1]}")

    def small_recording(self, name="small.wpdb"):
        self.done("convert", self.write("small.json", small_graph()), self.path(name))
        return self.path(name)


class Convert(Case):
    def round_trip(self, text):
        source = self.write("in.json", text)
        self.done("convert", source, self.path("a.wpdb"))
        self.done("convert", self.path("a.wpdb"), self.path("b.json"), "--openeuler")
        with open(self.path("b.json")) as f:
            return json.load(f)

    def check_equal(self, want, got):
        def key(x):
            return json.dumps(x, sort_keys=True)
        for what in ("nodes", "edges"):
            self.assertEqual(len(want[what]), len(got[what]), what)
            for a, b in zip(sorted(want[what], key=key), sorted(got[what], key=key)):
                self.assertEqual(a, b)

    def test_small(self):
        text = small_graph()
        self.check_equal(json.loads(text), self.round_trip(text))

    @staticmethod
    def with_cosines(graph):
        """As the older tool should have written it: it has sums of products where it says cosine."""
        graph = json.loads(json.dumps(graph))
        for edge in graph["edges"]:
            if edge["edge_type"] != "NumaAccessEdge":
                continue
            info = edge["numa_access_info"]["numa_affinity_info"]
            cpu, memory = info["cpu_runtime_pct_in_each_numa"], info["mem_pages_in_each_numa"]
            norm = math.sqrt(sum(c * c for c in cpu)) * math.sqrt(sum(m * m for m in memory))
            cosine = sum(c * m for c, m in zip(cpu, memory)) / norm if norm else None
            info["cpu_mem_access_cosine_similarity"] = cosine and round(cosine, 9)
        return graph

    @staticmethod
    def rounded(graph):
        for edge in graph["edges"]:
            if edge["edge_type"] == "NumaAccessEdge":
                info = edge["numa_access_info"]["numa_affinity_info"]
                cosine = info["cpu_mem_access_cosine_similarity"]
                info["cpu_mem_access_cosine_similarity"] = cosine and round(cosine, 9)
        return graph

    def test_capture_scores(self):
        """The true cosines of the four workers, and unknown where there was no CPU time."""
        if not os.path.exists(CAPTURE):
            self.skipTest("no capture of openEuler's tool beside the source tree")
        self.done("convert", CAPTURE, self.path("y.json"), "--openeuler")
        with open(self.path("y.json")) as f:
            found = {e["source_node"]["pid"]: e["numa_access_info"]["numa_affinity_info"]
                     ["cpu_mem_access_cosine_similarity"] for e in json.load(f)["edges"]
                     if e["edge_type"] == "NumaAccessEdge"}
        for pid, want in ((1895087, 0.100), (1895088, 0.180), (1895089, 0.861), (1895090, 0.110),
                          (6808, 0.768), (6928, 0.684), (1893666, 0.540), (3821739, 0.9995)):
            self.assertAlmostEqual(found[pid], want, delta=0.0006)
        self.assertEqual([found[1893833], found[3821705]], [None, None])

    def test_capture(self):
        if not os.path.exists(CAPTURE):
            self.skipTest("no capture of openEuler's tool beside the source tree")
        with open(CAPTURE) as f:
            graph = json.load(f)
        self.assertEqual((len(graph["nodes"]), len(graph["edges"])), (129, 259))
        right = self.with_cosines(graph)
        self.check_equal(right, self.rounded(self.round_trip(json.dumps(graph))))
        env = {"local_ip": "10.0.0.2", "hostname": "h", "machine_id": "m"}
        got = self.round_trip_again({"env": env, "content": graph})
        self.assertEqual(got.get("env"), env)
        self.check_equal(right, self.rounded(got["content"]))

    def test_capture_as_text(self):
        """At most 10 kB, and everything is there again in the same order."""
        if not os.path.exists(CAPTURE):
            self.skipTest("no capture of openEuler's tool beside the source tree")
        self.done("convert", CAPTURE, self.path("x.txt"))
        self.assertLessEqual(os.path.getsize(self.path("x.txt")), 10000)
        self.done("convert", self.path("x.txt"), self.path("x.json"), "--openeuler")
        with open(CAPTURE) as a, open(self.path("x.json")) as b:
            self.assertEqual(self.with_cosines(json.load(a)), self.rounded(json.load(b)))

    def round_trip_again(self, document):
        os.unlink(self.path("a.wpdb"))
        os.unlink(self.path("b.json"))
        return self.round_trip(json.dumps(document))

    def test_all_three_formats(self):
        """Whatever the way, the same graph arrives."""
        self.write("a.json", small_graph())
        for a, b in (("a.json", "b.txt"), ("b.txt", "c.wpdb"), ("c.wpdb", "d.json"),
                     ("d.json", "e.txt")):
            self.done("convert", self.path(a), self.path(b))
        self.done("convert", self.path("e.txt"), self.path("f.json"), "--openeuler")
        with open(self.path("f.json")) as f:
            self.check_equal(json.loads(small_graph()), json.load(f))

    def test_sums_are_not_doubled(self):
        """Each edge carries a copy of its ends: a sum in them is still one sum."""
        doc = json.loads(small_graph())
        doc["nodes"][0]["cpu_ns"] = 5
        doc["edges"][0]["source_node"]["cpu_ns"] = 5
        doc["edges"][0]["target_node"]["process"]["cpu_ns"] = 5
        self.done("convert", self.write("s.json", json.dumps(doc)), self.path("s.wpdb"))
        rows = json.loads(self.done("show", self.path("s.wpdb"), "entities", "--type", "process",
                                    "--format", "json").stdout)
        self.assertEqual([r["cpu_ns"] for r in rows], [5])


class BadJson(Case):
    def test_missing_file(self):
        self.assertIn("No such file", self.refused_input(self.path("nothing.json")))

    def test_directory(self):
        self.refused_input(self.dir)

    def test_empty(self):
        self.assertIn("empty", self.refused_input(self.write("e.json", "")))
        self.refused_input(self.write("w.json", " \n"))

    def test_truncated(self):
        text = small_graph()
        for n in list(range(1, 40)) + list(range(40, len(text), 97)):
            self.refused("convert", self.write("t.json", text[:n]), self.path("o.json"), codes=(1,))

    def test_deep(self):
        for one in ("[", '{"a":'):
            self.refused_input(self.write("d.json", one * 10000))
            self.refused_input(self.write("d.json", '{"nodes":[],"edges":[],"x":' + one * 10000))
        node = '{"entity_type":"ThreadEntity","tid":1,"process":'
        self.refused_input(self.write("d.json", '{"nodes":[' + node * 10000))

    def measured(self, args, feed):
        """Run with @p feed as input; what it said, and its peak memory."""
        p = subprocess.Popen([WITTY, *args], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, preexec_fn=limit_costs)
        thread = threading.Thread(target=feed, args=(p.stdin,))
        thread.start()
        said = p.stderr.read().decode(errors="replace")
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        thread.join()
        p.stderr.close()
        r = subprocess.CompletedProcess(args, p.returncode, "", said)
        self.check_refusal(r, args, (1,))
        self.assertLess(usage.ru_maxrss << 10, MEMORY_MAX)

    def test_string_of_a_gigabyte(self):
        def feed(pipe):
            try:
                pipe.write(b'{"nodes":[{"entity_type":"ProcessEntity","pid":1,"name":"')
                for _ in range(1 << 10):
                    pipe.write(b"a" * (1 << 20))
                pipe.write(b'"}],"edges":[]}')
            except BrokenPipeError:
                pass
            try:
                pipe.close()
            except BrokenPipeError:
                pass
        self.measured(["convert", "-", self.path("o.json")], feed)

    def test_sparse_files(self):
        for head in (b'{"nodes":[{"entity_type":"ProcessEntity","name":"', b"# witty", b"\n", b"x"):
            path = self.write("s.json", head)
            os.truncate(path, 1 << 30)
            self.refused_input(path)
            os.unlink(path)

    def test_documents(self):
        for text in ('[]', '1', '"a"', 'null', '{}', '{"nodes":[]}', '{"nodes":{},"edges":[]}',
                     '{"nodes":[1],"edges":[]}', '{"nodes":[null],"edges":[]}',
                     '{"nodes":[{}],"edges":[]}', '{"nodes":[],"edges":[{}]}',
                     '{"nodes":[],"edges":[]}x', '{"nodes":[],"edges":[]}{}', '\0\1\2',
                     '{"nodes":[{"entity_type":"NoSuchEntity"}],"edges":[]}',
                     '{"nodes":[{"entity_type":null}],"edges":[]}',
                     '{"nodes":[{"entity_type":"ProcessEntity","pid":"7"}],"edges":[]}',
                     '{"nodes":[{"entity_type":"ProcessEntity","pid":-7}],"edges":[]}',
                     '{"nodes":[{"entity_type":"ProcessEntity","pid":1e400}],"edges":[]}',
                     '{"nodes":[{"entity_type":"ProcessEntity","name":{}}],"edges":[]}',
                     '{"nodes":[],"edges":[{"edge_type":"OwnEdge"}]}',
                     '{"nodes":[],"edges":[{"edge_type":"NoSuchEdge"}]}',
                     '{"nodes":[],"edges":[{"edge_type":"OwnEdge","source_node":null}]}',
                     '{"env":{},"content":[]}', '{"env":{},"content":null}'):
            with self.subTest(text=text):
                self.refused_input(self.write("x.json", text))

    def test_references_to_the_wrong_type(self):
        """A thread whose process is a thread could refer to itself."""
        thread = '{"entity_type":"ThreadEntity","tid":1,"process":%s}'
        for inner in (thread % "null", thread % (thread % "null"),
                      '{"entity_type":"SocketEntity"}'):
            with self.subTest(inner=inner):
                text = '{"nodes":[%s],"edges":[]}' % (thread % inner)
                self.refused_input(self.write("x.json", text))

    def test_null_fields(self):
        """Null is unknown, not an error and not zero."""
        text = ('{"nodes":[{"entity_namespace":"local","entity_type":"ProcessEntity","pid":7,'
                '"ppid":null,"name":null,"cmdline":null,"cpu_ns":null}],"edges":[]}')
        path = self.write("n.json", text)
        self.done("convert", path, self.path("n.wpdb"))
        rows = json.loads(self.done("show", self.path("n.wpdb"), "entities", "--format",
                                    "json").stdout)
        self.assertEqual(len(rows), 1)
        self.assertIsNone(rows[0].get("cpu_ns"))
        self.assertIsNone(rows[0].get("name"))
        self.assertEqual(rows[0]["pid"], 7)


class BadRecording(Case):
    def edit(self, *statements):
        if os.path.exists(self.path("edit.wpdb")):
            os.unlink(self.path("edit.wpdb"))
        path = self.small_recording("edit.wpdb")
        db = sqlite3.connect(path)
        for s in statements:
            db.execute(s)
        db.commit()
        db.close()
        return path

    def test_foreign_database(self):
        path = self.path("f.wpdb")
        db = sqlite3.connect(path)
        db.execute("CREATE TABLE a(b)")
        db.commit()
        db.close()
        self.assertIn("no recording", self.refused_input(path))

    def test_newer_version(self):
        self.assertIn("version", self.refused_input(self.edit("PRAGMA user_version=9999")))

    def test_view_instead_of_table(self):
        loop = ("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x FROM c) "
                "SELECT x AS num, x AS id, x AS type, x AS namespace, x AS extra FROM c")
        for table in ("entity", "process", "meta", "edge_send_to_socket"):
            with self.subTest(table=table):
                self.refused_view(table, loop)

    def refused_view(self, table, select):
        path = self.edit(f"DROP TABLE {table}", f"CREATE VIEW {table} AS {select}")
        self.refused("convert", path, self.path("v.json"), codes=(1,))

    def test_missing_tables(self):
        for table in ("entity", "edge", "meta", "interval", "status"):
            with self.subTest(table=table):
                path = self.edit(f"DROP TABLE {table}")
                self.refused("convert", path, self.path("v.json"), codes=(1,))

    def test_trigger(self):
        path = self.edit("CREATE TRIGGER t AFTER INSERT ON entity BEGIN DELETE FROM entity; END")
        self.done("convert", path, self.path("t.json"))

    def test_wrong_references(self):
        for n, s in enumerate(("UPDATE edge SET source=77", "UPDATE edge SET target=-1",
                               "UPDATE thread SET process=num", "UPDATE thread SET process=99",
                               "UPDATE process SET pid=-5",
                               "UPDATE entity SET num=9000000000 WHERE type='process'",
                               "UPDATE thread SET process=(SELECT num FROM socket)")):
            with self.subTest(sql=s):
                path = self.edit(s)
                self.refused("convert", path, self.path(f"{n}.json"), codes=(1,))

    def answers(self, path):
        """Accepts or refuses, but no crash and no half answer without a word."""
        for n, args in enumerate((("convert", path, self.path("m.json"), "--force"),
                                  ("show", path, "summary"))):
            r = self.witty(*args)
            if r.returncode or n == 0 and r.stderr:
                self.check_refusal(r, args, (1,))

    def test_truncated(self):
        with open(self.small_recording(), "rb") as f:
            data = f.read()
        for n in (1, 15, 16, 50, 99, 100, 101, 511, 512, 4095, 4096, 4097, 8192, 40960,
                  len(data) // 2, len(data) - 4096, len(data) - 1):
            path = self.write("cut.wpdb", data[:n])
            self.refused("convert", path, self.path("cut.json"), codes=(1,))
            self.answers(path)

    def test_names_that_are_no_text(self):
        """What is printed is valid UTF-8 of as many lines as without them, and controls no terminal."""
        name = "CAST(x'61ff9bc29b0a1b5b326dc2' AS TEXT)"
        plain = self.edit()
        lines = {}
        for what in (("report",), ("topology",), ("topology", "--format", "md"), ("hotspots",), ("bottlenecks",),
                     ("show", "entities"), ("show", "edges"), ("show", "flows"), ("show", "summary")):
            lines[what] = len(self.output(what, plain).splitlines())
        hostile = self.edit(f"UPDATE process SET name={name}, cmdline={name}", f"UPDATE thread SET name={name}")
        for what, n in lines.items():
            with self.subTest(what=what):
                text = self.output(what, hostile).decode()
                self.assertEqual([c for c in text if c != "\n" and (c < " " or "\x7f" <= c <= "\x9f")], [])
                self.assertEqual(len(text.split("\n")) - 1, n, text)

    def output(self, what, path):
        return subprocess.run([WITTY, what[0], path, *what[1:]], check=True, stdout=subprocess.PIPE, timeout=LIMIT_S).stdout

    def test_mutations(self):
        with open(self.small_recording(), "rb") as f:
            data = f.read()
        rng = random.Random(20240607)
        used = [i for i in range(0, len(data), 4096) if data[i:i + 4096].strip(b"\0")]
        for _ in range(250):
            changed = bytearray(data)
            for _ in range(rng.choice((1, 2, 8, 64))):
                page = rng.choice(used)
                at = page + (rng.randrange(120) if rng.random() < 0.5 else rng.randrange(4096))
                changed[min(at, len(data) - 1)] = rng.randrange(256)
            self.answers(self.write("m.wpdb", bytes(changed)))


class Output(Case):
    def test_exists(self):
        source = self.write("in.json", small_graph())
        for name in ("o.json", "o.wpdb", "o.txt"):
            out = self.write(name, "mine")
            self.assertIn("--force", self.refused("convert", source, out, codes=(1,)))
            self.assertIn("--force", self.refused("record", "-d", "1", "-o", out, codes=(1,)))
            with open(out) as f:
                self.assertEqual(f.read(), "mine")
            self.done("convert", source, out, "--force")

    def test_bad_input_keeps_old_output(self):
        bad = self.write("bad.json", "{")
        for name in ("o.json", "o.wpdb", "o.txt"):
            out = self.write(name, "mine")
            self.refused("convert", bad, out, "--force", codes=(1,))
            with open(out) as f:
                self.assertEqual(f.read(), "mine")

    def test_no_target_directory(self):
        source = self.write("in.json", small_graph())
        for name in ("no/o.json", "no/o.wpdb", "no/o.txt", "in.json/o.wpdb"):
            self.refused("convert", source, self.path(name), codes=(1,))
        self.refused("record", "-d", "1", "-o", self.path("no/o.wpdb"), codes=(1,))
        self.refused("show", source, "flows", "-o", self.path("no/o.txt"), codes=(1,))

    def test_output_is_a_directory(self):
        source = self.write("in.json", small_graph())
        os.mkdir(self.path("d.wpdb"))
        os.mkdir(self.path("d.json"))
        for force in ([], ["--force"]):
            self.refused("convert", source, self.path("d.wpdb"), *force, codes=(1,))
            self.refused("convert", source, self.path("d.json"), *force, codes=(1,))
            self.refused("record", "-d", "1", "-o", self.path("d.wpdb"), *force, codes=(1,))

    def test_full_device(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        source = self.write("in.json", small_graph())
        for args in (("convert", source, "-"), ("show", source, "summary"), ("report", source)):
            with open("/dev/full", "w") as full:
                r = subprocess.run([WITTY, *args], stdout=full, stderr=subprocess.PIPE, text=True,
                                   timeout=LIMIT_S)
            self.check_refusal(r, args, (1,))


class Options(Case):
    def test_wrong(self):
        for args in (("nosuchcommand",), ("record", "--nosuch"), ("record", "-d"),
                     ("record", "-d", "x"), ("record", "-d", "-1"), ("record", "-d", "nan"),
                     ("record", "-d", "1e300"), ("record", "-i", "1ms"), ("record", "-i", "0"),
                     ("record", "-p", "0"), ("record", "-p", "x"), ("record", "-p", "99999999999"),
                     ("record", "--require", "x"), ("record", "true"), ("convert",),
                     ("convert", "a"), ("convert", "a", "b.xyz"), ("convert", "a", "b", "c"),
                     ("convert", "--nosuch", "a", "b.json"), ("show",), ("show", "a", "nosuch"),
                     ("show", "a", "entities", "--type", "nosuch"),
                     ("show", "a", "flows", "--format", "xml"),
                     ("show", "a", "flows", "--limit", "-1"), ("report",),
                     ("topology", "a", "-f", "or"), ("topology", "a", "--budget", "0"), ("hotspots", "a", "b"),
                     ("hotspots", "a", "--preset", "nosuch"), ("report", "a", "-n", "x"), ("report", "a", "--limits"),
                     ("bottlenecks", "a", "--fail-on", "info"), ("diff", "a", "b", "-f", "html"), ("diff", "a"),
                     ("doctor", "--nosuch"), ("capture", "--nosuch"), ("schema", "--nosuch")):
            with self.subTest(args=args):
                self.refused(*args, codes=(2,), cwd=self.dir)
                self.assertEqual(os.listdir(self.dir), [])

    def test_no_such_entity(self):
        for path in (self.small_recording(), self.path("small.json")):
            said = self.refused("show", path, "entity", "process:99", codes=(1,))
            self.assertIn("process:99", said)


class Record(Case):
    records = True

    def setUp(self):
        super().setUp()
        self.out = self.path("r.wpdb")

    def start(self, *args, **more):
        return subprocess.Popen([WITTY, "record", "-o", self.out, *args], stderr=subprocess.PIPE,
                                stdout=subprocess.DEVNULL, text=True, **more)

    def test_says_what_cannot_be_counted(self):
        """doctor, recording and report agree on counters, and what cannot be sampled is refused."""
        caps = {c["name"]: c for c in json.loads(subprocess.run([WITTY, "doctor", "--format", "json"], check=True,
                                                                capture_output=True, text=True).stdout)}
        p = self.start("-d", "300ms")
        said = p.communicate(timeout=LIMIT_S)[1]
        self.assertEqual(p.returncode, 0, said)
        summary = json.loads(subprocess.run([WITTY, "show", self.out, "summary", "--format", "json"], check=True,
                                            capture_output=True, text=True).stdout)
        status = {s["source"]: s for s in summary["status"]}
        report = subprocess.run([WITTY, "report", self.out], check=True, stdout=subprocess.PIPE, text=True).stdout
        for cap, source in (("pmu", "counters core"), ("uncore", "counters uncore")):
            if caps[cap]["present"]:
                self.assertNotEqual(status[source]["state"], "off")
                continue
            self.assertTrue(caps[cap]["reason"].startswith("not available: "), caps[cap])
            self.assertEqual(status[source]["state"], "off")
            self.assertTrue(status[source]["reason"].startswith("not available: "), status[source])
            if cap == "pmu":
                self.assertIn("counters core: not available: ", report)
                # Nothing is attached for what cannot be counted, and nothing is zero that is not known.
                self.assertNotIn("sched.count", status)
                with sqlite3.connect(self.out) as db:
                    self.assertEqual(db.execute("SELECT count(*) FROM thread WHERE cycles IS NOT NULL OR "
                                                "llc_misses IS NOT NULL").fetchone()[0], 0)
        if not caps["memory_samples"]["present"]:
            self.assertTrue(caps["memory_samples"]["reason"].startswith("not available: "))
            said = self.refused("record", "--sample-memory", "-d", "300ms", "-o", self.path("s.wpdb"), codes=(1,))
            self.assertIn("not available: ", said)
            self.assertFalse(os.path.exists(self.path("s.wpdb")))

    def test_leaves_itself_out(self):
        """What it does and its helpers do is told as cost; the command that it runs is the host's work."""
        for option in ((), ("--no-ebpf",)):
            if os.path.exists(self.out):
                os.unlink(self.out)
            # It ends with its input, when it was looked at.
            p = self.start("-i", "200ms", *option, "--", "cat", stdin=subprocess.PIPE)
            self.await_intervals(self.out, 3, p)
            said = p.communicate(timeout=LIMIT_S)[1]
            self.assertEqual(p.returncode, 0, said)
            seen = json.loads(self.done("show", self.out, "entities", "--type", "process", "--format", "json").stdout)
            self.assertIn((p.pid, "cat"), [(x["ppid"], x["name"]) for x in seen], option)
            # Its own process is there as the parent of the command, and nothing of what it did.
            helpers = [x for x in seen if x["ppid"] == p.pid and x["name"] != "cat"]
            self.assertEqual(helpers, [], option)
            own = [x for x in seen if x["pid"] == p.pid]
            self.assertEqual([x["cpu_ns"] for x in own if x["cpu_ns"] is not None], [], option)
            ids = {x["id"] for x in own}
            flows = json.loads(self.done("show", self.out, "flows", "--limit", "0", "--format", "json").stdout)
            self.assertEqual([f for f in flows if {f["source"]["id"], f["target"]["id"]} & ids], [], option)

    def test_listeners(self):
        """Who accepts connections is told though nobody connects."""
        tcp, path, abstract = socket.socket(), socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
        for s, address in ((tcp, ("127.0.0.1", 0)), (path, self.path("sock")), (abstract, "\0" + self.path("name"))):
            self.addCleanup(s.close)
            s.bind(address)
            s.listen()
        self.done("record", "-d", "1", "-p", str(os.getpid()), "-o", self.out)
        seen = {}
        for kind in ("socket", "unix_socket"):
            rows = self.done("show", self.out, "entities", "--type", kind, "--limit", "0", "--format", "json").stdout
            seen.update({x["id"]: x for x in json.loads(rows) if x["listening"]})
        own = json.loads(self.done("show", self.out, "edges", "--type", "own", "--limit", "0", "--format", "json").stdout)
        mine = [seen[x["target"]] for x in own if x["source"] == f"thread:{os.getpid()}" and x["target"] in seen]
        self.assertIn(("127.0.0.1", tcp.getsockname()[1]), [(x.get("socket_addr"), x.get("socket_port")) for x in mine])
        names = [x.get("path") for x in mine]
        self.assertIn(self.path("sock"), names)
        self.assertIn("@" + self.path("name"), names)

    def test_nothing_before_the_window(self):
        """What sockets move while one source after the other is opened is not of the window."""
        a, b = socket.socketpair()
        stop, talked = threading.Event(), threading.Semaphore(0)

        def talk():
            while not stop.wait(0.001):
                a.send(b"x" * 100)
                b.recv(100)
                talked.release()

        talker = threading.Thread(target=talk)
        talker.start()
        try:
            p = self.start("-i", "200ms", "-p", str(os.getpid()), "--", "cat", stdin=subprocess.PIPE)
            self.await_intervals(self.out, 1, p)
            while talked.acquire(blocking=False):
                pass
            for _ in range(10):
                talked.acquire()
            said = p.communicate(timeout=LIMIT_S)[1]
            self.assertEqual(p.returncode, 0, said)
        finally:
            stop.set()
            talker.join()
            a.close()
            b.close()
        db = sqlite3.connect(self.out)
        start, first = db.execute("SELECT (SELECT CAST(value AS INTEGER) FROM meta WHERE key='start_ns'), min(start_time) "
                                  "FROM edge_send_to_socket").fetchone()
        db.close()
        self.assertGreaterEqual(first, start)

    def end(self, p):
        said = p.communicate(timeout=LIMIT_S)[1]
        return subprocess.CompletedProcess([], p.returncode, "", said)

    def test_killed(self):
        p = self.start("-d", "10m", "-i", "200ms")
        self.await_intervals(self.out, 4, p)
        p.kill()
        self.end(p)
        s = self.summary(self.out)
        self.assertGreaterEqual(s["intervals"], 4)
        self.assertFalse(s["complete"])
        self.assertGreater(s["window_ns"], 0)
        self.assertGreater(s["entities"]["process"], 0)
        self.done("report", self.out)

    def test_interrupted(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            if os.path.exists(self.out):
                os.unlink(self.out)
            p = self.start("-d", "10m", "-i", "200ms", "--force")
            self.await_intervals(self.out, 2, p)
            p.send_signal(number)
            r = self.end(p)
            self.assertEqual(r.returncode, 0, r.stderr)
            s = self.summary(self.out)
            self.assertTrue(s["complete"])
            self.assertGreaterEqual(s["intervals"], 2)
            self.assertEqual([x for x in os.listdir(self.dir) if x != "r.wpdb"], [])

    def test_no_such_command(self):
        said = self.refused("record", "-o", self.out, "--", "nosuchcommand", codes=(1,))
        self.assertIn("nosuchcommand", said)

    def test_command_fails(self):
        r = self.witty("record", "-o", self.out, "--no-ebpf", "--", "sh", "-c", "exit 3")
        self.assertEqual(r.returncode, 1)
        self.assertIn("3", r.stderr)
        self.assertTrue(self.summary(self.out)["complete"])

    def test_pid_gone(self):
        p = subprocess.Popen(["true"])
        p.wait()
        said = self.refused("record", "-d", "1", "-o", self.out, "-p", str(p.pid), codes=(1,))
        self.assertIn(str(p.pid), said)
        self.assertFalse(os.path.exists(self.out))

    def test_without_ebpf(self):
        self.done("record", "-d", "1", "-o", self.out, "--no-ebpf")
        s = self.summary(self.out)
        self.assertGreater(s["entities"]["process"], 0)
        self.assertIn("off", {x["state"] for x in s["status"]})
        self.refused("record", "-d", "1", "-o", self.path("q.wpdb"), "--no-ebpf", "--require",
                     "ebpf", codes=(1, 2))
        self.assertFalse(os.path.exists(self.path("q.wpdb")))

    def test_refused_probes(self):
        if os.geteuid():
            self.skipTest("needs root")
        for name in ("sched", "sock", "proc"):
            with self.subTest(probe=name):
                self.done("record", "-d", "1", "-o", self.out, "--refuse", name, "--force")
                self.assertGreater(self.summary(self.out)["entities"]["process"], 0)
                text = self.done("show", self.out, "summary").stdout
                self.assertRegex(text, f"(?m)^off: +probe {name}\\b.*\\w")

    def test_unprivileged(self):
        if os.geteuid():
            self.skipTest("needs root, to become nobody")
        program = shutil.copy(WITTY, self.path("witty"))
        os.chmod(program, 0o755)
        os.mkdir(self.path("d"))
        os.chmod(self.path("d"), 0o777)
        out = self.path("d/u.wpdb")
        args = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", program]
        r = subprocess.run([*args, "record", "-d", "1", "-o", out], capture_output=True, text=True,
                           timeout=LIMIT_S)
        self.assertEqual(r.returncode, 0, r.stderr)
        s = self.summary(out)
        self.assertGreater(s["entities"]["process"], 0)
        self.assertIn("off", {x["state"] for x in s["status"]})
        r = subprocess.run([*args, "record", "-d", "1", "-o", self.path("d/v.wpdb"), "--require",
                            "ebpf"], capture_output=True, text=True, timeout=LIMIT_S)
        self.check_refusal(r, "--require ebpf", (1,))

    def command_lines(self, *options):
        secrets = ["--api-key", "qwerty1", "HF_TOKEN=qwerty2", "http://u:qwerty3@h/"]
        p = subprocess.Popen(["sh", "-c", "read x", "sh", *secrets], stdin=subprocess.PIPE)
        try:
            self.done("record", "-d", "1", "-o", self.out, "--no-ebpf", "--force", "-p", str(p.pid),
                      *options)
        finally:
            p.communicate()
        with open(self.out, "rb") as f:
            raw = f.read()
        rows = json.loads(self.done("show", self.out, "entities", "--type", "process", "--format",
                                    "json").stdout)
        return raw, [r["cmdline"] for r in rows if r["pid"] == p.pid][0]

    def test_secrets(self):
        raw, line = self.command_lines()
        self.assertNotIn(b"qwerty", raw)
        self.assertIn("--api-key ***", line)
        self.assertIn("HF_TOKEN=***", line)
        raw, line = self.command_lines("--no-redact")
        for n in "123":
            self.assertIn("qwerty" + n, line)


class DiskFull(Case):
    records = True

    def setUp(self):
        super().setUp()
        if os.geteuid():
            self.skipTest("needs root, to mount a small tmpfs")
        self.small = self.path("small")
        os.mkdir(self.small)
        self.libc = ctypes.CDLL(None, use_errno=True)

    def mount(self, size):
        rc = self.libc.mount(b"none", self.small.encode(), b"tmpfs", 0, f"size={size}".encode())
        if rc:
            self.skipTest("cannot mount a tmpfs: " + os.strerror(ctypes.get_errno()))
        self.addCleanup(self.libc.umount2, self.small.encode(), 2)

    def fill(self):
        try:
            with open(os.path.join(self.small, "filler"), "wb", 0) as f:
                while f.write(b"x" * 4096):
                    pass
        except OSError:
            pass

    def test_convert(self):
        self.mount("64k")
        graph = json.loads(small_graph())
        for n in range(300):
            graph["nodes"].append({"entity_type": "ProcessEntity", "pid": n + 100,
                                   "cmdline": random.Random(n).randbytes(1000).hex()})
        source = self.write("in.json", json.dumps(graph))
        for name in ("o.wpdb", "o.json", "o.txt"):
            out = os.path.join(self.small, name)
            self.assertRegex(self.refused("convert", source, out, codes=(1,)), "(?i)no space")
            for left in os.listdir(self.small):
                os.unlink(os.path.join(self.small, left))

    def test_record(self):
        self.mount("8m")
        out = os.path.join(self.small, "r.wpdb")
        # Of few processes: those of the host may be thousands, which alone fill it.
        p = subprocess.Popen([WITTY, "record", "-o", out, "-d", "10m", "-i", "100ms", "-p", str(os.getpid())],
                             stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        self.await_intervals(out, 3, p)
        self.fill()
        said = p.communicate(timeout=LIMIT_S)[1]
        self.check_refusal(subprocess.CompletedProcess([], p.returncode, "", said), "record", (1,))
        self.assertRegex(said, "(?i)no space")
        s = self.summary(out)
        self.assertGreaterEqual(s["intervals"], 3)
        self.assertGreater(s["entities"]["process"], 0)
        self.done("report", out)


if __name__ == "__main__":
    if sys.argv[1:] in (["files"], ["records"]):
        sys.argv[1:] = [c.__name__ for c in Case.__subclasses__() if c.records == (sys.argv[1] == "records")]
    unittest.main(verbosity=2, argv=sys.argv)
