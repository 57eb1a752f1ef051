// Servers of the official TypeScript SDK, as its own documentation writes them, behind ports of their own.
//
// `node typescript_sdk.mjs` prints {configuration: url} and serves until its stdin ends. Source, at
// @modelcontextprotocol/server 2.4.0: examples/mrtr/server.ts, and the documentation of RequestStateCodecOptions.bind.
import { serve } from '@hono/node-server';
import { createMcpHonoApp } from '@modelcontextprotocol/hono';
import { acceptedContent, createMcpHandler, createRequestStateCodec, inputRequired, McpServer } from '@modelcontextprotocol/server';
import * as z from 'zod/v4';

const CONFIRM_SCHEMA = { type: 'object', properties: { confirm: { type: 'boolean' } }, required: ['confirm'] };

const key = () => crypto.getRandomValues(new Uint8Array(32));
const codec = createRequestStateCodec({ key: key(), ttlSeconds: 600 });
const bound = createRequestStateCodec({
    key: key(),
    ttlSeconds: 600,
    bind: ctx => `${ctx.mcpReq.method}\0${ctx.http?.authInfo?.clientId ?? ''}`
});
// What the SDK does if nobody configures a hook: the state crosses the wire as it was written. Its documentation warns.
const passthrough = { mint: async payload => JSON.stringify(payload), read: text => text && JSON.parse(text) };

const CONFIGURATIONS = {
    example: { codec, options: { requestState: { verify: codec.verify } } },
    'example, bound': { codec: bound, options: { requestState: { verify: bound.verify } } },
    'no hook': { codec: passthrough, options: {} }
};

function build({ codec, options }) {
    const server = new McpServer({ name: 'mrtr-example-server', version: '1.0.0' }, { capabilities: { tools: {} }, ...options });
    for (const name of ['deploy', 'remove']) {
        server.registerTool(
            name,
            { description: `${name} after a confirmation and a sign-in.`, inputSchema: z.object({ env: z.string() }) },
            async ({ env }, ctx) => {
                const said = ctx.mcpReq.requestState();
                const state = codec.read ? codec.read(said) : said;
                const step = state?.step ?? 'confirm';
                if (step === 'confirm') {
                    const confirmed = acceptedContent(ctx.mcpReq.inputResponses, 'confirm');
                    if (!confirmed?.confirm) {
                        return inputRequired({
                            inputRequests: { confirm: inputRequired.elicit({ message: `${name} ${env}?`, requestedSchema: CONFIRM_SCHEMA }) },
                            requestState: await codec.mint({ step: 'confirm', env }, ctx)
                        });
                    }
                    return inputRequired({
                        inputRequests: { auth: inputRequired.elicitUrl({ message: 'Sign in to continue', url: `https://example.com/auth?env=${env}` }) },
                        requestState: await codec.mint({ step: 'signed-in', env }, ctx)
                    });
                }
                const auth = ctx.mcpReq.inputResponses?.['auth'];
                if (auth?.action !== 'accept') {
                    return { isError: true, content: [{ type: 'text', text: 'auth response missing or declined' }] };
                }
                return { content: [{ type: 'text', text: `${name} ${state?.env ?? env}: done` }] };
            }
        );
    }
    return server;
}

const urls = {};
for (const [name, configuration] of Object.entries(CONFIGURATIONS)) {
    const handler = createMcpHandler(() => build(configuration));
    const app = createMcpHonoApp();
    app.all('/mcp', c => handler.fetch(c.req.raw));
    urls[name] = await new Promise(done => {
        const listening = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, info => done(`http://127.0.0.1:${info.port}/mcp`));
        process.stdin.on('end', () => listening.close(() => process.exit(0)));
    });
}
console.log(JSON.stringify(urls));
process.stdin.on('end', () => setTimeout(() => process.exit(0), 500)).resume();
