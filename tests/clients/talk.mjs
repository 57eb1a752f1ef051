// The official TypeScript client, pinned to 2026-07-28. Reads {url, calls: [{url, method, params, answers}]} from stdin,
// holds each conversation with a client of its own, and prints what was listed, asked and answered as JSON.
import { createRequire } from "node:module";
import { text } from "node:stream/consumers";

const require = createRequire(new URL("../conformance/package.json", import.meta.url));
const { Client, StreamableHTTPClientTransport } = require("@modelcontextprotocol/client");

const { url, calls } = JSON.parse(await text(process.stdin));

async function connected(url, answers, talk) {
  const client = new Client(
    { name: "talk.mjs", version: "1" },
    { capabilities: { elicitation: {} }, versionNegotiation: { mode: { pin: "2026-07-28" } } },
  );
  const asked = [];
  client.setRequestHandler("elicitation/create", ({ params }) => {
    asked.push(params.message);
    return answers.shift();
  });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  try {
    return { era: client.getProtocolEra(), asked, result: await talk(client) };
  } catch (error) {
    return { asked, error: { code: error.code, message: error.message } };
  } finally {
    await client.close();
  }
}

const METHODS = {
  "tools/call": (client, params) => client.callTool(params),
  "prompts/get": (client, params) => client.getPrompt(params),
  "resources/read": (client, params) => client.readResource(params),
};

const listed = await connected(url, [], async (client) => ({
  ...(await client.listTools()),
  ...(await client.listPrompts()),
  ...(await client.listResources()),
  ...(await client.listResourceTemplates()),
}));
const held = [];
for (const { url, method, params, answers } of calls) {
  held.push(await connected(url, answers, (client) => METHODS[method](client, params)));
}
console.log(JSON.stringify({ listed, held }));
