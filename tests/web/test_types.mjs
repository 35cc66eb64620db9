// test_types.mjs SOURCES MODULES - TypeScript finds nothing wrong with the sources of the page.
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

// The compiler looks for packages beside the sources, which is no place for them.
const [sources, modules] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "witty-types-"));
cpSync(join(sources, "src"), join(folder, "src"), { recursive: true });
cpSync(join(sources, "tsconfig.json"), join(folder, "tsconfig.json"));
symlinkSync(join(resolve(modules), "node_modules"), join(folder, "node_modules"));
const done = spawnSync(process.execPath, [join(folder, "node_modules/typescript/bin/tsc"), "-p", folder], { stdio: "inherit" });
rmSync(folder, { recursive: true });
process.exit(done.status ?? 1);
