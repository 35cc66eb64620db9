// Who sends how much to whom within a group of ranks, or among those who exchange most.

import type { Link } from "./data";
import { clear, h } from "./dom";
import { bytes } from "./format";
import { heatmap } from "./heatmap";
import type { Model } from "./model";

const ALL_MAX = 30, GROUP_MAX = 128;

export function matrixPart(model: Model, amount: (l: Link) => number | undefined): HTMLElement {
  const { groups } = model.doc.topology;
  const row = new Map(model.doc.actors.map((a, i) => [a.id, i]));
  const box = h("div");
  const draw = (which: number): void => {
    clear(box);
    const members = which < 0 ? busiest(model) : groups[which].members.map((id) => row.get(id)).filter((r): r is number => r !== undefined).slice(0, GROUP_MAX);
    const cells = new Map<string, number | undefined>();
    for (const from of members)
      for (const l of model.linksOf.get(from) ?? []) {
        if (l.from !== from || !members.includes(l.to)) continue;
        const key = `${from} ${l.to}`, n = amount(l);
        cells.set(key, n === undefined ? cells.get(key) : (cells.get(key) ?? 0) + n);
      }
    const items = members.map((r) => ({ label: model.actorLabel(r) }));
    if (which >= 0) {
      const g = groups[which];
      box.append(h("p", {}, h("bdi", {}, g.patterns[0] ? `${g.patterns[0].text} (${g.patterns[0].confidence_pct} %)` : `shape: ${g.shape.name}`),
        `; ${bytes(g.bytes)} between the members`));
      if (!cells.size) box.append(h("p", { class: "note" }, "No data between the members was seen: what accelerators send each other passes no socket or pipe."));
    }
    if (members.length > 1 && (cells.size || which < 0))
      box.append(heatmap({ caption: "Bytes from row to column", rows: items, columns: items, rowTitle: "from", columnTitle: "to", format: bytes,
        value: (r, c) => (cells.has(`${members[r]} ${members[c]}`) ? cells.get(`${members[r]} ${members[c]}`) : 0), scaleNote: "hatched: data went, but the amount is not known" }));
  };
  const choice = h("select", { "aria-label": "Group", change: (e) => draw(Number((e.target as HTMLSelectElement).value)) },
    ...groups.map((g, i) => h("option", { value: i }, `group ${g.group}: ${g.name}`)), h("option", { value: -1 }, `the ${ALL_MAX} that exchange most`));
  draw(groups.length ? 0 : -1);
  return h("section", { class: "card" }, h("h3", {}, "Communication matrix"), choice, box);
}

function busiest(model: Model): number[] {
  return model.doc.actors.map((a, i) => ({ i, n: a.bytes_in + a.bytes_out })).filter((x) => x.n > 0)
    .sort((a, b) => b.n - a.n || a.i - b.i).slice(0, ALL_MAX).map((x) => x.i);
}
