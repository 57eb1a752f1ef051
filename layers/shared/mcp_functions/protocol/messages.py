"""JSON-RPC messages, and the types that pass between HTTP and the handlers.

    JSON value  -- to_message -->  message  -- the checks of `http` -->  Request  ->  handler  ->  Result

If another Lambda function has the handler, its `ForwardedResponse` comes back in place of a `Result`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, cast

from mcp_functions.protocol.constants import (
    APP_MIME_TYPE,
    EXTENSION_APPS,
    META_CLIENT_CAPABILITIES,
    META_PROTOCOL_VERSION,
    META_SERVER_INFO,
    SUPPORTED_VERSIONS,
)
from mcp_functions.protocol.errors import InvalidParams, InvalidRequest, UnsupportedProtocolVersion
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.protocol.event_types import Event, Response
    from mcp_functions.protocol.wire_types import (
        ClientCapabilities,
        Implementation,
        JSONRPCNotification,
        JSONRPCRequest,
        JSONValue,
        Params,
        ResultObject,
    )

MAX_ID_CHARS = 8192  # of a request id and of a progress token, which messages of the server repeat


class Principal(NamedTuple):
    """The authenticated caller, as the authorizer of API Gateway names it.

    Attributes:
        iss: the issuer of the token; "aws:iam" for a caller that signs with IAM.
        sub: the issuer's name for the caller.
        client: the issuer's id of the client program; "" if the issuer has none.
    """

    iss: str
    sub: str
    client: str


class Identity(NamedTuple):
    """Who calls, and the scopes of the access token. AuthMode none authenticates nobody, and has no principal."""

    principal: Principal | None = None
    scopes: frozenset[str] = frozenset()


class Request(NamedTuple):
    """A JSON-RPC request that passed the checks of HTTP.

    Attributes:
        headers: the headers of the HTTP request, with names in lower case.
        principal: the caller; None with AuthMode none.
        address: the caller's IP address as the gateway saw it; `binding.caller_id` counts by it.
        gateway_deadline: when the gateway stops waiting for the response, in unix seconds.
        event: the API Gateway event without credentials, which the endpoint forwards.
        scopes: the scopes of the caller's access token.
        lambda_deadline: when Lambda ends this function, in unix seconds; 0 if unknown.
    """

    message: JSONRPCRequest
    headers: Mapping[str, str]
    principal: Principal | None
    address: str
    gateway_deadline: float
    event: Event
    scopes: frozenset[str] = frozenset()
    lambda_deadline: float = 0.0

    @property
    def method(self) -> str:
        """The method of the message."""
        return self.message["method"]

    @property
    def params(self) -> Params:
        """The params of the message."""
        return self.message["params"]

    def with_params(self, params: Params) -> Request:
        """Return the same request with other params."""
        message: JSONRPCRequest = {**self.message, "params": params}
        return self._replace(message=message)

    @property
    def capabilities(self) -> ClientCapabilities:
        """The capabilities on this request: "servers MUST NOT infer capabilities from prior requests" (basic)."""
        declared = self.params["_meta"][META_CLIENT_CAPABILITIES]
        return declared if isinstance(declared, dict) else {}


class ResponseBody(NamedTuple):
    """A response that a dialect (an unreleased proposal for MCP) has written: an event stream, or JSON."""

    text: str
    is_stream: bool


class Result(NamedTuple):
    """The result of a request.

    Attributes:
        notifications: the messages that the client gets before the result.
        body: what a dialect sends in place of the result and the notifications.
        text: the result as JSON, if it was serialized before: a list is the same for every request; "" if not.
    """

    result: Mapping[str, Any]
    notifications: tuple[Mapping[str, Any], ...] = ()
    body: ResponseBody | None = None
    text: str = ""


class ForwardedResponse(NamedTuple):
    """The HTTP response of another Lambda, which the endpoint returns unchanged."""

    response: Response


AnyResult: TypeAlias = Result | ForwardedResponse


def shows_forms(declared: ClientCapabilities) -> bool:
    """Tell whether a client shows forms: "an empty capabilities object is equivalent to … form mode only"."""
    if declared.get("elicitation") == {}:
        return True
    return isinstance(value_at(declared, "elicitation", "form"), dict)


def shows_apps(declared: ClientCapabilities) -> bool:
    """Tell whether a client shows MCP Apps: "mimeTypes … Must include text/html;profile=mcp-app" (ext-apps)."""
    mime_types = value_at(declared, "extensions", EXTENSION_APPS, "mimeTypes")
    return isinstance(mime_types, list) and APP_MIME_TYPE in mime_types


def is_asked_in_app(declared: ClientCapabilities) -> bool:
    """Tell whether questions go into an MCP App, because the client shows apps, but no forms of its own."""
    return shows_apps(declared) and not shows_forms(declared)


def value_at(value: Any, *path: str) -> Any:  # noqa: ANN401 - a value of JSON
    """Return the member at a path of nested objects; None if it is absent or null."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def is_dict_of(type_: type, value: object) -> bool:
    """Tell whether a JSON value is an object whose members all have a type."""
    return isinstance(value, dict) and all(isinstance(item, type_) for item in value.values())


