"""A session is what `initialize` said, sealed into the Mcp-Session-Id: no server remembers it.

"MCP Servers MUST NOT use sessions for authentication" (security best practices): who calls is checked on each request
as ever, and must be who began the session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions.legacy import revisions
from mcp_functions.legacy.codes import SessionNotFound
from mcp_functions.protocol.errors import InvalidRequestState
from mcp_functions.protocol.json_writer import base64url

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.legacy.sealing import Sealer

MAX_NAME = 64  # characters of what a client calls itself
DEFAULT_LEVEL = "info"  # "the server MAY decide which messages to send automatically"; a tool decides what it says
_NONCE_BYTES = 16

# What a client may declare, as the session remembers it: the path in its capabilities, and the first revision with it.
DECLARABLE = {
    "f": ("elicitation", "form", "elicitation"),
    "u": ("elicitation", "url", "elicitation.url"),
    "s": ("sampling", None, ""),
    "t": ("sampling", "tools", "sampling.tools"),
    "c": ("sampling", "context", "sampling.context"),
    "r": ("roots", None, ""),
}


# Clients that speak 2025-11-25 and never come back to a stream that ended, so that a call which asks would hang:
# Vercel's AI SDK (1.0, tried), and Visual Studio Code, which resumes no stream of a POST (its source, read).
NEVER_COME_BACK = ("ai-sdk-mcp-client", "Visual Studio Code", "Code - OSS")


class Session(NamedTuple):
    """What is known of a client, and for how long.

    Attributes:
        id: 16 random bytes, the same for all of the session.
        revision: that was negotiated.
        declared: letters of `DECLARABLE`.
        client: what it calls itself; only told to functions.
        level: the least log message that it wants.
        principal: digest of who began it; None where nobody has to sign in.
        ends: unix seconds.

    """

    id: str
    revision: str
    declared: str
    client: tuple[str, str]
    level: str
    principal: str | None
    ends: int

    @property
    def comes_back(self) -> bool:
        """Whether this client is none of those that are known to leave a stream for good."""
        return not self.client[0].startswith(NEVER_COME_BACK)

    @property
    def capabilities(self) -> dict[str, Any]:
        """What it declared, in the words of 2026-07-28."""
        found: dict[str, Any] = {}
        for letter, (family, member, _since) in DECLARABLE.items():
            if letter in self.declared:
                found.setdefault(family, {}).update({member: {}} if member else {})
        return found


def begun(
    params: Mapping[str, Any],
    revision: str,
    principal: str | None,
    *,
    ends: int,
    rand: Callable[[int], bytes],
) -> Session:
    """Begin a session with what `initialize` said, as far as anybody here will ask for it."""
    told = params.get("clientInfo")
    info: dict[str, Any] = told if isinstance(told, dict) else {}
    client = (_pruned(info.get("name")), _pruned(info.get("version")))
    id_ = base64url(rand(_NONCE_BYTES))
    letters = declared(params.get("capabilities"), revision)
    return Session(id_, revision, letters, client, DEFAULT_LEVEL, principal, ends)


def declared(capabilities: object, revision: str) -> str:
    """Write what a client declared as letters: nothing but what its revision knows."""
    known: dict[str, Any] = capabilities if isinstance(capabilities, dict) else {}
    letters = ""
    for letter, (family, member, since) in DECLARABLE.items():
        told = known.get(family)
        if isinstance(told, dict) and revisions.knows(revision, since) and (_says(told, member) if member else True):
            letters += letter
    return letters


def _says(family: Mapping[str, Any], member: str) -> bool:
    # "an empty capabilities object is equivalent to declaring support for form mode only"; before, there was no other
    return isinstance(family.get(member), dict) or (member == "form" and not isinstance(family.get("url"), dict))


def sealed(session: Session, seal: Sealer) -> str:
    """Write a session as its id.

    Raises:
        TemporarilyUnavailable, Misconfigured: there is no key.

    """
    return seal.seal({"v": 1, **session._asdict()})


def opened(token: str, seal: Sealer, principal: str | None, *, caller: str, now: float) -> Session:
    """Read a session's id.

    Raises:
        SessionNotFound: it is none, or is over, or somebody else's: nobody can tell these apart.
        TemporarilyUnavailable, Misconfigured: nobody can tell now.

    """
    try:
        claims = seal.open(token, caller)
    except InvalidRequestState as error:
        reason = f"session_{error.reason}"
    else:
        session = Session(**{name: claims[name] for name in Session._fields})._replace(client=tuple(claims["client"]))
        if session.principal == principal and now < session.ends:
            return session
        reason = "session_expired" if session.principal == principal else "session_principal"
    raise SessionNotFound(reason=reason)


def _pruned(name: object) -> str:
    return name[:MAX_NAME] if isinstance(name, str) else ""
