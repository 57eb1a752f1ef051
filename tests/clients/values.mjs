// The official TypeScript client checks what is published and sent for each type of the corpus, with ajv and its formats.
// Reads {url, count} from stdin, and prints the names of the tools, and why the client refuses some, as JSON.
import { createRequire } from "node:module";
import { text } from "node:stream/consumers";

const require = createRequire(new URL("../conformance/package.json", import.meta.url));
const { Client, StreamableHTTPClientTransport } = require("@modelcontextprotocol/client");
const { AjvJsonSchemaValidator } = require("@modelcontextprotocol/client/validators/ajv");

const { url, count } = JSON.parse(await text(process.stdin));
const client = new Client({ name: "values.mjs", version: "1" }, { versionNegotiation: { mode: { pin: "2026-07-28" } } });
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const ajv = new AjvJsonSchemaValidator();
const names = [];
const refused = {};
let cursor;
do {
  const page = await client.listTools({ cursor });
  for (const { name, inputSchema } of page.tools) {
    names.push(name);
    try {
      ajv.getValidator(inputSchema)({ index: 0 });
      for (let index = 0; index < count; index++) {
        const result = await client.callTool({ name, arguments: { index } });
        if (result.isError) throw new Error(result.content[0].text);
      }
    } catch (error) {
      refused[name] = error.message;
    }
  }
  cursor = page.nextCursor;
} while (cursor);
await client.close();
console.log(JSON.stringify({ names, refused }));
