"""The seal of this toolkit for a server that stays where it is: on containers, or behind the Lambda Web Adapter.

    from mcp_functions.adopt import seal_states

    seal_states(server, keys=["arn:aws:kms:…"], principal=authenticated_principal)

The library of the server checks each state's claims: its age, its request, its audience, its principal. The bytes are
sealed in the envelope `ks1.` under data keys that KMS wraps, so that any process with access to the key opens them.
The library's hooks are synchronous, and run in the event loop. So KMS is called before them, in a thread.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from mcp.server import request_state
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError
from mcp_types.methods import INPUT_REQUIRED_METHODS

from mcp_functions.adopt.server import find_low_level
from mcp_functions.protocol.errors import InvalidRequestState, McpError
from mcp_functions.seal.data_keys import Keyring, KmsKey, Scope
from mcp_functions.seal.envelope import Envelope
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

    from mcp_functions.seal.data_keys import DataKey, Wrapping

    Principal = Callable[[ServerRequestContext[Any, Any]], str | None]

PURPOSE = "mcp-foreign-state"  # of the data keys: none of them opens a state of this toolkit's own functions
LABEL = b"ks1/foreign-state"
NOT_CHOSEN = "give principal=, which names the caller of a request, or anonymous=True: then anyone may use a state"


def seal_states(  # noqa: PLR0913 - each is an option of the public API
    server: object,
    *,
    keys: Sequence[str | Wrapping],
    principal: Principal | None = None,
    anonymous: bool = False,
    service: str | None = None,
    lifetime: int = 600,
) -> None:
    """Seal the states of a server with KMS, in the place of the seal that its library brought.

    Args:
        server: an `MCPServer`, a low-level `Server` or a `FastMCP`.
        keys: ARNs of KMS keys, or other wrappings. The first one seals, each of them opens.
        principal: returns the caller of a request, as `mcp.server.request_state.authenticated_principal` does. A
            request without one can neither get nor use a state.
        anonymous: whether anyone who holds a state may use it. It is said, not assumed.
        service: the servers that open each other's states; default: the server's name.
        lifetime: seconds for one answer.

    Raises:
        TypeError: neither `principal` nor `anonymous` is given, or both; or the server is none of the three kinds.
        Misconfigured: there is no key, or one that is not an ARN.
    """
    if (principal is None) is not anonymous:
        raise TypeError(NOT_CHOSEN)
    low_level = find_low_level(server)
    name = service or low_level.name
    wrappings = [_Purposed(KmsKey(key) if isinstance(key, str) else key) for key in keys]
    codec = KmsCodec(Keyring(wrappings, Scope(name, "", "")), lifetime=lifetime)
    bind = _required(principal) if principal else None
    security = RequestStateSecurity(codec=codec, ttl=lifetime, bind_principal=bind, audience=name)
    sealing = _Sealing(security, codec, principal)
    places = [place for place, each in enumerate(low_level.middleware) if isinstance(each, RequestStateBoundary)]
    if places:
        low_level.middleware[places[0]] = sealing
    else:
        low_level.middleware.append(sealing)


class _Fetched(NamedTuple):
    """What KMS said before the hooks of one request run."""

    token: str
    opened: bytes | Exception
    sealing: DataKey | Exception


_fetched: ContextVar[_Fetched | None] = ContextVar("fetched", default=None)


class KmsCodec:
    """The seal as the hook `RequestStateSecurity(codec=…)` takes it; `fetch` calls KMS, the hooks do not."""

    def __init__(self, keys: Keyring, *, lifetime: int) -> None:
        """Take the data keys, and the seconds for which a token is valid."""
        self._keys = keys
        self._opens = Envelope(keys, label=LABEL, max_age=lifetime)
        self._seals = Envelope(_KeyOfRequest(keys), label=LABEL, max_age=lifetime)

    def fetch(self, token: str, caller: str) -> _Fetched:
        """Open a token, and get the key to seal with; a failure waits until somebody needs its result."""
        opened: bytes | Exception = b""
        if token:
            try:
                opened = self._opens.unseal(token, caller=caller)
            except McpError as error:
                opened = error
        try:
            return _Fetched(token, opened, self._keys.key_to_seal())
        except McpError as error:
            return _Fetched(token, opened, error)

    def seal(self, payload: bytes) -> str:
        """Seal a state with the key that was fetched."""
        return self._seals.seal(payload)

    def unseal(self, token: str) -> bytes:
        """Return the state that was fetched.

        Raises:
            mcp.server.request_state.InvalidRequestState: the token does not open.
        """
        fetched = _fetched.get()
        opened = fetched.opened if fetched and fetched.token == token else self._opens.unseal(token)
        if isinstance(opened, InvalidRequestState):
            raise request_state.InvalidRequestState(opened.reason)
        if isinstance(opened, Exception):
            raise opened
        return opened


class _KeyOfRequest(Keyring):
    """Data keys that seal with the one that was fetched for this request."""

    def __init__(self, keys: Keyring) -> None:
        self.scope, self._all = keys.scope, keys

    def key_to_seal(self) -> DataKey:
        """Return the key that was fetched."""
        fetched = _fetched.get()
        if fetched is None:
            return self._all.key_to_seal()
        if isinstance(fetched.sealing, Exception):
            raise fetched.sealing
        return fetched.sealing


class _Purposed:
    """A wrapping whose data keys are for states of other libraries, as KMS and its policies see them."""

    def __init__(self, wrapping: Wrapping) -> None:
        self.id, self._wrapping = wrapping.id, wrapping

    def generate(self, context: dict[str, str]) -> tuple[bytes, bytes]:
        return self._wrapping.generate({**context, "purpose": PURPOSE})

    def unwrap(self, wrapped: bytes, context: dict[str, str]) -> bytes:
        return self._wrapping.unwrap(wrapped, {**context, "purpose": PURPOSE})


class _Sealing(RequestStateBoundary):
    """The boundary of the library, which checks the claims; before it, a thread calls KMS."""

    def __init__(self, security: RequestStateSecurity, codec: KmsCodec, principal: Principal | None) -> None:
        super().__init__(security, default_audience=None)
        self._codec, self._principal = codec, principal

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.method not in INPUT_REQUIRED_METHODS:
            return await call_next(ctx)
        token = (ctx.params or {}).get("requestState")
        caller = self._principal(ctx) if self._principal else None
        fetched = await to_thread.run_sync(self._codec.fetch, token if isinstance(token, str) else "", caller or "")
        if isinstance(fetched.opened, McpError) and not isinstance(fetched.opened, InvalidRequestState):
            raise MCPError(fetched.opened.code, fetched.opened.message, fetched.opened.data)
        before = _fetched.set(fetched)
        try:
            return await super().__call__(ctx, call_next)
        finally:
            _fetched.reset(before)


def _required(principal: Principal) -> Principal:
    def bind(ctx: ServerRequestContext[Any, Any]) -> str:
        caller = principal(ctx)
        if not caller:
            message = "the request has no principal, and its server takes no anonymous states"
            raise ValueError(message)
        return caller

    return bind
