// A CloudFront function (cloudfront-js-2.0, viewer request): it routes a call to the Lambda function that the call names.
//
// An MCP client repeats in its headers the method (Mcp-Method) and the name or URI (Mcp-Name) of its body, so the edge
// need not read a body. A request that is not in this table goes to the endpoint: discovery, lists, URIs of a template,
// completions. The function compares the headers with the body, and refuses a call in which they differ.

// The value of "functions" in catalog.json, unchanged
const FUNCTIONS = { tools: {}, prompts: {}, resources: {} };

const LISTS = { 'tools/call': 'tools', 'prompts/get': 'prompts', 'resources/read': 'resources' };

function own(table, key) {
  return Object.prototype.hasOwnProperty.call(table, key) ? table[key] : undefined;
}

// The value of a header that was sent once. The endpoint refuses a header that was sent twice.
function headerValue(request, name) {
  const header = own(request.headers, name);
  return header && !header.multiValue ? header.value : '';
}

function handler(event) {
  const request = event.request;
  const list = own(LISTS, headerValue(request, 'mcp-method'));
  const folder = list && own(FUNCTIONS[list] || {}, headerValue(request, 'mcp-name'));
  if (request.method === 'POST' && request.uri === '/mcp' && folder) {
    request.uri = '/mcp/' + folder;
  }
  return request;
}
