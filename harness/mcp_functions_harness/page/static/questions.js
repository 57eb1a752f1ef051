// The open questions of a round, as one form: to the user, to the client's model, and for the client's folders.

import { button, element, labelled, link } from "./elements.js";
import { formFor } from "./forms.js";

// `send` gets the answers by key.
export function questionForm(questions, send) {
  const elicits = questions.every(([, request]) => request.method === "elicitation/create");
  const each = questions.length > 1 && elicits ? choosing : (part) => part;
  const parts = questions.map(([key, request]) => ({ key, ...each(partFor(request)) }));
  const problem = element("p", { class: "problem", role: "alert" });
  let form;
  // A second press of the button would send the round twice.
  const sendOnce = async (answers) => {
    form.inert = true;
    await send(answers);
    form.inert = false;
  };
  const all = (action) => Object.fromEntries(parts.map((part) => [part.key, part.refuse(action)]));
  const submit = (event) => {
    event.preventDefault();
    try {
      sendOnce(Object.fromEntries(parts.map((part) => [part.key, part.answer()])));
    } catch (error) {
      problem.textContent = error.message;
    }
  };
  form = element(
    "form",
    { class: "question", onsubmit: submit, "aria-label": "Questions" },
    parts.map((part) => part.node),
    problem,
    element(
      "div",
      { class: "row" },
      element("button", { class: "primary" }, "Answer"),
      elicits ? button("Decline", () => sendOnce(all("decline"))) : null,
      elicits ? button("Cancel", () => sendOnce(all("cancel"))) : null,
    ),
  );
  return form;
}

// One of several questions may be declined alone; then its fields are not checked.
function choosing(part) {
  const choice = element(
    "select",
    {},
    ["Answer", "Decline", "Cancel"].map((action) => element("option", {}, action)),
  );
  choice.addEventListener("change", () => {
    for (const control of part.node.querySelectorAll("input, textarea, select")) {
      control.disabled = control !== choice && choice.value !== "Answer";
    }
  });
  part.node.append(labelled("With this question", choice));
  const answer = () => (choice.value === "Answer" ? part.answer() : part.refuse(choice.value.toLowerCase()));
  return { ...part, answer };
}

function partFor({ method, params = {} }) {
  if (method === "sampling/createMessage") return sampling(params);
  if (method === "roots/list") return roots();
  return params.mode === "url" ? address(params) : elicitation(params);
}

const refuse = (action) => ({ action });

function elicitation({ message, requestedSchema = {} }) {
  const form = formFor(requestedSchema);
  const node = element("fieldset", {}, element("legend", {}, message), form.node);
  return { node, refuse, answer: () => ({ action: "accept", content: form.read() }) };
}

function address({ message, url }) {
  const advice = element("p", {}, "The server asks you to open this page. Answer when you agree to open it:");
  const node = element(
    "fieldset",
    {},
    element("legend", {}, message),
    advice,
    element("p", { class: "address" }, link(url)),
  );
  return { node, refuse, answer: () => ({ action: "accept" }) };
}

function sampling({ messages = [], systemPrompt = "", maxTokens }) {
  const asked = messages.map(({ role, content }) => `${role}: ${content?.text ?? JSON.stringify(content)}`);
  const text = element("textarea", { rows: "4", required: true });
  const field = labelled("The answer of your model", text, `At most ${maxTokens} tokens. Here you are the model.`);
  const shown = [systemPrompt, ...asked].filter(Boolean).map((line) => element("p", { class: "text" }, line));
  const node = element("fieldset", {}, element("legend", {}, "The tool asks your model"), shown, field);
  const answer = () => ({
    role: "assistant",
    content: { type: "text", text: text.value },
    model: "you",
    stopReason: "endTurn",
  });
  return { node, answer, refuse };
}

function roots() {
  const text = element("textarea", { rows: "3", value: "file:///home/me/project" });
  const node = element(
    "fieldset",
    {},
    element("legend", {}, "The tool asks for your folders"),
    labelled("A file:// URI on each line", text),
  );
  const uris = () =>
    text.value
      .split("\n")
      .map((line) => line.trim())
      .filter(Boolean);
  return { node, refuse, answer: () => ({ roots: uris().map((uri) => ({ uri })) }) };
}
