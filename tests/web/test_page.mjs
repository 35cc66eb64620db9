// test_page.mjs WITTY MODULES - the page in a real browser: every view, with names that try to break out of it.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

import { graph, HOSTILE, INTERVALS, MIXED, series } from "./fixture.mjs";

const [witty, modules] = process.argv.slice(2);
const require = createRequire(join(resolve(modules), "package.json"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const folder = mkdtempSync(join(tmpdir(), "witty-page-"));
const VIEWS = ["overview", "topology", "flows", "threads", "placement", "time"];
const HALF = INTERVALS / 2;
const problems = [];
let passed = 0;

function run(program, args, input) {
  return execFileSync(program, args, { input, maxBuffer: 1 << 28, stdio: ["pipe", "pipe", "inherit"] });
}

function makePage(name, more) {
  const path = (suffix) => join(folder, name + suffix);
  writeFileSync(path(".json"), JSON.stringify(graph(more)));
  run(witty, ["convert", path(".json"), path(".wpdb"), "--force"]);
  run("sqlite3", [path(".wpdb")], series());
  run(witty, ["report", path(".wpdb"), "--format", "html", "-o", path(".html"), "--force"]);
  return path(".html");
}

async function newPage(browser, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 }, acceptDownloads: true, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(120000); // a busy machine is no failure
  const complain = (what) => (x) => problems.push(`${what}: ${x}`);
  page.on("console", (m) => { if (["error", "warning"].includes(m.type())) problems.push(`console: ${m.text()}`); });
  page.on("pageerror", (e) => complain("exception")(e.stack));
  page.on("dialog", (d) => { complain("dialog")(d.message()); d.dismiss(); });
  page.on("request", (r) => { if (!/^(file|data|blob):/.test(r.url())) complain("request")(r.url()); });
  return page;
}

async function open(page, file, hash = "") {
  await page.goto("about:blank");
  await page.goto(`file://${file}${hash}`);
  await page.waitForSelector("#view h2");
}

const text = async (page, selector) => (await page.locator(selector).first().textContent()) ?? "";
const count = (page, selector) => page.locator(selector).count();
const hash = (page) => page.evaluate(() => decodeURIComponent(location.hash));

const tests = {
  async "every view opens and is accessible, light and dark"(browser, file) {
    for (const colorScheme of ["light", "dark"]) {
      const page = await newPage(browser, { colorScheme });
      for (const view of VIEWS) {
        await open(page, file, `#${view}${view === "threads" || view === "topology" ? "?sel=thread:100" : ""}`);
        assert.equal((await text(page, "nav a[aria-current=page]")).toLowerCase(), view);
        for (const details of await page.locator("details").all()) await details.evaluate((d) => { d.open = true; });
        await page.evaluate(axe);
        // Themes differ by their colours alone.
        const only = colorScheme === "dark" ? { runOnly: ["color-contrast"] } : {};
        const found = await page.evaluate((o) => window.axe.run(document, { resultTypes: ["violations"], ...o }), only);
        for (const v of found.violations)
          if (["serious", "critical"].includes(v.impact))
            problems.push(`axe, ${view}, ${colorScheme}: ${v.id}: ${v.help}: ${v.nodes.slice(0, 2).map((n) => n.html.slice(0, 160) + " " + n.failureSummary?.slice(0, 200)).join(" | ")}`);
      }
      await page.context().close();
    }
  },

  async "hostile names are text"(browser, file) {
    const page = await newPage(browser);
    for (const view of VIEWS) {
      await open(page, file, `#${view}?sel=process:300`);
      assert.equal(await page.evaluate(() => window.broken), undefined);
      assert.equal(await count(page, "img"), 0);
    }
    await open(page, file, "#topology?sel=process:300");
    assert.ok((await text(page, ".side h3")).includes(HOSTILE));
    await open(page, file, "#topology?sel=process:301");
    const shown = await page.locator(".side dd bdi").allTextContents();
    assert.ok(shown.some((x) => x.startsWith(MIXED.slice(0, 40))), "the command of mixed directions is there");
    // Isolated: what stands beside the name keeps its place.
    assert.equal(await page.locator(".side h3 bdi").evaluate((e) => getComputedStyle(e).unicodeBidi), "isolate");
  },

  async "the three questions have answers on the first view"(browser, file) {
    const page = await newPage(browser);
    await open(page, file);
    const cards = await page.locator(".cards .card").allTextContents();
    assert.match(cards[0], /python3\[112\]/);
    assert.match(cards[1], /EngineCore\[100\]/);
    assert.match(cards[2], /python3\[100\].*python3\[110\].*900 MiB/);
    // What the observation cost has a size by which it can be judged: 0.12 s of 6 s, on 8 CPUs.
    const costs = await page.locator("li", { hasText: "CPU time of the observer" }).textContent();
    assert.match(costs, /120 ms \(2\.0 % of one CPU, 0\.3 % of the 8 together\)/);
    assert.match(await page.locator("li", { hasText: "hooks in the kernel" }).textContent(), /60 ms.*sched\.switch 60 ms/);
  },

  async "a finding leads to its entity"(browser, file) {
    const page = await newPage(browser);
    await open(page, file);
    const chip = page.locator(".finding[open] .chip", { hasText: "python3[112]" }).first();
    await chip.click();
    await page.waitForFunction(() => !location.hash.startsWith("#overview"));
    assert.match(await hash(page), /sel=(process|thread):112/);
    assert.ok(await count(page, ".selected"), "it is selected there");
  },

  async "topology: search, filter, open, select, neighbours"(browser, file) {
    const page = await newPage(browser);
    await open(page, file, "#topology");
    await page.fill("#topology-search", "train.py --rank 2");
    assert.equal(await count(page, ".box.found.process"), 1);
    await page.fill("#topology-search", "");
    const all = await count(page, ".curve");
    await page.locator("fieldset.legend label", { hasText: "tcp" }).locator("input").uncheck();
    assert.equal(all - (await count(page, ".curve")), 4);
    assert.match(await hash(page), /off=tcp/);
    await page.getByRole("button", { name: "Reset" }).click();
    assert.equal(await count(page, ".curve"), all);
    assert.equal(await count(page, ".curve.away"), 1, "one worker is away from its device");
    await page.locator('.box[data-id="process:112"]').click();
    assert.match(await text(page, ".side"), /NUMA node 0/);
    assert.match(await text(page, ".side .facts"), /worker|rank/);
    assert.ok(!(await page.locator('.box[data-id="process:111"]').getAttribute("class")).includes("dim"), "a neighbour");
    assert.ok((await page.locator('.box[data-id="process:301"]').getAttribute("class")).includes("dim"), "not a neighbour");
    await page.getByRole("button", { name: /Open it/ }).click();
    assert.equal(await count(page, '.box[data-id="thread:212"]'), 1);
    const address = await page.evaluate(() => location.hash);
    await open(page, file, address);
    assert.equal(await count(page, '.box[data-id="thread:212"]'), 1, "the link leads to the same view");
    await page.fill("#topology-search", "train.py --rank 2");
    await page.check("#topology-only");
    // It, and what it exchanges data with.
    const left = await page.locator(".box.process").evaluateAll((all) => all.map((b) => b.dataset.id));
    assert.deepEqual(left.sort(), ["process:111", "process:112", "process:113"]);
    assert.match(await hash(page), /only=1/);
    await page.locator("fieldset.legend label", { hasText: "tcp" }).locator("input").uncheck();
    await page.getByRole("button", { name: "Reset" }).click();
    assert.equal(await page.inputValue("#topology-search"), "");
    assert.equal(await page.isChecked("#topology-only"), false);
    assert.equal(await page.locator("fieldset.legend input:not(:checked)").count(), 0, "the fields say what is shown");
    await page.selectOption("select[aria-label=Container]", { label: "trainer" });
    assert.equal(await count(page, '.box[data-id="process:300"]'), 0);
  },

  async "keyboard: skip, focus, select, open, leave"(browser, file) {
    const page = await newPage(browser);
    await open(page, file, "#topology");
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
    await page.locator('.box[data-id="process:110"]').focus();
    await page.keyboard.press("Enter");
    assert.match(await hash(page), /sel=process:110/);
    await page.keyboard.press("+");
    assert.equal(await count(page, '.box[data-id="thread:210"]'), 1);
    await page.locator("svg.topology").press("Escape");
    assert.doesNotMatch(await hash(page), /sel=/);
    await page.locator("details.tables summary").press("Enter");
    await page.waitForSelector("caption:has-text('Flows that are shown')");
    assert.ok((await page.locator("details.tables td", { hasText: "900 MiB" }).count()) >= 1, "the table has the flows");
  },

  async "threads: sort, search, chain"(browser, file) {
    const page = await newPage(browser);
    await open(page, file, "#threads");
    await page.getByRole("button", { name: "Running", exact: true }).click();
    assert.match(await text(page, ".threads tbody tr"), /EngineCore/);
    assert.equal(await page.locator("th[aria-sort=descending]").count(), 1);
    await page.fill("input[aria-label='Search: Threads']", "comm");
    const rows = await page.locator(".threads .table tbody tr").allTextContents();
    assert.ok(rows.length === 4 && rows.every((r) => r.includes("comm")), rows.join("\n"));
    await page.fill("input[aria-label='Search: Threads']", "python3[112]");
    await page.locator(".threads .table tbody tr button.link", { hasText: "python3[112]" }).first().click();
    assert.match(await text(page, "svg.chain"), /EngineCore/);
    assert.match(await text(page, ".roots li"), /EngineCore.*in sum over at least 4 threads/);
    // What is said in sum over those who wait stands beside what the thread did itself.
    assert.match(await text(page, ".roots li"), /Itself, it ran for 5\.00 s and had no CPU for 500 ms/);
  },

  async "a column without a value is left out, and the first order tells rows apart"(browser, file) {
    const page = await newPage(browser);
    await open(page, file, "#flows");
    assert.equal(await page.locator(".flows .table thead th", { hasText: "Amount is" }).count(), 0, "nothing is estimated");
    assert.match(await text(page, ".flows .legend-line .kind"), /device|pipe|tcp|unix/);
    await open(page, file, "#threads");
    const first = await page.locator("th[aria-sort]").textContent(), at = await page.locator("th[aria-sort]").evaluate((e) => e.cellIndex);
    const cells = await page.locator(`.threads .table tbody tr > :nth-child(${at + 1})`).allTextContents();
    assert.ok(new Set(cells).size > 1, `${first}: ${cells}`);
  },

  async "flows and placement: largest first, who is away"(browser, file) {
    const page = await newPage(browser);
    await open(page, file, "#flows");
    assert.match(await text(page, ".flows .table tbody tr"), /python3\[100\].*python3\[110\].*900 MiB/);
    assert.ok((await count(page, ".sankey .band")) >= 5);
    // Those of one program are one end, but not where the flow is between them.
    const bands = await page.locator(".sankey .band title").allTextContents();
    assert.ok(bands.some((b) => /crew\[40[01]\] \u2192 crew\[40[01]\].*300 MiB/.test(b)), bands.join("\n"));
    assert.ok((await count(page, ".heat .cell")) >= 16, "the matrix of the group");
    await open(page, file, "#placement");
    assert.match(await text(page, ".verdict"), /1 of 4 users run/);
    const away = await page.locator("tr", { has: page.locator(".home.away") }).allTextContents();
    assert.ok(away.length === 1 && away[0].includes("python3[112]"), away.join());
  },

  async "time: an interval holds in the other views"(browser, file) {
    const page = await newPage(browser);
    await open(page, file, "#time");
    assert.ok((await count(page, "svg.chart")) >= 2);
    await page.locator("input[aria-label='to interval']").fill("2");
    await page.locator("input[aria-label='to interval']").dispatchEvent("change");
    assert.match(await hash(page), /t=0-2/);
    await page.locator("nav a", { hasText: "Threads" }).click();
    assert.match(await text(page, "#brush-note"), /0\.0 s to 3\.0 s/);
    await page.fill("input[aria-label='Search: Threads']", "EngineCore");
    assert.match(await text(page, ".threads .table tbody"), /No thread matches/, "it did not run in that part");
    await page.getByRole("button", { name: "Show all" }).click();
    assert.match(await text(page, ".threads .table tbody"), /EngineCore/);
  },

  async "time: use of devices, what is not known is not zero, and a part of it holds in the placement"(browser, file) {
    const page = await newPage(browser);
    await open(page, file, "#time");
    const strip = page.locator("svg.strips[aria-label^=Accelerators]");
    assert.deepEqual(await strip.locator(".mean").allTextContents(), ["60 % on average", "60 % on average", "40 % on average", "40 % on average"]);
    assert.equal(await strip.locator(".not-known").count(), HALF, "rank 2 in the first half");
    const use = async (hash) => {
      await open(page, file, hash);
      const row = page.locator(".placement tr", { has: page.locator("button.link", { hasText: "npu 3" }) });
      return (await row.first().locator("td.num").first().textContent())?.trim();
    };
    assert.equal(await use("#placement"), "40 %");
    assert.equal(await use(`#placement?t=0-${HALF - 1}`), "0 %");
    assert.equal(await use(`#placement?t=${HALF}-${2 * HALF - 1}`), "80 %");
  },

  async "findings are those of bottlenecks, in its order"(browser, file) {
    const told = JSON.parse(run(witty, ["bottlenecks", file.replace(/html$/, "wpdb"), "--format", "json", "--limit", "1000"])).findings;
    // The file has single waits: an analysis without them would tell other times.
    assert.ok(told.length >= 2 && run("sqlite3", [file.replace(/html$/, "wpdb"), "SELECT count(*) > 50 FROM wait_segment"]).toString().trim() === "1");
    const page = await newPage(browser);
    await open(page, file);
    const own = await page.evaluate(() => JSON.parse(document.getElementById("data").textContent).findings);
    const id = (x) => (x && typeof x === "object" ? x.id : x) ?? null;
    const lean = (f) => ({ rule: f.rule, layer: f.layer, severity: f.severity, confidence: f.confidence_pct, title: f.title, why: f.why, root: id(f.root), subjects: f.subjects.map(id),
      lost_ns: f.lost_ns ?? null, advice: f.advice, commands: f.commands, also: f.also.map((x) => [x.rule, x.title, x.why]), values: f.values.map((v) => [v.name, v.value, v.unit]) });
    assert.deepEqual(own.map(lean), told.map((f) => lean(f)));
    assert.deepEqual(await page.locator(".finding summary strong").allTextContents(), told.slice(0, 12).map((f) => f.title));
  },

  async "theme, print, pictures"(browser, file) {
    const page = await newPage(browser, { colorScheme: "light" });
    await open(page, file, "#topology?sel=process:300");
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await background();
    await page.click("#theme");
    assert.notEqual(await background(), light);
    const save = async (id) => {
      const [download] = await Promise.all([page.waitForEvent("download"), page.click(id)]);
      return readFileSync(await download.path());
    };
    const svg = (await save("#save-svg")).toString();
    assert.match(svg, /^<svg [^>]*xmlns="http:\/\/www.w3.org\/2000\/svg"/);
    assert.equal(await page.evaluate((t) => new DOMParser().parseFromString(t, "image/svg+xml").querySelectorAll("parsererror, img, script").length, svg), 0);
    const png = await save("#save-png");
    assert.deepEqual([...png.subarray(1, 4)], [..."PNG"].map((c) => c.charCodeAt(0)));
    await page.emulateMedia({ media: "print" });
    assert.equal(await page.locator("nav").isVisible(), false);
  },

  async "a page of 5 000 entities"(browser, file, large) {
    const page = await newPage(browser);
    const t = Date.now();
    await open(page, large);
    const first = Date.now() - t, u = Date.now();
    await page.locator("nav a", { hasText: "Topology" }).click();
    await page.waitForSelector(".box");
    const topology = Date.now() - u;
    const frames = await page.evaluate(() => new Promise((done) => {
      const svg = document.querySelector("svg.topology");
      let n = 0;
      const begin = performance.now();
      const step = () => {
        svg.dispatchEvent(new WheelEvent("wheel", { deltaY: n++ % 2 ? 40 : -40, clientX: 600, clientY: 500, bubbles: true, cancelable: true }));
        if (performance.now() - begin < 1000) requestAnimationFrame(step);
        else done(n / ((performance.now() - begin) / 1000));
      };
      requestAnimationFrame(step);
    }));
    console.log(`| 5 000 entities: first view after ${first} ms, topology after ${topology} ms, zoom at ${frames.toFixed(0)} frames/s, page ${(readFileSync(large).length / 1e6).toFixed(2)} MB`);
    assert.ok((await count(page, ".box")) < 1000, "aggregated");
    await page.fill("#topology-search", "job39");
    assert.ok((await count(page, ".box.found")) >= 1);
  },
};

const file = makePage("page", 0), large = makePage("large", 1600);
assert.ok(readFileSync(join(resolve(modules), "page.html")).length < 1e6, "the page without data is below 1 MB");
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-dev-shm-usage"] });
for (const [name, test] of Object.entries(tests)) {
  const before = problems.length, begin = Date.now();
  try {
    await test(browser, file, large);
  } catch (e) {
    problems.push(`${name}: ${e.stack ?? e}`);
  }
  if (problems.length === before) passed++;
  console.log(`${problems.length === before ? "ok    " : "FAILED"} ${name} (${((Date.now() - begin) / 1000).toFixed(1)} s)`);
}
await browser.close();
rmSync(folder, { recursive: true });
for (const p of problems) console.log(p);
console.log(`${passed} passed, ${Object.keys(tests).length - passed} failed`);
process.exit(problems.length ? 1 : 0);
