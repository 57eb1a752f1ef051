// A client of MCP 2026-07-28: one POST for each request, with the headers that repeat its body.

const VERSION = "2026-07-28";
const META = "io.modelcontextprotocol/";
const NAMED = {
  "tools/call": "name",
  "prompts/get": "name",
  "resources/read": "uri",
  "tasks/get": "taskId",
  "tasks/update": "taskId",
  "tasks/cancel": "taskId",
};
const CAPABILITIES = { elicitation: { form: {}, url: {} }, sampling: { tools: {} }, roots: {} };
const TASKS = { extensions: { [`${META}tasks`]: {} } };

export class Client {
  #id = 0;

  // `renewAccess` returns an access token of the local issuer, or null if the server wants none.
  constructor(url, renewAccess) {
    this.url = url;
    this.renewAccess = renewAccess;
    this.access = null;
    this.takesTasks = true;
    this.logLevel = "debug";
  }

  // Returns the exchange: what was sent, and what came back.
  request(method, params = {}, schema = {}) {
    return this.post(this.#written(method, params, schema));
  }

  async list(method, member) {
    const found = [];
    let cursor;
    do {
      const { result, error } = (await this.request(method, cursor ? { cursor } : {})).message;
      if (error) throw new Error(`${method}: ${error.message}`);
      found.push(...result[member]);
      cursor = result.nextCursor;
    } while (cursor);
    return found;
  }

  // Posts a request, also a second time: the bytes of its body are the same.
  async post(sent) {
    let answered = await this.#fetched(sent);
    if (answered.status === 401 && (await this.signIn())) answered = await this.#fetched(sent);
    return answered;
  }

  async signIn() {
    this.access = await this.renewAccess();
    return this.access !== null;
  }

  #written(method, params, schema) {
    this.#id += 1;
    const meta = {
      [`${META}protocolVersion`]: VERSION,
      [`${META}clientInfo`]: { name: "mcp-functions page", version: "1" },
      [`${META}clientCapabilities`]: { ...CAPABILITIES, ...(this.takesTasks ? TASKS : {}) },
      [`${META}logLevel`]: this.logLevel,
      progressToken: `page-${this.#id}`,
    };
    const message = { jsonrpc: "2.0", id: this.#id, method, params: { ...params, _meta: meta } };
    const headers = {
      Accept: "application/json, text/event-stream",
      "Content-Type": "application/json",
      "MCP-Protocol-Version": VERSION,
      "Mcp-Method": method,
      ...(method in NAMED ? { "Mcp-Name": headerValue(params[NAMED[method]]) } : {}),
      ...Object.fromEntries(headerParameters(schema, params.arguments ?? {})),
    };
    return { headers, body: JSON.stringify(message) };
  }

  async #fetched(sent) {
    const authorization = this.access ? { Authorization: `Bearer ${this.access.token}` } : {};
    const began = performance.now();
    const response = await fetch(this.url, {
      method: "POST",
      headers: { ...sent.headers, ...authorization },
      body: sent.body,
      credentials: "omit",
    });
    const text = await response.text();
    const milliseconds = performance.now() - began;
    const isStream = (response.headers.get("content-type") ?? "").startsWith("text/event-stream");
    const messages = isStream ? streamed(text) : [parsed(text, response.status)];
    return {
      sent,
      milliseconds,
      status: response.status,
      requestId: response.headers.get("apigw-requestid") ?? "",
      message: messages.find((one) => "result" in one || "error" in one) ?? parsed("", response.status),
      notifications: messages.filter((one) => "method" in one),
    };
  }
}

// A header holds printable ASCII; any other text is base64 of UTF-8, marked (basic/transports).
export function headerValue(value) {
  const text = String(value);
  if (/^[\x20-\x7e]*$/.test(text) && text === text.trim() && !text.startsWith("=?base64?")) return text;
  return `=?base64?${btoa(String.fromCharCode(...new TextEncoder().encode(text)))}?=`;
}

// The arguments that a tool wants in headers too (server/tools, "x-mcp-header").
function headerParameters(schema, values) {
  return Object.entries(schema.properties ?? {}).flatMap(([key, property]) => {
    const value = values?.[key];
    if (value === undefined || value === null) return [];
    const inner = headerParameters(property, value);
    const name = property["x-mcp-header"];
    return name ? [[`Mcp-Param-${name}`, headerValue(value)], ...inner] : inner;
  });
}

function streamed(text) {
  const events = text.split(/\r?\n\r?\n/);
  const data = events.map((event) => event.split(/\r?\n/).filter((line) => line.startsWith("data:")));
  return data.filter((lines) => lines.length).map((lines) => JSON.parse(lines.map((line) => line.slice(5)).join("\n")));
}

function parsed(text, status) {
  try {
    const message = JSON.parse(text);
    if (message.result || message.error) return message;
    return { error: { code: status, message: message.message ?? `HTTP ${status}` } };
  } catch {
    return { error: { code: status, message: `HTTP ${status}, and no JSON-RPC message` } };
  }
}
