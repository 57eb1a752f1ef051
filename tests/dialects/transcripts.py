"""Conversations of the three clients as docs/dialects.md shows them, with random and sealed values as an ellipsis."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from tests.dialects.clients import Client, MultiTurnClient, StateClient, accept

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.dialects.wires import Reply, Wire

SEALED = re.compile(r"\ball\.ks1\.[A-Za-z0-9_-]+")
DRAWN = re.compile(r"(?<=[\" ])[A-Za-z0-9_-]{12}(?=-\d)")
SERVER = re.compile(r',"_meta":\{"io\.modelcontextprotocol/serverInfo":\{[^}]*\}\}')
FORM = re.compile(r'"requestedSchema":\{.*?"required":\[[^]]*\]\}')
CALL = {"name": "update_work_item", "arguments": {"workItemId": 4522, "fields": {"System.State": "Resolved"}}}
FIXED = accept(resolution="Fixed")


class Recorded:
    """Writes down what goes over a wire."""

    def __init__(self, over: Wire) -> None:
        self._over, self.lines = over, list[str]()

    def post(self, body: object, headers: Mapping[str, str]) -> Reply:
        shown = [f"{name}: {value}" for name, value in headers.items() if name not in ("content-type", "accept")]
        reply = self._over.post(body, headers)
        sent = json.dumps(body, separators=(",", ":"))
        kind = reply.headers["content-type"]
        self.lines += [
            "POST /mcp",
            *shown,
            "",
            sent,
            "",
            f"HTTP {reply.status}, {kind}",
            "",
            reply.text.strip("\n"),
            "",
        ]
        return reply

    @property
    def text(self) -> str:
        told = FORM.sub('"requestedSchema":{…}', SERVER.sub("", "\n".join(self.lines)))
        return DRAWN.sub("…", SEALED.sub("update_work_item.ks1.…", told)).strip()


def multi_turn(over: Wire) -> str:
    recorded = Recorded(over)
    _small(client := MultiTurnClient(recorded)).run("tools/call", CALL, lambda _request: FIXED)
    assert len(client.replies) == 2
    return recorded.text


def state(over: Wire, option: int = 0) -> str:
    recorded = Recorded(over)
    _small(StateClient(recorded, option)).run("tools/call", CALL, lambda _request: FIXED)
    return recorded.text


def _small(client: Any) -> Any:  # noqa: ANN401 - any of the clients
    assert isinstance(client, Client)
    client.capabilities = {"elicitation": {}, "experimental": client.capabilities["experimental"]}
    return client
