// The document as nested boxes: host, NUMA node, container, process, thread; and what belongs to each.

import type { Actor, Chain, Doc, Entity, Finding, Link, Thread } from "./data";

export type BoxKind =
  "root" | "host" | "numa" | "container" | "process" | "thread" | "device" | "outside" | "storage" | "ends";

export interface Box {
  id: string; kind: BoxKind; label: string; parent: Box | null; children: Box[];
  actor: number;  // row, -1
  thread: number; // row, -1
  weight: number; // order among its siblings: what matters most first
  extra?: Actor;  // a device that nobody uses
  hot: number;    // severity of the worst finding inside: 0 none to 4 critical
}

/** A thread that others wait for; `waiters` at least so many threads, `states` what it did and for how much of `ns`. */
export interface Waited { id: string; thread?: number; ns: number; waiters: number; roles: string[]; states: [string, number][] }

export class Model {
  readonly root: Box = newBox("root", "root", "", null);
  readonly boxes = new Map<string, Box>();
  readonly boxOfActor: Box[] = [];
  readonly boxOfThread: Box[] = [];
  readonly kinds: string[];
  readonly linksOf = new Map<number, Link[]>();
  readonly threadsOf = new Map<number, number[]>();
  readonly findingsOf = new Map<string, Finding[]>();
  private readonly usersDevices = new Map<number, Actor[]>();
  readonly windowNs: number;
  readonly findings: Finding[];

  constructor(readonly doc: Doc) {
    this.windowNs = doc.about.window_ns ?? 0;
    this.findings = allFindings(doc);
    this.kinds = [...new Set(doc.links.map((l) => l.kind))].sort();
    for (const link of doc.links) {
      push(this.linksOf, link.from, link);
      if (link.to !== link.from) push(this.linksOf, link.to, link);
    }
    doc.threads.forEach((t, i) => push(this.threadsOf, t.process, i));
    this.buildHosts();
    this.buildActors();
    this.buildUnused();
    for (const f of this.findings)
      for (const id of new Set([...(f.root ? [f.root] : []), ...f.subjects])) {
        push(this.findingsOf, id, f);
        // Who started processes that are misplaced is in its place itself.
        if (isOfPlace(f) && f.subjects.length && !f.subjects.includes(id)) continue;
        for (let b = this.boxes.get(id) ?? null; b; b = b.parent) b.hot = Math.max(b.hot, severityRank(f.severity));
      }
    this.sort(this.root);
  }

  actorOf(box: Box): Actor | undefined {
    return this.doc.actors[box.actor] ?? box.extra;
  }

  threadLabel(row: number): string {
    const t = this.doc.threads[row];
    return `${t.name ?? "thread"}[${t.tid}]`;
  }

  actorLabel(row: number): string {
    const a = this.doc.actors[row];
    if (a.stands_for) return `${a.stands_for.toLocaleString("en")} more ${a.program || plural2(a.kind)}`;
    const label = a.label ?? a.id;
    if (a.role === "worker rank" && a.rank !== undefined) return `${label} ${this.rankLabel(a)}`;
    const parent = a.role === "data loader" && a.parent !== undefined ? this.doc.actors[a.parent] : undefined;
    return parent?.role === "worker rank" && parent.rank !== undefined ? `${label} loader of ${this.rankLabel(parent)}` : label;
  }

  /** "rank 1"; with the group, where there are several whose ranks have the same numbers. */
  rankLabel(a: Actor): string {
    return `rank ${a.rank}${this.doc.topology.groups.length > 1 ? ` of group ${a.group}` : ""}`;
  }

  /** Whom others wait for, most first: each once, with what it did meanwhile. */
  waitedFor(): Waited[] {
    const by = new Map<string, Waited>();
    for (const r of this.doc.roots.filter((x) => !x.idle)) {
      const old = by.get(r.id);
      if (!old) by.set(r.id, { id: r.id, thread: r.thread, ns: r.waited_ns, waiters: r.waiters, roles: r.roles, states: [[r.state, r.waited_ns]] });
      else {
        old.ns += r.waited_ns;
        old.waiters = Math.max(old.waiters, r.waiters);
        old.states.push([r.state, r.waited_ns]);
        old.roles = [...new Set([...old.roles, ...r.roles])];
      }
    }
    return [...by.values()].sort((a, b) => b.ns - a.ns);
  }

  /** Threads that end long waits of others and wait themselves meanwhile, so that no chain of waits ends at them. */
  passedOn(): Thread[] {
    const roots = this.waitedFor(), ends = new Set(roots.map((r) => r.id)), least = roots[Math.min(roots.length, ROOTS_SHOWN) - 1]?.ns ?? 0;
    return this.doc.threads.filter((t) => !ends.has(t.id) && (t.waited_for_ns ?? 0) > least).sort((a, b) => (b.waited_for_ns ?? 0) - (a.waited_for_ns ?? 0));
  }

