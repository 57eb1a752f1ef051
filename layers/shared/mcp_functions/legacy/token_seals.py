"""Seals the tokens that clients of 2025 carry: session ids, event ids and question ids (envelope.md, section 14)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions.protocol.errors import InvalidRequestState
from mcp_functions.protocol.json_writer import dumps
from mcp_functions.seal.codec_adapter import CodecAdapter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.dispatch.seal_factory import SealFactory
    from mcp_functions.seal.envelope import Codec
    from mcp_functions.settings import Settings

SESSION, EVENT, QUESTION = b"ks1/session", b"ks1/event", b"ks1/question"
FETCH_SECONDS = 300  # how long a client can fetch the outcome after its question has expired
MAX_SESSION, MAX_EVENT, MAX_QUESTION = 4096, 4096, 1024 * 1024  # characters; the first two are headers


class TokenSeal:
    """Seals JSON objects of one kind into tokens, and opens them."""

    def __init__(self, codec: Codec, label: bytes) -> None:
        """Use a codec for one kind of token. An author's codec ignores labels, so the label is also sealed inside."""
        self._codec, self._prefix = CodecAdapter(codec), label + b"\0"

    def seal(self, claims: Mapping[str, Any]) -> str:
        """Return a token that holds the claims.

        Raises:
            StateTooLarge: the token would be too long for its place in the message.
            TemporarilyUnavailable, Misconfigured: no key is available.
        """
        return self._codec.seal(self._prefix + dumps(claims).encode("utf-8", "surrogatepass"))

    def open(self, token: str, caller_id: str) -> dict[str, Any]:
        """Return the claims of a token. A failed unwrap is charged to `caller_id`.

        Raises:
            InvalidRequestState: this seal did not make the token.
            TemporarilyUnavailable, Misconfigured: no key is available.
        """
        plaintext = self._codec.unseal(token, caller=caller_id)
        if not plaintext.startswith(self._prefix):
            raise InvalidRequestState(reason="label")
        claims: dict[str, Any] = json.loads(plaintext.removeprefix(self._prefix).decode("utf-8", "surrogatepass"))
        return claims


class TokenSeals(NamedTuple):
    """The seals of one deployment."""

    sessions: TokenSeal
    events: TokenSeal
    questions: TokenSeal


def make_token_seals(seal_factory: SealFactory, settings: Settings) -> TokenSeals:
    """Return the seals; no key is fetched yet. A question's id comes back in a request body, beside the answer."""

    def make(label: bytes, max_age: int, max_chars: int) -> TokenSeal:
        return TokenSeal(seal_factory.seal(label, max_age=max_age, max_chars=max_chars), label)

    kept = settings.question_seconds + FETCH_SECONDS
    max_question = max(1, min(MAX_QUESTION, settings.max_body_bytes // 2))
    return TokenSeals(
        sessions=make(SESSION, settings.session_seconds, MAX_SESSION),
        events=make(EVENT, kept, MAX_EVENT),
        questions=make(QUESTION, kept, max_question),
    )
