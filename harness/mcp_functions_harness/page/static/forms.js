// A form from a JSON Schema: of a tool's arguments, or of a question. What no field can hold is written as JSON.

import { button, element, labelled, newId } from "./elements.js";
import { fieldFor, fromJson, jsonField } from "./fields.js";

// `complete` returns values for a field: of its name, what is typed, and the other fields' values.
// Returns the form's `node`, and `read`, which returns the values and throws an Error that names what is not JSON.
export function formFor(schema, complete) {
  const required = new Set(schema.required ?? []);
  const fields = Object.entries(schema.properties ?? {}).map(([name, property]) => {
    try {
      return { name, ...fieldFor(name, resolve(property, schema.$defs ?? {}), required.has(name)) };
    } catch {
      return { name, ...jsonField(name, "", {}, required.has(name)) }; // an author may write any schema
    }
  });
  const shown = element(
    "div",
    {},
    fields.map((field) => field.node),
  );
  const text = element("textarea", { rows: "6", spellcheck: "false" });
  const asJson = element(
    "div",
    { hidden: true },
    labelled("JSON", text, "Sent as it is, so that you can try what the form refuses."),
  );
  const readFields = () =>
    Object.fromEntries(fields.map(({ name, read }) => [name, read()]).filter(([, value]) => value !== undefined));
  if (complete) for (const field of fields) offerValues(field, (name, typed) => complete(name, typed, readFields()));
  const toggle = button(
    "Write JSON",
    () => {
      asJson.hidden = !asJson.hidden;
      shown.hidden = !asJson.hidden;
      shown.toggleAttribute("inert", shown.hidden);
      for (const control of shown.querySelectorAll("input, select, textarea")) control.disabled = shown.hidden;
      if (!asJson.hidden) text.value = lenient(readFields);
      toggle.setAttribute("aria-pressed", String(!asJson.hidden));
    },
    { class: "quiet", "aria-pressed": "false" },
  );
  return {
    node: element("div", { class: "form" }, shown, asJson, toggle),
    read: () => (asJson.hidden ? readFields() : fromJson("JSON", text.value)),
  };
}

// Lists the values that the server knows below a field, while its user types.
function offerValues({ name, node }, complete) {
  const list = element("datalist", { id: newId() });
  const control = node.querySelector("input, textarea");
  control.setAttribute("list", list.id);
  node.append(list);
  let asked = 0;
  const ask = async () => {
    asked += 1;
    const number = asked;
    const values = await complete(name, control.value);
    if (number === asked) list.replaceChildren(...values.map((value) => element("option", { value })));
  };
  control.addEventListener("focus", ask);
  control.addEventListener("input", ask);
}

// Follows one $ref, and takes the type beside null of an optional value.
function resolve(schema, definitions) {
  const named = schema.$ref?.startsWith("#/") ? definitions[schema.$ref.split("/").at(-1)] : undefined;
  const whole = { ...named, ...schema };
  const types = (whole.anyOf ?? []).filter((one) => one.type !== "null");
  return types.length === 1 ? { ...resolve(types[0], definitions), ...whole, anyOf: undefined } : whole;
}

function lenient(read) {
  try {
    return JSON.stringify(read(), null, 2);
  } catch {
    return "{}";
  }
}
