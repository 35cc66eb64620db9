// The first view: what was observed, what stands out, and the findings with links to their evidence.

import type { Actor, Entity, Finding, Link } from "./data";
import { h, name } from "./dom";
import { bytes, percent, plural, rate, time, UNKNOWN, when, withUnit } from "./format";
import type { ViewPart } from "./main";
import type { Model } from "./model";
import { linkTo, View } from "./state";
import { ownTime, statesText } from "./threads";

/** Where the evidence about an entity is seen best. */
function evidenceView(f: Finding, kind: string | undefined): View {
  if (kind === "thread") return "threads";
  return f.layer === "memory" || f.layer === "interconnect" ? "placement" : "topology";
}

const FINDINGS_SHOWN = 12, FINDINGS_OPEN = 3, ITEMS_SHOWN = 5, ALSO_SHOWN = 4;

const LEFT_OUT: Record<string, string> = {
  threads: "the others are threads of the kernel, or did least", links: "the others are the smallest", findings: "the others lost less time",
};

const HOOK_TIME = /^((?:.*: )?[a-z_]+\.[a-z_0-9]+) time$/;
const COSTS: [name: string, label: string, unit: string][] = [
  ["cpu", "CPU time of the observer", "ns"], ["placement", "of that, to look where memory is", "ns"],
  ["collector shm time", "of that, to look at shared memory", "ns"], ["hooks", "hooks in the kernel, on the CPUs of those observed", "ns"], ["cpu_start", "CPU time to start, once", "ns"], ["rss", "memory", "bytes"], ["pss with helpers", "memory with its helpers, what they share divided", "bytes"], ["maps", "maps of BPF", "bytes"],
];

/** A list of which the first items are shown, and the others when asked for. */
function folded(cls: string, items: HTMLElement[]): HTMLElement {
  const rest = items.slice(ITEMS_SHOWN);
  return h("div", {}, items.length > 0 && h("ul", { class: cls }, ...items.slice(0, rest.length > 1 ? ITEMS_SHOWN : undefined)),
    rest.length > 1 && h("details", { class: "rest" }, h("summary", {}, `${rest.length} more`), h("ul", { class: cls }, ...rest)));
}

export class OverviewView implements ViewPart {
  readonly element: HTMLElement;
  private readonly opened = new Set<Finding>();

  constructor(private readonly model: Model) {
    this.element = h("div", { class: "overview" },
      h("h2", {}, "Overview"), this.glance(), this.findings(), h("div", { class: "columns" }, this.observed(), this.quality()));
  }

  refresh(): void { /* nothing here depends on what is selected */ }

  private card(title: string, value: Node | string, detail: Node | string, view?: View, id = ""): HTMLElement {
    return h("section", { class: "card" }, h("h3", {}, title), h("p", { class: "big" }, value), h("p", {}, detail),
      view && h("p", {}, h("a", { href: linkTo(view, id) }, `See it in ${view}`)));
  }

  private glance(): HTMLElement {
    return h("div", {}, h("div", { class: "cards" }, this.worstPlaced(), this.mostWaitedFor(), this.biggestFlow(), this.busiest()),
      !this.model.windowNs && h("p", { class: "note" }, "This graph was imported: times, waits and what happened when are not in it. On the host, this measures them: ",
        h("code", {}, "witty-profiler record -d 10s -o host.wpdb")));
  }

  private worstPlaced(): HTMLElement {
    const title = "Furthest from its memory or device";
    const { doc } = this.model;
    const nodes = new Set(doc.numa.map((n) => n.id)).size;
    if (nodes < 2) return this.card(title, "Nothing", nodes ? "This machine has one NUMA node." : "NUMA nodes were not recorded.");
    const worst = doc.actors.map((a, row) => ({ a, row, away: this.away(row) }))
      .filter((x) => x.away > 0.3).sort((x, y) => y.away - x.away || (y.a.cpu_ns ?? 0) - (x.a.cpu_ns ?? 0));
    const ranks = worst.filter((x) => x.a.group !== undefined);
    const one = ranks[0] ?? worst[0];
    if (!one) return this.card(title, "Nothing", "No process has a third or more of its accesses on another node.", "placement");
    const { a } = one;
    const runs = a.place?.cpu[0], has = a.place?.memory[0];
    const device = this.model.devicesOf(one.row)[0];
    return this.card(title, name(this.model.actorLabel(one.row)),
      `runs ${percent(runs?.[1])} on node ${runs?.[0]}` +
      (has ? `, has ${percent(has[1])} of its memory on node ${has[0]}` : "") +
      (device ? `; its device ${device.label} is at node ${device.near ?? UNKNOWN}` : "") +
      this.alsoAway(ranks.map((x) => x.a).filter((x) => x !== a && x.group === a.group)), "placement", a.id);
  }

