"""events/<function>/: a conversation as files, one API Gateway event for each round, for `sam local invoke`.

A round is one request of a call. Its response may ask questions; then it has a `requestState`, the encrypted state of
the call, which the next request must return. A file has {{requestState}} in its place. `next RESPONSE EVENT` puts the
state of a response there, as a client does; so `sam local invoke` can hold a whole conversation. Every conversation has
the same time and the same ids, so that a file changes only if the conversation changes.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from mcp_functions.attack import messages
from mcp_functions.local.api_gateway.events import Moment, body_text, event, event_of_message, message_in
from mcp_functions.local.loopback import HttpRequest
from mcp_functions.local.problems import Problem, stop

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path

PLACEHOLDER = "{{requestState}}"
MOMENT = Moment(1_785_000_000.0, "JKJaXmPLvHcESHA=", "Root=1-6a63e840-0123456789abcdef01234567")
CAPABILITIES: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}
OUTDATED = "is out of date: pytest --update-events"


def check(
    directory: Path, function: str, sent: Sequence[Mapping[str, Any]], names: Sequence[str], *, update: bool = False
) -> list[str]:
    """Compare a conversation with its files, and return one line for each difference.

    Args:
        directory: events/, with a folder for each function.
        function: the function's folder.
        sent: the event of every round.
        names: the names of the rounds; the first file is `1-<name>.json`.
        update: whether to write the files first, and delete those of rounds that the conversation no longer has.
    """
    if len(names) != len(sent):
        return [f"the conversation has {len(sent)} rounds, and {len(names)} names: {', '.join(names)}"]
    complaints = []
    round_files = files(directory / function, sent, names)
    for path in stale(directory / function, [path for path, _ in round_files]):
        if update:
            path.unlink()
        else:
            complaints.append(f"{directory.name}/{function}/{path.name} is of no round: pytest --update-events")
    for path, text in round_files:
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        relative_path = f"{directory.name}/{function}/{path.name}"
        if not path.exists():
            complaints.append(f"{relative_path} is missing: pytest --update-events")
        elif path.read_text(encoding="utf-8") != text:
            complaints.append(f"{relative_path} {OUTDATED}")
    return complaints


def stale(folder: Path, recorded: Collection[Path]) -> list[Path]:
    """Return the files of rounds, `<number>-<name>.json`, that a conversation does not have."""
    numbered = [path for path in folder.glob("*.json") if path.name.partition("-")[0].isdigit()]
    return sorted(path for path in numbered if path not in recorded)


def files(folder: Path, sent: Iterable[Mapping[str, Any]], names: Iterable[str]) -> list[tuple[Path, str]]:
    """Return path and text of every round's file."""
    numbered = enumerate(zip(names, sent, strict=True), start=1)
    return [(folder / f"{number}-{name}.json", text(event_)) for number, (name, event_) in numbered]


def text(sent: Mapping[str, Any]) -> str:
    """Return one event as text, with a fixed time and fixed ids."""
    return json.dumps(_at_one_moment(_without_state(dict(sent))), indent=2, ensure_ascii=False) + "\n"


def round_of(function: str, number: int, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Make the event of one round, from a client with every capability.

    Args:
        function: the function's folder.
        number: the round's number, from 1.
        method: the method of MCP, e.g. "tools/call".
        params: the method's params without `_meta`.
    """
    message = messages.message(method, params, number, CAPABILITIES)
    return event_of_message(message, f"/mcp/{function}", MOMENT)


def _without_state(sent: dict[str, Any]) -> dict[str, Any]:
    """Return an event with the placeholder for its state, which differs in every run."""
    message = json.loads(sent["body"])
    if "requestState" not in message["params"]:
        return sent
    message["params"]["requestState"] = PLACEHOLDER
    body = json.dumps(message, ensure_ascii=False)
    return {**sent, "body": body, "headers": {**sent["headers"], "content-length": str(len(body.encode()))}}


def _at_one_moment(sent: dict[str, Any]) -> dict[str, Any]:
    """Return an event with the fixed time and ids."""
    path = sent["rawPath"]
    fixed = event(HttpRequest("POST", path, (), None), path, MOMENT)["requestContext"]
    times = {name: fixed[name] for name in ("requestId", "time", "timeEpoch")}
    headers = {**sent["headers"], "x-amzn-trace-id": MOMENT.trace_id}
    return {**sent, "headers": headers, "requestContext": {**sent["requestContext"], **times}}


def follow(response: str, event: str) -> str:
    """Put the state of a response into an event.

    Args:
        response: the Lambda's result, as JSON.
        event: the next round's API Gateway event, as JSON.

    Raises:
        Problem: the response has no state (it is an error, or final), or the event has no place for one.
    """
    next_event = _object(event, "EVENT")
    state = _state(_object(response, "RESPONSE"))
    return json.dumps(_filled(next_event, state), indent=2) + "\n"


def _state(response: dict[str, Any]) -> str:
    if "errorType" in response:
        stop(f"RESPONSE says that the function failed, {response['errorType']}: {response.get('errorMessage')}")
    if not isinstance(response.get("body"), str):
        stop("RESPONSE is not what a Lambda behind API Gateway returns: it has no body")
    match message_in(_body(response)):
        case {"error": {"code": code, "message": message}}:
            problem = f"RESPONSE is an error, {code}: {message}"
        case {"result": {"requestState": str(state)}}:
            return state
        case {"result": {"resultType": "input_required"}}:
            problem = "RESPONSE asks without a requestState: send the next event as it is"
        case {"result": _}:
            problem = "RESPONSE has no requestState: it is the final result, no round follows it"
        case _:
            problem = "RESPONSE holds no JSON-RPC response in its body"
    raise Problem(problem)


def _filled(event: dict[str, Any], state: str) -> dict[str, Any]:
    text = _body(event)
    if PLACEHOLDER not in text:
        stop(f"EVENT has no {PLACEHOLDER} in its body: it does not continue a conversation")
    text = text.replace(PLACEHOLDER, json.dumps(state)[1:-1])  # the placeholder is inside a JSON string
    headers = dict(event.get("headers") or {})
    for name in headers:
        if name.lower() == "content-length":
            headers[name] = str(len(text.encode()))
    filled = dict(event)
    if headers:
        filled["headers"] = headers
    filled["body"] = base64.b64encode(text.encode()).decode() if event.get("isBase64Encoded") else text
    return filled


def _body(event: dict[str, Any]) -> str:
    """Return the body of an event or of a result as text."""
    try:
        return body_text(event)
    except ValueError:
        stop("a body says that it is base64, but it is not")


def _object(text: str, name: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        stop(f"{name} is not a JSON object" if text.strip() else f"{name} is empty")
    return value
