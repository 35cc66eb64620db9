#!/usr/bin/env python3
"""test_devices.py [CASE]... - accelerators by fake vendor libraries and tools, through the real code.

WITTY and FAKES name the program and the folder with the fakes. Needs root for private /dev folders.
"""
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../live"))
from recorder import WITTY, Recorder  # noqa: E402

FAKES = os.environ["FAKES"]
GIB = 1 << 30
MIB = 1 << 20
HANGS_S = 10  # more than the product's patience with a driver


class Failed(Exception):
    pass


def check(ok, what, got=None):
    if not ok:
        raise Failed(f"{what}; got {got}" if got is not None else what)


def equal(got, want, what):
    check(got == want, f"{what}: wanted {want}", got)


class Case:
    """A folder with fakes, a scenario, and the processes that a case starts."""

    def __init__(self, folder):
        self.dir = folder
        self.bin = os.path.join(folder, "bin")
        self.lib = os.path.join(folder, "lib")
        os.makedirs(self.bin)
        os.makedirs(self.lib)
        self.children = []
        self.env = dict(os.environ, LD_LIBRARY_PATH=self.lib, PATH=self.bin + ":" + os.environ["PATH"])
        self.options = ["--no-ebpf"]

    def library(self, name, under=None):
        shutil.copy(os.path.join(FAKES, name), os.path.join(self.lib, under or name))

    def tool(self, name, text):
        path = os.path.join(self.bin, name)
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, 0o755)

    def scenario(self, variable, text):
        path = os.path.join(self.dir, variable)
        with open(path + ".new", "w") as f:
            f.write(text)
        os.rename(path + ".new", path)
        self.env[variable] = path

    def holder(self, files, own_pidns=False):
        """A process that has these device files open, in a /dev of its own. @return (pid, pid in its namespace)"""
        script = ("mount -t tmpfs none /dev; mkdir -p /dev/dri /dev/infiniband; "
                  + "".join(f"touch {f}; exec {10 + i}<>{f}; " for i, f in enumerate(files))
                  + "echo $$; read -r line")
        argv = ["unshare", "-m"] + (["-pf", "--kill-child"] if own_pidns else [])
        p = subprocess.Popen(argv + ["bash", "-c", script], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)
        self.children.append(p)
        inner = int(p.stdout.readline())
        pid = p.pid
        if own_pidns:
            with open(f"/proc/{p.pid}/task/{p.pid}/children") as f:
                pid = int(f.read().split()[0])
        return pid, inner

    def record(self, during=None):
        """
        Some looks at devices; a driver that had not the time to answer is given more. @during: what happens meanwhile,
        given the recorder
        """
        path = os.path.join(self.dir, "out.wpdb")
        for looks in 4, 16, 64:
            r = Recorder(path, "--force", *self.options, interval="500ms", env=self.env)
            r.until(f"{looks} looks", lambda r=r, n=looks: r.intervals() >= n)
            if during:
                during(r)
            r.end()
            found = Recording(path)
            if not [s for s in found.status.values() if s["reason"] == "no answer yet"]:
                break
        return found

    def done(self):
        for p in self.children:
            p.stdin.close()
            p.wait()


def rows_of(path, query):
    """Of a recording, which may be under way."""
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=90)
    try:
        return db.execute(query).fetchall()
    except sqlite3.OperationalError:
        return []
    finally:
        db.close()


class Recording:
    def __init__(self, path):
        graph = path + ".json"
        subprocess.run([WITTY, "convert", "--force", path, graph], check=True)
        with open(graph) as f:
            self.graph = json.load(f)
        text = subprocess.run([WITTY, "show", path, "summary", "--format", "json"], check=True,
                              stdout=subprocess.PIPE, text=True).stdout
        self.status = {s["source"]: s for s in json.loads(text)["status"]}
        self.path = path

    def rows(self, query):
        return rows_of(self.path, query)

    def nodes(self, kind):
        return [n for n in self.graph["nodes"] if n["entity_type"] == kind]

    def edges(self, kind):
        return [e for e in self.graph["edges"] if e["edge_type"] == kind]


def until_rows(query, n=1):
    """What waits until a recording has so many of them."""
    return lambda r: r.until(query, lambda: len(rows_of(r.path, query)) >= n)


def nvidia(case, text):
    case.library("libnvidia-ml.so.1")
    case.scenario("FAKE_NVML", text)


