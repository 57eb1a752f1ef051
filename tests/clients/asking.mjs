// The official TypeScript client under each combination of capabilities. Reads {url, pin, combinations} from stdin,
// lists the tools, calls each one and then its answer tool, and prints what came.
import { createRequire } from "node:module";
import { text } from "node:stream/consumers";

const require = createRequire(new URL("../conformance/package.json", import.meta.url));
const { Client, StreamableHTTPClientTransport } = require("@modelcontextprotocol/client");

const { url, calls, combinations } = JSON.parse(await text(process.stdin));
const heard = [];
for (const capabilities of combinations) {
  const client = new Client(
    { name: "asking.mjs", version: "1" },
    { capabilities, versionNegotiation: { mode: { pin: "2026-07-28" } } },
  );
  if (capabilities.elicitation) {
    client.setRequestHandler("elicitation/create", () => ({ action: "accept", content: { stars: 5 } }));
  }
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  const { tools } = await client.listTools();
  const results = {};
  for (const name of calls) {
    const result = await client.callTool({ name, arguments: {} });
    results[name] = result;
    const form = result._meta?.["mcp-functions/form"];
    if (!form) continue;
    const answers = { stars: { action: "accept", content: { stars: 5 } } };
    results[form.tool] = await client.callTool({ name: form.tool, arguments: { state: form.state, answers } });
  }
  heard.push({ tools: tools.map((tool) => tool.name), results });
  await client.close();
}
process.stdout.write(JSON.stringify(heard));
