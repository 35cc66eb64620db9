// mermaid_parse.mjs FILE - what Mermaid itself reads in a flowchart, as JSON: vertices, edges, subgraphs.
import { readFileSync } from "node:fs";
import { JSDOM } from "jsdom";

const dom = new JSDOM("<!doctype html><body></body>");
globalThis.window = dom.window;
globalThis.document = dom.window.document;
const mermaid = (await import("mermaid")).default;
mermaid.initialize({ startOnLoad: false, maxTextSize: 1e8, maxEdges: 1e6 });

// It writes entities in its own way before it parses, and undoes that when it draws.
function decoded(text) {
  const html = String(text).replaceAll("ﬂ°°", "&#").replaceAll("ﬂ°", "&").replaceAll("¶ß", ";");
  return html.split(/<br\s*\/?>/).map((line) => {
    const holder = document.createElement("div");
    holder.innerHTML = line;
    if (holder.children.length > 0) throw new Error("markup in a label: " + holder.innerHTML);
    return holder.textContent;
  });
}

const { db } = await mermaid.mermaidAPI.getDiagramFromText(readFileSync(process.argv[2], "utf8"));
const out = {
  vertices: [...db.getVertices().values()].map((v) => ({ id: v.id, text: decoded(v.text), type: v.type })),
  edges: db.getEdges().map((e) => ({ from: e.start, to: e.end, text: decoded(e.text), stroke: e.stroke })),
  subgraphs: db.getSubGraphs().map((g) => ({ id: g.id, text: decoded(g.title), nodes: g.nodes })),
};
process.stdout.write(JSON.stringify(out) + "\n");
