// What may be tried with a round: open its state, send it again, change one character of its state.

import { button, code, details, element } from "./elements.js";

export function tools(conversation, round, act) {
  const again = button("Send this round again", () => act(() => conversation.repeat(round)));
  if (!round.state) return element("div", { class: "row quiet" }, again);
  const place = element("input", {
    type: "number",
    min: 1,
    max: round.state.length,
    value: String(Math.ceil(round.state.length / 2)),
    "aria-label": "Position of the character",
  });
  const change = button("Change one character of the state", () => {
    if (place.reportValidity()) act(() => conversation.tamper(round, Number(place.value)));
  });
  const look = button("Look inside the state", () => act(() => conversation.look(round)));
  return element("div", { class: "row quiet" }, look, again, element("span", { class: "pair" }, change, place));
}

export function trials({ trials: tried }) {
  return tried.map((trial) =>
    element(
      "section",
      { class: "trial", "aria-label": "Trial" },
      trial.position ? changed(trial) : repeated(trial),
      details("Response", code(trial.exchange.message)),
    ),
  );
}

function repeated({ same, exchange }) {
  const text = same ? "Sent again: the server gave the same answer." : "Sent again: the server gave another answer.";
  return element("p", {}, `${text} HTTP ${exchange.status}.`);
}

function changed({ position, before, after, reasons, exchange }) {
  const { error } = exchange.message;
  const why = reasons.map(({ reason, why }) => `${reason}: ${why}`).join("; ");
  const answer = error
    ? `The server refused it: HTTP ${exchange.status}, ${error.code}, “${error.message}”.`
    : "The server accepted it.";
  return [
    element("p", {}, `Character ${position} changed from ${before} to ${after}. ${answer}`),
    element("p", { class: "quiet" }, why ? `Why: ${why}. The client is not told.` : ""),
  ];
}

export function inside({ inside: opened }) {
  if (!opened) return null;
  const refused = opened.reasons.map(({ reason, why }) => element("p", { class: "problem" }, `${reason}: ${why}`));
  return element(
    "section",
    { class: "inside", "aria-label": "Inside the state" },
    element("h4", {}, "Inside the state"),
    code(opened.lines.join("\n")),
    refused,
    opened.record ? [element("h4", {}, "Recorded"), code(opened.record)] : null,
  );
}
