#!/usr/bin/python3
"""test_export.py [Case]... - what `convert` draws, read back. WITTY names the program.

Each format is read by the program that it is for or by an independent parser, and must have the boxes,
links, groups and texts that follow from `topology --format json`, also where names are hostile.
"""
import json
import os
import re
import shutil
import sqlite3
import subprocess
import tempfile
import unicodedata
import unittest

import graphs
import readers

WITTY = os.environ["WITTY"]
CAPTURE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../shared/data/openeuler-vllm-tp4.json")
ODD = {"\u00ad", "\u061c", "\u180e", *map(chr, range(0x200b, 0x2010)), *map(chr, range(0x202a, 0x202f)),
       *map(chr, range(0x2060, 0x2070)), *map(chr, range(0xfe00, 0xfe10)), "\ufeff", "\ufffe", "\uffff"}

BLANKS = " \t\n\v\f\r\u00a0\u2028\u2029"


def clean(s, most=60):
    """A name as one line of text that leaves its surroundings alone."""
    out = []
    for c in s.strip(BLANKS):
        if c in BLANKS:
            if out[-1] != " ":
                out.append(" ")
        elif unicodedata.category(c) in ("Cc", "Co", "Cs") or c in ODD:
            out.append("\ufffd")
        else:
            out.append(c)
    return "".join(out if len(out) <= most else [*out[:most - 1], "…"])


def unit(n, scale, names):
    i = 0
    while i + 1 < len(names) and n >= scale ** (i + 1):
        i += 1
    if i and i + 1 < len(names) and int(n * 10 / scale ** i + .5) >= scale * 10:
        i += 1
    return f"{n:.0f} {names[0]}" if not i else f"{int(n * 10 / scale ** i + .5) / 10:.1f} {names[i]}"


class Case(unittest.TestCase):
    maxDiff = 3000

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="witty-export-")
        self.addCleanup(shutil.rmtree, self.dir, True)

    def path(self, name):
        return os.path.join(self.dir, name)

    def graph(self, text):
        with open(self.path("in.json"), "w", encoding="utf-8") as f:
            f.write(text)
        return self.path("in.json")

    def witty(self, *args, code=0):
        done = subprocess.run([WITTY, *args], capture_output=True, check=False, timeout=120)
        self.assertEqual(done.returncode, code, done.stderr.decode(errors="replace"))
        return done

    def model(self, source, alone):
        """Boxes and links of all processes and ends, by what `topology` says; without those that have no link."""
        t = json.loads(self.witty("topology", source, "--format", "json").stdout)
        window = 10
        links = {}
        for x in t["links"]:
            key = x["source"], x["target"], clean(x["kind"], 40)
            links[key] = links.get(key, 0) + (x["bytes"] or 0)
        actors = {a["id"]: a for a in t["actors"]}
        used = set(actors) if alone else {i for k in links for i in k[:2]}
        labels = sorted(clean(actors[i]["label"]) for i in used)
        texts = []
        for (a, b, kind), size in links.items():
            text = f"{kind} {unit(size, 1024, ['B', 'KiB', 'MiB', 'GiB'])}"
            text += f" ({unit(size / window, 1024, ['B/s', 'KiB/s', 'MiB/s'])})"
            texts.append((clean(actors[a]["label"]), clean(actors[b]["label"]), text))
        starts = [(clean(actors[a["parent"]]["label"]), clean(a["label"]), "starts") for a in t["actors"]
                  if a["parent"] in used and a["id"] in used]
        return labels, sorted(texts + starts)

    def convert(self, source, form, *options):
        out = self.path("out." + form)
        self.witty("convert", source, out, "--force", *options)
        return readers.READERS[form](out)

    @staticmethod
    def named(d):
        """Links by the first lines of their ends."""
        return sorted((d.boxes[a][0], d.boxes[b][0], label) for a, b, label in d.links)

    def check_all(self, source):
        for form in readers.READERS:
            with self.subTest(form):
                labels, links = self.model(source, form in ("gexf", "graphml"))
                d = self.convert(source, form, "--top", "0")
                self.assertEqual(sorted(b[0] for b in d.boxes.values()), labels)
                self.assertEqual(self.named(d), links)


