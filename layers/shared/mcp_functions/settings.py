"""Reads the settings of a deployment from environment variables, which template.yaml sets.

    read({"MCP_STACK": "shop", "MCP_PAGE_SIZE": "50"})  ->  Settings(stack="shop", page_size=50, …)

A function reads them once, at its first event. A wrong value raises `Misconfigured`, whose text names the variable.
`VARIABLES`, at the end of this file, lists the variables with the field and the reader of each.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from mcp_functions.protocol import scopes
from mcp_functions.protocol.constants import WORKER_SUFFIX
from mcp_functions.protocol.errors import Misconfigured
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.protocol.scopes import Hierarchy

AuthMode: TypeAlias = Literal["iam", "jwt", "oauth", "none"]
AUTH_MODES: tuple[AuthMode, ...] = get_args(AuthMode)
# Required in the modes `jwt` and `oauth`: without them, a token for another server would be accepted.
JWT_VARIABLES = ("MCP_JWT_ISSUER", "MCP_JWT_AUDIENCE")
OAUTH_VARIABLES = ("MCP_OAUTH_CLIENT_ID",)  # required as well in the mode `oauth`
# RFC 9728, section 1.2: an https URL without a fragment.
URL = (
    r"(https://[a-z0-9.-]+"  # the host in lower case, because clients compare the text of URLs
    r"|http://(localhost|127\.0\.0\.1))"  # without TLS only on this machine
    r"(:\d+)?"  # the port
    r"(/[^\s?#\"]*)?"  # the path, without a query
)

MAX_OPEN_TASKS = 100  # tasks that one caller may have open
MAX_TASK_TTL_SECONDS = 7 * 24 * 3600
QUESTION_SECONDS = 900  # how long a client of 2025 may take to answer a question
MAX_STATE_CHARS = 24 * 1024  # the length of a sealed state, which goes to the client and back in each request of a call
MAX_BODY_BYTES = 4 * 1024 * 1024  # the size of a request before it is parsed; Lambda's own limit for an event is 6 MB


class Settings(NamedTuple):
    """The settings of a deployment, the same in all of its functions."""

    # The deployment
    stack: str  # the name of the CloudFormation stack
    qualifier: str = ""  # the version or alias of the functions behind the endpoint: "" is $LATEST, ":live" an alias
    stage: str = "prod"  # states and data keys of another stage do not open
    server_name: str = "mcp-functions"
    server_version: str = "0"
    sam_local: str = ""  # not empty under `sam local`, which calls a function by its logical id in the template

    # Sealed (encrypted) states, and what is stored
    kms_keys: tuple[str, ...] = ()  # ARNs; the first key seals, each of them opens
    generation: str = "1"  # a new value makes all older states invalid, because each data key is bound to it
    max_state_chars: int = MAX_STATE_CHARS
    table: str = ""  # the DynamoDB table for tasks, for rounds that run once, and for questions to clients of 2025
    blobs: str = ""  # the S3 bucket for values that are larger than an item of the table

    # Callers
    auth_mode: AuthMode = "iam"
    caller_key_arn: str = ""  # the ARN of the HMAC key for callers' pseudonyms in the log; "": no pseudonyms
    stopped_callers: frozenset[str] = frozenset()  # pseudonyms of callers whom every function refuses
    stopped_functions: frozenset[str] = frozenset()  # the folders of functions that refuse every request
    allowed_origins: frozenset[str] = frozenset()  # the web pages that may call, by origin (CORS)

    # Access tokens, in the modes `jwt` and `oauth`
    jwt_issuer: str = ""
    jwt_audiences: tuple[str, ...] = ()
    resource_url: str = ""  # the URL that clients connect to; "": the domain of each request, and the path /mcp
    scopes_supported: tuple[str, ...] = ()  # the OAuth scopes that the metadata lists
    scope_hierarchy: Hierarchy = {}  # noqa: RUF012 - never changed; which scopes include others
    # In the mode `oauth`, a function of this stack, the sign-in front, is between clients and the identity provider.
    oauth_url: str = ""  # the URL of the sign-in front; "": the origin of the resource
    oauth_client_id: str = ""  # the sign-in front's own id at the provider, which no other application uses
    oauth_binding: Literal["aud", "client_id"] = "aud"  # the claim that binds an access token to this server
    oauth_scope_prefix: str = ""  # the text that the provider writes before each scope of this server

    # Requests and lists
    max_body_bytes: int = MAX_BODY_BYTES
    list_ttl_ms: int = 60_000  # milliseconds for which clients may cache a list
    page_size: int = 100  # entries in one page of a list

    # Tasks
    max_open_tasks: int = MAX_OPEN_TASKS
    max_task_ttl: int = MAX_TASK_TTL_SECONDS
    task_lease: int = 30  # seconds without a sign of life after which another worker continues the task

    # Other protocols
    dialects: tuple[str, ...] = ()  # proposals for MCP that clients may use with this server
    earlier_revisions: bool = True  # whether clients of 2025 are answered
    session_seconds: int = 24 * 3600  # the life of a session of such a client
    question_seconds: int = QUESTION_SECONDS
    questions_since: str = "2025-11-25"  # clients of 2025 are asked only if they speak this revision or a later one

    def function_name(self, folder: str) -> str:
        """Return the name of a Lambda function: `<stack>_<folder>`. A stack's name has no underscore."""
        return f"{self.stack}_{folder}"

    def folder(self, function_name: str) -> str:
        """Return the folder of a Lambda function, with `WORKER_SUFFIX` if it is the worker of that folder.

        Under `sam local`, the name of a function is its logical id in the template:

            AuditYear          audit_year
            AuditYearWorker    audit_year-worker
        """
        name = function_name.removeprefix(f"{self.stack}_")
        if not self.sam_local:
            return name
        before_inner_capitals = "(?<!^)(?=[A-Z])"
        folder = re.sub(before_inner_capitals, "_", name.removesuffix("Worker")).lower()
        return folder + WORKER_SUFFIX if name.endswith("Worker") else folder

    def without_unused_resources(self, *, needs_keys: bool, needs_table: bool) -> Settings:
        """Return the settings without the KMS keys, or without the table, if a function does not need them.

        Every function finds them in its environment, but only some have the permission to use them.
        """
        kms_keys = self.kms_keys if needs_keys else ()
        table = self.table if needs_table else ""
        return self._replace(kms_keys=kms_keys, table=table)

    @property
    def takes_tokens(self) -> bool:
        """Whether callers have access tokens."""
        return self.auth_mode in {"jwt", "oauth"}

    @property
    def server_info(self) -> dict[str, str]:
        """The `serverInfo`, which every result contains."""
        return {"name": self.server_name, "version": self.server_version}

    @property
    def cache(self) -> dict[str, Any]:
        """The caching hints of lists. Only lists that anybody may read are "public"."""
        return {"ttlMs": self.list_ttl_ms, "cacheScope": "public" if self.auth_mode == "none" else "private"}


