// The page: what the server offers on the left, a call with its conversation on the right.

import { Conversation } from "./conversation.js";
import { curl, pytest } from "./copies.js";
import { button, code, details, element } from "./elements.js";
import { formFor } from "./forms.js";
import { access, start as startPage } from "./harness.js";
import { Client } from "./mcp.js";
import { listOffers } from "./offers.js";
import { facts, roundView } from "./rounds.js";

const at = (id) => document.getElementById(id);
const client = new Client(`${location.origin}/mcp`, access);
let conversation;
let groups = [];
let completes = false; // whether the server completes arguments

function say(text) {
  at("status").textContent = text;
}

// Runs an action, and shows its failure instead of hiding it in the console.
async function act(action) {
  const before = conversation;
  at("main").setAttribute("aria-busy", "true");
  try {
    await action();
  } catch (error) {
    if (before === conversation) say(error.message); // the status belongs to what is shown
  } finally {
    at("main").removeAttribute("aria-busy");
  }
}

async function refresh() {
  if (!client.access) await client.signIn();
  showAccess();
  const discovered = (await client.request("server/discover")).message;
  if (discovered.error) throw new Error(reasonOf(discovered.error));
  const server = discovered.result.serverInfo ?? discovered.result._meta?.["io.modelcontextprotocol/serverInfo"] ?? {};
  at("server").textContent = server.title ?? server.name ?? "mcp-functions";
  document.title = `${at("server").textContent} · mcp-functions`;
  groups = await listOffers(client, discovered.result.capabilities);
  completes = "completions" in discovered.result.capabilities;
  showOffers();
}

// What a new reader needs: the URL, how a client connects, and what there is to call.
async function showStart() {
  const { url, clients, asking } = await startPage();
  if (shownOffer()) return; // chosen meanwhile
  const listed = groups.filter(({ offers }) => offers.length);
  at("main").replaceChildren(
    element("h2", {}, "Connect a client"),
    element("p", { class: "address" }, url),
    details("Configurations of clients", code(clients)),
    element("p", { class: "quiet" }, "Or call something here:"),
    ...listed.flatMap(({ heading, offers }) => [
      element("h3", {}, heading),
      element(
        "ul",
        { class: "offered", "aria-label": `${heading} to call` },
        offers.map((offer) =>
          element(
            "li",
            {},
            element("a", { href: `#${encodeURIComponent(offer.id)}` }, offer.title ?? offer.name),
            element("span", { class: "quiet" }, asking.includes(offer.key) ? " may ask" : ""),
          ),
        ),
      ),
    ]),
  );
}

function showAccess() {
  const { subject, scopes } = client.access ?? {};
  const granted = scopes?.length ? `, with the scopes ${scopes.join(" ")}` : "";
  at("access").textContent = subject ? `Signed in as ${subject}, with a token of the local issuer${granted}.` : "";
}

function reasonOf({ code: number, message }) {
  if (number === 401)
    return "The server refused the access token of the local issuer. Restart serve, and load the page again.";
  return `Error ${number}: ${message}`;
}

function showOffers() {
  const listed = groups.filter(({ offers }) => offers.length);
  at("offers").replaceChildren(
    ...listed.map(({ heading, offers }) =>
      element(
        "section",
        {},
        element("h2", {}, heading),
        element(
          "ul",
          {},
          offers.map((offer) =>
            element(
              "li",
              {},
              button(offer.title ?? offer.name, () => open(offer), current(offer)),
            ),
          ),
        ),
      ),
    ),
  );
  if (!listed.length) at("offers").append(element("p", { class: "quiet" }, "The server offers nothing."));
}

const wanted = () => decodeURIComponent(location.hash.slice(1));
const current = ({ id }) => (wanted() === id ? { "aria-current": "true" } : {});

const shownOffer = () => groups.flatMap(({ offers }) => offers).find(({ id }) => id === wanted());

function leave() {
  conversation?.stop();
  conversation = undefined;
  say("");
  showOffers();
}

