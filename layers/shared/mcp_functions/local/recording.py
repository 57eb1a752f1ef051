"""events/<function>/: a conversation as files, one API Gateway event for each round, for `sam local invoke`.

A file has {{requestState}} in the place of a state, and `next` replaces it. Every conversation has the same time and
the same ids, so that a file changes only if the conversation changes.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mcp_functions.attack import messages
from mcp_functions.local.api_gateway.events import Moment, event, event_of_message
from mcp_functions.local.loopback import HttpRequest
from mcp_functions.local.next_event import PLACEHOLDER

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path

MOMENT = Moment(1_785_000_000.0, "JKJaXmPLvHcESHA=", "Root=1-6a63e840-0123456789abcdef01234567")
CAPABILITIES: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}
OUTDATED = "is out of date: pytest --update-events"


def check(
    directory: Path, function: str, sent: Sequence[Mapping[str, Any]], names: Sequence[str], *, update: bool = False
) -> list[str]:
    """Compare a conversation with its files, and return one line for each difference.

    Args:
        directory: events/, with a folder for each function.
        function: the folder.
        sent: the event of every round.
        names: of the rounds; the first file is `1-<name>.json`.
        update: write the files first, and delete those of rounds that the conversation no longer has.
    """
    if len(names) != len(sent):
        return [f"the conversation has {len(sent)} rounds, and {len(names)} names: {', '.join(names)}"]
    complaints, written = [], files(directory / function, sent, names)
    for path in stale(directory / function, [path for path, _ in written]):
        if update:
            path.unlink()
        else:
            complaints.append(f"{directory.name}/{function}/{path.name} is of no round: pytest --update-events")
    for path, text in written:
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        shown = f"{directory.name}/{function}/{path.name}"
        if not path.exists():
            complaints.append(f"{shown} is missing: pytest --update-events")
        elif path.read_text(encoding="utf-8") != text:
            complaints.append(f"{shown} {OUTDATED}")
    return complaints


def stale(folder: Path, recorded: Collection[Path]) -> list[Path]:
    """Return the files of rounds, `<number>-<name>.json`, that a conversation does not have."""
    found = [path for path in folder.glob("*.json") if path.name.partition("-")[0].isdigit()]
    return sorted(path for path in found if path not in recorded)


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
        function: its folder.
        number: of the round, from 1.
        method: e.g. "tools/call".
        params: without `_meta`.
    """
    message = messages.message(method, params, number, CAPABILITIES)
    return event_of_message(message, f"/mcp/{function}", MOMENT)


def _without_state(sent: dict[str, Any]) -> dict[str, Any]:
    message = json.loads(sent["body"])
    if "requestState" not in message["params"]:
        return sent
    message["params"]["requestState"] = PLACEHOLDER
    body = json.dumps(message, ensure_ascii=False)
    return {**sent, "body": body, "headers": {**sent["headers"], "content-length": str(len(body.encode()))}}


def _at_one_moment(sent: dict[str, Any]) -> dict[str, Any]:
    path = sent["rawPath"]
    fixed = event(HttpRequest("POST", path, (), None), path, MOMENT)["requestContext"]
    times = {name: fixed[name] for name in ("requestId", "time", "timeEpoch")}
    headers = {**sent["headers"], "x-amzn-trace-id": MOMENT.trace_id}
    return {**sent, "headers": headers, "requestContext": {**sent["requestContext"], **times}}
