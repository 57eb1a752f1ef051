"""The seal of this toolkit for a server that stays where it is: on containers, or behind the Lambda Web Adapter.

    from mcp_functions.adopt import seal_states

    seal_states(server, keys=["arn:aws:kms:…"], principal=authenticated_principal)

The library of the server checks each state's claims: its age, its request, its audience, its principal. The bytes are
sealed in the envelope `ks1.` under data keys that KMS wraps, so that any process with access to the key opens them.

The library's hooks `seal` and `unseal` are synchronous, and run in the event loop, where a call to KMS would block
every other request. So a middleware calls KMS before them, in a thread, and two context variables hand over the
outcome:

    a request with a state    `open` in a thread -> `_opened`        -> the hook `unseal` reads it
    a result that asks        `key` in a thread  -> `_sealing_key`   -> the hook `seal` uses it
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from mcp.server import request_state
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError
from mcp_types.methods import INPUT_REQUIRED_METHODS, is_input_required

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

PURPOSE = "mcp-foreign-state"  # part of what KMS binds a data key to: no such key opens a state of our own functions
LABEL = b"ks1/foreign-state"  # the kind of payload: a token opens only under the label that sealed it
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
        anonymous: whether anyone who holds a state may use it.
        service: the servers that open each other's states; default: the server's name.
        lifetime: seconds for one answer.

    Raises:
        TypeError: neither `principal` nor `anonymous` is given, or both; or the server is none of the three kinds.
        Misconfigured: there is no key, or one that is not an ARN.
    """
    has_principal = principal is not None
    if has_principal == anonymous:
        raise TypeError(NOT_CHOSEN)
    low_level = find_low_level(server)
    name = service or low_level.name
    wrappings = [KmsKey(key) if isinstance(key, str) else key for key in keys]
    purposed = [_Purposed(wrapping) for wrapping in wrappings]
    codec = KmsCodec(Keyring(purposed, Scope(service=name, stage="", generation="")), lifetime=lifetime)
    bind = _require_caller(principal) if principal else None
    security = RequestStateSecurity(codec=codec, ttl=lifetime, bind_principal=bind, audience=name)
    sealing = _Sealing(security, codec, principal)
    for place, each in enumerate(low_level.middleware):
        if isinstance(each, RequestStateBoundary):
            low_level.middleware[place] = sealing
            return
    low_level.middleware.append(sealing)


class _Opened(NamedTuple):
    """The state in the token of one request, or the error: KMS answered before the hooks run."""

    token: str
    state: bytes | McpError


_opened: ContextVar[_Opened | None] = ContextVar("opened", default=None)
_sealing_key: ContextVar[DataKey | None] = ContextVar("sealing_key", default=None)


class KmsCodec:
    """The seal as the hook `RequestStateSecurity(codec=…)` takes it; `open` and `key` call KMS, the hooks do not."""

    def __init__(self, keys: Keyring, *, lifetime: int) -> None:
        """Take the data keys, and the seconds for which a token is valid."""
        self._keys = keys
        self._envelope_to_open = Envelope(keys, label=LABEL, max_age=lifetime)
        self._envelope_to_seal = Envelope(_KeyOfRequest(keys), label=LABEL, max_age=lifetime)

    def open(self, token: str, caller: str) -> _Opened:
        """Open a token for a caller, whose failures count together. A failure is kept until the hook reports it."""
        try:
            return _Opened(token, self._envelope_to_open.unseal(token, caller=caller))
        except McpError as error:
            return _Opened(token, error)

    def key(self) -> DataKey:
        """Return the key that seals now."""
        return self._keys.key_to_seal()

    def seal(self, payload: bytes) -> str:
        """Seal a state with the key that was fetched."""
        return self._envelope_to_seal.seal(payload)

    def unseal(self, token: str) -> bytes:
        """Return the state that was opened.

        Raises:
            mcp.server.request_state.InvalidRequestState: the token does not open.
        """
        opened = _opened.get()
        if opened is None or opened.token != token:  # the library opens a token that is not in the request
            opened = self.open(token, caller="")
        state = opened.state
        if isinstance(state, InvalidRequestState):
            raise request_state.InvalidRequestState(state.reason)
        if isinstance(state, McpError):
            raise state
        return state


class _KeyOfRequest(Keyring):
    """Data keys that seal with the key of this request, which KMS has made or opened already."""

    def __init__(self, keys: Keyring) -> None:
        self.scope = keys.scope
        self._all = keys

    def key_to_seal(self) -> DataKey:
        """Return the key that was fetched."""
        return _sealing_key.get() or self._all.key_to_seal()


class _Purposed:
    """A wrapping whose data keys are for states of other libraries, as KMS and its policies see them."""

    def __init__(self, wrapping: Wrapping) -> None:
        self.id = wrapping.id
        self._wrapping = wrapping

    def generate(self, context: dict[str, str]) -> tuple[bytes, bytes]:
        return self._wrapping.generate({**context, "purpose": PURPOSE})

    def unwrap(self, wrapped: bytes, context: dict[str, str]) -> bytes:
        return self._wrapping.unwrap(wrapped, {**context, "purpose": PURPOSE})


class _Sealing(RequestStateBoundary):
    """The boundary of the library, which checks the claims; before it, a thread calls KMS."""

    def __init__(self, security: RequestStateSecurity, codec: KmsCodec, principal: Principal | None) -> None:
        super().__init__(security, default_audience=None)
        self._codec = codec
        self._principal = principal

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.method not in INPUT_REQUIRED_METHODS:
            return await call_next(ctx)
        token = (ctx.params or {}).get("requestState")
        opened = None
        if isinstance(token, str):
            opened = await to_thread.run_sync(self._codec.open, token, self._caller(ctx))
            if isinstance(opened.state, McpError) and not isinstance(opened.state, InvalidRequestState):
                raise _as_theirs(opened.state)

        async def call_and_get_key(call: ServerRequestContext[Any, Any]) -> HandlerResult:
            """Run the handler, and get the key if its result asks; then the library seals."""
            result = await call_next(call)
            if is_input_required(result):  # a call that asks nothing never waits for KMS
                _sealing_key.set(await self._get_key())
            return result

        opened_before = _opened.set(opened)
        key_before = _sealing_key.set(None)
        try:
            return await super().__call__(ctx, call_and_get_key)
        finally:
            _opened.reset(opened_before)
            _sealing_key.reset(key_before)

    async def _get_key(self) -> DataKey:
        try:
            return await to_thread.run_sync(self._codec.key)
        except McpError as error:
            raise _as_theirs(error) from None  # the same error, as the library knows it

    def _caller(self, ctx: ServerRequestContext[Any, Any]) -> str:
        """Return whose failures count together: a forger uses up no other caller's attempts."""
        caller = self._principal(ctx) if self._principal else None
        client = getattr(ctx.request, "client", None)
        return caller or str(getattr(client, "host", ""))


def _as_theirs(error: McpError) -> MCPError:
    """Make the library's exception for an error of this toolkit."""
    return MCPError(error.code, error.message, error.data)


def _require_caller(principal: Principal) -> Principal:
    """Return a function like `principal` that refuses a request without a caller."""

    def bind(ctx: ServerRequestContext[Any, Any]) -> str:
        caller = principal(ctx)
        if not caller:
            message = "the request has no principal, and its server takes no anonymous states"
            raise ValueError(message)
        return caller

    return bind
