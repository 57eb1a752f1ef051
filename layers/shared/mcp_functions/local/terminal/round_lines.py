"""The line of a round: `round 2 · reserve_table · date answered · asks phone · 3 ms · state 812 B`."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mcp_functions.local import environment
from mcp_functions.local.lambdas.functions import FRONT_DOOR
from mcp_functions.local.terminal import exchanges
from mcp_functions.protocol.constants import CALLS, WORKER
from mcp_functions.protocol.errors import McpError
from mcp_functions.seal.claims import read_claims
from mcp_functions.seal.data_keys import Keyring, KmsKey, Scope
from mcp_functions.seal.envelope import Envelope
from mcp_functions.seal.token_format import CEILING

if TYPE_CHECKING:
    from mcp_functions.local.lambdas.service import Outcome
    from mcp_functions.local.terminal.exchanges import Exchange

STAGE, GENERATION = "local", "1"
FOR_EVER = 100 * 366 * 86_400  # seconds: a function may accept old states
REMEMBERED = 200  # requests whose function has its line already
BETWEEN = " · "


@dataclass(eq=False)
class RoundLines:
    """Makes the line of each call; of a call that the front door forwards, the function's alone.

    Attributes:
        key_arn: of the harness's key, which opens the state that a client presents: it has the number of the round.
        show_answers: put the client's answers into the line.
    """

    key_arn: str
    show_answers: bool = False
    _envelopes: dict[str, Envelope] = field(default_factory=dict, init=False)
    _told: dict[str, None] = field(default_factory=dict, init=False)

    def line(self, folder: str, event: bytes, outcome: Outcome) -> tuple[str, bool] | None:
        """Return the line of a call, and whether it failed; None if the function behind the front door has one already.

        Args:
            folder: of the function.
            event: as JSON.
            outcome: of the call.
        """
        exchange = exchanges.read(event, outcome.payload, outcome.error)
        if folder == FRONT_DOOR and exchange.request_id in self._told:
            return None
        if exchange.request_id:
            self._remember(exchange.request_id)
        is_call = exchange.method in CALLS and not folder.endswith(WORKER)
        first = f"round {self._round(folder, exchange)}" if is_call else exchange.method
        parts = [first, exchange.name or folder, *self._answered(exchange), *_asked(exchange)]
        parts += [exchange.outcome] if is_call or exchange.outcome != "done" else []
        parts += [f"{outcome.milliseconds:.0f} ms"]
        parts += [f"started in {outcome.init_milliseconds:.0f} ms"] if outcome.init_milliseconds else []
        parts += [f"state {exchange.state_bytes} B"] if exchange.state_bytes else []
        return BETWEEN.join(filter(None, parts)), exchange.failed

    def _answered(self, exchange: Exchange) -> list[str]:
        lines = []
        for key, response in exchange.answers.items():
            line = f"{exchanges.printable(key)} {exchanges.action(response)}"
            if self.show_answers:
                line += f" {exchanges.without_controls(json.dumps(response, ensure_ascii=False))}"
            lines.append(line)
        return lines

    def _round(self, folder: str, exchange: Exchange) -> str:
        if not exchange.presented:
            return "1"
        if folder not in self._envelopes:
            scope = Scope(f"{environment.STACK}/{folder}", STAGE, GENERATION)
            self._envelopes[folder] = Envelope(
                Keyring([KmsKey(self.key_arn)], scope, now=time.time), max_chars=CEILING, max_age=FOR_EVER
            )
        try:
            return str(read_claims(self._envelopes[folder].unseal(exchange.presented)).round + 1)
        except McpError:  # the function says why it refuses a state
            return "?"

    def _remember(self, request_id: str) -> None:
        self._told[request_id] = None
        for old in list(self._told)[:-REMEMBERED]:
            self._told.pop(old, None)  # another thread may have done so


def _asked(exchange: Exchange) -> list[str]:
    return [f"asks {', '.join(exchange.asks)}"] if exchange.asks else []
