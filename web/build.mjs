// build.mjs SOURCES MODULES PAGE TEMPLATE - bundle the page of SOURCES into one HTML file PAGE, and write it as
// C text, in pieces between which the data goes, to TEMPLATE.
import { createHash } from "node:crypto";
import { createRequire } from "node:module";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

const [sources, modules, page, template] = process.argv.slice(2);
const esbuild = createRequire(join(resolve(modules), "package.json"))("esbuild");
const packages = join(resolve(modules), "node_modules");

const bundle = await esbuild.build({
  entryPoints: [join(sources, "src/main.ts")],
  bundle: true, write: false, minify: true, metafile: true, format: "iife", target: ["es2021"], charset: "ascii",
  nodePaths: [packages], legalComments: "none", logLevel: "warning",
});
const style = await esbuild.build({
  entryPoints: [join(sources, "page.css")], write: false, minify: true, charset: "ascii", logLevel: "warning",
});

// Whoever gets the page gets the terms of what is in it.
function licences(metafile) {
  const names = new Set();
  for (const input of Object.keys(metafile.inputs)) {
    const at = input.lastIndexOf("node_modules/");
    if (at >= 0) names.add(input.slice(at + "node_modules/".length).split("/")[0]);
  }
  return [...names].sort().map((name) => {
    const file = ["LICENSE", "LICENSE.md"].map((f) => join(packages, name, f)).find(existsSync);
    if (!file) throw new Error(`no licence of ${name}`);
    return `${name}:\n${readFileSync(file, "utf8").trim()}`;
  }).join("\n\n").replace(/--/g, "- -");
}

// Neither a script that ends early nor one that the policy does not know may come out of this.
const script = bundle.outputFiles[0].text.trim().replace(/<\/(script)/gi, "<\\/$1").replace(/<!--/g, "<\\!--");
const css = style.outputFiles[0].text.trim();
const hash = createHash("sha256").update(script).digest("base64");
const html = readFileSync(join(sources, "page.html"), "utf8")
  .replace("@LICENCES@", () => licences(bundle.metafile))
  .replace("@SCRIPT_HASH@", () => `'sha256-${hash}'`)
  .replace("@STYLE@", () => css)
  .replace("@SCRIPT@", () => script);

function literal(text) {
  const bytes = Buffer.from(text, "utf8");
  const lines = [];
  for (let i = 0; i < bytes.length; i += 100) {
    let line = "";
    for (const c of bytes.subarray(i, i + 100)) {
      if (c === 0x0a) line += "\\n";
      else if (c === 0x22 || c === 0x5c || c === 0x3f) line += "\\" + String.fromCharCode(c);
      else if (c >= 0x20 && c < 0x7f) line += String.fromCharCode(c);
      else line += "\\" + c.toString(8).padStart(3, "0");
    }
    lines.push(`\t"${line}"`);
  }
  return { text: lines.join("\n") || '\t""', length: bytes.length };
}

const pieces = html.split("@DATA@").map(literal);
if (pieces.length !== 2) throw new Error("page.html has to have one @DATA@");
writeFileSync(page, html);
writeFileSync(template, [
  "/* Made by web/build.mjs. */",
  '#include "page_template.h"', "",
  ...pieces.map((p, i) => `static const char piece_${i}[] =\n${p.text};`), "",
  "const struct page_piece page_template[] = {",
  ...pieces.map((p, i) => `\t{piece_${i}, ${p.length}, ${i + 1 < pieces.length}},`),
  "};",
  `const size_t page_template_n = ${pieces.length};`, "",
].join("\n"));
