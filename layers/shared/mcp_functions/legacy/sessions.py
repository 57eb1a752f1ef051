"""Sessions of legacy clients: what a client sent in `initialize`, which every later request needs.

The session id, in the header Mcp-Session-Id, is the session itself, sealed (encrypted and authenticated). So no server
stores it, and every server with the key can open it.
2025-11-25, basic/security_best_practices, "Session Hijacking": "MCP Servers MUST NOT use sessions for authentication".
Each request authenticates its caller, who must be the caller that started the session.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions.legacy import revisions
from mcp_functions.legacy.errors import SessionNotFound
from mcp_functions.protocol.constants import APP_MIME_TYPE, EXTENSION_APPS
from mcp_functions.protocol.errors import InvalidRequestState
from mcp_functions.protocol.json_writer import base64url
from mcp_functions.protocol.messages import shows_apps, value_at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.legacy.sealed_ids import IdSeal

SESSION_HEADER = "mcp-session-id"
MAX_NAME = 64  # characters of a client's name and version
# 2025-11-25, server/utilities/logging: "the server MAY decide which messages to send automatically"
DEFAULT_LEVEL = "info"
_NONCE_BYTES = 16  # random bytes in a session's own id

# A session holds the declared capabilities as letters, because its id is a header. For example, "fs" are forms and
# sampling. A name with a dot is a member of a capability: "elicitation.url" is {"elicitation": {"url": {}}}.
CAPABILITY_LETTERS = {
    "f": "elicitation.form",
    "u": "elicitation.url",
    "s": "sampling",
    "t": "sampling.tools",
    "c": "sampling.context",
    "r": "roots",
}
APPS = "a"  # the letter of the extension io.modelcontextprotocol/ui, which is older than 2026-07-28

# These clients speak 2025-11-25 and never resume a stream that ended, so a call that asks would hang: Vercel's AI SDK
# (1.0, tried), and Visual Studio Code, which resumes no stream of a POST (from its source).
NON_RESUMING_CLIENTS = ("ai-sdk-mcp-client", "Visual Studio Code", "Code - OSS")


class Session(NamedTuple):
    """The facts that a session id holds. Its format depends on these names."""

    id: str  # 16 random bytes as base64url; it stays the same for the whole session
    revision: str
    declared: str  # the client's capabilities, as letters of `CAPABILITY_LETTERS` and `APPS`
    client: tuple[str, str]  # name and version that the client gave; authors' functions may read them
    level: str  # the lowest level of log messages that the client wants
    principal: str | None  # digest of the caller who started the session; None on a server without sign-in
    ends: int  # when the session ends, in unix seconds

    @property
    def resumes_streams(self) -> bool:
        """Whether this client may resume a stream that ended."""
        return not self.client[0].startswith(NON_RESUMING_CLIENTS)

    @property
    def capabilities(self) -> dict[str, Any]:
        """The declared capabilities, in the form of 2026-07-28."""
        declared: dict[str, Any] = {}
        for letter, name in CAPABILITY_LETTERS.items():
            if letter in self.declared:
                family, _, member = name.partition(".")
                members = declared.setdefault(family, {})
                if member:
                    members[member] = {}
        return {**declared, **self.apps}

    def declares(self, capability: str) -> bool:
        """Return whether the client declared a capability, by a name such as "sampling" or "elicitation.url"."""
        return value_at(self.capabilities, *capability.split(".")) is not None

    @property
    def apps(self) -> dict[str, Any]:
        """The capability for MCP apps (forms that the host shows), if the client declared it."""
        if APPS not in self.declared:
            return {}
        return {"extensions": {EXTENSION_APPS: {"mimeTypes": [APP_MIME_TYPE]}}}


def new_session(params: Mapping[str, Any], revision: str, principal: str | None, *, ends: int) -> Session:
    """Return a session with the params of `initialize`, shortened to what this server uses."""
    return Session(
        id=base64url(os.urandom(_NONCE_BYTES)),
        revision=revision,
        declared=_declared_letters(params.get("capabilities"), revision),
        client=(
            _shortened(value_at(params, "clientInfo", "name")),
            _shortened(value_at(params, "clientInfo", "version")),
        ),
        level=DEFAULT_LEVEL,
        principal=principal,
        ends=ends,
    )


def open_session(token: str, seal: IdSeal, principal: str | None, *, caller_id: str, now: float) -> Session:
    """Return the session that an id holds; SessionNotFound if the id is invalid, expired or another caller's."""
    try:
        claims = seal.open(token, caller_id)
    except InvalidRequestState as error:
        raise SessionNotFound(reason=f"session_{error.reason}") from None
    members = {name: claims[name] for name in Session._fields}
    members["client"] = tuple(members["client"])  # JSON has a list
    session = Session(**members)
    if session.principal != principal:
        raise SessionNotFound(reason="session_principal")
    if now >= session.ends:
        raise SessionNotFound(reason="session_expired")
    return session


def _declared_letters(capabilities: object, revision: str) -> str:
    """Return the letters of those declared capabilities that the revision knows."""
    if not isinstance(capabilities, dict):
        return ""
    letters = ""
    for letter, name in CAPABILITY_LETTERS.items():
        if revisions.supports(revision, name) and _declares(capabilities, name):
            letters += letter
    if shows_apps(capabilities):
        letters += APPS
    return letters


def _declares(capabilities: Mapping[str, Any], name: str) -> bool:
    """Return whether a client declared a capability of `CAPABILITY_LETTERS`."""
    family, _, member = name.partition(".")
    members = capabilities.get(family)
    if not isinstance(members, dict):
        return False
    if not member or isinstance(members.get(member), dict):
        return True
    # 2025-11-25, client/elicitation, "Capabilities": "an empty capabilities object is equivalent to declaring support
    # for form mode only"
    return name == "elicitation.form" and not isinstance(members.get("url"), dict)


def _shortened(name: object) -> str:
    return name[:MAX_NAME] if isinstance(name, str) else ""
