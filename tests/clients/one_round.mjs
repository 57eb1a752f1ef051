// One round of a conversation through the official TypeScript client: `node one_round.mjs FILE ANSWERS`. The same words
// and the same file as mcp_functions_harness.demo.one_round, so that either client goes on where the other stopped.
import { readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";

const require = createRequire(new URL("../conformance/package.json", import.meta.url));
const { Client, StreamableHTTPClientTransport } = require("@modelcontextprotocol/client");

const [file, answers] = process.argv.slice(2);
const kept = JSON.parse(await readFile(file, "utf8"));
const accepted = Object.entries(JSON.parse(answers)).map(([key, content]) => [key, { action: "accept", content }]);

const client = new Client(
  { name: "one_round.mjs", version: "1" },
  { capabilities: { elicitation: {} }, versionNegotiation: { mode: { pin: "2026-07-28" } } },
);
await client.connect(new StreamableHTTPClientTransport(new URL(kept.url)));
try {
  const { name, arguments: given, requestState } = kept;
  const result = await client.request(
    {
      method: "tools/call",
      params: { name, arguments: given, inputResponses: Object.fromEntries(accepted), requestState },
    },
    { allowInputRequired: true }, // this script drives the loop, not the client
  );
  const { inputRequests, requestState: next } = result;
  if (next) await writeFile(file, JSON.stringify({ ...kept, inputRequests, requestState: next }));
  process.stdout.write(JSON.stringify(result));
} catch (error) {
  console.error(`${error.code} ${error.message}`);
  process.exitCode = 1;
} finally {
  await client.close();
}
