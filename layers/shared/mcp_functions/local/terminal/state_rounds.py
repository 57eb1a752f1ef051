"""Reads from the sealed state of a conversation which round has left it."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from mcp_functions.local.inspection.key_source import local_scope, unlimited_envelope
from mcp_functions.protocol.errors import McpError
from mcp_functions.seal.claims import read_claims
from mcp_functions.seal.kms import KmsKey

if TYPE_CHECKING:
    from mcp_functions.seal.envelope import Envelope


class StateRounds:
    """Opens states with the harness's key, which is in the environment while the harness runs."""

    def __init__(self) -> None:
        """Open nothing yet."""
        self._envelopes: dict[str, Envelope] = {}  # opens the states of a function, by its folder

    def round_of(self, folder: str, state: str) -> int | None:
        """Return the number of the round that left a state; None if the function would refuse the state."""
        if folder not in self._envelopes:
            key = KmsKey(os.environ["MCP_KMS_KEYS"])
            self._envelopes[folder] = unlimited_envelope(key, local_scope(folder), now=time.time)
        try:
            return read_claims(self._envelopes[folder].unseal(state)).round
        except McpError:
            return None