def eight_devices(case):
    # With all sources. Most other cases go without probes, which tell nothing of devices themselves.
    case.options = []
    pid, _ = case.holder(["/dev/nvidia3", "/dev/nvidiactl"])
    nvidia(case, f"devices 8\nprocess 3 {pid} 1234\nwidth 5 8\nthrottle 2 {0x4 | 0x40}\n")
    r = case.record(until_rows("SELECT s.num FROM series_gpu s JOIN gpu USING(num) WHERE gpu.id=7", 2))
    gpus = sorted(r.nodes("GPUEntity"), key=lambda n: n["id"])
    equal([g["id"] for g in gpus], list(range(8)), "indexes")
    looks = r.rows("SELECT count(*), min(s.utilization_pct), max(s.utilization_pct), max(s.memory_used_bytes) "
                   "FROM series_gpu s JOIN gpu USING(num) WHERE gpu.id=7")[0]
    check(looks[0] >= 2, "how it stood in each interval", looks)
    equal(looks[1:], (75, 75, 8 * GIB), "use of an interval")
    for i, g in enumerate(gpus):
        equal(g["pci_bus_id"], f"0000:{0x10 + i:02x}:00.0", "PCI address")
        equal(g["device_id"], f"GPU-0000-{i:04}", "unique id")
        equal(g["model"], "NVIDIA H100 80GB HBM3", "model")
        equal(g["utilization_pct"], 10 * i + 5, "use")
        equal(g["memory_util_pct"], i, "use of memory")
        equal(g["memory_total_bytes"], 80 * GIB, "memory")
        equal(g["memory_used_bytes"], (i + 1) * GIB, "memory used")
        equal(g["power_mw"], 300000 + 1000 * i, "power")
        equal(g["power_limit_mw"], 700000, "power limit")
        equal(g["temperature_c"], 40 + i, "temperature")
        equal(g["clock_khz"], (1980 - i) * 1000, "clock")
        equal((g["clock_max_khz"], g["memory_clock_khz"]), (1980000, 2619000), "highest clock, and that of memory")
        equal(g["ecc_errors"], i, "errors of memory")
        equal(g["pcie_gen_max"], 5, "highest PCIe generation")
        equal(g["pcie_gen"], 5, "PCIe generation")
        equal(g["pcie_width"], 8 if i == 5 else 16, "lanes")
        equal(g["pcie_width_max"], 16, "most lanes")
        equal(g["pcie_rx_bytes_s"], 2e6, "PCIe to the device")
        equal(g["pcie_tx_bytes_s"], 1e6, "PCIe from the device")
        equal(g["throttle"], "power_cap,hw_thermal" if i == 2 else "none", "throttle reasons")
        equal(g["driver"], "550.54.15", "driver")
        equal(g["told_by"], "nvml", "source")
        check(g["link_rx_bytes"] >= 1024000, "bytes over links", g["link_rx_bytes"])
    links = r.edges("DeviceLinkEdge")
    equal(len(links), 16, "links")
    for e in links:
        equal((e["kind"], e["version"]), ("NVLink", 4), "kind of link")
        peer = e["target_node"]
        if peer["entity_type"] == "GPUEntity":
            equal(peer["id"], e["source_node"]["id"] ^ 1, "peer")
            equal((e["links"], e["active"]), (2, 2), "links to the peer")
        else:
            equal(peer["device_id"], "0000:f0:00.0", "switch")
            equal((e["links"], e["active"]), (2, 1), "links to the switch")
    access = [e for e in r.edges("AccessEdge") if e["target_node"]["entity_type"] == "GPUEntity"]
    equal([(e["source_node"]["pid"], e["target_node"]["id"]) for e in access], [(pid, 3)], "access")
    equal(access[0]["memory_bytes"], 1234 * MIB, "memory of the process")
    equal(access[0]["utilization_pct"], 33, "use by the process")
    equal(access[0]["confidence"], 1, "confidence")
    equal(r.status["device nvidia"]["state"], "ok", "state")