  /** A thread with what it is part of. */
  threadIn(row: number): string {
    const t = this.doc.threads[row];
    const a = this.doc.actors[t.process];
    return t.tid === a.pid && this.threadLabel(row) === a.label ? this.actorLabel(t.process) : `${this.threadLabel(row)} of ${this.actorLabel(t.process)}`;
  }

  /** What an id stands for, for people. */
  labelOf(id: string): string {
    const box = this.boxes.get(id);
    if (box && box.thread >= 0) return this.threadIn(box.thread);
    return box && box.actor >= 0 ? this.actorLabel(box.actor) : box?.label ?? id;
  }

  /** Chain of the waits of a thread, or of the threads that do the same in its process. */
  chainOf(thread: number): Chain | undefined {
    return this.doc.chains.find((c) => c.threads.includes(thread));
  }

  /** Devices of a process. */
  devicesOf(row: number): Actor[] {
    if (!this.usersDevices.size)
      for (const d of this.doc.actors) for (const user of d.users ?? []) push(this.usersDevices, user, d);
    return this.usersDevices.get(row) ?? [];
  }

  /** Whether a process uses a device of another node than it runs on most; undefined: not known. */
  isAway(user: number, device: Actor): boolean | undefined {
    const node = this.doc.actors[user]?.place?.cpu[0]?.[0];
    const at = inRanges(device.near, node);
    return at === undefined ? undefined : !at;
  }

  /** Share of the window, or of the observed time of a thread. */
  share(t: Thread, ns: number | undefined): number | undefined {
    const whole = t.observed_ns || this.windowNs;
    return ns === undefined || !whole ? undefined : ns / whole;
  }

  /** The thread's box exists already: threads of shown processes always have one. */
  path(box: Box): Box[] {
    const ret: Box[] = [];
    for (let b: Box | null = box; b && b.kind !== "root"; b = b.parent) ret.unshift(b);
    return ret;
  }

  private add(id: string, kind: BoxKind, label: string, parent: Box): Box {
    const old = this.boxes.get(id);
    if (old) return old;
    const box = newBox(id, kind, label, parent);
    parent.children.push(box);
    this.boxes.set(id, box);
    return box;
  }

  private host(ns: string): Box {
    return this.add("host@" + ns, "host", ns === "local" ? "this host" : ns, this.root);
  }

  private numa(ns: string, node: number | undefined): Box {
    const host = this.host(ns);
    if (node === undefined)
      return this.add(`no-node@${ns}`, "numa", "node not known", host);
    return this.add(ns === "local" ? `numa:${node}` : `numa:${node}@${ns}`, "numa", `NUMA node ${node}`, host);
  }

  private buildHosts(): void {
    for (const entity of this.doc.hosts) this.boxes.set(entity.id, this.nameHost(entity));
    for (const entity of this.doc.numa) this.numa(entity.ns, Number(entity.fields.numa_id));
  }

  private nameHost(entity: Entity): Box {
    const box = this.host(entity.ns);
    box.label = String(entity.fields.hostname ?? entity.ns);
    return box;
  }

  private parentOf(a: Actor): Box {
    if (a.kind === "outside") return this.add("outside", "ends", "outside", this.root);
    if (a.kind === "storage") return this.add("storage@" + a.ns, "ends", "files", this.host(a.ns));
    const only = this.doc.numa.filter((n) => n.ns === a.ns);
    const node = a.numa ?? (only.length === 1 ? Number(only[0].fields.numa_id) : undefined);
    const numa = this.numa(a.ns, node);
    const c = a.container === undefined ? undefined : this.doc.containers[a.container];
    return c ? this.add(`${c.id}/${numa.id}`, "container", c.name ?? c.id, numa) : numa;
  }

  private buildActors(): void {
    this.doc.actors.forEach((a, row) => {
      const kind: BoxKind = a.kind === "outside" ? "outside" : a.kind;
      const box = this.add(a.id, kind, a.stands_for ? this.actorLabel(row) : a.label ?? a.id, this.parentOf(a));
      box.actor = row;
      // Ranks of a group stay together, in their order.
      box.weight = a.kind === "device" ? 1e15 - row : a.group !== undefined ? 1e14 - a.group * 1e6 - (a.rank ?? 0)
        : a.stands_for ? -1 : a.bytes_in + a.bytes_out + (a.cpu_ns ?? 0) / 1e3;
      this.boxOfActor[row] = box;
      const threads = this.threadsOf.get(row);
      if (threads && (threads.length > 1 || this.doc.threads[threads[0]].tid !== a.pid))
        threads.forEach((t) => this.addThread(t, box));
      else
        threads?.forEach((t) => { this.boxOfThread[t] = box; this.boxes.set(this.doc.threads[t].id, box); });
    });
  }

