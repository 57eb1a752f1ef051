// A conversation: its rounds, and what may be tried with each of them. It knows nothing of the page's elements.

import * as harness from "./harness.js";

const MAX_ROUNDS_WITHOUT_QUESTION = 10; // the limit of the official clients
const ENDED = ["completed", "failed", "cancelled"];
const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

export class Conversation {
  // `call` has method, params, schema and title. `changed` is called with the round that changed.
  constructor(client, call, changed) {
    Object.assign(this, { client, call, changed, rounds: [], task: null, polling: false, stopped: false });
  }

  get last() {
    return this.rounds.at(-1);
  }

  // What a state is sealed for, and so compared with when it is opened.
  get sealedFor() {
    const { method, params } = this.call;
    const call = { function: this.folder, method, target: params.name ?? params.uri };
    return "arguments" in params ? { ...call, arguments: params.arguments } : call;
  }

  get folder() {
    const folders = this.rounds.flatMap((round) => round.executions.map(({ folder }) => folder));
    return folders.find((folder) => folder !== "mcp");
  }

  async begin() {
    await this.#send({});
    for (let count = 1; this.last.asks && !this.last.questions.length && !this.stopped; count += 1) {
      if (count > MAX_ROUNDS_WITHOUT_QUESTION) throw new Error("Ten rounds without a question: clients give up here.");
      await this.answer({});
    }
  }

  // Sends the answers, by key, and the state as it was received.
  async answer(inputResponses) {
    if (this.task) {
      this.last.taskAnswers = [...(this.last.taskAnswers ?? []), inputResponses];
      await this.#about("tasks/update", { inputResponses });
      await this.#poll();
    } else {
      await this.#send({ inputResponses, ...stateOf(this.last) });
    }
  }

  async cancelTask() {
    await this.#about("tasks/cancel", {});
    if (!this.polling) await this.#poll();
  }

  stop() {
    this.stopped = true;
  }

  // Sends a round again, byte by byte, as a client does that lost the response.
  async repeat(round) {
    const exchange = await this.client.post(round.exchange.sent);
    round.trials.push({ exchange, same: told(exchange) === told(round.exchange) });
    this.changed(round);
  }

  // Sends the state that a round returned with one character changed.
  async tamper(round, position) {
    const before = round.state[position - 1];
    const after = before === "A" ? "B" : "A";
    const requestState = round.state.slice(0, position - 1) + after + round.state.slice(position);
    const { method, params, schema } = this.call;
    const exchange = await this.client.request(method, { ...params, inputResponses: {}, requestState }, schema);
    const { reasons } = await harness.openState(requestState, this.sealedFor, false);
    round.trials.push({ exchange, position, before, after, reasons });
    this.changed(round);
  }

  async look(round) {
    round.inside = await harness.openState(round.state, this.sealedFor, true);
    this.changed(round);
  }

  async #send(inputs) {
    const { method, params, schema } = this.call;
    const exchange = await this.client.request(method, { ...params, ...inputs }, schema);
    const round = this.#read(exchange, inputs);
    this.rounds.push(round);
    if (round.result?.resultType === "task") this.task = round.task = round.result;
    try {
      round.executions = await harness.executions(exchange.requestId);
      if (round.state) round.steps = (await harness.openState(round.state, this.sealedFor, false)).steps;
    } finally {
      this.changed(round);
    }
    if (this.task) await this.#poll();
  }

  #read(exchange, inputs) {
    const { result, error } = exchange.message;
    const asks = result?.resultType === "input_required";
    return {
      number: this.rounds.length + 1,
      exchange,
      inputs,
      result,
      error,
      asks,
      trials: [],
      executions: [],
      steps: [],
      questions: asks ? Object.entries(result.inputRequests ?? {}) : [],
      state: asks ? (result.requestState ?? "") : "",
    };
  }

  async #poll() {
    this.polling = true;
    try {
      await this.#follow(this.last);
    } finally {
      this.polling = false;
      this.changed(this.last);
    }
  }

  // Gets the task until it asks or ends.
  async #follow(round) {
    while (!this.stopped) {
      const exchange = await this.#about("tasks/get", {});
      if (exchange.message.error) {
        round.error = exchange.message.error;
        return;
      }
      this.task = round.task = exchange.message.result;
      round.questions = this.task.status === "input_required" ? Object.entries(this.task.inputRequests ?? {}) : [];
      if (round.questions.length || ENDED.includes(this.task.status)) return;
      this.changed(round);
      await wait(Math.min(this.task.pollIntervalMs ?? 1000, 5000));
    }
  }

  #about(method, params) {
    return this.client.request(method, { taskId: this.task.taskId, ...params });
  }
}

const stateOf = ({ state }) => (state ? { requestState: state } : {});

// What an exchange told the client, without the state: the same state is sealed differently each time.
function told({ message: { result, error } }) {
  return JSON.stringify({ ...result, requestState: undefined, error });
}
