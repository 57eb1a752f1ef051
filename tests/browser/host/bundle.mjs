// Bundles the official host's side of MCP Apps for a page: node bundle.mjs <directory with node_modules>
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(`${process.argv[2]}/package.json`);
const { rolldown } = await import(pathToFileURL(require.resolve("rolldown")));
const input = require.resolve("@modelcontextprotocol/ext-apps/app-bridge");
const bundle = await rolldown({ input, platform: "browser", logLevel: "silent" });
const { output } = await bundle.generate({ format: "esm" });
process.stdout.write(output[0].code);
