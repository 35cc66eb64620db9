#!/usr/bin/python3
"""test_top.py [Case]... - the live view, driven through tmux as a person would. WITTY and CROWD name programs.

Keys, sizes, five thousand threads, what is saved, what is sent, and how the terminal is left.
"""
import ctypes
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

WITTY = os.environ["WITTY"]
CROWD = os.environ["CROWD"]
PATIENCE_S = 120    # of a machine that does other things, too
VIEWS = {"1": "TID", "2": "MEMORY", "3": "RATE", "4": "DEVICE", "5": "SEVERITY"}


def wait_for(what, get, good):
    """Until good(get()) holds: its value."""
    end = time.monotonic() + PATIENCE_S
    while True:
        value = get()
        if good(value):
            return value
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {PATIENCE_S} s; last:\n{value}")
        time.sleep(0.1)


class Terminal:
    """tmux with one pane, in which a shell runs the program."""

    def __init__(self, folder, *args, size=(80, 24), env=()):
        self.base = ["tmux", "-L", f"witty-top-{os.getpid()}-{id(self)}", "-f", "/dev/null"]
        self.folder = folder
        command = " ".join(["env", *env, WITTY, "top", *args])
        # ^C is for the program; the shell stays.
        script = (f"trap : INT; cd {folder}; stty -g >before; echo FIRST; {command} 2>errors; echo ended $? >ended;"
                  " stty -g >modes; mv modes after; echo LAST; cat errors; sleep 600")
        self.tmux("new-session", "-d", "-x", str(size[0]), "-y", str(size[1]), f"exec sh -c '{script}'")

    def tmux(self, *args):
        # A server of an older test that goes away is no concern of this one.
        done = subprocess.run([*self.base, *args], capture_output=True, check=False,
                              env={**os.environ, "LC_ALL": "C.UTF-8", "TMUX": "", "NO_COLOR": ""})
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode(errors="replace")

    def close(self):
        subprocess.run([*self.base, "kill-server"], capture_output=True, check=False)

    def screen(self, *how):
        return self.tmux("capture-pane", "-p", *how)

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def type(self, text):
        self.tmux("send-keys", "-l", text)

    def wait(self, pattern):
        """Until the screen has it: the screen."""
        return wait_for(pattern, self.screen, lambda s: re.search(pattern, s))

    def rest(self):
        """The screen when it has not changed for longer than a look takes. A screen that goes on never rests."""
        last = {}

        def same(s):
            before, last["s"] = last.get("s"), s
            return s == before
        return wait_for("rest", lambda: (time.sleep(2.5), self.screen())[1], same)

    def started(self):
        """Until the first interval is there."""
        self.wait(r"top - \S+ - \d+:\d+:\d+ UTC - last [1-9]")
        return self

    def ended(self):
        path = os.path.join(self.folder, "ended")
        return wait_for("the end", lambda: os.path.exists(path) and os.path.exists(path.replace("ended", "after")),
                        bool)

    def program(self):
        """Pid of the program: a child of the shell."""
        shell = int(self.tmux("display-message", "-p", "#{pane_pid}"))
        with open(f"/proc/{shell}/task/{shell}/children", encoding="ascii") as f:
            return int(f.read().split()[0])


@unittest.skipUnless(os.geteuid() == 0, "needs root")
class Case(unittest.TestCase):
    maxDiff = 4000
    threads = 0

    def setUp(self):
        self.began = time.monotonic()
        self.dir = tempfile.mkdtemp(prefix="witty-top-")
        self.addCleanup(shutil.rmtree, self.dir, True)
        if self.threads:
            crowd = subprocess.Popen([CROWD, str(self.threads), "600"], stdout=subprocess.PIPE)
            self.addCleanup(crowd.stdout.close)
            self.addCleanup(crowd.wait)
            self.addCleanup(crowd.kill)
            self.assertEqual(crowd.stdout.readline(), b"ready\n")
            self.crowd = crowd.pid

    def open(self, *args, **more):
        t = Terminal(self.dir, *args, **more)
        self.addCleanup(t.close)
        return t