  /* They have no row, as nothing flows to them. */
  private buildUnused(): void {
    for (const a of this.doc.unused_devices) {
      const box = this.add(a.id, "device", a.label ?? a.id, this.parentOf(a));
      box.extra = a;
      box.weight = 1e14;
    }
  }

  private addThread(row: number, parent: Box): void {
    const t = this.doc.threads[row];
    const box = this.add(t.id, "thread", this.threadLabel(row), parent);
    box.thread = row;
    box.weight = (t.run_ns ?? 0) + (t.runq_ns ?? 0) + (t.waited_for_ns ?? 0);
    this.boxOfThread[row] = box;
  }

  private sort(box: Box): void {
    for (const child of box.children) {
      this.sort(child);
      if (child.kind === "container") child.weight = this.importance(child);
    }
    box.children.sort((a, b) => ORDER[a.kind] - ORDER[b.kind] || (a.kind === "numa" || a.kind === "host"
      ? Number(isUnknownNode(a)) - Number(isUnknownNode(b)) || a.id.localeCompare(b.id, "en", { numeric: true }) : b.weight - a.weight));
    this.mix(box);
  }

  private importance(box: Box): number {
    const a = this.actorOf(box);
    const own = a && !a.stands_for ? a.bytes_in + a.bytes_out + (a.cpu_ns ?? 0) / 1e3 : 0;
    return box.children.reduce((sum, c) => sum + (c.thread < 0 ? this.importance(c) : 0), own + (box.hot >= 3 && a ? 1e13 * box.hot : 0));
  }

  /* Where ranks are more than are shown, what matters most of the others comes before the later ranks. */
  private mix(box: Box): void {
    const all = box.children.filter((c) => c.kind === "process");
    if (all.length <= FEW || !all.slice(FEW / 2).some((c) => c.weight > 1e13)) return;
    const first = all.slice(0, FEW / 2), rest = all.slice(FEW / 2).map((c) => ({ c, n: this.importance(c) })).sort((x, y) => y.n - x.n);
    const chosen = new Set([...first, ...rest.slice(0, FEW / 2).map((x) => x.c)]);
    box.children = [...box.children.filter((c) => c.kind !== "process"), ...chosen, ...all.filter((c) => !chosen.has(c))];
  }
}

/** Of those whom others wait for. */
export const ROOTS_SHOWN = 6;

function isOfPlace(f: Finding): boolean {
  return f.layer === "interconnect" || f.layer === "memory";
}

/** Children of one kind that are shown before more are asked for. */
export const FEW = 18;

function isUnknownNode(box: Box): boolean {
  return box.id.startsWith("no-node@");
}

const ORDER: Record<BoxKind, number> = {
  root: 0, ends: 1, host: 2, outside: 3, storage: 3, numa: 4, device: 5, container: 6, process: 7, thread: 8,
};

/** Waits that mean that nothing is to be done, rather than that something is late. */
export const IDLE = new Set(["sleep", "poll", "child", "signal"]);

export function severityRank(severity: string): number {
  return 1 + ["info", "notice", "warning", "critical"].indexOf(severity);
}

function newBox(id: string, kind: BoxKind, label: string, parent: Box | null): Box {
  return { id, kind, label, parent, children: [], actor: -1, thread: -1, weight: 0, hot: 0 };
}

function push<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
}

function plural2(kind: string): string {
  return { process: "processes", outside: "addresses", storage: "file systems", device: "devices" }[kind] ?? kind;
}

/* Problems of the topology are findings too, unless a rule has made the same of them. */
function allFindings(doc: Doc): Finding[] {
  if (doc.findings.length) return doc.findings;
  return doc.topology.problems.map((p) => ({
    rule: p.id, layer: "placement", severity: p.severity, confidence_pct: p.confidence_pct, subjects: p.actors,
    title: p.id.replace(/-/g, " "), why: p.text, values: [], advice: p.advice ? [p.advice] : [], commands: [], also: [],
  }));
}

/** Whether a number is in "0-3,8". */
export function inRanges(text: string | undefined, n: number | undefined): boolean | undefined {
  if (!text || n === undefined) return undefined;
  return text.split(",").some((part) => {
    const [a, b] = part.split("-").map(Number);
    return n >= a && n <= (b ?? a);
  });
}