function open(offer) {
  history.replaceState(null, "", `#${encodeURIComponent(offer.id)}`);
  leave();
  const form = formFor(offer.schema, completes && offer.ref ? completer(offer.ref) : undefined);
  const rounds = element("ol", { class: "rounds", "aria-label": "Rounds" });
  const problem = element("p", { class: "problem", role: "alert" });
  const begin = (event) => {
    event.preventDefault();
    problem.textContent = "";
    try {
      start(offer.call(form.read()), rounds);
    } catch (error) {
      problem.textContent = error.message;
    }
  };
  at("main").replaceChildren(
    element("h2", {}, offer.title ?? offer.name, offer.title ? element("code", {}, offer.name) : null),
    element("p", { class: "text" }, offer.description ?? ""),
    element(
      "form",
      { class: "call", onsubmit: begin, "aria-label": "Arguments" },
      form.node,
      problem,
      element("div", { class: "row" }, element("button", { class: "primary" }, offer.verb)),
    ),
    rounds,
    element("div", { id: "copies" }),
  );
  at("main").focus();
}

// Asks the server for values of an argument, as a client does while its user types.
const completer = (ref) => async (name, value, filled) => {
  const context = { arguments: filled };
  const { message } = await client.request("completion/complete", { ref, argument: { name, value }, context });
  return message.result?.completion.values ?? [];
};

function start(call, list) {
  conversation?.stop();
  list.replaceChildren();
  at("copies").replaceChildren();
  const held = new Conversation(client, call, (round) => show(held, round, list));
  conversation = held;
  act(() => held.begin());
}

function show(held, round, list) {
  if (held !== conversation) return;
  const isNew = list.children.length < round.number;
  if (isNew && round.number > 1) put(held, held.rounds[round.number - 2], list);
  put(held, round, list);
  showCopies(held);
  if (round !== held.last) return;
  say(`Round ${round.number}: ${facts(held, round)}`);
  const shown = list.lastChild;
  const isElsewhere = document.activeElement?.closest(".round") !== shown;
  if (round.questions.length && isElsewhere)
    shown.querySelector(".question :is(a, input, select, textarea, button)")?.focus();
  else if (document.activeElement === document.body) shown.querySelector("h3").focus();
}

// Puts a round into its place. What was open stays open, and the focus stays on the same button.
function put(held, round, list) {
  const old = list.children[round.number - 1];
  const open = new Set(
    [...(old?.querySelectorAll("details[open] > summary") ?? [])].map((summary) => summary.textContent),
  );
  const focused = old?.contains(document.activeElement) ? document.activeElement : undefined;
  const made = roundView(held, round, act);
  if (old) old.replaceWith(made);
  else list.append(made);
  for (const each of made.querySelectorAll("details")) each.open = open.has(each.firstChild.textContent);
  const same = [...made.querySelectorAll("button")].find((one) => one.textContent === focused?.textContent);
  if (focused) (focused.isConnected ? focused : same)?.focus();
}

function showCopies(held) {
  const shown = element("div", { "aria-live": "polite" });
  const copy = (make) => async () => {
    const text = make();
    shown.replaceChildren(code(text));
    await navigator.clipboard.writeText(text).then(
      () => say("Copied."),
      () => say("Copy it from below."),
    );
  };
  at("copies").replaceChildren(
    element(
      "div",
      { class: "row" },
      button(
        "Copy the conversation as a test",
        copy(() => pytest(held)),
      ),
      button(
        "Copy the last round as curl",
        copy(() => curl(client.url, held.last.exchange.sent, client.access !== null)),
      ),
    ),
    shown,
  );
}

at("server").href = "#"; // the start page
at("refresh").addEventListener("click", () => act(refresh));
at("tasks").addEventListener("change", (event) => {
  client.takesTasks = event.target.checked;
});
at("level").addEventListener("change", (event) => {
  client.logLevel = event.target.value;
});
addEventListener("hashchange", () => {
  const offer = shownOffer();
  if (offer) return open(offer);
  leave();
  return act(showStart);
});
await act(refresh);
if (shownOffer()) open(shownOffer());
else await act(showStart);
