"""Reads from the sealed state of a conversation which round has left it."""

import os
import time
from functools import cache

from mcp_functions.local.inspection.key_source import local_scope, unlimited_envelope
from mcp_functions.protocol.errors import McpError
from mcp_functions.seal.claims import read_claims
from mcp_functions.seal.envelope import Envelope
from mcp_functions.seal.kms import KmsKey


class StateRounds:
    """Opens states with the harness's key, which is in the environment while the harness runs."""

    def __init__(self) -> None:
        """Open nothing yet."""
        self._envelope_of = cache(_envelope_of)

    def round_of(self, folder: str, state: str) -> int | None:
        """Return the number of the round that left a state; None if the function would refuse the state."""
        try:
            return read_claims(self._envelope_of(folder).unseal(state)).round
        except McpError:
            return None


def _envelope_of(folder: str) -> Envelope:
    """Return the envelope that opens the states of the function in a folder."""
    return unlimited_envelope(KmsKey(os.environ["MCP_KMS_KEYS"]), local_scope(folder), now=time.time)