class Drawn(Case):
    def test_hostile_names_are_text_in_every_format(self):
        self.check_all(self.graph(graphs.nasty()))

    def test_two_hosts(self):
        self.check_all(self.graph(graphs.two_hosts()))

    def test_groups_lie_within_each_other(self):
        source = self.graph(graphs.two_hosts())
        wanted = [("host-10.0.0.2", 3), ("host-local", 3), ("web", 2), ("web", 2)]
        for form in ("dot", "mmd", "drawio"):
            with self.subTest(form):
                groups = self.convert(source, form).groups
                self.assertEqual(sorted((label, len(own)) for label, own in groups), wanted)
        for form in ("gexf", "graphml"):
            with self.subTest(form):
                groups = self.convert(source, form).groups
                self.assertEqual(sorted((k[0], k[3]) for k in groups),
                                 [("host-10.0.0.2", "container"), ("host-10.0.0.2", "host"),
                                  ("host-local", "container"), ("host-local", "host")])

    def test_hostile_groups(self):
        source = self.graph(graphs.nasty())
        wanted = sorted([clean(graphs.NASTY[0])] + [clean(n or "?") for n in graphs.NASTY[:8]])
        for form in ("dot", "mmd", "drawio"):
            with self.subTest(form):
                self.assertEqual(sorted(g[0] for g in self.convert(source, form).groups), wanted)
        self.assertEqual(sorted(g[0] for g in self.convert(source, "svg").groups), wanted)

    def test_the_same_bytes_each_time(self):
        source = self.graph(graphs.two_hosts())
        for form in readers.READERS:
            with self.subTest(form):
                first, second = (self.witty("convert", source, "-", "--format", form).stdout for _ in range(2))
                self.assertEqual(first, second)
                self.assertTrue(first)


class Levels(Case):
    def test_container(self):
        source = self.graph(graphs.two_hosts())
        wanted = ["192.0.2.9", "outside containers", "outside containers", "storage 8:1 (ext4)",
                  "storage 8:1 (ext4)@10.0.0.2", "web", "web"]
        for form in readers.READERS:
            with self.subTest(form):
                d = self.convert(source, form, "--level", "container")
                self.assertEqual(sorted(b[0] for b in d.boxes.values()), wanted)
                self.assertEqual(len(d.links), 6)

    def test_host(self):
        source = self.graph(graphs.two_hosts())
        for form in readers.READERS:
            with self.subTest(form):
                d = self.convert(source, form, "--level", "host")
                self.assertEqual(self.named(d), [
                    ("192.0.2.9", "host-local", "tcp 300 B (30 B/s)"),
                    ("host-local", "host-10.0.0.2", "tcp 9.5 MiB (976.6 KiB/s)")])

    def test_inner_bytes_are_not_lost(self):
        source = self.graph(graphs.two_hosts())
        self.convert(source, "graphml", "--level", "host")
        g = readers.networkx.read_graphml(self.path("out.graphml"), force_multigraph=True)
        inner = {d["label"]: d.get("inner_bytes") for _, d in g.nodes(data=True)}
        own = 5000 + 70 + 10 ** 6 + 123456 + 4096
        self.assertEqual(inner, {"host-local": own, "host-10.0.0.2": own, "192.0.2.9": None})

    def test_min_rate(self):
        source = self.graph(graphs.two_hosts())
        d = self.convert(source, "dot", "--min-rate", "10000")
        links = [x for x in self.named(d) if x[2] != "starts"]
        self.assertEqual(sorted(x[2].split()[0] for x in links), ["pipe", "pipe", "tcp", "unix", "unix"])

    def test_top_keeps_the_largest_and_says_what_is_missing(self):
        source = self.graph(graphs.large())
        for form, reader in readers.READERS.items():
            with self.subTest(form):
                done = self.witty("convert", source, self.path("out." + form), "--top", "20")
                self.assertIn(b"note: Left out: 280 of 300 boxes", done.stderr)
                self.assertEqual(len(reader(self.path("out." + form)).boxes), 20)
        # Nothing is there for its bytes alone: each box has a link.
        d = readers.READERS["dot"](self.path("out.dot"))
        self.assertEqual({b for link in d.links for b in link[:2]}, set(d.boxes))
        total = sum(e["bytes"] for e in json.loads(graphs.large())["edges"])
        d = self.convert(source, "gexf", "--top", "20")
        shown = 0
        for *_, label in d.links:
            shown += 1
            self.assertNotIn("starts", label)
        text = self.witty("convert", source, "-", "--format", "dot", "--top", "20").stdout.decode()
        left = re.search(r"Left out: 280 of 300 boxes, (\d+) of 600 links with ([\d.]+) MiB", text)
        self.assertEqual(int(left.group(1)) + shown, 600)
        g = readers.networkx.read_gexf(self.path("out.gexf"))
        kept = sum(x.get("bytes", 0) for *_, x in g.edges(data=True))
        self.assertAlmostEqual(float(left.group(2)), (total - kept) / 2 ** 20, delta=0.06)

    def test_pictures_are_small_unless_asked_and_graphs_are_whole(self):
        source = self.graph(graphs.large())
        for form in readers.READERS:
            with self.subTest(form):
                n = len(self.convert(source, form).boxes)
                self.assertEqual(n, 300 if form in ("gexf", "graphml") else 50)