  private alsoAway(others: Actor[]): string {
    const numbers = others.map((x) => x.rank ?? 0).sort((x, y) => x - y);
    return !numbers.length ? "" : numbers.length > 8 ? `; ${numbers.length} more ranks of its group are away too`
      : `; of its group, ${numbers.length > 1 ? "ranks" : "rank"} ${numbers.join(", ")} ${numbers.length > 1 ? "are" : "is"} away too`;
  }

  private away(row: number): number {
    return this.model.doc.actors[row].place?.remote ?? 0;
  }

  private mostWaitedFor(): HTMLElement {
    const title = "Thread that others wait for most";
    const [r] = this.model.waitedFor();
    if (!r) return this.card(title, "Not known", "No waits that a thread ended were recorded.");
    const t = r.thread === undefined ? undefined : this.model.doc.threads[r.thread];
    return this.card(title, name(t ? this.model.threadIn(r.thread as number) : r.id),
      `held up at least ${plural(r.waiters, "thread")} for ${time(r.ns)} in sum over them, ${statesText(r, 2)}${t ? ownTime(t) : ""}`, "threads", r.id);
  }

  private biggestFlow(): HTMLElement {
    const title = "Biggest flow between two";
    const l = this.model.doc.links.find((x) => x.bytes && x.from !== x.to);
    if (!l) return this.card(title, "Not known", "No amount of data was measured.");
    const per = this.model.windowNs ? `, ${rate(l.bytes! / (this.model.windowNs / 1e9))}` : "";
    return this.card(title, h("span", {}, name(this.model.actorLabel(l.from)), " \u2192 ", name(this.model.actorLabel(l.to))),
      `${bytes(l.bytes)} ${l.kind === "storage" ? "of files" : `by ${l.kind.replace(/_/g, " ")}`}${per}${this.alike(l)}`, "flows", this.model.doc.actors[l.from].id);
  }

  /* Equal programs at one end are drawn as one in other views: what they have together. */
  private alike(l: Link): string {
    const { doc } = this.model, program = (row: number): string => (doc.actors[row].kind === "process" && doc.actors[row].group === undefined ? doc.actors[row].program ?? "" : "");
    const [own, other, far] = l.kind === "storage" && doc.actors[l.from].kind === "storage" ? [l.to, l.from, "from"] as const : [l.from, l.to, "to"] as const;
    if (!program(own)) return "";
    const all = doc.links.filter((x) => x.kind === l.kind && x[far] === other && program(far === "to" ? x.from : x.to) === program(own));
    const n = all.reduce((sum, x) => sum + (doc.actors[far === "to" ? x.from : x.to].stands_for ?? 1), 0);
    return n > 1 ? `; all ${n} ${program(own)} together ${bytes(all.reduce((sum, x) => sum + (x.bytes ?? 0), 0))}` : "";
  }

  private busiest(): HTMLElement {
    const title = "Busiest process";
    const { doc } = this.model;
    let best = -1;
    doc.actors.forEach((a, i) => {
      if (!a.stands_for && (a.cpu_ns ?? 0) > (best < 0 ? 0 : doc.actors[best].cpu_ns ?? 0)) best = i;
    });
    if (best < 0) return this.card(title, "Not known", "CPU time of processes was not recorded.");
    const a = doc.actors[best];
    const cores = this.model.windowNs ? ` (${((a.cpu_ns ?? 0) / this.model.windowNs).toFixed(2)} cores)` : "";
    return this.card(title, name(this.model.actorLabel(best)), `${time(a.cpu_ns)} on CPUs${cores}${a.role ? `; ${a.role}` : ""}`, "topology", a.id);
  }

