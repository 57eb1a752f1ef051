"""Records a tested conversation in events/<function>/, as API Gateway events for `sam local invoke`.

    events/book/1-call.json        the first request of the call
    events/book/2-consent.json     the second: the call again, with the answer to the question "consent"

From the second event on, `requestState`, the encrypted state of the call, is {{requestState}}, because it differs in
every run. `mcp-functions next` fills it in. Time and ids are fixed, so a file changes only if the conversation does.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from mcp_functions.protocol.event_types import Event
from mcp_functions.protocol.wire_types import Params
from mcp_functions_harness.api_gateway.events import Moment, event_of_message
from mcp_functions_harness.client import messages
from mcp_functions_harness.client.tasks import EVERYTHING

PLACEHOLDER = "{{requestState}}"
MOMENT = Moment(now=1_785_000_000.0, request_id="JKJaXmPLvHcESHA=", trace_id="Root=1-6a63e840-0123456789abcdef01234567")
REMEDY = "pytest --update-events"  # writes the files again


def check(
    directory: Path, function: str, events: Sequence[Event], names: Sequence[str], *, update: bool = False
) -> list[str]:
    """Compare the events of a conversation with its files; return one line for each difference.

    The directory is events/, with a folder for each function. Each event has a name; the first file is `1-<name>.json`.
    With `update`, write the files instead, and delete those of events that the conversation no longer has.
    """
    if len(names) != len(events):
        return [f"the conversation has {len(events)} rounds, and {len(names)} names: {', '.join(names)}"]
    folder = directory / function
    texts = {}
    for number, (name, event) in enumerate(zip(names, events, strict=True), start=1):
        texts[folder / f"{number}-{name}.json"] = file_text(event)
    if not update:
        return _differences(folder, texts)
    for path in _left_over(folder, texts):
        path.unlink()
    for path, text in texts.items():
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return []


def file_text(event: Event) -> str:
    """Return the content of an event's file: the event with the placeholder, the fixed time and the fixed ids."""
    message = json.loads(event["body"])
    if "requestState" in message["params"]:
        message["params"]["requestState"] = PLACEHOLDER
    authorizer = event["requestContext"].get("authorizer")
    recorded = event_of_message(message, event["rawPath"], MOMENT, authorizer)
    return json.dumps(recorded, indent=2, ensure_ascii=False) + "\n"


def round_of(function: str, number: int, method: str, params: Params) -> Event:
    """Make the event of a round, from 1, which is one request of a call; `params` are without `_meta`."""
    message = messages.message(method, params, number, EVERYTHING)
    return event_of_message(message, f"/mcp/{function}", MOMENT)


def _differences(folder: Path, texts: Mapping[Path, str]) -> list[str]:
    lines = [f"{_short(path)} belongs to no round: {REMEDY}" for path in _left_over(folder, texts)]
    for path, text in texts.items():
        if not path.exists():
            lines.append(f"{_short(path)} is missing: {REMEDY}")
        elif path.read_text(encoding="utf-8") != text:
            lines.append(f"{_short(path)} is out of date: {REMEDY}")
    return lines


def _left_over(folder: Path, texts: Mapping[Path, str]) -> list[Path]:
    """Return the files `<number>-<name>.json` of events that the conversation does not have."""
    numbered = [path for path in folder.glob("*-*.json") if path.name.partition("-")[0].isdigit()]
    return sorted(path for path in numbered if path not in texts)


def _short(path: Path) -> str:
    return "/".join(path.parts[-3:])