class Keys(Case):
    threads = 20

    def test_everything_a_person_does(self):
        t = self.open("--window", "2s").started()
        self.views(t)
        self.filter_and_detail(t)
        self.sorting(t)
        self.tree(t)
        self.pause(t)
        self.saving(t)
        self.sizes(t)
        t.keys("?")
        t.wait("pause: nothing is observed")
        t.keys("?", "q")
        t.ended()

    def views(self, t):
        for key, title in VIEWS.items():
            t.keys(key)
            # A screen may be half drawn when it is looked at.
            s = wait_for(f"view {key}", t.screen,
                         lambda s, k=key, w=title: re.search(rf"\[{k} \w+[^\]]*\]", s) and w in s.splitlines()[3])
            self.assertLessEqual(max(map(len, s.splitlines())), 80)
            self.assertEqual(len(s.splitlines()), 24)
        t.keys("Tab")
        t.wait(r"\[1 threads\]")

    def filter_and_detail(self, t):
        t.keys("/")
        t.wait("only rows with: _")
        t.type("crowd-bu")
        t.wait(r">\s*\d+ crowd +crowd-busy +\d+\.\d")
        t.keys("Enter", "Enter")
        s = t.wait("WAITS FOR")
        self.assertRegex(s, r"thread \d+ crowd-busy of crowd\[")
        self.assertRegex(t.wait(r"sleep .* idle"), r"WHO ENDS ITS WAITS")
        t.keys("Escape")
        t.wait("filter: crowd-bu")
        t.keys("Escape")
        wait_for("no filter", t.screen, lambda x: "filter:" not in x)

    def column(self, t, title):
        """What the first column has, by rows, once it is the one that is sorted by."""
        s = t.wait(rf"\*{title}")
        return [int(line[1:8]) for line in s.splitlines()[4:-1] if line[1:8].strip().isdigit()]

    def sorting(self, t):
        t.keys(">")
        wait_for("by thread", lambda: self.column(t, "TID"), lambda x: len(x) > 10 and x == sorted(x, reverse=True))
        t.keys("r")
        wait_for("the other way", lambda: self.column(t, "TID"), lambda x: len(x) > 10 and x == sorted(x))
        t.keys("<")
        wait_for("by importance", t.screen, lambda x: "*" not in x.splitlines()[3])

    def tree(self, t):
        # Room for a deep tree, and not for more columns.
        t.tmux("resize-window", "-x", "109", "-y", "24")
        t.keys("t")
        t.wait(r"\[2 processes\]")
        t.keys("/")
        t.type("crowd")
        t.wait(rf"{self.crowd} .*/s crowd  /")
        parent = os.getpid()
        t.keys("Escape", "/")
        t.keys("C-u", "Enter")
        t.keys("End")
        rows = wait_for("children below their parents", lambda: self.all_rows(t), lambda r: self.crowd in r and parent in r)
        self.assertLess(rows[parent][0], rows[self.crowd][0], "a child stands above its parent")
        self.assertGreater(rows[self.crowd][1], rows[parent][1], "a child is not indented")
        t.tmux("resize-window", "-x", "80", "-y", "24")

    def all_rows(self, t):
        """(place, indent) of all processes, by pid: page after page of a paused view."""
        t.keys("p")
        t.wait("PAUSED")
        t.keys("Home")
        rows, place, last = {}, 0, None
        while True:
            time.sleep(0.3)
            head, *lines = t.screen().splitlines()[3:-1]
            for line in lines:
                if line[1:8].strip().isdigit():
                    pid = int(line[1:8])
                    text = line[head.index("PROCESS"):]
                    rows.setdefault(pid, (place, len(text) - len(text.lstrip())))
                    place += 1
            if lines == last:
                break
            last = lines
            t.keys("PageDown")
        t.keys("p")
        wait_for("going on", t.screen, lambda x: "PAUSED" not in x)
        return rows

    def pause(self, t):
        t.keys("Space")
        t.wait("PAUSED")
        first = t.rest()
        self.assertIn("PAUSED", first)
        t.keys("Space")
        wait_for("going on", t.screen, lambda s: "PAUSED" not in s and s.splitlines()[0] != first.splitlines()[0])

    def saving(self, t):
        t.keys("1", "s")
        t.wait(r"save to: top-\d{8}-\d{6}\.wpdb_")
        t.keys("C-u")
        t.type("saved.wpdb")
        t.keys("Enter")
        t.wait("saved to saved.wpdb")
        path = os.path.join(self.dir, "saved.wpdb")
        show = subprocess.run([WITTY, "show", path, "entities", "--type", "thread", "--name", "crowd-busy", "--format",
                               "json"], capture_output=True, check=True)
        busy = json.loads(show.stdout)
        self.assertEqual(len(busy), 1)
        with open(f"/proc/{self.crowd}/task/{busy[0]['tid']}/schedstat", encoding="ascii") as f:
            self.assertTrue(0 < busy[0]["run_ns"] <= int(f.read().split()[0]), busy)
        about = json.loads(subprocess.run([WITTY, "show", path, "--format", "json"], capture_output=True,
                                          check=True).stdout)
        self.assertTrue(about["complete"])
        # The window of two seconds, give or take an interval, which a busy machine may take long over.
        self.assertGreater(about["window_ns"], 10 ** 9)
        self.assertLess(about["window_ns"], (time.monotonic() - self.began) * 1e9)
        t.keys("s", "C-u")
        t.type("saved.wpdb")
        t.keys("Enter")
        t.wait("error: create recording 'saved.wpdb': File exists")

    def sizes(self, t):
        t.keys("k")
        for columns, rows, wanted in ((140, 40, "SWITCH/s"), (40, 10, "TID"), (20, 4, ">"), (80, 24, "RUNQ%")):
            t.tmux("resize-window", "-x", str(columns), "-y", str(rows))
            s = wait_for(f"{columns}x{rows}", t.screen,
                         lambda x, n=rows, w=wanted: len(x.splitlines()) == n and w in x and (n < 30 or "? help" in x))
            self.assertLessEqual(max(map(len, s.splitlines())), columns)


