// Puts the page's own scripts into lib/, so that the package and the page have one source; --clean takes them away again.
import { cpSync, mkdirSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url)), source = `${here}../../src/ownview/pages/assets/`;
rmSync(`${here}lib`, { recursive: true, force: true });
if (!process.argv.includes("--clean")) {
  mkdirSync(`${here}lib`);
  for (const name of ["decode.js", "score.js", "search.js"]) cpSync(source + name, `${here}lib/${name}`);
}
