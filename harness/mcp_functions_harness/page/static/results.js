// Shows results: of a tool, a prompt, a resource, and errors.

import { code, details, element, link } from "./elements.js";

// `refused`: the user declined or cancelled, so a tool that ends with an error did what it should.
export function resultOf(result, { refused = false, traceback = "" } = {}) {
  const blocks = [
    ...(result.content ?? []).map(contentBlock),
    ...(result.messages ?? []).flatMap(({ role, content }) => [element("h4", {}, role), contentBlock(content)]),
    ...(result.contents ?? []).map(embedded),
  ];
  const structured =
    "structuredContent" in result ? details("Structured content", code(result.structuredContent)) : null;
  const failed = result.isError && !refused;
  const title = failed ? "The tool failed" : result.isError ? "Ended, because you did not answer" : "Result";
  return element(
    "section",
    { class: `outcome${failed ? " failed" : result.isError ? " refused" : ""}`, "aria-label": title },
    element("h3", {}, title),
    blocks,
    structured,
    tracebackOf(traceback),
  );
}

const tracebackOf = (text) => (text ? code(text) : null);

export function errorOf({ code: number, message, data }, { traceback = "" } = {}) {
  const more = data === undefined ? null : details("Data", code(data));
  return element(
    "section",
    { class: "outcome failed", "aria-label": "Error" },
    element("h3", {}, `Error ${number}`),
    element("p", { class: "text" }, message),
    more,
    tracebackOf(traceback),
  );
}

function contentBlock(block) {
  if (block?.type === "text") return element("p", { class: "text" }, block.text);
  if (block?.type === "image" || block?.type === "audio") return binary(block.mimeType, block.data);
  if (block?.type === "resource_link")
    return element("p", {}, link(block.uri, block.title ?? block.name ?? block.uri), ` ${block.uri}`);
  if (block?.type === "resource") return embedded(block.resource ?? {});
  return code(block);
}

function embedded({ uri, mimeType, text, blob }) {
  const shown = text === undefined ? binary(mimeType, blob ?? "") : element("p", { class: "text" }, text);
  return element("div", {}, element("p", { class: "quiet" }, link(uri)), shown);
}

// The page loads no data of a server but its text.
function binary(mimeType, base64 = "") {
  return element(
    "p",
    { class: "quiet" },
    `${mimeType ?? "Data"}, ${Math.floor((base64.length * 3) / 4)} bytes (not shown)`,
  );
}
