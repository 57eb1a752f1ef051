// A call as text to paste: a curl command for a shell, a test for pytest. Everything from outside is quoted.

const KEYWORDS = new Set(
  (
    "False None True and as assert async await break class continue def del elif else except finally for from global " +
    "if import in is lambda nonlocal not or pass raise return try while with yield self __debug__"
  ).split(" "),
);
// Characters that a terminal or an editor does not show: control, direction, separators, halves of pairs.
const UNSEEN = /[\p{C}\p{Zl}\p{Zp}]/gu;
const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]*$/;

export function curl(url, { headers, body }, token = false) {
  // "Name;" is curl's word for a header without a value.
  const given = Object.entries(headers).map(
    ([name, value]) => `  -H ${shell(value ? `${name}: ${value}` : `${name};`)} \\\n`,
  );
  const authorization = token ? '  -H "Authorization: Bearer $TOKEN" \\\n' : "";
  return `curl -sS ${shell(url)} \\\n${given.join("")}${authorization}  --data-raw ${shell(jsonText(body))}`;
}

// In single quotes a shell reads everything as it is, except the single quote itself.
function shell(text) {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

// In JSON, escapes are the same text.
function jsonText(text) {
  return text.replace(UNSEEN, (character) =>
    [...Array(character.length).keys()].map((place) => unit(character.charCodeAt(place))).join(""),
  );
}

const unit = (number) => `\\u${number.toString(16).padStart(4, "0")}`;

// A test that holds the same conversation.
export function pytest({ call, rounds, folder, client }) {
  const tasks = rounds.some((round) => round.task);
  const options = [
    tasks ? "capabilities=WITH_TASKS" : "",
    client.access ? `principal=${python(client.access.subject)}` : "",
    client.access?.scopes.length ? `scopes=${python(client.access.scopes)}` : "",
  ];
  const begun = `talk = Conversation(${["handler", ...options].filter(Boolean).join(", ")})${called(call, folder)}`;
  const lines = [begun, ...rounds.flatMap((round, place) => roundLines(round, rounds[place - 1]))];
  const names = tasks ? "WITH_TASKS, Conversation, deployed" : "Conversation, deployed";
  const name = (call.title.match(/[A-Za-z0-9_]+/g) ?? ["call"]).join("_").toLowerCase();
  const imports = `from mcp_functions_harness.testing import ${names}\n\n${imported(folder ?? "")}`;
  const body = lines.map((line) => `        ${line}\n`).join("");
  return `${imports}\n\n\ndef test_${name}():\n    with deployed():\n${body}`;
}

function imported(folder) {
  if (IDENTIFIER.test(folder) && !KEYWORDS.has(folder)) return `from functions.${folder}.app import handler`;
  return `from importlib import import_module\n\nhandler = import_module(${python(`functions.${folder}.app`)}).handler`;
}

function called({ method, params }, folder) {
  if (method === "resources/read") return `.read(${python(params.uri)})`;
  const name = params.name === folder ? [] : [python(params.name)];
  return `.call(${[...name, ...keywords(params.arguments ?? {})].join(", ")})`;
}

function roundLines(round, before) {
  const given = round.inputs.inputResponses ?? {};
  const lines = [];
  if (before)
    lines.push(Object.keys(given).length ? answered(given, Object.fromEntries(before.questions)) : "talk.go_on()");
  if (round.task)
    lines.push(
      "assert talk.task_id",
      "talk.poll()",
      ...(round.taskAnswers ?? []).flatMap((one) => [
        `assert talk.asked == ${python(Object.keys(one))}`,
        answered(one, {}),
      ]),
    );
  if (round.asks && round.questions.length)
    lines.push(`assert talk.asked == ${python(round.questions.map(([key]) => key))}`);
  if (round.error) lines.push(`assert talk.error["code"] == ${python(round.error.code)}`);
  const result = round.task ? round.task.result : !round.asks && round.result;
  if (result) lines.push(...outcome(result));
  return lines;
}

function outcome(result) {
  const blocks = result.messages?.map(({ content }) => content) ?? result.contents ?? result.content ?? [];
  const texts = blocks.map(({ text }) => text).filter((text) => text !== undefined);
  const failed = result.isError ? ['assert talk.result["isError"]'] : [];
  return texts.length === blocks.length
    ? [...failed, `assert talk.text == ${python(texts.join("\n"))}`]
    : [...failed, "assert talk.result"];
}

function answered(given, questions) {
  const answers = Object.entries(given);
  const all = (action) => answers.every(([, answer]) => answer.action === action);
  if (all("decline")) return "talk.decline()";
  if (all("cancel")) return "talk.cancel()";
  if (all("accept") && answers.every(([, answer]) => answer.content)) {
    const contents = answers.map(([key, { content }]) => [key, short(content, questions[key])]);
    return `talk.accept(${keywords(Object.fromEntries(contents)).join(", ")})`;
  }
  return `talk.answer(${keywords(given).join(", ")})`;
}

// `accept` takes the value alone if the form has one field, and the value is no object.
function short(content, question) {
  const fields = Object.keys(question?.params?.requestedSchema?.properties ?? {});
  const value = content[fields[0]];
  return fields.length === 1 && Object.keys(content).length === 1 && typeof value !== "object" ? value : content;
}

function keywords(values) {
  const entries = Object.entries(values);
  if (entries.every(([name]) => IDENTIFIER.test(name) && !KEYWORDS.has(name)))
    return entries.map(([name, value]) => `${name}=${python(value)}`);
  return [`**${python(values)}`];
}

// A JSON value as a literal of Python.
export function python(value) {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : "None";
  if (typeof value === "string") return pythonText(value);
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  return `{${Object.entries(value)
    .map(([key, one]) => `${pythonText(key)}: ${python(one)}`)
    .join(", ")}}`;
}

// JSON's escapes are Python's too. Python also has them for what lies beyond 16 bits.
function pythonText(text) {
  return JSON.stringify(text).replace(UNSEEN, (character) => {
    const point = character.codePointAt(0);
    return point > 0xffff ? `\\U${point.toString(16).padStart(8, "0")}` : unit(point);
  });
}
