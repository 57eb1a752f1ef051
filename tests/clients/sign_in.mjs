// A person at the official TypeScript client, who signs in: `node sign_in.mjs URL DOCUMENT`. Each line of stdin is a
// command, each line of stdout an answer. {"open": url} asks for a browser; the next line says where it landed.
// DOCUMENT is the URL of the client's metadata document, or "" for a client that registers.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const require = createRequire(new URL("../conformance/package.json", import.meta.url));
const { Client, StreamableHTTPClientTransport, UnauthorizedError } = require("@modelcontextprotocol/client");

const REDIRECT = "http://127.0.0.1:1/callback";
const [url, document] = process.argv.slice(2);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const read = async () => JSON.parse((await lines.next()).value);
const write = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);

const kept = {};
const provider = {
  redirectUrl: REDIRECT,
  clientMetadataUrl: document || undefined,
  clientMetadata: { client_name: "sign_in.mjs", redirect_uris: [REDIRECT], token_endpoint_auth_method: "none" },
  clientInformation: () => kept.client,
  saveClientInformation: (client) => void (kept.client = client),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => void (kept.tokens = tokens),
  saveCodeVerifier: (verifier) => void (kept.verifier = verifier),
  codeVerifier: () => kept.verifier,
  redirectToAuthorization: (to) => write({ open: to.href }),
};

const seen = [];
async function noted(to, init) {
  const response = await fetch(to, init);
  const path = new URL(to).pathname;
  const grant = path === "/token" ? new URLSearchParams(init.body.toString()).get("grant_type") : "";
  const method = new Headers(init?.headers).get("mcp-method") ?? "";
  seen.push(`${init?.method ?? "GET"} ${path} ${grant}${method}`.trim());
  return response;
}

async function connected(talk) {
  const client = new Client(
    { name: "sign_in.mjs", version: "1" },
    { capabilities: { elicitation: {} }, versionNegotiation: { mode: { pin: "2026-07-28" } } },
  );
  client.setRequestHandler("elicitation/create", () => undefined);
  const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: provider, fetch: noted });
  try {
    await client.connect(transport);
    return { said: await talk(client) };
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) return { said: { error: `${error.code}: ${error.message}` } };
    return { transport };
  } finally {
    await client.close();
  }
}

async function held(talk) {
  const first = await connected(talk);
  if (!first.transport) return first.said;
  const { landed } = await read();
  await first.transport.finishAuth(new URL(landed).searchParams);
  return (await connected(talk)).said;
}

const call = (params) => (client) => client.request({ method: "tools/call", params }, { allowInputRequired: true });
for (;;) {
  const line = await lines.next();
  if (line.done) break;
  const { swap, call: params } = JSON.parse(line.value);
  if (swap) kept.tokens.access_token = swap;
  write({ said: params ? await held(call(params)) : null, seen: seen.splice(0), tokens: kept.tokens });
}
