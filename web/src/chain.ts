// Draws where the time goes that a thread waits: over whom, down to who runs, or waits for what no thread gives.

import type { Chain, Role } from "./data";
import { h, isolated, pressable, s } from "./dom";
import { percent, time } from "./format";
import type { Model } from "./model";
import { update } from "./state";

const WIDTH = 240, GAP = 120, HEIGHT = 74, ROW = 90, PARTS = 4;

/** `of`: the threads that do the same, of which this one counts most. */
interface Step { text: string; of?: string; note: string; id?: string; last: boolean }

function stepsOf(model: Model, part: Chain["parts"][0]): Step[] {
  const step = (r: Role, note: string, last = false): Step => {
    const one = last && r.thread !== undefined ? model.threadIn(r.thread) : r.text;
    return { text: one, of: /^\d+ .* threads\b/.test(r.text) && one !== r.text ? `of ${r.text}` : undefined, note, id: r.id, last };
  };
  return [...part.via.map((r) => step(r, "waits too")), step(part.root, part.state + (part.root_object ? `: ${part.root_object}` : ""), true)];
}

function drawStep(model: Model, step: Step, x: number, y: number): SVGGElement {
  const g = s("g", { class: step.last ? "root" : "" }, s("title", {}, `${step.text}${step.of ? `, most ${step.of}` : ""}: ${step.note}`),
    s("rect", { x: x + 1, y, width: WIDTH - 2, height: HEIGHT, rx: 6 }),
    s("text", { x: x + 10, y: y + 22, class: "strong" }, isolated(step.text, 31)),
    s("text", { x: x + 10, y: y + (step.of ? 62 : 46) }, isolated(step.note, 36)));
  if (step.of) g.append(s("text", { x: x + 10, y: y + 42, class: "sub" }, isolated(step.of, 38)));
  const id = step.id;
  if (id && model.boxes.has(id)) pressable(g, "select", () => update({ selected: id }));
  return g;
}

/* It is drawn for all that do the same: their times are sums, and one of them may wait for another. */
function first(model: Model, chain: Chain, row: number): Step {
  const alone = chain.threads.length < 2;
  return { text: chain.text, of: alone ? undefined : `${model.threadLabel(row)} is one of them`, note: `late for ${time(chain.late_ns)}${alone ? "" : " together"}`, last: false };
}

/** One row for each way; the widest first. */
export function chainPicture(model: Model, row: number): Element {
  const chain = model.chainOf(row);
  const parts = (chain?.parts ?? []).filter((p) => !p.idle).slice(0, PARTS);
  if (!chain || !parts.length)
    return h("p", { class: "note" }, model.doc.chains.length ? "It does not wait for anybody in a way that counts." : "Who waits for whom was not recorded.");
  const ways = parts.map((p) => stepsOf(model, p));
  const columns = 1 + Math.max(...ways.map((w) => w.length));
  const W = columns * WIDTH + (columns - 1) * GAP, H = parts.length * ROW;
  const svg = s("svg", { class: "picture chain", viewBox: `0 0 ${W} ${H}`, width: W, height: H, role: "group", "aria-label": "Chain of waits" });
  svg.append(drawStep(model, first(model, chain, row), 0, 6));
  parts.forEach((part, i) => {
    const y = i * ROW + 6, middle = y + HEIGHT / 2;
    ways[i].forEach((step, k) => {
      const x = (k + 1) * (WIDTH + GAP), from = x - GAP;
      if (k === 0 && i > 0)
        svg.append(s("path", { d: `M${WIDTH / 2} ${6 + HEIGHT}V${middle}H${x - 8}`, class: "arrow" }));
      else
        svg.append(s("line", { x1: from + 2, y1: middle, x2: x - 8, y2: middle, class: "arrow" }));
      svg.append(s("path", { d: `M${x - 2} ${middle}l-9 -5v10z`, class: "head" }));
      if (k === 0)
        svg.append(s("text", { x: from + GAP / 2, y: middle - 8, "text-anchor": "middle" }, `waits ${time(part.ns)}`),
          s("text", { x: from + GAP / 2, y: middle + 16, "text-anchor": "middle" }, `${part.cause}, ${percent(part.ns / Math.max(1, chain.late_ns))}`));
      svg.append(drawStep(model, step, x, y));
    });
  });
  return h("div", {}, h("h4", {}, "Whom it waits for, down to the root"),
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Chain of waits" }, svg as unknown as HTMLElement));
}