@unittest.skipUnless(os.path.exists(CAPTURE), "the real capture lies outside the tree")
class Capture(Case):
    def test_all_formats_agree(self):
        drawn = {form: self.convert(CAPTURE, form) for form in ("dot", "svg", "mmd", "drawio")}
        first = drawn["dot"]
        self.assertEqual(len(first.boxes), 11)
        for form, d in drawn.items():
            with self.subTest(form):
                self.assertEqual(d.texts(), first.texts())
                self.assertEqual(self.named(d), self.named(first))
        self.assertIn(("vllm[1894499]", "vllm[3821739]", "tcp 905.7 KiB"), self.named(first))
        self.assertIn(("4 x multiprocessing.spawn: tensor parallel 4", ["n0", "n1", "n2", "n3"]), first.groups)

    def test_graphs_have_everything(self):
        t = json.loads(self.witty("topology", CAPTURE, "--format", "json").stdout)
        for form in ("gexf", "graphml"):
            with self.subTest(form):
                d = self.convert(CAPTURE, form)
                self.assertEqual(sorted(b[0] for b in d.boxes.values()), sorted(a["label"] for a in t["actors"]))


class Refused(Case):
    def test_no_such_format(self):
        done = self.witty("convert", self.graph(graphs.two_hosts()), self.path("x.png"), code=2)
        self.assertIn(b"no format has that name", done.stderr)

    def test_no_such_level(self):
        done = self.witty("convert", "x", "y.dot", "--level", "planet", code=2)
        self.assertIn(b"--level takes process, container or host, not 'planet'", done.stderr)

    def test_options_of_pictures_for_something_else(self):
        self.witty("convert", "x", "y.json", "--top", "3", code=2)
        self.witty("convert", "x", "y.folded", "--level", "host", code=2)

    def test_existing_files_stay(self):
        source = self.graph(graphs.two_hosts())
        with open(self.path("x.dot"), "w", encoding="utf-8") as f:
            f.write("mine")
        done = self.witty("convert", source, self.path("x.dot"), code=1)
        self.assertIn(b"--force", done.stderr)
        with open(self.path("x.dot"), encoding="utf-8") as f:
            self.assertEqual(f.read(), "mine")

    def test_without_graphviz(self):
        source, tools = self.graph(graphs.two_hosts()), self.path("bin")
        os.mkdir(tools)
        done = subprocess.run([WITTY, "convert", source, self.path("x.svg")], capture_output=True, check=False,
                              env={**os.environ, "PATH": tools})
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.decode().splitlines(), [
            f"error: '{self.path('x.svg')}': draw a picture: Graphviz's program 'dot' is not installed",
            "hint: install graphviz, or convert to .dot, .mmd or .drawio"])
        self.assertFalse(os.path.exists(self.path("x.svg")))

    def test_graphviz_that_fails(self):
        source, tools = self.graph(graphs.two_hosts()), self.path("bin")
        os.mkdir(tools)
        with open(os.path.join(tools, "dot"), "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\necho partial\nexit 3\n")
        os.chmod(os.path.join(tools, "dot"), 0o755)
        done = subprocess.run([WITTY, "convert", source, self.path("x.svg")], capture_output=True, check=False,
                              env={**os.environ, "PATH": tools + ":/usr/bin:/bin"})
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"'dot' failed", done.stderr)
        self.assertFalse(os.path.exists(self.path("x.svg")))

    def test_an_empty_graph_is_an_empty_picture(self):
        source = self.graph(graphs.graph([], []))
        for form, reader in readers.READERS.items():
            with self.subTest(form):
                self.witty("convert", source, self.path("e." + form))
                self.assertEqual(len(reader(self.path("e." + form)).boxes), 0)

    def test_help_lists_each_format(self):
        text = self.witty("convert", "--help").stdout.decode()
        for suffix in (".wpdb", ".json", ".txt", ".folded", ".trace.json", *("." + f for f in readers.READERS)):
            self.assertRegex(text, rf"\n  {re.escape(suffix)} ")


