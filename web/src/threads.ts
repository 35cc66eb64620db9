// Threads: where their time went, what they waited for, and the chain of waits from one of them.

import { chainPicture } from "./chain";
import type { Profile, Thread } from "./data";
import { clear, h, name } from "./dom";
import { bytes, count, percent, time } from "./format";
import type { ViewPart } from "./main";
import { IDLE, Model, ROOTS_SHOWN, type Waited } from "./model";
import { state, update } from "./state";
import { Table } from "./table";
import { sharesOf, sparkline, threadIn } from "./time";

const CAUSES = ["futex", "pipe", "socket", "queue", "semaphore", "eventfd", "disk", "file", "file_lock", "page_fault", "device",
  "poll", "sleep", "child", "signal", "other"];

/** One bar: running, runnable, blocked by cause; what is idle is pale. In a chosen interval causes are not known. */
export function timeBar(model: Model, row: number): HTMLElement {
  const t = model.doc.threads[row], parts: [string, string, number][] = [];
  const put = (cls: string, label: string, share: number | undefined): void => {
    if (share && share > 0.002) parts.push([cls, label, share]);
  };
  const now = threadIn(model, row, state.brush);
  if (now) {
    put("run", "running", now.run);
    put("runq", "runnable, no CPU", now.runq);
    put("cause-other", "blocked", now.blocked);
  } else {
    put("run", "running", model.share(t, t.run_ns));
    put("runq", "runnable, no CPU", model.share(t, t.runq_ns));
    for (const cause of CAUSES) put("cause-" + (IDLE.has(cause) ? "idle" : cause), "blocked: " + cause, model.share(t, t.causes?.[cause]));
  }
  if (!parts.length) return h("span", {}, "\u2013");
  const text = parts.map(([, label, share]) => `${label} ${percent(share)}`).join(", ");
  return h("span", { class: "bar", role: "img", "aria-label": text, title: text },
    ...parts.map(([cls, , share]) => h("i", { class: cls, style: `width:${Math.min(100, share * 100).toFixed(2)}%` })));
}

/** The cause that held a thread longest, idle ones aside. */
function mainCause(t: Thread): string {
  const causes = Object.entries(t.causes ?? {}).filter(([c]) => !IDLE.has(c)).sort((a, b) => b[1] - a[1]);
  return causes.length ? causes[0][0] : Object.keys(t.causes ?? {}).length ? "idle" : "";
}

/** What a thread did while others waited for it, and for how much of the sum; the most of it first. */
export function statesText(w: Waited, most = w.states.length): string {
  const all = [...w.states].sort((a, b) => b[1] - a[1]).slice(0, most);
  return w.states.length > 1 ? all.map(([state, ns], i) => `${time(ns)} ${i ? "" : "while it was "}${state}`).join("; ") : `while it was ${w.states[0]?.[0] ?? "\u2013"}`;
}

/** The same without the number of those who wait: what the thread itself did in the window. */
export function ownTime(t: Thread): string {
  return t.run_ns === undefined ? "" : `. Itself, it ran for ${time(t.run_ns)}` + (t.runq_ns === undefined ? "" : ` and had no CPU for ${time(t.runq_ns)}`);
}

export class ThreadsView implements ViewPart {
  readonly element: HTMLElement;
  private readonly detail = h("section", { class: "card detail", "aria-live": "polite", "aria-label": "Selected thread" });
  private readonly table: Table<number>;