def mig(case):
    pid, _ = case.holder(["/dev/nvidia1"])
    nvidia(case, f"devices 2\nmig 1 3\nprocess 1 {pid} 500 2\n")
    r = case.record()
    parts = [n for n in r.nodes("GPUEntity") if n.get("instance")]
    equal(sorted(p["instance"] for p in parts), ["gi7/ci0", "gi8/ci0", "gi9/ci0"], "parts")
    for p in parts:
        equal(p["device_type"], "mig", "kind")
        check(p["device_id"].startswith("MIG-0000-0001-"), "unique id", p["device_id"])
        equal(p["part_of"], "GPU-0000-0001", "the device that it is a part of")
    access = [e for e in r.edges("AccessEdge") if e["target_node"]["entity_type"] == "GPUEntity"]
    equal([(e["source_node"]["pid"], e["target_node"].get("instance")) for e in access], [(pid, "gi9/ci0")], "access")


def scrambled_pids(case):
    """The driver names pids of containers; the same pids are others' on the host."""
    case.options = []
    a, a_inner = case.holder(["/dev/nvidia0"], own_pidns=True)
    b, b_inner = case.holder(["/dev/nvidia1"], own_pidns=True)
    equal(a_inner, b_inner, "pids inside")
    stranger, _ = case.holder([])
    nvidia(case, f"devices 3\nprocess 0 {a_inner} 100\nprocess 1 {b_inner} 200\nprocess 2 {stranger} 300\n"
                 "process 2 4194000 400\n")
    other, _ = case.holder(["/dev/nvidia2"])
    r = case.record()
    access = {(e["source_node"]["pid"], e["target_node"]["id"]): e for e in r.edges("AccessEdge")
              if e["target_node"]["entity_type"] == "GPUEntity"}
    equal(sorted(access), sorted([(a, 0), (b, 1), (stranger, 2), (other, 2)]), "access")
    equal(access[a, 0]["memory_bytes"], 100 * MIB, "memory")
    equal(access[b, 1]["memory_bytes"], 200 * MIB, "memory")
    check(0.5 < access[a, 0]["confidence"] < 1, "a pid of a container is less sure", access[a, 0]["confidence"])
    check(access[stranger, 2]["confidence"] < 0.5, "disagreement lowers confidence", access[stranger, 2]["confidence"])
    check("memory_bytes" not in access[other, 2] or access[other, 2]["memory_bytes"] is None,
          "what the driver does not tell is unknown")


def lost(case):
    nvidia(case, "devices 8\n")

    def lose(r):
        until_rows("SELECT s.num FROM series_gpu s JOIN gpu USING(num) WHERE gpu.id=4 AND s.utilization_pct=45")(r)
        case.scenario("FAKE_NVML", "devices 8\nlost 4\n")
        until_rows("SELECT state FROM gpu WHERE id=4 AND state LIKE '%lost%'")(r)
    r = case.record(lose)
    gpus = {g["id"]: g for g in r.nodes("GPUEntity")}
    equal(len(gpus), 8, "devices")
    check("lost" in (gpus[4].get("state") or ""), "state of the lost one", gpus[4].get("state"))
    equal([i for i, g in gpus.items() if g.get("state")], [4], "lost")
    # What it does not tell any more is unknown, not zero.
    looks = r.rows("SELECT min(s.utilization_pct), max(s.utilization_pct) FROM series_gpu s JOIN gpu USING(num) "
                   "WHERE gpu.id=4")[0]
    equal(looks, (45, 45), "use before it was lost")


def hang(case):
    nvidia(case, "devices 8\n")

    def stop(r):
        until_rows("SELECT id FROM gpu", 8)(r)
        case.scenario("FAKE_NVML", "devices 8\nhang 3000\n")
        # Longer than the driver is given; whoever waits for it makes no interval, and does not end.
        time.sleep(HANGS_S)
        before = r.intervals()
        r.until("intervals while the driver hangs", lambda: r.intervals() >= before + 3)
    r = case.record(stop)
    status = r.status["device nvidia"]
    check("hangs" in (status["reason"] or ""), "reason", status)
    equal(len(r.nodes("GPUEntity")), 8, "devices seen before")


def crash(case):
    nvidia(case, "devices 8\ncrash 1\n")
    r = case.record()
    status = r.status["device nvidia"]
    equal(status["state"], "off", "state")
    check("crashed" in status["reason"], "reason", status)


def mismatch(case):
    nvidia(case, "init 18\n")
    status = case.record().status["device nvidia"]
    equal(status["state"], "off", "state")
    check("driver's version" in status["reason"], "reason", status)