  private findings(): HTMLElement {
    const list = this.model.findings;
    const box = h("section", { class: "findings", "aria-label": "Findings" }, h("h3", {}, `Findings (${Math.max(list.length, this.model.doc.findings_all).toLocaleString("en")})`));
    if (!list.length) box.append(h("p", {}, "No rule found anything. What could not be evaluated stands under \u201cWhat this cannot tell\u201d."));
    // Of what is said again and again, one is open.
    const seen = new Set<string>();
    list.forEach((f) => { if (this.opened.size < FINDINGS_OPEN && !seen.has(f.rule)) this.opened.add(f); seen.add(f.rule); });
    const show = (from: number, to: number): void => box.append(...list.slice(from, to).map((f) => this.finding(f)));
    show(0, FINDINGS_SHOWN);
    if (list.length > FINDINGS_SHOWN) {
      const more = h("button", { type: "button", click: () => { more.remove(); show(FINDINGS_SHOWN, list.length); } }, `Show ${list.length - FINDINGS_SHOWN} more findings`);
      box.append(more);
    }
    return box;
  }

  private finding(f: Finding): HTMLElement {
    const link = (id: string): HTMLElement => {
      const b = this.model.boxes.get(id);
      const kind = b?.thread !== undefined && b.thread >= 0 ? "thread" : b?.kind;
      return h("a", { class: "chip", href: linkTo(evidenceView(f, kind), id) }, name(this.model.labelOf(id)));
    };
    const subjects = [...new Map(f.subjects.filter((id) => id !== f.root).map((id) => [this.model.boxes.get(id) ?? id, id])).values()];
    const share = f.lost_ns && this.model.windowNs ? `${time(f.lost_ns)} lost` : "";
    return h("details", { class: `finding ${f.severity}`, open: this.opened.has(f) },
      h("summary", {}, h("span", { class: "severity" }, f.severity), " ", h("strong", {}, f.title), " ",
        h("span", { class: "aside", title: "Time lost is an estimate in sum over threads; what it counts stands at the end. Confidence: how sure the rule is that this is so." },
          [share, `${f.layer}`, `confidence ${f.confidence_pct} %`].filter(Boolean).join(" \u00b7 "))),
      h("p", {}, f.why),
      this.values(f),
      f.also.length > 0 && h("ul", { class: "also" }, ...f.also.slice(0, ALSO_SHOWN).map((x) => h("li", {}, h("strong", {}, x.title), x.why ? `: ${x.why}` : "")),
        f.also.length > ALSO_SHOWN && h("li", {}, `and ${f.also.length - ALSO_SHOWN} more of the same cause`)),
      f.advice.length > 0 && h("h4", {}, "What can be done"),
      folded("advice", f.advice.map((a) => h("li", {}, a))),
      f.commands.length > 0 && h("pre", { tabindex: 0 }, f.commands.join("\n")),
      f.expectation && h("p", { class: "note" }, `What that can gain: ${f.expectation}`),
      h("p", { class: "chips" }, f.root ? h("span", {}, "cause: ", link(f.root), " ") : "",
        subjects.length > 0 && f.root ? "concerns: " : "", ...subjects.slice(0, 12).map(link), subjects.length > 12 && ` and ${subjects.length - 12} more`),
      f.lost_basis && h("p", { class: "note" }, `Time lost: ${f.lost_basis}`));
  }

  /* By whose they are. */
  private values(f: Finding): HTMLElement {
    const by = new Map<string, string[]>();
    for (const v of f.values) {
      const text = `${v.name.replace(/^cosine of (.*)$/, "similarity of $1 (1: on the same nodes, 0: on others)")} ${withUnit(v.value, v.unit)}` + (v.limit === undefined ? "" : ` (limit ${withUnit(v.limit, v.unit)})`);
      by.set(v.of ?? "", [...(by.get(v.of ?? "") ?? []), text]);
    }
    return folded("values", [...by].map(([id, texts]) => h("li", {}, id && h("span", {}, name(this.model.labelOf(id)), ": "), texts.join("; "))));
  }

  private hostFacts(e: Entity): [string, string][] {
    const f = e.fields, u = this.model.doc.units.host ?? {};
    const show = (key: string): string => withUnit(f[key], u[key]);
    return [["Host", show("hostname")], ["System", [f.os, f.kernel, f.arch].filter(Boolean).join(", ")],
      ["CPUs", `${show("cpus")}${f.numa_nodes ? `, ${plural(Number(f.numa_nodes), "NUMA node")}` : ""}`], ["Memory", show("memory_bytes")]];
  }

