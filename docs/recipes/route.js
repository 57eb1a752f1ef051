// A CloudFront function (cloudfront-js-2.0, viewer request): at the edge, a call goes to the function it names.
//
// An MCP client says in its headers what its body says: which method (Mcp-Method), and the name or URI (Mcp-Name). So
// nothing has to read a body here. What this table does not know, the endpoint does: discovery, lists, URIs of a
// template, completions. A header that lies arrives at a function, which compares it with the body and refuses it.

// catalog.json's "functions", as it stands there
const FUNCTIONS = { tools: {}, prompts: {}, resources: {} };

const LISTS = { 'tools/call': 'tools', 'prompts/get': 'prompts', 'resources/read': 'resources' };

function own(table, key) {
  return Object.prototype.hasOwnProperty.call(table, key) ? table[key] : undefined;
}

// A header that came once; one that came twice is for the endpoint to refuse.
function said(request, name) {
  const header = own(request.headers, name);
  return header && !header.multiValue ? header.value : '';
}

function handler(event) {
  const request = event.request;
  const list = own(LISTS, said(request, 'mcp-method'));
  const folder = list && own(FUNCTIONS[list] || {}, said(request, 'mcp-name'));
  if (request.method === 'POST' && request.uri === '/mcp' && folder) {
    request.uri = '/mcp/' + folder;
  }
  return request;
}