  constructor(private readonly model: Model) {
    const { doc } = model;
    const t = (row: number): Thread => doc.threads[row];
    const known = doc.threads.some((x) => x.profile);
    const held = new Map(model.waitedFor().map((x) => [x.id, x.ns]));
    this.table = new Table<number>({
      caption: "Threads", rows: this.rows(), key: (r) => t(r).id, selected: state.selected, step: 50,
      sortBy: this.firstOrder(known),
      select: (r) => { update({ selected: t(r).id }); if (!this.detail.hidden) this.detail.scrollIntoView({ block: "nearest" }); },
      search: (r) => `${model.threadLabel(r)} ${model.actorLabel(t(r).process)} ${t(r).profile?.class ?? ""} ${t(r).profile?.cause ?? ""} ${mainCause(t(r))} ${doc.actors[t(r).process].role ?? ""}`,
      empty: doc.threads.length ? "No thread matches." : "No threads were recorded.",
      columns: [
        { title: "Thread", value: (r) => model.threadLabel(r), cell: (r) => name(model.threadLabel(r)) },
        { title: "Process", value: (r) => model.actorLabel(t(r).process), cell: (r) => name(model.actorLabel(t(r).process)) },
        { title: "Score", numeric: true, help: "Points of 6: CPU, run queue, switches, placement, cache, waited for", value: (r) => this.score(r), cell: (r) => this.scoreText(r) },
        { title: "Running", numeric: true, optional: true, help: "Time on a CPU, and its share of the time that the thread was observed: less than the window, if it began or ended in it", value: (r) => t(r).run_ns, cell: (r) => (t(r).run_ns === undefined ? "\u2013" : `${time(t(r).run_ns)} (${percent(model.share(t(r), t(r).run_ns))})`) },
        { title: "Held up others", numeric: true, optional: true, help: "Time that others were held up by it, in sum over them, at the end of their chains of waits: as in the list above", value: (r) => held.get(t(r).id), cell: (r) => time(held.get(t(r).id)) },
        { title: "Ended waits of", numeric: true, optional: true, help: "Time that others were blocked until this thread woke them, in sum over them, whoever held it up itself; idle waits left out. The list above counts the same waits at the end of their chains.", value: (r) => t(r).waited_for_ns, cell: (r) => time(t(r).waited_for_ns) },
        { title: "Class", help: "What it does most: computing, communication, a driver's work", value: (r) => t(r).profile?.class ?? "" },
        { title: "Held up by", value: (r) => t(r).profile?.cause ?? mainCause(t(r)) },
        { title: "Time: running, runnable, blocked", wide: true, optional: true, value: (r) => model.share(t(r), t(r).run_ns), cell: (r) => timeBar(model, r) },
        { title: "No CPU", numeric: true, optional: true, help: "Time runnable, but not running", value: (r) => t(r).runq_ns, cell: (r) => time(t(r).runq_ns) },
        { title: "Switches (own + forced)", numeric: true, optional: true, help: "In the window: to wait (voluntary), and because another took the CPU (involuntary)", value: (r) => (t(r).voluntary_switches ?? 0) + (t(r).involuntary_switches ?? 0) || undefined,
          cell: (r) => t(r).voluntary_switches === undefined ? "\u2013" : `${count(t(r).voluntary_switches)} + ${count(t(r).involuntary_switches)}` },
        ...(doc.time && doc.time.starts_ns.length > 1 ? [{ title: "Over time", help: "Time on a CPU in each interval", value: () => undefined, cell: (r: number) => sparkline(sharesOf(model, doc.time?.threads[r]?.[0])) }] : []),
      ],
    });
    this.element = h("div", { class: "threads" }, h("h2", {}, "Threads"),
      h("p", { class: "legend-line" }, ...["run|running", "runq|runnable, no CPU", "cause-futex|lock (futex)", "cause-pipe|pipe, queue", "cause-socket|socket", "cause-disk|disk, file", "cause-device|device", "cause-other|other", "cause-idle|idle: poll, sleep"]
        .map((x) => x.split("|")).map(([cls, label]) => h("span", {}, h("i", { class: "key " + cls }), label))),
      this.roots(), this.detail,
      !doc.threads.some((x) => x.run_ns !== undefined) && h("p", { class: "note" }, "Times of threads are not in this file: what holds them up is judged by where they run and where their memory is, and columns of times are left out."),
      this.table.element);
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
    return all.filter((r) => (threadIn(this.model, r, state.brush)?.run ?? 1) > 0);
  }

  /* The points first, then what it weighs, so that equal scores have an order that means something. */
  private score(r: number): number | undefined {
    const { profile } = this.model.doc.threads[r];
    return profile && profile.possible ? profile.points * 1e7 - r : undefined;
  }

  /* Hot threads first, as the analysis ranks them; where all have the same points, by what tells them apart. */
  private firstOrder(known: boolean): string {
    const { threads } = this.model.doc, points = new Set(threads.map((x) => x.profile?.points));
    if (known && points.size > 1) return "Score";
    if (this.model.waitedFor().some((x) => x.thread !== undefined)) return "Held up others";
    return threads.some((x) => x.waited_for_ns) ? "Ended waits of" : threads.some((x) => x.run_ns) ? "Running" : "Score";
  }

