// What the server offers: tools, prompts, resources, resource templates and skills, each with the call that it leads to.

const LISTS = [
  ["tools/list", "tools", "Tools", tool],
  ["prompts/list", "prompts", "Prompts", prompt],
  ["resources/list", "resources", "Resources", resource],
  ["resources/templates/list", "resourceTemplates", "Resource templates", template],
];
const SKILLS = "io.modelcontextprotocol/skills";
const VARIABLE = /\{([\w.]+)\}/g;

// Returns the offers in groups. A server refuses the lists of a capability that it does not declare.
export async function listOffers(client, capabilities) {
  const groups = [];
  const declared = LISTS.filter(([method]) => method.split("/")[0] in capabilities);
  for (const [method, member, heading, read] of declared) {
    const listed = await client.list(method, member);
    groups.push({ heading, offers: listed.map((one) => ({ id: `${member}/${one.name ?? one.uri}`, ...read(one) })) });
  }
  if (SKILLS in (capabilities.extensions ?? {})) {
    const skills = await client.list("skills/list", "skills");
    groups.push({ heading: "Skills", offers: skills.map((one) => ({ id: `skills/${one.uri}`, ...skill(one) })) });
  }
  return groups;
}

// An offer: `schema` of its form, and `call`, which makes a request from the form's values.
function tool({ name, title, description, inputSchema, annotations }) {
  const call = (values) => ({
    method: "tools/call",
    params: { name, arguments: values },
    schema: inputSchema,
    title: name,
  });
  return { name, key: name, title: title ?? annotations?.title, description, schema: inputSchema ?? {}, verb: "Call", call };
}

function prompt({ name, title, description, arguments: listed = [] }) {
  const properties = listed.map((one) => [
    one.name,
    { type: "string", title: one.title, description: one.description },
  ]);
  const schema = {
    properties: Object.fromEntries(properties),
    required: listed.filter((one) => one.required).map((one) => one.name),
  };
  const call = (values) => ({ method: "prompts/get", params: { name, arguments: values }, title: name });
  return { name, key: name, ref: { type: "ref/prompt", name }, title, description, schema, verb: "Get", call };
}

function resource({ name, title, description, uri }) {
  return {
    name,
    key: uri,
    title,
    description: `${description ?? ""}\n${uri}`.trim(),
    schema: {},
    verb: "Read",
    call: () => reading(name, uri),
  };
}

// A template with other expressions than {name} is filled in by hand.
function template({ name, title, description, uriTemplate }) {
  const variables = [...uriTemplate.matchAll(VARIABLE)].map(([, variable]) => variable);
  const byHand = /[{}]/.test(uriTemplate.replace(VARIABLE, ""));
  const fields = byHand
    ? [["uri", { type: "string", default: uriTemplate }]]
    : variables.map((variable) => [variable, { type: "string" }]);
  const uri = (values) =>
    byHand ? values.uri : uriTemplate.replace(VARIABLE, (_, variable) => encodeURIComponent(values[variable]));
  return {
    name,
    key: uriTemplate,
    ref: byHand ? undefined : { type: "ref/resource", uri: uriTemplate },
    title,
    description: `${description ?? ""}\n${uriTemplate}`.trim(),
    verb: "Read",
    schema: { properties: Object.fromEntries(fields), required: fields.map(([field]) => field) },
    call: (values) => reading(name, uri(values)),
  };
}

// A skill is a folder of files, of which the user chooses one to read.
function skill({ uri, frontmatter: { name, description }, resources }) {
  const files = resources.map((file) => file.uri);
  return {
    name,
    description: `${description}\n${uri}`,
    verb: "Read",
    schema: { properties: { file: { type: "string", enum: files, default: uri } }, required: ["file"] },
    call: ({ file }) => reading(name, file),
  };
}

const reading = (name, uri) => ({ method: "resources/read", params: { uri }, title: name });