def old_driver(case):
    case.library("libnvidia-ml-old.so.1", "libnvidia-ml.so.1")
    pid, _ = case.holder(["/dev/nvidia0"])
    case.scenario("FAKE_NVML", f"devices 1\nprocess 0 {pid} 77\n")
    r = case.record()
    equal(r.nodes("GPUEntity")[0]["memory_used_bytes"], GIB, "memory by the older function")
    access = [e for e in r.edges("AccessEdge") if e["target_node"]["entity_type"] == "GPUEntity"]
    equal([(e["source_node"]["pid"], e["memory_bytes"]) for e in access], [(pid, 77 * MIB)], "access")


def absent(case):
    r = case.record()
    equal(r.nodes("GPUEntity"), [], "devices")
    for name in [n for n in r.status if n.startswith("device ")]:
        equal(r.status[name]["state"], "off", f"state of {name}")
        check(r.status[name]["reason"], f"reason of {name}")


NVIDIA_SMI = r"""#!/bin/sh
case $1 in
--query-gpu=index,uuid,pci.bus_id,name,driver_version,*)
	echo "0, GPU-aa, 00000000:3B:00.0, NVIDIA A10, 535.104.05, 17, 3, 23028, 512, 61.31, 150.00, 41, 1695, 1695, 6251, 4, 4, 8, 16"
	echo "1, GPU-bb, 00000000:86:00.0, NVIDIA A10, 535.104.05, [N/A], [N/A], 23028, 0, [Unknown Error], 150.00, 38, 210, 1695, 405, 1, 4, 16, 16"
	;;
--query-compute-apps=gpu_uuid,pid,used_memory)
	echo "GPU-aa, $SMI_PID, 498"
	;;
esac
"""


def nvidia_smi(case):
    """The tool where the library is of another version."""
    nvidia(case, "init 18\n")
    pid, _ = case.holder([])
    case.tool("nvidia-smi", NVIDIA_SMI)
    case.env["SMI_PID"] = str(pid)
    r = case.record()
    gpus = sorted(r.nodes("GPUEntity"), key=lambda n: n["id"])
    equal([g["pci_bus_id"] for g in gpus], ["0000:3b:00.0", "0000:86:00.0"], "PCI addresses")
    equal((gpus[0]["utilization_pct"], gpus[0]["power_mw"], gpus[0]["memory_used_bytes"], gpus[0]["pcie_width"]),
          (17, 61310, 512 * MIB, 8), "numbers")
    check(gpus[1].get("utilization_pct") is None, "[N/A] is unknown", gpus[1].get("utilization_pct"))
    equal(gpus[1]["temperature_c"], 38, "temperature")
    access = [e for e in r.edges("AccessEdge") if e["target_node"]["entity_type"] == "GPUEntity"]
    equal([(e["source_node"]["pid"], e["memory_bytes"]) for e in access], [(pid, 498 * MIB)], "access")
    status = r.status["device nvidia"]
    equal((status["state"], status["rung"]), ("reduced", "nvidia-smi"), "status")
    check("driver's version" in status["reason"], "the reason why not NVML stays", status)


def dcmi(case):
    """Cards of two chips each."""
    case.library("libdcmi.so")
    pid, _ = case.holder(["/dev/davinci3", "/dev/davinci_manager"])
    other, _ = case.holder(["/dev/davinci0"])
    case.scenario("FAKE_DCMI", f"cards 4\nchips 2\nhealth 2 3\nprocess 1 1 {pid} 30000\n")
    r = case.record()
    npus = {(n["id"], n["chip"]): n for n in r.nodes("NPUEntity")}
    equal(sorted(npus), [(c, k) for c in range(4) for k in range(2)], "cards and chips")
    for (c, k), n in npus.items():
        equal(n["pci_bus_id"], f"0000:{0x80 + 2 * c + k:02x}:00.0", "PCI address")
        equal(n["model"], "Ascend 910B3", "model")
        equal(n["utilization_pct"], 50 + c, "use of the cores")
        equal(n["memory_util_pct"], 31, "use of the bandwidth")
        equal(n["clock_max_khz"], 1800000, "highest clock")
        equal(n["memory_total_bytes"], 65536 * MIB, "memory")
        equal(n["memory_used_bytes"], (3465 + c) * MIB, "memory used")
        equal(n["power_mw"], 91300 + 100 * c, "power")
        equal(n["temperature_c"], 36 + k, "temperature")
        equal(n["health"], "Critical" if c == 2 else "OK", "health")
        equal(n["cpu_affinity"], "0-1", "CPUs")
        equal((n["told_by"], n["driver"]), ("dcmi", "24.1.0"), "source")
    links = {(e["source_node"]["id"], e["source_node"]["chip"], e["target_node"]["id"], e["target_node"]["chip"]):
             e["kind"] for e in r.edges("DeviceLinkEdge")}
    equal(len(links), 56, "links")
    for (a, _, b, _), kind in links.items():
        equal(kind, "SIO" if a == b else "HCCS", "kind of link")
    access = {(e["source_node"]["pid"], e["target_node"]["id"], e["target_node"]["chip"]): e
              for e in r.edges("AccessEdge") if e["target_node"]["entity_type"] == "NPUEntity"}
    equal(sorted(access), sorted([(pid, 1, 1), (other, 0, 0)]), "access")
    equal(access[pid, 1, 1]["memory_bytes"], 30000 * MIB, "memory of the process")
    equal(len([e for e in r.edges("AffinitativeToNuma") if e["source_node"]["entity_type"] == "NPUEntity"]), 8,
          "nodes near")


