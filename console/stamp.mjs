// Adds the licences of what is in the bundle, and writes down of which sources the built files were made, so that a test can tell when they are stale without Node.
// tests/console/test_static.py computes the same.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";

const root = new URL("..", import.meta.url);
const own = readdirSync(new URL("console/src", root), { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => `${entry.parentPath}/${entry.name}`.split("/console/src/")[1]);
const sources = [
  ...own.map((name) => `console/src/${name}`),
  ...["index.html", "search.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.js"].map((name) => `console/${name}`),
  // Of the client all that is in the bundle; its types (schema.ts) leave no trace there.
  ...["events.ts", "index.ts", "retries.ts"].map((name) => `clients/typescript/src/${name}`),
];
sources.sort((a, b) => (a < b ? -1 : 1));
const all = createHash("sha256");
for (const name of sources) {
  all.update(`${name}\n${createHash("sha256").update(readFileSync(new URL(name, root))).digest("hex")}\n`);
}
writeFileSync(new URL("app/engram/console/SOURCES", root), `${all.digest("hex")}\n`);

const bundled = Object.keys(JSON.parse(readFileSync(new URL("console/package.json", root))).dependencies);
const licences = [...bundled, "events", "graphology-utils"].sort().map((name) => {
  const folder = new URL(`console/node_modules/${name}/`, root);
  const file = readdirSync(folder).find((one) => /^licen[cs]e/i.test(one));
  const { version, license } = JSON.parse(readFileSync(new URL("package.json", folder)));
  return `${name} ${version}, ${license}\n\n${file ? readFileSync(new URL(file, folder), "utf8").trim() : ""}\n`;
});
writeFileSync(new URL("app/engram/console/licences.txt", root), licences.join(`\n${"-".repeat(80)}\n\n`));
