// Draws whom a thread waits for, and whom that one waits for: the chain down to one that runs itself.

import type { Waker } from "./data";
import { h, isolated, pressable, s } from "./dom";
import { percent, time } from "./format";
import { IDLE, Model } from "./model";
import { update } from "./state";

interface Step { thread: number; label: string; by?: Waker; note: string }

const STEPS_MAX = 8;

/** Who ended most of the waits that were not idle. */
function mainWaker(model: Model, row: number): Waker | undefined {
  return (model.doc.threads[row].wakers ?? []).find((w) => !IDLE.has(w.cause) && w.thread !== row);
}

export function chainOf(model: Model, row: number): Step[] {
  const steps: Step[] = [];
  const seen = new Set<number>();
  let at = row, by: Waker | undefined;
  while (steps.length < STEPS_MAX) {
    const t = model.doc.threads[at];
    const run = model.share(t, t.run_ns);
    steps.push({ thread: at, label: model.threadLabel(at), by, note: `${percent(run)} running` });
    seen.add(at);
    const next = mainWaker(model, at);
    if (!next) break;
    by = next;
    if (next.thread === undefined || seen.has(next.thread)) {
      steps.push({ thread: -1, label: next.thread === undefined ? next.object ?? "interrupt" : model.threadLabel(next.thread), by,
        note: next.thread === undefined ? "no thread" : "again: they wait for each other" });
      break;
    }
    at = next.thread;
  }
  return steps;
}

export function chainPicture(model: Model, row: number): Element {
  const steps = chainOf(model, row);
  if (steps.length < 2) return h("p", { class: "note" }, "No other thread ended waits of this one that count: the chain ends here.");
  const width = 178, gap = 118, height = 64;
  const total = steps.length * width + (steps.length - 1) * gap;
  const svg = s("svg", { class: "picture chain", viewBox: `0 0 ${total} ${height + 8}`, width: total, height: height + 8, role: "group", "aria-label": "Chain of waits" });
  steps.forEach((step, i) => {
    const x = i * (width + gap);
    const g = s("g", { class: step.thread < 0 ? "end" : i === steps.length - 1 ? "root" : "" },
      s("title", {}, step.label),
      s("rect", { x: x + 1, y: 5, width: width - 2, height: height - 4, rx: 6 }),
      s("text", { x: x + 10, y: 30, class: "strong" }, isolated(step.label, 22)),
      s("text", { x: x + 10, y: 50 }, step.note));
    if (step.thread >= 0)
      pressable(g, `${step.label}, ${step.note}`, () => update({ selected: model.doc.threads[step.thread].id }));
    svg.append(g);
    if (!step.by) return;
    const from = x - gap;
    svg.append(s("line", { x1: from + 2, y1: 36, x2: x - 8, y2: 36, class: "arrow" }),
      s("path", { d: `M${x - 2} 36l-9 -5v10z`, class: "head" }),
      s("text", { x: from + gap / 2, y: 26, "text-anchor": "middle" }, `waits ${time(step.by.ns)}`),
      s("text", { x: from + gap / 2, y: 54, "text-anchor": "middle" }, step.by.cause));
  });
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Chain of waits" }, svg);
}
