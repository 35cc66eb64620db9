// Where processes and threads run, where their memory is, and at which node their devices are.

import type { Actor } from "./data";
import { clear, h, name } from "./dom";
import { bytes, percent, time, withUnit } from "./format";
import { heatmap } from "./heatmap";
import type { ViewPart } from "./main";
import { inRanges, type Model } from "./model";
import { state, update } from "./state";
import { Table } from "./table";
import { gaugeIn } from "./time";

const PROCESSES = 40, THREADS = 60;

export class PlacementView implements ViewPart {
  readonly element: HTMLElement;
  private readonly body = h("div");

  constructor(private readonly model: Model) {
    this.element = h("div", { class: "placement" }, h("h2", {}, "Placement"),
      h("p", { class: "note" }, "Where processes ran and have their memory is known for the whole window only; the use of devices is that of a chosen part of it too."), this.body);
    this.draw();
  }

  refresh(changed: Set<string>): void {
    if (changed.has("selected") || changed.has("brush")) this.draw();
  }

  private draw(): void {
    clear(this.body);
    this.body.append(this.devices(), this.processes(), this.threads(), this.memory(), this.distances());
  }

  private nodes(): number[] {
    const nodes = new Set(this.model.doc.numa.map((n) => Number(n.fields.numa_id)));
    for (const a of this.model.doc.actors) for (const [n] of a.place?.cpu ?? []) nodes.add(n);
    return [...nodes].sort((a, b) => a - b);
  }

  private devices(): HTMLElement {
    const { model } = this, { actors } = model.doc;
    const rows = [...actors.filter((d) => d.kind === "device" && !d.stands_for), ...model.doc.unused_devices]
      .flatMap((d) => (d.users?.length ? d.users : [-1]).map((user) => ({ d, user })));
    if (!rows.length) return h("section", { class: "card" }, h("h3", {}, "Devices"), h("p", {}, "No accelerators were seen."));
    const home = (r: { d: Actor; user: number }): string => {
      if (r.user < 0) return "no user";
      const away = model.isAway(r.user, r.d);
      return away === undefined ? "not known" : away ? "away" : "at home";
    };
    const shares = (a: Actor | undefined, what: "cpu" | "memory"): string => a?.place?.[what].slice(0, 3).map(([n, s]) => `${n}: ${percent(s)}`).join("  ") || "\u2013";
    const use = (d: Actor): number | undefined => {
      const mean = gaugeIn(model, model.doc.time?.use, d.id, state.brush);
      return mean === undefined ? (d.fields?.utilization_pct as number | undefined) : mean / 100;
    };
    const held = (d: Actor): number | undefined => gaugeIn(model, model.doc.time?.held, d.id, state.brush) ?? (d.fields?.memory_used_bytes as number | undefined);
    const away = rows.filter((r) => home(r) === "away").length;
    const table = new Table<(typeof rows)[0]>({
      caption: "Devices, their node, and where their users run", rows, key: (r) => (r.user >= 0 ? actors[r.user].id : r.d.id), selected: state.selected, sortBy: 0, ascending: true,
      select: (r) => update({ selected: r.user >= 0 ? actors[r.user].id : r.d.id }),
      columns: [
        { title: "Device", value: (r) => r.d.label ?? r.d.id, cell: (r) => name(r.d.label ?? r.d.id) },
        { title: "At node", value: (r) => r.d.near ?? "" },
        { title: "User", value: (r) => (r.user < 0 ? "" : model.actorLabel(r.user)), cell: (r) => (r.user < 0 ? "\u2013" : name(model.actorLabel(r.user))) },
        { title: "User runs", value: (r) => home(r), cell: (r) => h("span", { class: "home " + home(r).replace(" ", "-") }, home(r)) },
        { title: "CPU by node", value: (r) => shares(actors[r.user], "cpu") },
        { title: "Memory by node", value: (r) => shares(actors[r.user], "memory") },
        { title: "CPUs allowed", help: "To its first thread, at the last look", value: (r) => actors[r.user]?.place?.allowed ?? "" },
        { title: "Use", numeric: true, help: "On average of the window, or of the chosen part of it", value: (r) => use(r.d), cell: (r) => withUnit(use(r.d), "%") },
        { title: "Memory used", numeric: true, value: (r) => held(r.d), cell: (r) => bytes(held(r.d)) },
      ],
    });
    return h("section", { class: "card" }, h("h3", {}, "Devices and NUMA nodes"),
      away > 0 && h("p", { class: "verdict warning" }, `${away} of ${rows.filter((r) => r.user >= 0).length} users run most of the time on another node than their device.`), table.element,
      h("p", { class: "note" }, "CPUs allowed are those of the first thread at the last look: other threads can have their own, and a mask may have changed before, so that time is spent on other nodes too."));
  }