  private scoreText(r: number): Node | string {
    const { profile } = this.model.doc.threads[r];
    if (!profile || !profile.possible) return "\u2013";
    return h("span", { class: `level ${profile.level}`, title: (profile.reasons ?? []).map((x) => x.text).join("; ") }, `${profile.points} of ${profile.possible}`);
  }

  /* Whom others wait for: the first question to a slow system. */
  private roots(): HTMLElement {
    const { model } = this, all = model.waitedFor().slice(0, ROOTS_SHOWN), passed = model.passedOn().slice(0, 4);
    if (!all.length) return h("p", { class: "note" }, "Which threads others wait for is not known: no wait that a thread ended was recorded.");
    const most = all[0].ns;
    return h("section", { class: "card" }, h("h3", {}, "Whom others wait for most"),
      h("p", { class: "note" }, "Time that threads were held up by it, in sum over them, at the end of their chains of waits; idle waits left out."), h("ul", { class: "roots" }, ...all.map((r) => h("li", {},
      h("button", { type: "button", class: "link", click: () => update({ selected: r.id }) }, name(r.thread === undefined ? r.id : model.threadIn(r.thread))),
      h("span", { class: "bar", "aria-hidden": "true" }, h("i", { class: "amount-of", style: `width:${(r.ns / most * 100).toFixed(1)}%` })),
      h("span", {}, h("strong", {}, time(r.ns)), ` in sum over at least ${r.waiters} ${r.waiters === 1 ? "thread" : "threads"} (among ${r.roles.length > 1 ? "these: " : ""}`,
        ...r.roles.slice(0, 6).flatMap((x, i) => [i ? ", " : "", name(x)]), "): ", statesText(r), r.thread === undefined ? "" : ownTime(model.doc.threads[r.thread]))))),
      passed.length > 0 && h("p", { class: "note passed-on" }, "These ended long waits of others too, but waited themselves meanwhile, so that the chains go on from them: ",
        ...passed.flatMap((t, i) => [i ? ", " : "", h("button", { type: "button", class: "link", click: () => update({ selected: t.id }) }, name(model.labelOf(t.id))), ` ${time(t.waited_for_ns)}`])));
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
      h("h3", {}, name(model.threadLabel(row)), " of ", name(model.actorLabel(t.process))), timeBar(model, row), p ? this.profile(p) : "",
      ...(model.findingsOf.get(t.id) ?? []).map((f) => h("p", {}, h("span", { class: `severity ${f.severity}` }, f.severity), " ", f.title)),
      h("dl", { class: "facts" }, ...this.facts(t).flatMap(([k, v]) => [h("dt", {}, k), h("dd", {}, v)])),
      chainPicture(model, row), this.lists(t));
  }

  private profile(p: Profile): HTMLElement {
    return h("div", {}, h("p", {}, h("strong", {}, `${p.points} of ${p.possible} points that can be known (${p.level}); class: ${p.class}; held up by: ${p.cause}`)),
      p.class_why && h("p", {}, `class: ${p.class_why}`), p.cause_why && h("p", {}, `held up: ${p.cause_why}`),
      (p.reasons?.length || p.rules?.length) ? h("ul", {}, ...[...(p.reasons ?? []), ...(p.rules ?? [])].map((x) => h("li", {}, `${x.rule ? x.rule + ": " : ""}${x.text}${x.advice ? ` \u2013 ${x.advice}` : ""}`))) : "",
      ...[p.affinity, p.switching].map((x) => x && h("p", {}, x)));
  }

  private facts(t: Thread): [string, string][] {
    const m = this.model, a = m.doc.actors[t.process];
    return [["running", `${time(t.run_ns)} (${percent(m.share(t, t.run_ns))})`], ["runnable, no CPU", time(t.runq_ns)],
      ["blocked", time(t.blocked_ns)], ["migrations", count(t.migrations)], ["wake-ups", count(t.wakeups)],
      ["ended waits of others", time(t.waited_for_ns)], ["data of its process", `in ${bytes(a.bytes_in)}, out ${bytes(a.bytes_out)}`],
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