  private observed(): HTMLElement {
    const { doc } = this.model, { about } = doc;
    const facts: [string, string][] = doc.hosts.slice(0, 8).flatMap((x) => this.hostFacts(x));
    facts.push(["Begin", when(about.start_ns)],
      ["Window", about.window_ns ? `${time(about.window_ns)}, ${plural(about.intervals, "interval")}` : "not known: an imported graph"],
      ["Processes", doc.processes_all.toLocaleString("en")], ["Threads", doc.threads_all.toLocaleString("en")],
      ["Recorded by", about.tool ?? UNKNOWN], ["Options", about.options ?? UNKNOWN]);
    const groups = new Map<string, number>();
    for (const g of doc.topology.groups) {
      const text = `${g.name}: ${g.patterns[0]?.text ?? g.shape.name}`;
      groups.set(text, (groups.get(text) ?? 0) + 1);
    }
    for (const [text, n] of [...groups].slice(0, 6)) facts.push(["Group", n > 1 ? `${text} (${n} such groups)` : text]);
    return h("section", { class: "card" }, h("h3", {}, "What was observed"),
      h("dl", {}, ...facts.flatMap(([k, v]) => [h("dt", {}, k), h("dd", {}, h("bdi", {}, v))])));
  }

  /* Times as shares of one CPU and of all of them: what an amount of seconds means depends on both. */
  private costs(): string[] {
    const { cost } = this.model.doc.about, cpus = this.model.doc.hosts.reduce((sum, x) => sum + (Number(x.fields.cpus) || 0), 0);
    const share = (ns: number): string => !this.model.windowNs ? "" : ` (${percent(ns / this.model.windowNs)} of one CPU${cpus > 1 ? `, ${percent(ns / this.model.windowNs / cpus)} of the ${cpus} together` : ""})`;
    // Of several hosts the names begin with that of the host.
    const value = (own: string): number | undefined => {
      const all = cost.filter((c) => c.name === own || c.name.endsWith(`: ${own}`));
      return all.length ? all.reduce((sum, c) => sum + c.value, 0) : undefined;
    };
    const hooks = cost.filter((c) => c.unit === "ns" && HOOK_TIME.test(c.name)).sort((a, b) => b.value - a.value);
    const most = `; most of it ${hooks.slice(0, 3).map((c) => `${c.name.replace(HOOK_TIME, "$1")} ${time(c.value)}`).join(", ")}`;
    return COSTS.flatMap(([own, label, unit]) => {
      const isHooks = own === "hooks", v = !isHooks ? value(own) : hooks.length ? hooks.reduce((sum, c) => sum + c.value, 0) : undefined;
      return v === undefined ? [] : [`${label}: ${withUnit(v, unit)}${own === "cpu" || isHooks ? share(v) : ""}${isHooks ? most : ""}`];
    });
  }

  private quality(): HTMLElement {
    const { doc } = this.model, { about } = doc;
    const line = (items: string[], none: string): HTMLElement => h("ul", {}, ...(items.length ? items : [none]).map((x) => h("li", {}, x)));
    const state = about.status.filter((x) => x.state === "blind" || x.state === "reduced").map((x) => `${x.source}: ${x.state}${x.reason ? `: ${x.reason}` : ""}`);
    return h("section", { class: "card" },
      h("h3", {}, "What was lost"),
      line(about.lost.map((l) => `${l.source}: ${l.cause} ${l.count.toLocaleString("en")}`), about.tool ? "nothing" : "not known"),
      h("h3", {}, "What the observation cost"),
      line(this.costs(), "not known"),
      h("h3", {}, "What this cannot tell"),
      line([...doc.topology.not_observed, ...(doc.blind ?? []).filter((b) => !doc.topology.not_observed.includes(b)), ...state], "nothing was missing"),
      ...(doc.left_out.length ? [h("h3", {}, "What this page leaves out"),
        line(doc.left_out.map((l) => `${l.what}: ${l.kept.toLocaleString("en")} of ${l.all.toLocaleString("en")} are here one by one; ${LEFT_OUT[l.what] ?? "the totals of the others are in rows that stand for many"}`), "")] : []));
  }
}