def read(environ: Mapping[str, str]) -> Settings:
    """Read the settings of this deployment.

    Args:
        environ: the environment, as `os.environ`.

    Raises:
        Misconfigured: a variable is missing or invalid.
    """
    stack = environ.get("MCP_STACK", "")
    if not stack:
        raise Misconfigured(reason="MCP_STACK is not set: the template sets it to the stack's name")
    values: dict[str, Any] = {"stack": stack, "server_name": stack}
    for name, (field, read_value) in VARIABLES.items():
        if name in environ:
            values[field] = read_value(environ, name)
    settings = Settings(**values)
    if settings.takes_tokens:
        _check_tokens(environ, settings.auth_mode)
    if settings.stopped_callers and not settings.caller_key_arn:
        message = "MCP_STOPPED_CALLERS needs MCP_LOG_CALLERS: without its key nobody knows these callers"
        raise Misconfigured(message)
    return settings


def _check_tokens(environ: Mapping[str, str], auth_mode: str) -> None:
    """Check that the variables for access tokens are set, and that their URLs are written as clients compare them."""
    required = JWT_VARIABLES + OAUTH_VARIABLES if auth_mode == "oauth" else JWT_VARIABLES
    for name in required:
        if not environ.get(name, "").strip(", "):
            raise Misconfigured(reason=f"AuthMode is {auth_mode}, but {name} is not set: a token could be for anybody")
    _check_url(environ, "MCP_RESOURCE_URL", "the URL that clients connect to")
    _check_url(environ, "MCP_OAUTH_URL", "the URL of the sign-in front")


def _check_url(environ: Mapping[str, str], name: str, meaning: str) -> None:
    url = environ.get(name, "")
    if url and not re.fullmatch(URL, url):
        raise Misconfigured(reason=f"{name} must be {meaning}: https, its host in lower case, no query")


def read_text(environ: Mapping[str, str], name: str) -> str:
    """Read a text."""
    return environ[name]


def read_list(environ: Mapping[str, str], name: str) -> tuple[str, ...]:
    """Read a list with commas between its items."""
    stripped = [item.strip() for item in environ[name].split(",")]
    return tuple(item for item in stripped if item)


def read_set(environ: Mapping[str, str], name: str) -> frozenset[str]:
    """Read a list with commas between its items, whose order does not matter."""
    return frozenset(read_list(environ, name))


def read_words(environ: Mapping[str, str], name: str) -> tuple[str, ...]:
    """Read a list of words, with blanks or commas between them; it is empty if the variable is not set."""
    return tuple(environ.get(name, "").replace(",", " ").split())


def read_switch(environ: Mapping[str, str], name: str) -> bool:
    """Read a variable that is "on" or "off"; it is on if the variable is not set."""
    value = environ.get(name, "on")
    if value not in ("on", "off"):
        raise Misconfigured(reason=f"{name} must be on or off")
    return value == "on"


