// Threads: where their time went, what they waited for, and the chain of waits from one of them.

import { chainPicture } from "./chain";
import type { Thread } from "./data";
import { clear, h, name } from "./dom";
import { bytes, count, percent, time } from "./format";
import type { ViewPart } from "./main";
import { IDLE, Model } from "./model";
import { state, update } from "./state";
import { Table } from "./table";
import { seriesIn, sparkline } from "./time";

const CAUSES = ["futex", "pipe", "socket", "queue", "semaphore", "eventfd", "disk", "file", "file_lock", "page_fault", "device",
  "poll", "sleep", "child", "signal", "other"];

/** One bar: running, runnable, blocked by cause; what is idle is pale. */
export function timeBar(model: Model, t: Thread): HTMLElement {
  const parts: [string, string, number][] = [];
  const put = (cls: string, label: string, ns: number | undefined): void => {
    const share = model.share(t, ns);
    if (share && share > 0.002) parts.push([cls, label, share]);
  };
  put("run", "running", t.run_ns);
  put("runq", "runnable, no CPU", t.runq_ns);
  for (const cause of CAUSES) put("cause-" + (IDLE.has(cause) ? "idle" : cause), "blocked: " + cause, t.causes?.[cause]);
  const text = parts.map(([, label, share]) => `${label} ${percent(share)}`).join(", ") || "not known";
  return h("span", { class: "bar", role: "img", "aria-label": text, title: text },
    ...parts.map(([cls, , share]) => h("i", { class: cls, style: `width:${(share * 100).toFixed(2)}%` })));
}

/** The cause that held a thread longest, idle ones aside. */
function mainCause(t: Thread): string {
  const causes = Object.entries(t.causes ?? {}).filter(([c]) => !IDLE.has(c)).sort((a, b) => b[1] - a[1]);
  return causes.length ? causes[0][0] : Object.keys(t.causes ?? {}).length ? "idle" : "";
}

export class ThreadsView implements ViewPart {
  readonly element: HTMLElement;
  private readonly detail = h("section", { class: "card detail", "aria-live": "polite", "aria-label": "Selected thread" });
  private readonly table: Table<number>;

  constructor(private readonly model: Model) {
    const { doc } = model;
    const t = (row: number): Thread => doc.threads[row];
    const known = doc.threads.some((x) => x.profile);
    const series = !!doc.time;
    this.table = new Table<number>({
      caption: "Threads", rows: this.rows(), key: (r) => t(r).id, selected: state.selected, sortBy: known ? 2 : 3,
      select: (r) => update({ selected: t(r).id }), step: 100,
      search: (r) => `${model.threadLabel(r)} ${model.actorLabel(t(r).process)} ${t(r).profile?.class ?? ""} ${t(r).profile?.cause ?? mainCause(t(r))} ${doc.actors[t(r).process].role ?? ""}`,
      empty: doc.threads.length ? "No thread matches." : "No threads were recorded.",
      columns: [
        { title: "Thread", value: (r) => model.threadLabel(r), cell: (r) => name(model.threadLabel(r)) },
        { title: "Process", value: (r) => model.actorLabel(t(r).process), cell: (r) => name(model.actorLabel(t(r).process)) },
        ...(known ? [
          { title: "Score", numeric: true, value: (r: number) => t(r).profile?.score, cell: (r: number) => count(t(r).profile?.score) },
          { title: "Class", value: (r: number) => t(r).profile?.class ?? "" },
          { title: "Cause", value: (r: number) => t(r).profile?.cause ?? mainCause(t(r)) },
        ] : [
          { title: "Waits for", value: (r: number) => mainCause(t(r)) || undefined },
          { title: "Running", numeric: true, help: "Share of the time on a CPU", value: (r: number) => model.share(t(r), t(r).run_ns), cell: (r: number) => percent(model.share(t(r), t(r).run_ns)) },
        ]),
        { title: "Time: running, runnable, blocked", wide: true, value: (r) => t(r).run_ns, cell: (r) => timeBar(model, t(r)) },
        { title: "Others waited", numeric: true, help: "Time that other threads were blocked until this one woke them; idle waits left out", value: (r) => t(r).waited_by_others_ns, cell: (r) => time(t(r).waited_by_others_ns) },
        { title: "No CPU", numeric: true, help: "Time runnable, but not running", value: (r) => t(r).runq_ns, cell: (r) => time(t(r).runq_ns) },
        { title: "Switches", numeric: true, help: "Voluntary and involuntary, in the window", value: (r) => (t(r).voluntary_switches ?? 0) + (t(r).involuntary_switches ?? 0) || undefined,
          cell: (r) => t(r).voluntary_switches === undefined ? "\u2013" : `${count(t(r).voluntary_switches)} + ${count(t(r).involuntary_switches)}` },
        ...(series ? [{ title: "Over time", value: () => undefined, cell: (r: number) => sparkline(t(r).run_series) }] : []),
      ],
    });
    this.element = h("div", { class: "threads" }, h("h2", {}, "Threads"),
      h("p", { class: "legend-line" }, ...["run|running", "runq|runnable, no CPU", "cause-futex|lock (futex)", "cause-pipe|pipe, queue", "cause-socket|socket", "cause-disk|disk, file", "cause-device|device", "cause-other|other", "cause-idle|idle: poll, sleep"]
        .map((x) => x.split("|")).map(([cls, label]) => h("span", {}, h("i", { class: "key " + cls }), label))),
      this.detail, this.table.element);
    this.draw();
  }