  private processes(): HTMLElement {
    const { model } = this, nodes = this.nodes();
    const rows = model.doc.actors.map((a, row) => ({ a, row })).filter((x) => x.a.place && (x.a.place.cpu.length || x.a.place.memory.length));
    if (!rows.length || nodes.length < 2)
      return h("section", { class: "card" }, h("h3", {}, "Processes by node"), h("p", {}, nodes.length === 1 ? "This machine has one NUMA node: all memory is local." : "Not recorded."));
    rows.sort((x, y) => Number(y.a.group !== undefined) - Number(x.a.group !== undefined) || (y.a.place?.remote ?? 0) - (x.a.place?.remote ?? 0) || (y.a.cpu_ns ?? 0) - (x.a.cpu_ns ?? 0));
    const shown = rows.slice(0, PROCESSES), of = (row: number): Actor => model.doc.actors[row];
    const share = (a: Actor, what: "cpu" | "memory", node: number): number | undefined => {
      const v = a.place?.[what] ?? [];
      return v.length ? v.find(([n]) => n === node)?.[1] ?? 0 : undefined;
    };
    const map = (what: "cpu" | "memory", caption: string): HTMLElement => heatmap({
      caption, rows: shown.map((x) => ({ label: model.actorLabel(x.row) })), columns: nodes.map((n) => ({ label: String(n) })), rowTitle: "process", columnTitle: "node", max: 1, cell: 42, format: percent,
      value: (r, c) => share(shown[r].a, what, nodes[c]), press: (r) => update({ selected: of(shown[r].row).id }),
      mark: (r, c) => model.devicesOf(shown[r].row).some((d) => inRanges(d.near, nodes[c])),
      scaleNote: "frame: node of its device",
    });
    const verdict = new Table<(typeof rows)[0]>({ caption: "Agreement of CPU and memory", rows, sortBy: 3, step: 20, key: (x) => x.a.id, selected: state.selected, select: (x) => update({ selected: x.a.id }), search: (x) => model.actorLabel(x.row),
      columns: [{ title: "Process", value: (x) => model.actorLabel(x.row), cell: (x) => name(model.actorLabel(x.row)) }, { title: "Verdict", value: (x) => x.a.place?.mode ?? "not known" },
        { title: "Similarity", numeric: true, help: "Of CPU time and memory by node (cosine): 1: memory is where it runs, 0: it is elsewhere", value: (x) => x.a.place?.cosine, cell: (x) => withUnit(x.a.place?.cosine, "ratio") },
        { title: "Accesses to other nodes", numeric: true, help: "Expected, if all its pages are used alike", value: (x) => x.a.place?.remote, cell: (x) => percent(x.a.place?.remote) },
        { title: "CPU time", numeric: true, value: (x) => x.a.cpu_ns, cell: (x) => time(x.a.cpu_ns) }] });
    return h("section", { class: "card" }, h("h3", {}, "Processes by node"), h("div", { class: "columns" }, map("cpu", "Share of CPU time by node"), map("memory", "Share of memory by node")), verdict.element);
  }