class Folded(Case):
    def threads(self):
        p = graphs.process(7, "a;b c")
        t = {"entity_namespace": "local", "entity_type": "ThreadEntity", "details": {}, "tid": 8, "start_ns": 1,
             "process": p, "name": "w;1", "run_ns": 4_000_000, "runq_ns": 1_500_000, "blocked_ns": 9_000_000}
        futex = {"entity_namespace": "local", "entity_type": "FutexEntity", "details": {}, "futex_key": "7:0x1"}
        return graphs.graph([p, t, futex], [graphs.edge("WaitsForEdge", t, futex, cause="futex", waits=3,
                                                        waited_ns=7_000_000, longest_ns=1)])

    def test_times_of_threads(self):
        done = self.witty("convert", self.graph(self.threads()), self.path("x.folded"))
        self.assertIn(b"call stacks are not recorded", done.stderr)
        thread = ["a,b c[7]", "w,1[8]"]
        self.assertEqual(list(readers.read_folded(self.path("x.folded"))), [
            (thread + ["on CPU"], 4000), (thread + ["waits for a CPU"], 1500),
            (thread + ["blocked", "futex", "futex:7:0x1"], 7000), (thread + ["blocked", "not known"], 2000)])

    def test_nothing_to_fold(self):
        done = self.witty("convert", self.graph(graphs.two_hosts()), self.path("x.folded"), code=1)
        self.assertIn(b"no thread has times", done.stderr)
        self.assertFalse(os.path.exists(self.path("x.folded")))


