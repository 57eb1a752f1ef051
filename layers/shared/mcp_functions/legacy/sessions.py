"""Sessions of clients of 2025: what a client sent in `initialize`, which its later requests need.

The header Mcp-Session-Id holds the whole session, as a sealed (encrypted and authenticated) token. So no server stores
it, and every server with the key can open it. A change of the session makes a new token.
2025-11-25, basic/security_best_practices, "Session Hijacking": "MCP Servers MUST NOT use sessions for authentication".
Each request authenticates its caller, who must be the caller that started the session.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from mcp_functions.legacy import revisions
from mcp_functions.legacy.errors import SessionNotFound
from mcp_functions.legacy.sealed_ids import SealedIds
from mcp_functions.protocol.constants import APP_MIME_TYPE, EXTENSION_APPS
from mcp_functions.protocol.errors import InvalidRequestState, capability_names
from mcp_functions.protocol.json_reader import copy_json
from mcp_functions.protocol.json_writer import base64url
from mcp_functions.protocol.messages import shows_apps, value_at

if TYPE_CHECKING:
    from collections.abc import Collection

    from mcp_functions.dispatch.seal_factory import SealFactory
    from mcp_functions.protocol.wire_types import ClientCapabilities, Params
    from mcp_functions.settings import Settings

HEADER = "mcp-session-id"

# The capabilities that a session can hold. The token has a letter for each, because a header must be short.
CAPABILITIES: dict[str, dict[str, Any]] = {
    "f": {"elicitation": {"form": {}}},
    "u": {"elicitation": {"url": {}}},
    "s": {"sampling": {}},
    "t": {"sampling": {"tools": {}}},
    "c": {"sampling": {"context": {}}},
    "r": {"roots": {}},
    "a": {"extensions": {EXTENSION_APPS: {"mimeTypes": [APP_MIME_TYPE]}}},
}
# Instead of an answer, the client sends another call: after its user has seen the page, or from the form of an MCP app.
WITHOUT_ANSWER = frozenset({"u", "a"})


class Session(NamedTuple):
    """The data of a session. The names of the fields are the keys in the token."""

    id: str  # random text
    revision: str
    declared: str  # the letters of the capabilities that the client declared
    # name and version that the client gave; authors' functions may read them
    client: tuple[str, str]
    level: str  # the lowest level of log messages that the client wants
    # digest of the caller who started the session; None on a server without sign-in
    principal: str | None
    ends: int  # when the session ends, in unix seconds

    @property
    def capabilities(self) -> ClientCapabilities:
        """The declared capabilities, in the form of 2026-07-28."""
        return _expand_letters(self.declared)

    @property
    def capabilities_without_answer(self) -> ClientCapabilities:
        """The declared capabilities for which no server waits: the client sends another call, not an answer."""
        return _expand_letters(WITHOUT_ANSWER.intersection(self.declared))


def _expand_letters(letters: Collection[str]) -> ClientCapabilities:
    """Return the capabilities of some letters. An unknown letter, of a later version of this toolkit, has none.

    They are a copy, because an adopted server may change what its request declares.
    """
    expanded: dict[str, Any] = {}
    for letter, capability in CAPABILITIES.items():
        if letter in letters:
            for family, members in capability.items():
                expanded[family] = {**expanded.get(family, {}), **copy_json(members)}
    return cast("ClientCapabilities", expanded)


MAX_TOKEN = 4096  # characters, because it travels in a header


class SessionTokens:
    """Writes and reads the tokens of sessions."""

    def __init__(self, seal_factory: SealFactory, settings: Settings) -> None:
        """Make the seal; no key is fetched yet."""
        self._ids = SealedIds(seal_factory, b"ks1/session", max_age=settings.session_seconds, max_chars=MAX_TOKEN)

    def write(self, session: Session) -> str:
        """Return the token that holds a session; the errors are those of `SealedIds`."""
        # the version of the format; `read` does not need it
        return self._ids.write({"v": 1, **session._asdict()})

    def read(self, token: str, principal: str | None, *, caller_id: str, now: float) -> Session:
        """Return the session in a token; SessionNotFound if the token is invalid, expired or another caller's.

        `principal` must be the caller that started the session. Invalid tokens are counted under `caller_id`.
        """
        try:
            data = self._ids.read(token, caller_id)
        except InvalidRequestState as error:
            raise SessionNotFound(reason=f"session_{error.reason}") from None
        members = {name: data[name] for name in Session._fields}
        members["client"] = tuple(members["client"])  # JSON has a list
        session = Session(**members)
        if session.principal != principal:
            raise SessionNotFound(reason="session_principal")
        if now >= session.ends:
            raise SessionNotFound(reason="session_expired")
        return session


NONCE_BYTES = 16  # random bytes in the `id` of a session
MAX_NAME = 64  # characters of a client's name, and of its version
# 2025-11-25, server/utilities/logging: "the server MAY decide which messages to send automatically"
DEFAULT_LEVEL = "info"


def new_session(params: Params, revision: str, principal: str | None, *, ends: int) -> Session:
    """Return a session with the params of `initialize`, shortened to what this server uses."""
    name = _shortened(value_at(params, "clientInfo", "name"))
    version = _shortened(value_at(params, "clientInfo", "version"))
    return Session(
        id=base64url(os.urandom(NONCE_BYTES)),
        revision=revision,
        declared=_declared_letters(params.get("capabilities"), revision),
        client=(name, version),
        level=DEFAULT_LEVEL,
        principal=principal,
        ends=ends,
    )


def _declared_letters(declared: object, revision: str) -> str:
    """Return the letters of those declared capabilities that the revision knows."""
    if not isinstance(declared, dict):
        return ""
    letters = ""
    for letter, capability in CAPABILITIES.items():
        (name,) = capability_names(capability)  # for example "elicitation.form"
        if revisions.supports(revision, name) and _declares(declared, name):
            letters += letter
    return letters


def _declares(declared: dict[str, Any], name: str) -> bool:
    """Return whether a client declared a capability of `CAPABILITIES`."""
    family, _, member = name.partition(".")
    if family == "extensions":
        return shows_apps(cast("ClientCapabilities", declared))
    members = declared.get(family)
    if not isinstance(members, dict):
        return False
    if not member or isinstance(members.get(member), dict):
        return True
    # 2025-11-25, client/elicitation, "Capabilities": "an empty capabilities object is equivalent to declaring support
    # for form mode only"
    return name == "elicitation.form" and not isinstance(members.get("url"), dict)


def _shortened(text: object) -> str:
    return text[:MAX_NAME] if isinstance(text, str) else ""