  private threads(): HTMLElement {
    const { model } = this, cpus = model.doc.cpus.map((c) => c.cpu);
    const selected = model.boxes.get(state.selected);
    const process = selected ? (selected.thread >= 0 ? model.doc.threads[selected.thread].process : selected.actor) : -1;
    const all = model.doc.threads.map((t, i) => ({ t, i })).filter((x) => x.t.cpus?.length);
    const own = process >= 0 ? all.filter((x) => x.t.process === process) : [];
    const shown = (own.length ? own : all).sort((a, b) => (b.t.run_ns ?? 0) - (a.t.run_ns ?? 0)).slice(0, THREADS);
    if (!shown.length) return h("section", { class: "card" }, h("h3", {}, "Threads by CPU"), h("p", {}, "Which CPU threads ran on was not recorded."));
    const used = [...new Set([...cpus, ...shown.flatMap((x) => (x.t.cpus ?? []).map(([c]) => c))])].sort((a, b) => a - b);
    const node = new Map(model.doc.cpus.map((c) => [c.cpu, c.node]));
    const several = new Set(model.doc.cpus.map((c) => c.node)).size > 1;
    return h("section", { class: "card" }, h("h3", {}, own.length ? "Threads of the selected process by CPU" : "Busiest threads by CPU"),
      heatmap({ caption: "Time on each CPU", rows: shown.map((x) => ({ label: model.threadLabel(x.i) })), columns: used.map((c) => ({ label: several ? `${c} (node ${node.get(c) ?? "?"})` : String(c) })), rowTitle: "thread", columnTitle: "CPU",
        value: (r, c) => shown[r].t.cpus?.find(([cpu]) => cpu === used[c])?.[1] ?? 0, format: time, press: (r) => update({ selected: shown[r].t.id }) }));
  }

  private memory(): HTMLElement {
    const { numa } = this.model.doc;
    const known = numa.filter((n) => typeof n.fields.memory_bytes === "number");
    const own = (node: number): [string, number][] => this.model.doc.actors.flatMap((a, row): [string, number][] => {
      const share = a.place?.memory.find(([n]) => n === node);
      return share && share[1] > 0 ? [[this.model.actorLabel(row), share[2]]] : [];
    }).sort((a, b) => b[1] - a[1]).slice(0, 3);
    if (!known.length) return h("section", { class: "card" }, h("h3", {}, "Memory of nodes"), h("p", {}, "Not recorded."));
    return h("section", { class: "card" }, h("h3", {}, "Memory of nodes"), ...known.map((n) => {
      const total = Number(n.fields.memory_bytes), free = Number(n.fields.free_bytes ?? 0), used = Math.max(0, total - free), id = Number(n.fields.numa_id);
      const most = own(id);
      return h("div", { class: "meter-row" }, h("span", {}, `node ${id}`),
        h("span", { class: "bar meter", role: "img", "aria-label": `${bytes(used)} of ${bytes(total)} used` }, h("i", { class: "run", style: `width:${total ? (used / total * 100).toFixed(1) : 0}%` })),
        h("span", {}, `${bytes(used)} of ${bytes(total)} used`, most.length ? "; most: " : "", ...most.flatMap(([label], i) => [i ? ", " : "", name(label)])));
    }));
  }

  private distances(): HTMLElement {
    const nodes = this.model.doc.numa.filter((n) => Object.keys((n.fields.distance_to_all_numa ?? {}) as object).length > 1);
    if (nodes.length < 2) return h("div");
    const to = (r: number, c: number): number | undefined => {
      const v = (nodes[r].fields.distance_to_all_numa as Record<string, unknown>)[String(nodes[c].fields.numa_id)];
      return v === undefined ? undefined : Number(v);
    };
    const items = nodes.map((n) => ({ label: String(n.fields.numa_id) }));
    return h("section", { class: "card" }, h("h3", {}, "Distances"), heatmap({ caption: "Distance between nodes, as the firmware tells it (10: the node itself)", rows: items, columns: items, rowTitle: "node", columnTitle: "node", cell: 42, value: to, format: (v) => String(v) }));
  }
}
