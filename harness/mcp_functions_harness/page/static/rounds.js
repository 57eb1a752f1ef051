// Shows one round: what was sent, what came back, and what may be tried with it.

import { curl } from "./copies.js";
import { button, code, details, element, newId } from "./elements.js";
import { questionForm } from "./questions.js";
import { errorOf, resultOf } from "./results.js";
import { inside, tools, trials } from "./trials.js";

// `act` runs an action, and shows its failure.
export function roundView(conversation, round, act) {
  const heading = newId();
  return element(
    "li",
    { class: "round", "aria-labelledby": heading },
    element(
      "h3",
      { id: heading, tabindex: "-1" },
      `Round ${round.number}`,
      element("span", { class: "facts" }, ` ${facts(conversation, round)} · request ${round.exchange.requestId}`),
    ),
    sentInputs(round),
    notifications(round),
    steps(round),
    taskView(conversation, round, act),
    body(conversation, round, act),
    tools(conversation, round, act),
    trials(round),
    inside(round),
    details("On the wire", wire(round, conversation.client.url)),
  );
}

// The line that `serve` writes too: function, answers, questions, duration, size of the state.
export function facts(conversation, round) {
  const { inputs, questions, result, error, exchange, state, executions } = round;
  const answered = Object.entries(inputs.inputResponses ?? {}).map(
    ([key, { action }]) => `${key} ${PAST[action] ?? "answered"}`,
  );
  const asking = questions.map(([key]) => key).join(", ");
  const cold = executions.some(({ initMilliseconds }) => initMilliseconds !== null);
  const ends = { task: "became a task", input_required: asking ? `asks ${asking}` : "goes on" };
  return [
    conversation.folder,
    ...answered,
    error ? `error ${error.code}` : (ends[result?.resultType] ?? (result?.isError && !isRefused(round) ? "failed" : "ended")),
    `${exchange.milliseconds.toFixed(0)} ms${cold ? ", cold" : ""}`,
    state && `state ${state.length} B`,
  ]
    .filter(Boolean)
    .join(" · ");
}

const PAST = { accept: "answered", decline: "declined", cancel: "cancelled" };

function sentInputs({ inputs }) {
  const given = Object.entries(inputs.inputResponses ?? {}).map(([key, { action, content, ...more }]) => {
    const rest = content ?? (Object.keys(more).length ? more : undefined);
    return element(
      "li",
      {},
      element("code", {}, key),
      ` ${action ?? ""} `,
      rest === undefined ? "" : element("code", {}, JSON.stringify(rest)),
    );
  });
  return given.length ? element("ul", { class: "notes", "aria-label": "Your answers" }, given) : null;
}

function notifications({ exchange }) {
  const reports = exchange.notifications.filter(({ method }) => method === "notifications/progress");
  const made = exchange.notifications.map((notification) => {
    const { method, params = {} } = notification;
    if (method === "notifications/progress") return progress(params, notification === reports.at(-1));
    if (method === "notifications/message")
      return element("li", {}, element("b", {}, params.level), " ", params.logger ?? "", " ", asText(params.data));
    return element("li", {}, method);
  });
  return made.length ? element("ul", { class: "notes", "aria-label": "Logs and progress" }, made) : null;
}

// One bar, of the last report; the reports before it are lines.
function progress({ progress: value, total, message = "" }, isLast) {
  const bar = element("progress", { "aria-label": "Progress", max: total, value: total ? value : undefined });
  return element("li", {}, isLast ? bar : "", ` ${value}${total ? ` of ${total}` : ""} ${message}`);
}

function steps({ steps: recorded }) {
  if (!recorded.length) return null;
  const listed = recorded.map(({ key, milliseconds }) =>
    element("li", {}, element("code", {}, key), ` ${milliseconds} ms`),
  );
  return element("div", { class: "steps" }, "Steps recorded: ", element("ul", {}, listed));
}

function taskView(conversation, { task }, act) {
  if (!task) return null;
  const running = ["working", "input_required"].includes(task.status);
  return element(
    "section",
    { class: "task", "aria-label": "Task" },
    element("p", {}, element("b", {}, `Task ${task.status}`), task.statusMessage ? `: ${task.statusMessage}` : ""),
    running ? button("Cancel the task", () => act(() => conversation.cancelTask())) : null,
    task.result ? resultOf(task.result) : null,
    task.error ? errorOf(task.error) : null,
  );
}

function body(conversation, round, act) {
  const how = { refused: isRefused(round), traceback: round.executions.map(({ traceback }) => traceback).join("") };
  if (round.error) return errorOf(round.error, how);
  if (round === conversation.last && round.questions.length) return openQuestions(conversation, round, act);
  if (round.asks)
    return round.questions.map(([, { params }]) => element("p", { class: "asked" }, params?.message ?? ""));
  return round.task ? null : resultOf(round.result ?? {}, how);
}

// Whether the user declined or cancelled a question of the round before, and the function did not crash.
function isRefused({ inputs, executions }) {
  const actions = Object.values(inputs.inputResponses ?? {}).map(({ action }) => action);
  return actions.some((action) => ["decline", "cancel"].includes(action)) && !executions.some((one) => one.traceback);
}

// The same form as long as the questions are the same, so that a half-filled form survives.
function openQuestions(conversation, round, act) {
  if (round.form?.questions !== round.questions) {
    const node = questionForm(round.questions, (answers) => act(() => conversation.answer(answers)));
    round.form = { questions: round.questions, node };
  }
  return round.form.node;
}

function wire({ exchange, executions }, url) {
  const ran = executions.map(({ folder, requestId, milliseconds, initMilliseconds, memoryMb, error }) =>
    element(
      "li",
      {},
      element("code", {}, folder),
      ` ${milliseconds} ms, request ${requestId}`,
      initMilliseconds === null ? "" : `, start ${initMilliseconds.toFixed(0)} ms`,
      memoryMb === null ? "" : `, ${memoryMb} MB`,
      error ? `, ${error}` : "",
    ),
  );
  return element(
    "div",
    {},
    element("p", {}, "Functions that ran:"),
    element("ul", {}, ran),
    element("h4", {}, "Request"),
    code({ headers: exchange.sent.headers, body: JSON.parse(exchange.sent.body) }),
    element("h4", {}, `Response, HTTP ${exchange.status}`),
    code(exchange.message),
    element("h4", {}, "As curl"),
    code(curl(url, exchange.sent)),
  );
}

const asText = (data) => (typeof data === "string" ? data : JSON.stringify(data));
