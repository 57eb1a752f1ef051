// Makes every element of the page. Text from a server is set as text: nothing here parses markup.

const PROPERTIES = new Set(["checked", "disabled", "hidden", "required", "selected", "value"]);
let ids = 0;

// `attributes` are the page's own names; a key that begins with "on" is a listener.
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (PROPERTIES.has(key)) made[key] = value;
    else if (value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.flat().filter((child) => child !== undefined && child !== null));
  return made;
}

export function button(text, press, attributes = {}) {
  return element("button", { type: "button", onclick: press, ...attributes }, text);
}

// Only http and https become links. Everything else, such as javascript:, stays text. Without a text of its own a link
// shows where it leads as the browser reads it, so that look-alike letters show.
export function link(address, text) {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (!["http:", "https:"].includes(url?.protocol)) return element("span", {}, text ?? address);
  const made = element("a", { target: "_blank", rel: "noopener noreferrer" }, text ?? url.href);
  made.href = url.href;
  return made;
}

export function details(summary, ...children) {
  return element("details", {}, element("summary", {}, summary), ...children);
}

export function code(value) {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return element("pre", { tabindex: "0" }, text ?? "");
}

// A label, its control, and a description that screen readers read with it.
export function labelled(text, control, description = "") {
  control.id ||= newId();
  const described = description ? element("small", { id: newId() }, description) : undefined;
  if (described) control.setAttribute("aria-describedby", described.id);
  return element("div", { class: "field" }, element("label", { for: control.id }, text), control, described);
}

export function newId() {
  ids += 1;
  return `made-${ids}`;
}