def complete(result: ResultObject, server: Implementation) -> ResultObject:
    """Add the members of every result: its `resultType`, and the server's name and version in `_meta`."""
    meta = result.get("_meta", {}).copy()
    meta[META_SERVER_INFO] = server
    return {"resultType": "complete", **result, "_meta": meta}


def to_message(value: JSONValue) -> JSONRPCRequest | JSONRPCNotification:
    """Check that a JSON value is one JSON-RPC request or notification (basic, "Messages").

    Raises:
        InvalidRequest: the value is neither a request nor a notification.
    """
    if isinstance(value, list):
        # Basic/transports: "The body of the HTTP POST MUST be a single JSON-RPC request or notification."
        # 2025-03-26 allows arrays ("batches"). This server departs from it: none of the tested clients sends one.
        text = "Send one message, not an array: MCP 2025-06-18 removed batches, and this server accepts none"
        raise InvalidRequest(reason="array", message=text)
    if not isinstance(value, dict):
        raise InvalidRequest
    id_ = value.get("id")
    is_json_rpc = value.get("jsonrpc") == "2.0"
    if not is_json_rpc or not isinstance(value.get("method"), str):
        if is_json_rpc and ("result" in value or "error" in value):
            raise InvalidRequest(message="A server of this revision sends no requests, so it takes no responses")
        raise InvalidRequest(id=id_ if is_id(id_) else None)
    # "Requests MUST include a string or integer ID. … the ID MUST NOT be null."
    if "id" in value and not is_id(id_):
        rule = f"The request id must be a string of at most {MAX_ID_CHARS} characters, or an integer"
        raise InvalidRequest(message=rule)
    value.setdefault("params", {})
    if not isinstance(value["params"], dict):
        raise InvalidRequest(message="params must be an object", id=id_)
    return cast("JSONRPCRequest | JSONRPCNotification", value)


def is_request(message: JSONRPCRequest | JSONRPCNotification) -> TypeGuard[JSONRPCRequest]:
    """Tell a request from a notification: "Notifications MUST NOT include an ID" (basic)."""
    return "id" in message


def is_id(value: object) -> bool:
    """Check a request id or a progress token: an integer, or a string of at most MAX_ID_CHARS characters."""
    if isinstance(value, str):
        return len(value) <= MAX_ID_CHARS
    return isinstance(value, int) and not isinstance(value, bool)  # to Python, True is an integer


def check_meta(message: JSONRPCRequest) -> None:
    """Check the members that the `_meta` of every request must have (basic, "Request metadata").

    Raises:
        InvalidParams: one of them is missing, or has a wrong type.
        UnsupportedProtocolVersion: one of them is missing because a client of an earlier revision sent `initialize`.
    """
    params = message["params"]
    meta = params.get("_meta")
    if not isinstance(meta, dict):
        fault = f"params must hold _meta, with {META_PROTOCOL_VERSION} and {META_CLIENT_CAPABILITIES}"
    elif not isinstance(meta.get(META_PROTOCOL_VERSION), str):
        fault = f"params._meta must hold {META_PROTOCOL_VERSION}, a string"
    elif not isinstance(meta.get(META_CLIENT_CAPABILITIES), dict):
        fault = f"params._meta must hold {META_CLIENT_CAPABILITIES}, an object"
    else:
        return
    if message["method"] == "initialize":
        # Basic/versioning: a server "SHOULD name the versions it supports in any error it returns to initialize".
        raise UnsupportedProtocolVersion(str(params.get("protocolVersion")), SUPPORTED_VERSIONS)
    raise InvalidParams(message=fault)


def check_version(message: JSONRPCRequest) -> None:
    """Refuse a request of a revision that this server does not implement (basic/versioning)."""
    version = message["params"]["_meta"][META_PROTOCOL_VERSION]
    if version not in SUPPORTED_VERSIONS:
        raise UnsupportedProtocolVersion(version, SUPPORTED_VERSIONS)
