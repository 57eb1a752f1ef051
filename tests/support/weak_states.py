"""The states of the weak server: encrypted, bound to their call, and usable once, unless a hole says otherwise.

A hole has the name of the check of `tests/attack` that must find it.
"""

from __future__ import annotations

import base64
import json
import os
import time
from dataclasses import dataclass, field
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

# AES-GCM
NONCE_BYTES = 12
TAG_BYTES = 16
# value of a call that its states are bound to -> the hole: a server that does not check it
BINDING_VULNERABILITIES = {
    "method": "state-for-another-method",
    "name": "state-for-another-target",
    "arguments": "state-for-other-arguments",
    "person": "state-of-another-person",
}


class RefusedState(Exception):
    """A request is answered with an HTTP status and a JSON-RPC error."""

    def __init__(self, status: int, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.status = status
        self.error: dict[str, Any] = {"code": code, "message": message}
        if data:
            self.error["data"] = data


@dataclass
class WeakStates:
    """Seals and opens the states of one server.

    Attributes:
        holes: names of checks.
        lifetime: seconds until a state expires.
        used: states that were used.
        issued: the state for its form with swapped case (hole state-damaged).
        key: encrypts states.
    """

    holes: frozenset[str]
    lifetime: float
    used: set[str] = field(default_factory=set)
    issued: dict[str, str] = field(default_factory=dict)
    key: AESGCM = field(default_factory=lambda: AESGCM(os.urandom(32)))

    def has(self, hole: str) -> bool:
        return hole in self.holes

    def seal(self, contents: dict[str, Any]) -> str:
        """Return a state: base64(nonce + AES-GCM(contents)). With state-readable, the contents stand before it."""
        text = json.dumps({**contents, "until": time.time() + self.lifetime}).encode()
        if self.has("state-edited"):
            return _base64(text)
        is_readable = self.has("state-readable")
        nonce = os.urandom(NONCE_BYTES)
        encrypted = nonce + self.key.encrypt(nonce, text, text if is_readable else b"")
        state = f"{_base64(text)}.{_base64(encrypted)}" if is_readable else _base64(encrypted)
        self.issued[state.swapcase()] = state
        return state

    def open(self, state: Any, bound: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401 - JSON
        """Return the contents of a state, if it was issued for a call with these `bound` values."""
        if isinstance(state, list) and state and self.has("state-of-another-type"):
            state = state[0]
        if state == "" and self.has("state-forged"):
            return {"asked": ["meal"], "answers": {"seat": "window"}}
        if not isinstance(state, str):
            raise RefusedState(400, -32602, "Invalid state")
        if len(state) > 50_000 and self.has("state-oversized"):
            state = next((issued for issued in self.issued.values() if state.startswith(issued)), state)
        if self.has("state-damaged"):
            state = self.issued.get(state, state)
        try:
            contents = self._decrypt(state)
        except (ValueError, InvalidTag) as error:
            if self.has("state-not-refused"):
                return {"asked": [], "answers": {}}
            reason = f": {type(error).__name__}" if self.has("state-oracle") else ""
            reason += f": {state}" if self.has("reflected-secrets") else ""
            raise RefusedState(400, -32002 if self.has("codes") else -32602, f"Invalid state{reason}") from error
        self._check_contents(contents, bound)
        if state in self.used:
            raise RefusedState(400, -32602, "Invalid state")
        return contents

    def _check_contents(self, contents: dict[str, Any], bound: dict[str, Any]) -> None:
        for name, hole in BINDING_VULNERABILITIES.items():
            if contents.get(name) != bound[name] and not self.has(hole):
                raise RefusedState(400, -32602, "Invalid state")
        if contents["until"] < time.time() and not self.has("state-expired"):
            raise RefusedState(400, -32602, "Invalid state")

    def _decrypt(self, state: str) -> dict[str, Any]:
        """Return the contents of a state.

        Raises:
            ValueError, InvalidTag: the server has not issued this state.
        """
        if self.has("state-edited"):
            unencrypted = json.loads(_from_base64(state))
            if not isinstance(unencrypted, dict) or not {"asked", "answers", "until"} <= unencrypted.keys():
                raise ValueError(state)
            return unencrypted
        is_readable = self.has("state-readable")
        readable, _dot, token = state.rpartition(".")
        encrypted = _from_base64(token)
        text = _from_base64(readable) if is_readable else b""
        if len(encrypted) < NONCE_BYTES + TAG_BYTES or not token.isascii():
            raise ValueError(state)
        # Several texts of base64 decode to the same bytes; only one of them was issued.
        issued = f"{_base64(text)}.{_base64(encrypted)}" if is_readable else _base64(encrypted)
        if state != issued and not self.has("state-respelled"):
            raise InvalidTag
        nonce, ciphertext = encrypted[:NONCE_BYTES], encrypted[NONCE_BYTES:]
        contents: dict[str, Any] = json.loads(self.key.decrypt(nonce, ciphertext, text))
        return contents

    def note_use(self, state: str | None, *, last: bool, went_on: bool) -> None:
        """Accept a state no more, after it was used. A round that did not go on may be repeated."""
        hole = "state-replayed" if last else "state-rewound"
        if isinstance(state, str) and went_on and not self.has(hole):
            self.used.add(state)


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _from_base64(text: str) -> bytes:
    padding = "=" * (-len(text) % 4)
    return base64.urlsafe_b64decode(text + padding)
