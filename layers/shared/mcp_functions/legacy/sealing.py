"""What clients carry for this era, sealed: sessions, ids of events, ids of questions (envelope.md §14)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from mcp_functions.protocol.errors import InvalidRequestState, Misconfigured, TemporarilyUnavailable
from mcp_functions.protocol.json_writer import dumps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.dispatch.vault import Vault
    from mcp_functions.seal.envelope import Codec, Envelope

SESSION, EVENT, QUESTION = b"ks1/session", b"ks1/event", b"ks1/question"
KEPT_SECONDS = 300  # for which what a call came to can still be fetched after its question ended
MAX_SESSION, MAX_EVENT, MAX_QUESTION = 4096, 4096, 1024 * 1024  # characters; the first two are headers


class Sealer:
    """Seals JSON objects of one kind."""

    def __init__(self, codec: Codec, label: bytes) -> None:
        """Take a seal that was made for `label`; an own codec knows no labels, so the kind also stands inside."""
        self._codec, self._prefix = codec, label + b"\0"
        self._envelope = cast("Envelope", codec) if getattr(codec, "knows_callers", False) else None

    def seal(self, claims: Mapping[str, Any]) -> str:
        """Write claims as a token.

        Raises:
            StateTooLarge: it would be too long for where it goes.
            TemporarilyUnavailable, Misconfigured: there is no key.

        """
        return self._codec.seal(self._prefix + dumps(claims).encode("utf-8", "surrogatepass"))

    def open(self, token: str, caller: str) -> dict[str, Any]:
        """Read the claims of a token.

        Args:
            token: as a client sent it.
            caller: who pays for a key that is none.

        Raises:
            InvalidRequestState: it is none of ours.
            TemporarilyUnavailable, Misconfigured: nobody can tell now.

        """
        sealed = self._envelope.unseal(token, caller=caller) if self._envelope else self._unsealed(token)
        if not sealed.startswith(self._prefix):
            reason = "label"
            raise InvalidRequestState(reason)
        claims: dict[str, Any] = json.loads(sealed.removeprefix(self._prefix).decode("utf-8", "surrogatepass"))
        return claims

    def _unsealed(self, token: str) -> bytes:
        """Ask an own codec: whatever it raises, a token that did not open is none."""
        try:
            return bytes(self._codec.unseal(token))
        except (TemporarilyUnavailable, Misconfigured):
            raise
        except Exception:  # noqa: BLE001 - nobody knows what an own codec raises; its text may hold anything
            reason = "codec"
            raise InvalidRequestState(reason) from None


class Seals(NamedTuple):
    """The three of a deployment."""

    sessions: Sealer
    events: Sealer
    questions: Sealer


def seals(vault: Vault, *, session_seconds: int, question_seconds: int, max_body: int) -> Seals:
    """Make them; no key is asked for yet.

    Args:
        vault: seals.
        session_seconds: that a session may live.
        question_seconds: in which a question may be answered.
        max_body: bytes of a request: a question's id comes back in one, beside the answer.

    """

    def sealer(label: bytes, max_age: int, max_chars: int) -> Sealer:
        return Sealer(vault.seal(label, max_age=max_age, max_chars=max_chars), label)

    return Seals(
        sealer(SESSION, session_seconds, MAX_SESSION),
        sealer(EVENT, question_seconds + KEPT_SECONDS, MAX_EVENT),
        sealer(QUESTION, question_seconds + KEPT_SECONDS, max(1, min(MAX_QUESTION, max_body // 2))),
    )