class Large(Case):
    threads = 5000

    def test_five_thousand_threads(self):
        t = self.open().started()
        s = wait_for("all threads", t.screen, lambda x: int((re.search(r"(\d+) threads[;,]", x) or [0, 0])[1]) >= 5000)
        self.assertIn("own CPU", s)
        t.keys("/")
        t.type("crowd-4999")
        t.wait(r"> *\d+ crowd +crowd-4999 ")
        t.keys("Escape", "Escape", "End")
        t.wait(r"(?m)^>")
        with open(f"/proc/{t.program()}/status", encoding="ascii") as f:
            rss = int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1))
        print(f"| top, 5000 threads: {rss >> 10} MiB resident, "
              f"{re.search('own CPU ([0-9.]+ %)', t.wait('own CPU')).group(1)} of one CPU")
        t.keys("q")
        t.ended()


class End(Case):
    def check_left(self, t, code):
        t.ended()
        with open(os.path.join(self.dir, "ended"), encoding="ascii") as f:
            self.assertEqual(f.read(), f"ended {code}\n")
        with open(os.path.join(self.dir, "before"), encoding="ascii") as f, \
                open(os.path.join(self.dir, "after"), encoding="ascii") as g:
            self.assertEqual(f.read(), g.read(), "the terminal's modes are not as they were")
        s = t.wait("LAST")
        self.assertIn("FIRST", s, "what was on the screen before is gone")
        self.assertEqual(t.tmux("display-message", "-p", "#{cursor_flag} #{alternate_on} #{keypad_flag}"), "1 0 0\n")

    def test_signals_and_keys_leave_the_terminal_as_it_was(self):
        ways = {"q": lambda t: t.keys("q"), "^C": lambda t: t.keys("C-c"),
                "SIGTERM": lambda t: os.kill(t.program(), signal.SIGTERM),
                "SIGHUP": lambda t: os.kill(t.program(), signal.SIGHUP)}
        for name, way in ways.items():
            with self.subTest(name):
                shutil.rmtree(self.dir)
                os.mkdir(self.dir)
                t = self.open("--no-ebpf")
                t.wait(r"\[1 threads\]")
                way(t)
                self.check_left(t, 0)
                t.close()

    def test_a_terminal_that_nobody_knows(self):
        t = self.open("--no-ebpf", env=["TERM=nosuchterminal"])
        t.wait("error: terminal type 'nosuchterminal' is not known here")
        t.ended()
        with open(os.path.join(self.dir, "ended"), encoding="ascii") as f:
            self.assertEqual(f.read(), "ended 2\n", t.screen())

    def test_no_terminal(self):
        done = subprocess.run([WITTY, "top"], stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=PATIENCE_S)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr.decode(), "error: standard input and output must be a terminal\n"
                                               "hint: top --once prints one look as text\n")
        self.assertEqual(done.stdout, b"")