def read_number(environ: Mapping[str, str], name: str) -> int:
    """Read a whole number, 0 or more."""
    value = environ[name]
    if not re.fullmatch(r"\d+", value):
        raise Misconfigured(reason=f"{name} must be a whole number")
    return int(value)


def read_positive_number(environ: Mapping[str, str], name: str) -> int:
    """Read a whole number; 0 counts as 1, because no page, request or wait can be empty."""
    return max(1, read_number(environ, name))


def read_auth_mode(environ: Mapping[str, str], name: str) -> str:
    """Read who may call."""
    if environ[name] not in AUTH_MODES:
        raise Misconfigured(reason=f"{name} must be iam, jwt, oauth or none")
    return environ[name]


def read_token_binding(environ: Mapping[str, str], name: str) -> str:
    """Read the claim that binds an access token to this server."""
    if environ[name] not in ("aud", "client_id"):
        raise Misconfigured(reason=f"{name} must be aud or client_id: no other claim binds a token to this server")
    return environ[name]


def read_revision(environ: Mapping[str, str], name: str) -> str:
    """Read a revision of the specification, which is a date."""
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", environ[name]):
        raise Misconfigured(reason=f"{name} must be a revision, as in 2025-11-25")
    return environ[name]


def read_hierarchy(environ: Mapping[str, str], name: str) -> Hierarchy:
    """Read which scopes include others."""
    try:
        return scopes.read_hierarchy(environ[name])
    except ValueError as error:
        message = f"{name} holds {error}: write chains, the broadest scope first, as in a > b > c, d > b"
        raise Misconfigured(message) from None  # the message repeats the text of the ValueError


def read_origin(environ: Mapping[str, str], name: str) -> str:
    """Read a URL without a path, and drop a slash at its end."""
    return environ[name].rstrip("/")


# Variable -> its field of `Settings`, and the function that reads it, in the order of the fields. `read` itself reads
# MCP_STACK.
VARIABLES: dict[str, tuple[str, Callable[[Mapping[str, str], str], Any]]] = {
    "MCP_QUALIFIER": ("qualifier", read_text),
    "MCP_STAGE": ("stage", read_text),
    "MCP_SERVER_NAME": ("server_name", read_text),
    "MCP_SERVER_VERSION": ("server_version", read_text),
    "AWS_SAM_LOCAL": ("sam_local", read_text),
    "MCP_KMS_KEYS": ("kms_keys", read_list),
    "MCP_GENERATION": ("generation", read_text),
    "MCP_MAX_STATE_CHARS": ("max_state_chars", read_number),  # the seal refuses 0
    "MCP_TABLE": ("table", read_text),
    "MCP_BLOBS": ("blobs", read_text),
    "MCP_AUTH_MODE": ("auth_mode", read_auth_mode),
    "MCP_LOG_CALLERS": ("caller_key_arn", read_text),
    "MCP_STOPPED_CALLERS": ("stopped_callers", read_set),
    "MCP_STOPPED_FUNCTIONS": ("stopped_functions", read_set),
    "MCP_ALLOWED_ORIGINS": ("allowed_origins", read_set),
    "MCP_JWT_ISSUER": ("jwt_issuer", read_text),
    "MCP_JWT_AUDIENCE": ("jwt_audiences", read_list),
    "MCP_RESOURCE_URL": ("resource_url", read_text),
    "MCP_SCOPES_SUPPORTED": ("scopes_supported", read_words),
    "MCP_SCOPE_HIERARCHY": ("scope_hierarchy", read_hierarchy),
    "MCP_OAUTH_URL": ("oauth_url", read_origin),
    "MCP_OAUTH_CLIENT_ID": ("oauth_client_id", read_text),
    "MCP_OAUTH_BINDING": ("oauth_binding", read_token_binding),
    "MCP_OAUTH_SCOPE_PREFIX": ("oauth_scope_prefix", read_text),
    "MCP_MAX_BODY_BYTES": ("max_body_bytes", read_positive_number),
    "MCP_LIST_TTL_MS": ("list_ttl_ms", read_number),
    "MCP_PAGE_SIZE": ("page_size", read_positive_number),
    "MCP_MAX_OPEN_TASKS": ("max_open_tasks", read_number),
    "MCP_MAX_TASK_TTL_SECONDS": ("max_task_ttl", read_positive_number),
    "MCP_TASK_LEASE_SECONDS": ("task_lease", read_positive_number),
    "MCP_DIALECTS": ("dialects", read_list),
    "MCP_EARLIER_REVISIONS": ("earlier_revisions", read_switch),
    "MCP_SESSION_SECONDS": ("session_seconds", read_positive_number),
    "MCP_QUESTION_SECONDS": ("question_seconds", read_positive_number),
    "MCP_QUESTIONS_SINCE": ("questions_since", read_revision),
}