class Trace(Case):
    """Times in microseconds behind the first event."""

    T0 = 1700000000 * 10 ** 9
    # out, wake, in: of which thread, woken by which, why
    WAITS = [(1_000_000, 5_000_000, 5_500_000, 0, 1, "futex"), (2_000_000, 4_000_000, 4_000_000, 1, None, "sleep"),
             (7_000_000, 9_000_000, 9_000_000, 0, 1, "pipe"), (8_000_000, 8_500_000, 8_600_000, 1, None, "disk")]

    def recording(self):
        p = graphs.process(7, '"</script>\n\u202e')
        ts = [{"entity_namespace": "local", "entity_type": "ThreadEntity", "details": {}, "tid": 8 + i, "start_ns": 1,
               "process": p, "name": "w;%d" % i, "run_ns": (i + 1) * 10 ** 9, "runq_ns": 5 * 10 ** 8, "blocked_ns": 1}
              for i in range(2)]
        futex = {"entity_namespace": "local", "entity_type": "FutexEntity", "details": {}, "futex_key": "7:0x1"}
        source = self.graph(graphs.graph([p, *ts, futex], [graphs.edge("OwnEdge", p, t) for t in ts]))
        path = self.path("in.wpdb")
        self.witty("convert", source, path)
        db = sqlite3.connect(path)
        nums = {tid: num for num, tid in db.execute("SELECT num, tid FROM thread")}
        db.execute("CREATE TABLE wait_segment(out_ns INTEGER NOT NULL, wake_ns INTEGER NOT NULL, in_ns INTEGER NOT NULL,"
                   " waiter INTEGER, waker INTEGER, waker_kind TEXT, cause TEXT NOT NULL, object TEXT NOT NULL) STRICT")
        for out, wake, back, who, by, cause in self.WAITS:
            db.execute("INSERT INTO wait_segment VALUES(?,?,?,?,?,?,?,?)",
                       (self.T0 + out, self.T0 + wake, self.T0 + back, nums[8 + who],
                        None if by is None else nums[8 + by], "timer" if by is None else "thread", cause, "futex:7:0x1"))
        db.commit()
        db.close()
        return path

    def events(self):
        self.witty("convert", self.recording(), self.path("x.trace.json"))
        with open(self.path("x.trace.json"), encoding="utf-8") as f:
            return json.load(f)["traceEvents"]

    def test_every_event_is_as_the_format_wants_it(self):
        tracks, named = {}, set()
        for e in self.events():
            self.assertIsInstance(e["name"], str)
            self.assertIsInstance(e["pid"], int)
            self.assertIsInstance(e["tid"], int)
            if e["ph"] == "M":
                self.assertIn(e["name"], ("process_name", "thread_name"))
                self.assertEqual(e["args"]["name"], clean(e["args"]["name"]))
                named.add((e["name"], e["pid"], e["tid"]))
                continue
            self.assertGreaterEqual(e["ts"], 0)
            if e["ph"] == "X":
                self.assertGreater(e["dur"], 0)
                tracks.setdefault((e["pid"], e["tid"]), []).append((e["ts"], e["dur"]))
                self.assertTrue({("thread_name", e["pid"], e["tid"]), ("process_name", e["pid"], e["tid"])} & named)
            elif e["ph"] == "C":
                self.assertTrue(all(isinstance(v, (int, float)) and v >= 0 for v in e["args"].values()))
            else:
                self.assertIn(e["ph"], ("s", "f"))
        for pieces in tracks.values():
            pieces.sort()
            for (a, length), (b, _) in zip(pieces, pieces[1:]):
                self.assertLessEqual(a + length, b + 1e-6, "two states at once")

    def test_waits_delays_and_arrows(self):
        events = self.events()
        waits = sorted((e["ts"], e["dur"], e["tid"], e["name"]) for e in events if e.get("cat") == "wait")
        self.assertEqual(waits, sorted((o / 1000, (w - o) / 1000, 8 + who, cause) for o, w, _, who, _, cause in self.WAITS))
        delays = sorted((e["ts"], e["dur"], e["tid"]) for e in events if e.get("cat") == "runq")
        self.assertEqual(delays, [(5000, 500, 8), (8500, 100, 9)])
        active = sorted((e["ts"], e["dur"], e["tid"]) for e in events if e.get("cat") == "active")
        self.assertEqual(active, [(4000, 4000, 9), (5500, 1500, 8)])
        ends = {(e["ph"], e["id"]): (e["tid"], e["ts"]) for e in events if e["ph"] in "sf"}
        self.assertEqual(ends, {("s", 1): (9, 5000), ("f", 1): (8, 5000), ("s", 2): (9, 9000), ("f", 2): (8, 9000)})
        self.assertEqual({e["args"]["ended by"] for e in events if e.get("cat") == "wait"}, {"thread:9", "timer"})

    def test_counters_of_intervals(self):
        events = self.events()
        self.assertEqual([(e["ts"], e["dur"]) for e in events if e.get("cat") == "interval"], [(0, 10 ** 7)])
        use = [e["args"] for e in events if e["ph"] == "C"]
        self.assertEqual(use, [{"on CPU": 30, "waiting for a CPU": 10}])

    def test_graphs_have_no_times(self):
        done = self.witty("convert", self.graph(graphs.two_hosts()), self.path("x.trace.json"), code=1)
        self.assertIn(b"neither single waits nor intervals", done.stderr)


if __name__ == "__main__":
    unittest.main()