NPU_SMI = r"""#!/bin/sh
if [ "$2" = -t ]; then cat "$NPU_TOPO"; else cat "$NPU_INFO"; fi
"""
INFO_910B = """
+------------------------------------------------------------------------------------------------+
| npu-smi 24.1.rc1                 Version: 24.1.rc1                                             |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 0     910B3               | OK            | 91.3        36                0    / 0             |
| 0                         | 0000:C1:00.0  | 87          0    / 0          20701/ 65536         |
+===========================+===============+====================================================+
| 1     910B3               | Warning       | -           38                0    / 0             |
| 0                         | 0000:01:00.0  | 0           0    / 0          3306  / 65536        |
+===========================+===============+====================================================+
+---------------------------+---------------+----------------------------------------------------+
| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |
+===========================+===============+====================================================+
| 0       0                 | %d            | python3                  | 17400                   |
+===========================+===============+====================================================+
| No running processes found in NPU 1                                                            |
+===========================+===============+====================================================+
"""
TOPO_910B = """	   NPU0       NPU1       CPU Affinity
NPU0       X          HCCS       0-1
NPU1       HCCS       X          0-1

Legend:
  X    = Self
"""
INFO_910_93 = """
+------------------------------------------------------------------------------------------------+
| npu-smi 25.0.rc1                 Version: 25.0.rc1                                             |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip  Phy-ID              | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 0     Ascend910           | OK            | 176.9       46                0    / 0             |
| 0     0                   | 0000:9D:00.0  | 12          0    / 0          3120 / 65536         |
+------------------------------------------------------------------------------------------------+
| 0     Ascend910           | OK            | -           45                0    / 0             |
| 1     1                   | 0000:9F:00.0  | 13          0    / 0          2880 / 65536         |
+===========================+===============+====================================================+
+---------------------------+---------------+----------------------------------------------------+
| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |
+===========================+===============+====================================================+
| 0       1                 | %d            | python3                  | 111                     |
+===========================+===============+====================================================+
"""
INFO_310P = """
+--------------------------------------------------------------------------------------------------------+
| npu-smi 23.0.0                                   Version: 23.0.0                                       |
+-------------------------------+-----------------+------------------------------------------------------+
| NPU     Name                  | Health          | Power(W)     Temp(C)           Hugepages-Usage(page) |
| Chip    Device                | Bus-Id          | AICore(%)    Memory-Usage(MB)                        |
+===============================+=================+======================================================+
| 8       310P3                 | OK              | NA           41                0     / 0             |
| 0       0                     | 0000:01:00.0    | 3            1697 / 21527                            |
+===============================+=================+======================================================+
+-------------------------------+-----------------+------------------------------------------------------+
| NPU     Chip                  | Process id      | Process name             | Process memory(MB)        |
+===============================+=================+======================================================+
| 8       0                     | %d              | main                     | 97                        |
+===============================+=================+======================================================+
"""