class Looks(Case):
    threads = 5

    def test_without_colours(self):
        for env in (["NO_COLOR=1"], ["TERM=vt100"]):
            with self.subTest(env[0]):
                t = self.open("--filter", "crowd", env=env).started()
                s = t.wait(r"crowd-busy") and t.screen("-e")
                codes = {c for seq in re.findall(r"\x1b\[([0-9;]*)m", s) for c in seq.split(";") if c}
                self.assertLessEqual(codes, {"0", "1", "7", "22", "27", "39", "49", "10"})
                self.assertIn("7", codes, "the head does not stand out")
                t.keys("q")
                t.ended()
                os.unlink(os.path.join(self.dir, "ended"))
                os.unlink(os.path.join(self.dir, "after"))
                t.close()

    def test_names_cannot_reach_the_terminal(self):
        sleeper = os.fork()
        if not sleeper:
            ctypes.CDLL(None).prctl(15, b"\x1b]2;owned\x07\x9b3", 0, 0, 0)
            while True:
                time.sleep(0.2)
        self.addCleanup(os.waitpid, sleeper, 0)
        self.addCleanup(os.kill, sleeper, signal.SIGKILL)
        t = self.open("--filter", "owned").started()
        t.wait(rf"{sleeper} .*\]2\.?;owned")
        self.assertNotIn("owned", t.tmux("display-message", "-p", "#{pane_title}"))
        t.keys("q")
        t.ended()

    def test_once(self):
        for view, title in zip(("threads", "processes", "flows", "devices", "findings"), VIEWS.values()):
            with self.subTest(view):
                done = subprocess.run([WITTY, "top", "--once", "--no-ebpf", "-w", "1s", "--view", view, "-n", "5"],
                                      stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=PATIENCE_S,
                                      env={**os.environ, "COLUMNS": "80"})
                lines = done.stdout.decode().splitlines()
                self.assertIn(title, lines[3])
                self.assertLessEqual(len(lines), 9)
                self.assertLessEqual(max(map(len, lines)), 80)
                self.assertEqual(done.stderr, b"")


class Sent(Case):
    """Over a slow line only what changed is sent: on a terminal of our own, which counts."""
    threads = 5

    def read(self, fd, quiet_s):
        """All bytes until none came for so long."""
        got, end = b"", time.monotonic() + PATIENCE_S
        while select.select([fd], [], [], quiet_s)[0]:
            self.assertLess(time.monotonic(), end, "it is never quiet")
            try:
                got += os.read(fd, 65536)
            except OSError:
                break
        return got

    def until(self, fd, wanted):
        """All bytes until these came."""
        got, end = b"", time.monotonic() + PATIENCE_S
        while wanted not in got:
            self.assertLess(time.monotonic(), end, f"{wanted} never came, but {got[-300:]}")
            got += self.read(fd, 0.2)
        return got

    def test_only_changed_cells_are_sent(self):
        pid, fd = pty.fork()
        if not pid:
            os.environ.update(TERM="xterm", LINES="24", COLUMNS="80", LC_ALL="C.UTF-8")
            os.execv(WITTY, [WITTY, "top"])
        self.addCleanup(os.close, fd)
        # There is a first interval, and so there are rows.
        self.until(fd, b"own CPU")
        os.write(fd, b"p")
        self.until(fd, b"PAUSED")
        # A look that stands still is not sent again: five seconds without a byte.
        self.read(fd, 5)
        os.write(fd, b"j")
        moved = self.until(fd, b">") + self.read(fd, 1.5)
        self.assertLess(len(moved), 700, "a moved selection sends more than two lines")
        os.write(fd, b"q")
        self.until(fd, b"\x1b[?1049l")
        _, status = os.waitpid(pid, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 0)
        print(f"| top: a moved selection sends {len(moved)} bytes, a look that stands still none")


if __name__ == "__main__":
    unittest.main()
