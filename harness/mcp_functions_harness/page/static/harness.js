// What only this page may ask of the harness. Each request proves with the token of this run that the page sent it.

const token = document.querySelector('meta[name="page-token"]').content;

async function control(name, asked = {}) {
  const response = await fetch(`/page/control/${name}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Page-Token": token },
    body: JSON.stringify(asked),
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.message);
  return answer;
}

// An access token of the local issuer; null if the server wants none.
export const access = async () => (await control("access")).access;

// The URL, how clients connect, and the names and URIs of what may ask its user.
export const start = () => control("start");

// The functions that ran for an HTTP request.
export const executions = async (request) => (await control("executions", { request })).executions;

// What a state holds, compared with a request; the recorded answers only with `values`.
export const openState = (state, request, values) => control("open", { state, ...request, values });
