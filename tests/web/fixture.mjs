// A graph whose answers are known: four workers of which one is away from its device, a thread that all wait for,
// one flow that is larger than all others, and names that try to break out of the page.

export const HOSTILE = "</script><img src=x onerror=window.broken=1>";
export const MIXED = "\u202eabc\u05d0\u05d1\u05d2\u2067 def\u0627\u0644\u0639\u2028\u200f".repeat(80).slice(0, 2000);

const entity = (type, fields) => ({ entity_namespace: "local", entity_type: type, details: {}, ...fields });
const edge = (type, source, target, fields = {}) => ({ edge_type: type, weight: null, source_node: source, target_node: target, ...fields });

export const SECOND = 1e9, START = 1790000000 * SECOND;
export const INTERVALS = 6;

/** @param more processes and threads beyond the ones that are known */
export function graph(more = 0) {
  const nodes = [], edges = [];
  const add = (n) => { nodes.push(n); return n; };
  const link = (...args) => { const e = edge(...args); edges.push(e); return e; };
  add(entity("HostEntity", { hostname: "testhost", kernel: "6.1.0", arch: "x86_64", os: "Debian", cpus: 8, memory_bytes: 64e9, numa_nodes: 2 }));
  for (const id of [0, 1])
    add(entity("NumaEntity", { numa_id: id, cpu_set: id ? "4-7" : "0-3", memory_set: "", numa_stats: {}, mem_info: {}, distance_to_all_numa: id ? { 0: 20, 1: 10 } : { 0: 10, 1: 20 }, memory_bytes: 32e9, free_bytes: 8e9 }));
  const cpus = [...Array(8).keys()].map((c) => add(entity("CpuEntity", { cpu_id: c, node: c >> 2, busy_ns: 3e9 })));
  const sets = [0, 1].map((id) => add(entity("NumaSetEntity", { numa_id_str: String(id) })));
  const process = (pid, name, cmdline, extra = {}) => add(entity("ProcessEntity", { pid, start_ns: pid * 1e6, ppid: 1, name, cmdline, cpu_ns: 1e9, rss_bytes: 1e9, threads: 2, ...extra }));
  const thread = (tid, p, name, run, runq, blocked) => add(entity("ThreadEntity", { tid, start_ns: tid * 1e6, process: p, name, run_ns: run * 1e9, runq_ns: runq * 1e9, blocked_ns: blocked * 1e9, observed_ns: (run + runq + blocked) * 1e9, voluntary_switches: 100, involuntary_switches: 10, migrations: 2, wakeups: 100 }));
  const ran = (t, cpu, ns) => link("RanOnEdge", t, cpus[cpu], { run_ns: ns });
  const place = (p, cpu, mem) => link("NumaAccessEdge", p, sets[cpu], { numa_access_info: {
    proc_status: { voluntary_ctxt_switches: 1, involuntary_ctxt_switches: 1, cpus_allowed_list: "0-7", cpus_preferred_list: "", cpus_accessed_list: "", mems_allowed_list: "0-1", numa_index_to_cpu_runtime: { [cpu]: 1e9 } },
    read_only_pages: {}, dirty_anon_pages: { [mem]: 100000 }, total_pages: { [mem]: 100000 },
    numa_affinity_info: { cpu_runtime_pct_in_each_numa: cpu ? [0, 1] : [1, 0], mem_pages_in_each_numa: mem ? [0, 100000] : [100000, 0], total_dirty_anon_pages: 100000, cpu_mem_access_cosine_similarity: null } } });
  const flow = (from, to, kind, bytes) => link("FlowEdge", from, to, { kind, bytes, messages: 100, bytes_sent: bytes, bytes_received: bytes, first_ns: START + 1, last_ns: START + 5e9 });

  const container = add(entity("ContainerEntity", { container_id: "c0ffee123456", container_name: "trainer", container_type: "docker" }));
  const launcher = process(100, "python3", "python3 launch.py --tensor-parallel-size 4");
  const main = thread(100, launcher, "EngineCore", 5, 0.5, 0.5);
  ran(main, 0, 5e9);
  place(launcher, 0, 0);
  const workers = [0, 1, 2, 3].map((rank) => {
    const p = process(110 + rank, "python3", `python3 train.py --rank ${rank}`, { ppid: 100 });
    const home = rank >> 1, cpu = rank === 2 ? 0 : home; // rank 2 runs on node 0, its device is at node 1
    const npu = add(entity("NPUEntity", { device_id: `d${rank}`, device_type: "npu", pci_bus_id: `0000:0${rank}:00.0`, id: rank, cpu_affinity: home ? "4-7" : "0-3", utilization_pct: 50 + rank, memory_used_bytes: 8e9 }));
    link("AccessEdge", p, npu);
    link("AffinitativeToNuma", npu, sets[home]);
    place(p, cpu, home);
    link("RunOnEdge", p, container);
    const a = thread(110 + rank, p, "python3", 2, 0.2, 3.8), b = thread(210 + rank, p, "comm", 0.5, 0, 5.5);
    for (const [t, run] of [[a, 2e9], [b, 5e8]]) { link("OwnEdge", p, t); ran(t, cpu * 4 + rank, run); }
    const lock = add(entity("FutexEntity", { futex_key: `100:0x${rank}` }));
    link("WaitsForEdge", a, lock, { cause: "futex", waits: 50, waited_ns: 3.5e9, longest_ns: 1e9 });
    link("WakesEdge", main, a, { cause: "futex", wakeups: 50, waited_ns: 3.5e9, longest_ns: 1e9 });
    return p;
  });
  const ring = workers.map((p, i) => flow(p, workers[(i + 1) % 4], "tcp", 1 << 20));
  flow(launcher, workers[0], "unix", 900 << 20);
  // Five of one program, of which two exchange much.
  const crew = [...Array(5).keys()].map((i) => process(400 + i, "crew", `crew ${i}`));
  flow(crew[0], crew[1], "udp", 300 << 20);
  for (const p of crew) flow(p, launcher, "udp", 2 << 20);
  const evil = process(300, HOSTILE, HOSTILE), odd = process(301, MIXED, MIXED.repeat(2));
  thread(300, evil, HOSTILE, 0.1, 0, 5);
  flow(evil, odd, "pipe", 5000);
  void ring;
  for (let i = 0; i < more; i++) {
    const p = process(1000 + 3 * i, `job${i % 40}`, `/opt/job${i % 40} --number ${i}`, { cpu_ns: 1e6 * i });
    link("OwnEdge", p, thread(1000 + 3 * i, p, `job${i % 40}`, 0.01, 0, 5));
    link("OwnEdge", p, thread(1001 + 3 * i, p, "pool", 0.02, 0, 5));
    flow(p, i % 7 ? launcher : workers[i % 4], i % 2 ? "tcp" : "unix", 1000 + i);
  }
  return { nodes, edges, witty: { schema_version: 1, start_ns: START, window_ns: INTERVALS * SECOND, intervals: INTERVALS, complete: true, tool: "witty-profiler test", options: null, lost: [], status: [], cost: [["cpu", "ns", 0.12e9], ["sched.switch time", "ns", 0.06e9], ["rss", "bytes", 50e6]].map(([name, unit, value]) => ({ name, unit, value })) } };
}