  refresh(): void {
    this.table.setSelected(this.selectedThread() < 0 ? "" : this.model.doc.threads[this.selectedThread()].id);
    this.table.setRows(this.rows());
    this.draw();
  }

  /* With an interval chosen, only threads that ran in it. */
  private rows(): number[] {
    const all = this.model.doc.threads.map((_, i) => i);
    if (!state.brush || !this.model.doc.time) return all;
    return all.filter((r) => (seriesIn(this.model.doc.threads[r].run_series, state.brush) ?? 1) > 0);
  }

  private selectedThread(): number {
    const box = this.model.boxes.get(state.selected);
    if (!box) return -1;
    if (box.thread >= 0) return box.thread;
    const own = this.model.doc.threads.findIndex((t) => t.id === state.selected);
    return own >= 0 ? own : box.actor >= 0 ? this.model.threadsOf.get(box.actor)?.[0] ?? -1 : -1;
  }

  private draw(): void {
    const row = this.selectedThread();
    clear(this.detail);
    this.detail.hidden = row < 0;
    if (row < 0) return;
    const { model } = this, t = model.doc.threads[row], p = t.profile;
    this.detail.append(
      h("h3", {}, name(model.threadLabel(row)), " of ", name(model.actorLabel(t.process))), timeBar(model, t),
      p?.class ? h("p", {}, `${p.class}${p.score === undefined ? "" : `, score ${count(p.score)}`}${p.cause ? `: ${p.cause}` : ""}${p.why ? `. ${p.why}` : ""}`) : "",
      p?.advice ? h("p", {}, p.advice) : "",
      ...(model.findingsOf.get(t.id) ?? []).map((f) => h("p", {}, h("span", { class: `severity ${f.severity}` }, f.severity), " ", f.title)),
      h("dl", { class: "facts" }, ...this.facts(t).flatMap(([k, v]) => [h("dt", {}, k), h("dd", {}, v)])),
      chainPicture(model, row), this.lists(t));
  }

  private facts(t: Thread): [string, string][] {
    const m = this.model, a = m.doc.actors[t.process];
    return [["running", `${time(t.run_ns)} (${percent(m.share(t, t.run_ns))})`], ["runnable, no CPU", time(t.runq_ns)],
      ["blocked", time(t.blocked_ns)], ["migrations", count(t.migrations)], ["wake-ups", count(t.wakeups)],
      ["others waited for it", time(t.waited_by_others_ns)], ["data of its process", `in ${bytes(a.bytes_in)}, out ${bytes(a.bytes_out)}`],
      ...(a.role ? [["role of its process", a.role] as [string, string]] : [])];
  }

  private lists(t: Thread): HTMLElement {
    const { model } = this;
    const waits = (t.waits ?? []).map((w) => h("li", {}, `${time(w.ns)} `, h("span", { class: "tag" }, w.cause), " ", name(w.object ?? ""),
      ` ${count(w.waits)} times, longest ${time(w.longest_ns)}`));
    const wakers = (t.wakers ?? []).map((w) => h("li", {}, `${time(w.ns)} `, h("span", { class: "tag" }, w.cause), " ended by ",
      w.thread === undefined ? name(w.object ?? "") : h("button", { type: "button", class: "link", click: () => update({ selected: model.doc.threads[w.thread!].id }) }, name(model.threadLabel(w.thread)))));
    return h("div", { class: "columns" },
      h("div", {}, h("h4", {}, "Waited for"), waits.length ? h("ul", {}, ...waits) : h("p", {}, "nothing recorded")),
      h("div", {}, h("h4", {}, "Woken by"), wakers.length ? h("ul", {}, ...wakers) : h("p", {}, "nothing recorded")));
  }
}
