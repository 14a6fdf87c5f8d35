// Puts the client's modules, which pages have inside, into lib/: package and pages have one source; --clean takes them away.
import { cpSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
rmSync(`${here}lib`, { recursive: true, force: true });
if (!process.argv.includes("--clean")) cpSync(`${here}../../src/ownview/one_message/client`, `${here}lib`, { recursive: true });
