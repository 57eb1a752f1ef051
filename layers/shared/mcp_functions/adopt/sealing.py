"""The seal of this toolkit for a server that stays where it is: on containers, or behind the Lambda Web Adapter.

    from mcp_functions.adopt import seal_states

    seal_states(server, keys=["arn:aws:kms:…"], principal=authenticated_principal)

The library of the server checks each state's claims: its age, its request, its audience, its principal. The bytes are
sealed in the envelope `ks1.` under data keys that KMS wraps, so that any process with access to the key opens them.

The library seals and opens states in its event loop, where a call to KMS would block every other request. So a thread
calls KMS before, and the keyring keeps the data key in memory. The library then seals and opens without KMS:

    a request with a state   a thread opens the state, which loads its data key. The library takes only sealed states,
                             so it opens the state again.
    a result that asks       a thread loads the data key to seal with. The library seals the new state.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from mcp.server import request_state
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError
from mcp_types.methods import INPUT_REQUIRED_METHODS, is_input_required

from mcp_functions.adopt.library import answer_bound, find_low_level
from mcp_functions.observability.lines import log
from mcp_functions.protocol.errors import InvalidRequestState, McpError
from mcp_functions.seal.binding import caller_id
from mcp_functions.seal.envelope import Envelope
from mcp_functions.seal.keyring import Keyring
from mcp_functions.seal.keys import Scope
from mcp_functions.seal.kms import KmsKey

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

    from mcp_functions.seal.kms import Wrapping

    Principal = Callable[[ServerRequestContext[Any, Any]], str | None]

# A "foreign" state is one that another library makes. KMS binds each data key to its purpose, and a token opens only
# under the label that sealed it. So neither a data key nor a token of foreign states serves our own functions.
PURPOSE = "mcp-foreign-state"
LABEL = b"ks1/foreign-state"
NOT_CHOSEN_MESSAGE = (
    "give principal=, which names the caller of a request, or anonymous=True: then anyone may use a state"
)


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
        lifetime: seconds for one answer; fewer, if the server's own policy allows fewer.

    Raises:
        TypeError: neither `principal` nor `anonymous` is given, or both; or the server is none of the three kinds.
        Misconfigured: there is no key, a key twice, or an alias.
    """
    if bool(anonymous) == (principal is not None):  # exactly one of the two must be given
        raise TypeError(NOT_CHOSEN_MESSAGE)
    low_level = find_low_level(server)
    lifetime = min(lifetime, answer_bound(low_level) or lifetime)
    name = service or low_level.name
    wrappings = [_ForeignPurpose(KmsKey(key) if isinstance(key, str) else key) for key in keys]
    keyring = Keyring(wrappings, Scope(service=name, stage="", generation=""))
    boundary = _Boundary(keyring, principal, audience=name, lifetime=lifetime)
    for place, middleware in enumerate(low_level.middleware):
        if isinstance(middleware, RequestStateBoundary):
            low_level.middleware[place] = boundary
            return
    low_level.middleware.append(boundary)  # a low-level server has no seal of its own


class _Codec:
    """The envelope with the errors of the library, which calls `seal` and `unseal`."""

    def __init__(self, envelope: Envelope) -> None:
        self.seal = envelope.seal
        self._envelope = envelope

    def unseal(self, token: str) -> bytes:
        try:
            return self._envelope.unseal(token)
        except InvalidRequestState as error:
            raise request_state.InvalidRequestState(error.reason) from None


class _Boundary(RequestStateBoundary):
    """The middleware of the library that seals and opens states. It has a thread load the data keys before."""

    def __init__(self, keyring: Keyring, principal: Principal | None, *, audience: str, lifetime: int) -> None:
        self._keyring = keyring
        self._envelope = Envelope(keyring, label=LABEL, max_age=lifetime)
        self.principal = principal
        bind_principal = _require_caller(principal) if principal else None
        codec = _Codec(self._envelope)
        security = RequestStateSecurity(codec=codec, ttl=lifetime, bind_principal=bind_principal, audience=audience)
        super().__init__(security, default_audience=None)

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.method not in INPUT_REQUIRED_METHODS:
            return await call_next(ctx)
        token = (ctx.params or {}).get("requestState")
        if isinstance(token, str):  # the keyring keeps the data key of a token that opens
            await _run_in_thread(partial(self._envelope.unseal, token, caller=self._caller(ctx)))

        async def call_and_load_key(call: ServerRequestContext[Any, Any]) -> HandlerResult:
            result = await call_next(call)
            if is_input_required(result):  # a call that asks nothing never waits for KMS
                await _run_in_thread(self._keyring.key_to_seal)
            return result

        return await super().__call__(ctx, call_and_load_key)

    def _caller(self, ctx: ServerRequestContext[Any, Any]) -> str:
        """Return whose failures count together: a forger uses up no other caller's attempts."""
        caller = self.principal(ctx) if self.principal else None
        client = getattr(ctx.request, "client", None)
        return caller or caller_id(None, str(getattr(client, "host", "")))


async def _run_in_thread(call_kms: Callable[[], object]) -> None:
    """Run a function that may call KMS in a thread."""
    try:
        await to_thread.run_sync(call_kms)
    except McpError as error:
        log.warning("requestState: %s", error.reason)
        raise MCPError(error.code, error.message, error.data) from None


class _ForeignPurpose:
    """A wrapping whose data keys are for states of other libraries, as KMS and its policies see them."""

    def __init__(self, wrapping: Wrapping) -> None:
        self.id = wrapping.id
        self._wrapping = wrapping

    def generate(self, context: dict[str, str]) -> tuple[bytes, bytes]:
        return self._wrapping.generate({**context, "purpose": PURPOSE})

    def unwrap(self, wrapped: bytes, context: dict[str, str]) -> bytes:
        return self._wrapping.unwrap(wrapped, {**context, "purpose": PURPOSE})


def _require_caller(principal: Principal) -> Principal:
    """Return a function like `principal` that refuses a request without a caller."""

    def bind(ctx: ServerRequestContext[Any, Any]) -> str:
        caller = principal(ctx)
        if not caller:
            raise ValueError("the request has no principal, and its server takes no anonymous states")
        return caller

    return bind
