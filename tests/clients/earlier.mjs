// Official TypeScript clients as they speak to servers of 2025: `node earlier.mjs PACKAGE`, which is the client of 2026
// (whose default is still the older protocol) or a release of its predecessor. Lines as for python_1.py.
import { createRequire } from "node:module";
import { createInterface } from "node:readline/promises";

const AT_ONCE = 6;
const PATIENCE = { timeout: 300_000 }; // a machine may have much else to do
const require = createRequire(new URL("../conformance/package.json", import.meta.url));
const name = process.argv[2];
const { Client, StreamableHTTPClientTransport, asked: kinds } = name.endsWith("/client") ? newer() : older();

function newer() {
  const asked = { newer: true, elicit: "elicitation/create", sample: "sampling/createMessage", roots: "roots/list" };
  return { ...require(name), asked };
}

function older() {
  const types = require(`${name}/types.js`);
  const asked = {
    elicit: types.ElicitRequestSchema, // undefined before 2025-06-18
    sample: types.CreateMessageRequestSchema,
    roots: types.ListRootsRequestSchema,
  };
  return { ...require(`${name}/client/index.js`), ...require(`${name}/client/streamableHttp.js`), asked };
}

const METHODS = {
  lists: async (client) => ({
    ...(await client.listTools()),
    ...(await client.listPrompts()),
    ...(await client.listResources()),
    ...(await client.listResourceTemplates()),
  }),
  "tools/call": (client, params) => client.callTool(params, ...(kinds.newer ? [] : [undefined]), PATIENCE),
  "prompts/get": (client, params) => client.getPrompt(params, PATIENCE),
  "resources/read": (client, params) => client.readResource(params, PATIENCE),
};

async function held({ url, method, params, answers }) {
  const capabilities = { sampling: {}, roots: {}, ...(kinds.elicit && { elicitation: {} }) };
  const client = new Client({ name: "earlier.mjs", version: "1" }, { capabilities });
  const asked = [];
  const answer = (question) => {
    asked.push(question);
    const { error, ...result } = answers.shift();
    if (error) throw Object.assign(new Error(error.message), { code: error.code });
    return result;
  };
  if (kinds.elicit) client.setRequestHandler(kinds.elicit, ({ params }) => answer(params.message));
  client.setRequestHandler(kinds.sample, ({ params }) => answer([params.messages[0].content].flat()[0].text));
  client.setRequestHandler(kinds.roots, () => {
    asked.push("roots");
    return { roots: [{ uri: "file:///work/printers" }] };
  });
  const transport = new StreamableHTTPClientTransport(new URL(url));
  let revision; // what was negotiated: some releases tell nobody
  const said = (message) => (revision ??= message.result?.protocolVersion);
  try {
    const connecting = client.connect(transport);
    const { onmessage } = transport;
    transport.onmessage = (message, extra) => (said(message), onmessage(message, extra));
    await connecting;
    return { revision, asked, result: await METHODS[method](client, params) };
  } catch (error) {
    return { revision, asked, error: { code: error.code, message: error.message.replace(/^MCP error -?\d+: /, "") } };
  } finally {
    await client.close();
  }
}

const calls = [];
for await (const line of createInterface({ input: process.stdin })) calls.push(JSON.parse(line));
const done = new Array(calls.length);
let next = 0;
await Promise.all(
  Array.from({ length: AT_ONCE }, async () => {
    while (next < calls.length) {
      const mine = next++;
      done[mine] = await held(calls[mine]);
    }
  }),
);
for (const said of done) console.log(JSON.stringify(said));