def npu_smi_of(case, info, topo, files):
    pid, _ = case.holder(files)
    for name, text in ("NPU_INFO", info.replace("%d", str(pid))), ("NPU_TOPO", topo):
        case.scenario(name, text)
    case.tool("npu-smi", NPU_SMI)
    r = case.record()
    npus = sorted(r.nodes("NPUEntity"), key=lambda n: (n["id"], n["chip"]))
    access = [e for e in r.edges("AccessEdge") if e["target_node"]["entity_type"] == "NPUEntity"]
    equal([e["source_node"]["pid"] for e in access], [pid], "access")
    equal(access[0]["confidence"], 1, "the process has the device open")
    equal(r.status["device ascend"]["rung"], "npu-smi", "status")
    return r, npus, access[0]


def npu_smi(case):
    r, npus, access = npu_smi_of(case, INFO_910B, TOPO_910B, ["/dev/davinci0"])
    equal([(n["pci_bus_id"], n["utilization_pct"], n["memory_used_bytes"] >> 20, n["health"]) for n in npus],
          [("0000:c1:00.0", 87, 20701, "OK"), ("0000:01:00.0", 0, 3306, "Warning")], "chips")
    equal(npus[0]["power_mw"], 91300, "power")
    check(npus[1].get("power_mw") is None, "power that is not measured is unknown")
    equal([e["kind"] for e in r.edges("DeviceLinkEdge")], ["HCCS", "HCCS"], "links")
    equal([n["cpu_affinity"] for n in npus], ["0-1", "0-1"], "CPUs")
    equal(access["memory_bytes"], 17400 * MIB, "memory")


def npu_smi_two_chips(case):
    _, npus, access = npu_smi_of(case, INFO_910_93, "", ["/dev/davinci1"])
    equal([(n["id"], n["chip"], n["pci_bus_id"], n["utilization_pct"]) for n in npus],
          [(0, 0, "0000:9d:00.0", 12), (0, 1, "0000:9f:00.0", 13)], "chips")
    equal(access["target_node"]["chip"], 1, "chip of the process")


def npu_smi_no_hbm(case):
    _, npus, access = npu_smi_of(case, INFO_310P, "", ["/dev/davinci0"])
    equal([(n["id"], n["memory_used_bytes"] >> 20, n["memory_total_bytes"] >> 20) for n in npus], [(8, 1697, 21527)],
          "memory")
    check(npus[0].get("power_mw") is None, "NA is unknown")
    equal(access["memory_bytes"], 97 * MIB, "memory of the process")


def rocm(case):
    case.library("librocm_smi64.so")
    pid, _ = case.holder(["/dev/kfd"])
    case.scenario("FAKE_ROCM", f"devices 3\nprocess 1 {pid} 2048\n")
    r = case.record()
    gpus = sorted(r.nodes("GPUEntity"), key=lambda n: n["id"])
    equal([(g["pci_bus_id"], g["utilization_pct"], g["memory_used_bytes"] // GIB, g["power_mw"], g["temperature_c"],
            g["memory_util_pct"], g["power_limit_mw"], g["told_by"]) for g in gpus],
          [(f"0000:c{i}:00.0", 60 + i, 10 + i, 400000, 55, 20 + i, 750000, "rocm-smi") for i in range(3)], "devices")
    equal(sorted((e["source_node"]["id"], e["target_node"]["id"], e["kind"]) for e in r.edges("DeviceLinkEdge")),
          [(a, b, "XGMI") for a in range(3) for b in range(3) if a != b], "links")
    access = [e for e in r.edges("AccessEdge") if e["target_node"]["entity_type"] == "GPUEntity"]
    equal([(e["source_node"]["pid"], e["target_node"]["id"], e["memory_bytes"]) for e in access],
          [(pid, 1, 2048 * MIB)], "access")


CASES = [eight_devices, mig, scrambled_pids, lost, hang, crash, mismatch, old_driver, absent, nvidia_smi, dcmi, npu_smi,
         npu_smi_two_chips, npu_smi_no_hbm, rocm]


def main():
    if os.geteuid() != 0:
        print("SKIP: needs root")
        return 77
    failed = 0
    wanted = sys.argv[1:]
    for run in CASES:
        if wanted and run.__name__ not in wanted:
            continue
        with tempfile.TemporaryDirectory() as folder:
            case = Case(folder)
            try:
                run(case)
                print(f"ok {run.__name__}", flush=True)
            except (Failed, subprocess.SubprocessError, KeyError, IndexError) as e:
                failed += 1
                print(f"FAILED {run.__name__}: {type(e).__name__}: {e}", flush=True)
            finally:
                case.done()
    return 1 if failed else 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main())