/** SQL that gives a recording of the graph its intervals: the launcher is busy in the second half only. */
export function series() {
  const sql = ["BEGIN;", "DELETE FROM interval;", "DELETE FROM series_thread;", "DELETE FROM series_npu;"];
  for (let i = 0; i < INTERVALS; i++) {
    sql.push(`INSERT INTO interval VALUES(${i}, ${START + i * SECOND}, ${START + (i + 1) * SECOND});`);
    const on = i >= INTERVALS / 2 ? 1 : 0;
    sql.push(`INSERT INTO series_thread(interval, num, run_ns, runq_ns, blocked_ns) SELECT ${i}, num, CASE WHEN tid=100 THEN ${on * 1e9} WHEN tid<200 THEN 300000000 ELSE 0 END, 0, 500000000 FROM thread WHERE tid<300;`);
    // The device of rank 3 is idle in the first half, and what that of rank 2 did is not known there.
    sql.push(`INSERT INTO series_npu(interval, num, utilization_pct, memory_used_bytes) SELECT ${i}, num, CASE id WHEN 3 THEN ${on * 80} WHEN 2 THEN ${on ? 40 : "NULL"} ELSE 60 END, 8000000000 FROM npu;`);
    sql.push(`INSERT OR REPLACE INTO series_edge_waits_for(interval, num, waited_ns) SELECT ${i}, num, ${on * 5e8} FROM edge_waits_for;`);
  }
  // The workers wait for the launcher, one wait after the other.
  sql.push("CREATE TABLE IF NOT EXISTS wait_segment(out_ns INTEGER NOT NULL, wake_ns INTEGER NOT NULL, in_ns INTEGER NOT NULL, waiter INTEGER, waker INTEGER, waker_kind TEXT, cause TEXT NOT NULL, object TEXT NOT NULL) STRICT;");
  for (let k = 0; k < 20; k++) {
    const out = START + 3 * SECOND + k * 150e6;
    sql.push(`INSERT INTO wait_segment SELECT ${out}, ${out + 100e6}, ${out + 101e6}, w.num, m.num, 'thread', 'futex', 'futex:100:0x' || (w.tid - 110) FROM thread w JOIN thread m ON m.tid=100 WHERE w.tid BETWEEN 110 AND 113;`);
  }
  sql.push(`INSERT OR REPLACE INTO meta VALUES('segments_from_ns', ${START});`);
  return [...sql, "COMMIT;"].join("\n");
}
