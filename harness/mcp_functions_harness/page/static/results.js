// Shows results: of a tool, a prompt, a resource, and errors.

import { code, details, element, link } from "./elements.js";

export function resultOf(result) {
  const blocks = [
    ...(result.content ?? []).map(contentBlock),
    ...(result.messages ?? []).flatMap(({ role, content }) => [element("h4", {}, role), contentBlock(content)]),
    ...(result.contents ?? []).map(embedded),
  ];
  const structured =
    "structuredContent" in result ? details("Structured content", code(result.structuredContent)) : null;
  const title = result.isError ? "The tool failed" : "Result";
  return element(
    "section",
    { class: result.isError ? "outcome failed" : "outcome", "aria-label": title },
    element("h3", {}, title),
    blocks,
    structured,
  );
}

export function errorOf({ code: number, message, data }) {
  const more = data === undefined ? null : details("Data", code(data));
  return element(
    "section",
    { class: "outcome failed", "aria-label": "Error" },
    element("h3", {}, `Error ${number}`),
    element("p", { class: "text" }, message),
    more,
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
