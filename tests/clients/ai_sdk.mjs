// Vercel's AI SDK, which has a client of its own: lines as for earlier.mjs. The one of 2025 answers what it is asked, and
// then never comes back to a stream that ended, so that nothing more would be heard of a call that asks.
import { createRequire } from "node:module";
import { createInterface } from "node:readline/promises";

const require = createRequire(new URL("../conformance/package.json", import.meta.url));
const { createMCPClient, ElicitationRequestSchema } = require(process.argv[2]);

const METHODS = {
  lists: async (client) => ({
    ...(await client.listTools()),
    ...(await client.experimental_listPrompts()),
    ...(await client.listResources()),
    ...(await client.listResourceTemplates()),
  }),
  // the release of 2025 names them `args`
  "tools/call": (client, params) => client.callTool({ ...params, args: params.arguments }),
  "prompts/get": (client, params) => client.experimental_getPrompt(params),
  "resources/read": (client, params) => client.readResource(params),
};

async function held({ url, method, params, answers }) {
  const asked = [];
  let revision;
  const seen = async (input, init) => {
    revision = new Headers(init.headers).get("mcp-protocol-version") ?? revision;
    return fetch(input, init);
  };
  const transport = { type: "http", url, fetch: seen };
  const client = await createMCPClient({ transport, capabilities: { elicitation: {} } });
  client.onElicitationRequest(ElicitationRequestSchema, ({ params }) => (asked.push(params.message), answers.shift()));
  try {
    return { revision, asked, result: await METHODS[method](client, params) };
  } catch (error) {
    return { revision, asked, error: { code: error.code, message: error.message } };
  } finally {
    await client.close();
  }
}

for await (const line of createInterface({ input: process.stdin })) console.log(JSON.stringify(await held(JSON.parse(line))));
