// One field of a form, for each type of a JSON Schema.

import { element, labelled, newId } from "./elements.js";

const LONG = 200; // characters, from which a text gets several lines
const INPUTS = { email: "email", uri: "url", date: "date", "date-time": "datetime-local" };

// Returns the `node` of a field, and `read`, which returns its value; undefined if it is empty.
export function fieldFor(name, schema, required) {
  const label = `${schema.title ?? name}${required ? "" : " (optional)"}`;
  const description = schema.description ?? "";
  const several = schema.type === "array" ? choices(schema.items ?? {}) : [];
  if (several.length) return checkboxes(label, description, several, schema);
  const single = choices(schema);
  if (single.length) return selection(label, description, single, schema, required);
  if (schema.type === "boolean") return yesOrNo(label, description, schema, required);
  if (schema.type === "string") return textField(label, description, schema, required);
  if (schema.type === "number" || schema.type === "integer") return numberField(label, description, schema, required);
  return jsonField(label, description, schema, required);
}

// The values that may be chosen, each with its title: all five ways to write them.
function choices(schema) {
  const titled = schema.oneOf ?? schema.anyOf ?? [];
  if (titled.length && titled.every((one) => "const" in one))
    return titled.map((one) => [one.const, one.title ?? String(one.const)]);
  if ("const" in schema) return [[schema.const, schema.title ?? String(schema.const)]];
  return (schema.enum ?? []).map((value, place) => [value, schema.enumNames?.[place] ?? String(value)]);
}

function selection(label, description, options, schema, required) {
  const chosen = options.findIndex(([value]) => value === schema.default);
  const made = options.map(([, title], place) =>
    element("option", { value: String(place), selected: place === chosen }, title),
  );
  const none = element("option", { value: "" }, required ? "Choose…" : "—");
  const control = element("select", { required }, none, made);
  return { node: labelled(label, control, description), read: () => options[Number(control.value || -1)]?.[0] };
}

function yesOrNo(label, description, schema, required) {
  if (!required && !("default" in schema))
    return selection(
      label,
      description,
      [
        [true, "Yes"],
        [false, "No"],
      ],
      schema,
      required,
    );
  const control = element("input", { type: "checkbox", checked: schema.default === true });
  const node = labelled(label, control, description);
  node.classList.add("check");
  return { node, read: () => control.checked };
}

function checkboxes(label, description, options, schema) {
  const boxes = options.map(([value]) =>
    element("input", { type: "checkbox", id: newId(), checked: (schema.default ?? []).includes(value) }),
  );
  const rows = options.map(([, title], place) =>
    element("div", { class: "check" }, boxes[place], element("label", { for: boxes[place].id }, title)),
  );
  const node = element(
    "fieldset",
    {},
    element("legend", {}, label),
    description ? element("small", {}, description) : null,
    rows,
  );
  const chosen = () => options.filter((_, place) => boxes[place].checked).map(([value]) => value);
  const check = () => boxes[0].setCustomValidity(amiss(chosen().length, schema));
  node.addEventListener("change", check);
  check();
  return { node, read: chosen };
}

function amiss(count, { minItems = 0, maxItems = Infinity }) {
  if (count < minItems) return `Choose at least ${minItems}.`;
  return count > maxItems ? `Choose at most ${maxItems}.` : "";
}

function textField(label, description, schema, required) {
  const type = INPUTS[schema.format] ?? "text";
  if (type === "text" && (schema.maxLength > LONG || schema.default?.length > LONG || schema.default?.includes("\n")))
    return longText(label, description, schema, required);
  const isMoment = type === "datetime-local";
  const control = element("input", {
    type,
    required,
    minlength: schema.minLength,
    maxlength: schema.maxLength,
    step: isMoment ? "1" : undefined,
    value: isMoment ? localMoment(schema.default) : String(schema.default ?? ""),
    autocomplete: "off",
  });
  const read = () => (isMoment && control.value ? new Date(control.value).toISOString() : control.value || undefined);
  return { node: labelled(label, control, description), read };
}

// A text of several lines; the field grows with it.
function longText(label, description, schema, required) {
  const control = element("textarea", {
    class: "long",
    rows: "3",
    required,
    minlength: schema.minLength,
    maxlength: schema.maxLength,
    value: schema.default ?? "",
  });
  return { node: labelled(label, control, description), read: () => control.value || undefined };
}

function numberField(label, description, schema, required) {
  const control = element("input", {
    type: "number",
    required,
    min: schema.minimum,
    max: schema.maximum,
    step: schema.type === "integer" ? "1" : "any",
    value: String(schema.default ?? ""),
  });
  return {
    node: labelled(label, control, description),
    read: () => (control.value === "" ? undefined : Number(control.value)),
  };
}

export function jsonField(label, description, schema, required) {
  const initial = "default" in schema ? JSON.stringify(schema.default) : "";
  const control = element("textarea", {
    required,
    rows: "3",
    value: initial,
    spellcheck: "false",
    placeholder: example(schema),
  });
  const node = labelled(`${label}, as JSON`, control, description);
  return { node, read: () => (control.value.trim() ? fromJson(label, control.value) : undefined) };
}

function example(schema) {
  return { object: '{"key": "value"}', array: "[1, 2]" }[schema.type] ?? "";
}

function localMoment(moment) {
  const date = new Date(moment ?? NaN);
  if (Number.isNaN(date.valueOf())) return "";
  return new Date(date - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

export function fromJson(label, text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`${label}: ${error.message}`);
  }
}
