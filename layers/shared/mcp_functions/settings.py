"""The settings of a deployment, read from the environment once, at a function's first event.

The template or the harness sets these variables. Other rooms read only X-Ray's trace id (`observability`), and the
variables of a call to AWS, which boto3 reads too (`aws`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from mcp_functions.protocol import scopes
from mcp_functions.protocol.constants import WORKER
from mcp_functions.protocol.errors import Misconfigured
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.protocol.scopes import Hierarchy

AuthMode: TypeAlias = Literal["iam", "jwt", "oauth", "none"]
AUTH_MODES: dict[str, AuthMode] = {"iam": "iam", "jwt": "jwt", "oauth": "oauth", "none": "none"}
JWT_VARIABLES = ("MCP_JWT_ISSUER", "MCP_JWT_AUDIENCE")
OAUTH_VARIABLES = ("MCP_OAUTH_CLIENT_ID",)
TokenBinding: TypeAlias = Literal["aud", "client_id"]  # the claim that binds an access token to this server
TOKEN_BINDINGS: dict[str, TokenBinding] = {"aud": "aud", "client_id": "client_id"}
# RFC 9728, 2: an https URL without a fragment. Lower case, because clients compare it; http only on loopback.
RESOURCE_URL = r"(https://[a-z0-9.-]+|http://(localhost|127\.0\.0\.1))(:\d+)?(/[^\s?#\"]*)?"

LIST_TTL_MS = 60_000
PAGE_SIZE = 100
MAX_OPEN_TASKS = 100  # of one principal
MAX_TASK_TTL_SECONDS = 7 * 24 * 3600
TASK_LEASE_SECONDS = 30  # without a sign of life, after which another worker continues the task
SESSION_SECONDS = 24 * 3600  # of a session of an earlier revision
QUESTION_SECONDS = 900  # for the user's answer; the client polls meanwhile
QUESTIONS_SINCE = "2025-11-25"  # the first revision whose clients poll
MAX_STATE_CHARS = 24 * 1024  # of a sealed state, which each round receives and returns
MAX_BODY_BYTES = 4 * 1024 * 1024  # of a request, before it is parsed; Lambda's own limit is 6 MB for the event


class Settings(NamedTuple):
    """The settings of a deployment, the same in all of its functions."""

    stack: str
    qualifier: str = ""  # of the functions behind the endpoint: "" is $LATEST, ":live" an alias
    kms_keys: tuple[str, ...] = ()
    table: str = ""
    blobs: str = ""  # a bucket, for values larger than an item of the table
    stage: str = "prod"
    generation: str = "1"
    auth_mode: AuthMode = "iam"
    log_callers: str = ""  # ARN of the HMAC key that gives callers their names in the log; empty: they have none
    stopped_functions: frozenset[str] = frozenset()  # folders
    stopped_callers: frozenset[str] = frozenset()  # their names in the log
    jwt_issuer: str = ""
    jwt_audiences: tuple[str, ...] = ()
    resource_url: str = ""  # empty: the domain of each request, and /mcp
    oauth_url: str = ""  # of the sign-in front, the issuer that hosts see; empty: the origin of the resource
    oauth_client_id: str = ""  # the front's own id at the provider, which no other application uses
    oauth_binding: TokenBinding = "aud"
    oauth_scope_prefix: str = ""  # that the provider writes before each scope of this server
    scopes_supported: tuple[str, ...] = ()
    scope_hierarchy: Hierarchy = {}  # noqa: RUF012 - never changed
    allowed_origins: frozenset[str] = frozenset()
    server_name: str = "mcp-functions"
    server_version: str = "0"
    max_body_bytes: int = MAX_BODY_BYTES
    list_ttl_ms: int = LIST_TTL_MS
    page_size: int = PAGE_SIZE
    max_state_chars: int = MAX_STATE_CHARS
    max_open_tasks: int = MAX_OPEN_TASKS
    max_task_ttl: int = MAX_TASK_TTL_SECONDS
    task_lease: int = TASK_LEASE_SECONDS
    dialects: tuple[str, ...] = ()  # proposals that clients may declare
    earlier_revisions: bool = True
    session_seconds: int = SESSION_SECONDS
    question_seconds: int = QUESTION_SECONDS
    questions_since: str = QUESTIONS_SINCE
    sam_local: bool = False  # the SAM CLI calls a function by its logical id

    def function_name(self, folder: str) -> str:
        """Return the physical name of a function; a stack's name has no underscore, so no two stacks share one."""
        return f"{self.stack}_{folder}"

    def folder(self, function_name: str) -> str:
        """Return the folder of a physical name; under `sam local`, of a logical id: AuditYear is audit_year."""
        name = function_name.removeprefix(f"{self.stack}_")
        if not self.sam_local:
            return name
        words = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
        return words.lstrip("_").replace("_worker", WORKER)

    def only(self, *, key: bool, table: bool) -> Settings:
        """Return the settings of a function that needs the key, or the table, or neither.

        Every function has both names in its environment, but only some have the permission.
        """
        return self._replace(kms_keys=self.kms_keys if key else (), table=self.table if table else "")

    @property
    def takes_tokens(self) -> bool:
        """Whether callers have access tokens."""
        return self.auth_mode in {"jwt", "oauth"}

    @property
    def server_info(self) -> dict[str, str]:
        """`serverInfo`, a member of every result."""
        return {"name": self.server_name, "version": self.server_version}

    @property
    def cache(self) -> dict[str, Any]:
        """The caching hints of lists: "public" only where no one has to sign in to read them."""
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
    auth_mode = environ.get("MCP_AUTH_MODE", "iam")
    if auth_mode not in AUTH_MODES:
        raise Misconfigured(reason="MCP_AUTH_MODE must be iam, jwt, oauth or none")
    if auth_mode in {"jwt", "oauth"}:
        _check_jwt(environ, auth_mode)
    return Settings(
        stack=stack,
        qualifier=environ.get("MCP_QUALIFIER", ""),
        sam_local="AWS_SAM_LOCAL" in environ,
        kms_keys=_items(environ.get("MCP_KMS_KEYS", "")),
        table=environ.get("MCP_TABLE", ""),
        blobs=environ.get("MCP_BLOBS", ""),
        stage=environ.get("MCP_STAGE", "prod"),
        generation=environ.get("MCP_GENERATION", "1"),
        auth_mode=AUTH_MODES[auth_mode],
        log_callers=environ.get("MCP_LOG_CALLERS", ""),
        stopped_functions=frozenset(_items(environ.get("MCP_STOPPED_FUNCTIONS", ""))),
        stopped_callers=_stopped_callers(environ),
        jwt_issuer=environ.get("MCP_JWT_ISSUER", ""),
        jwt_audiences=_items(environ.get("MCP_JWT_AUDIENCE", "")),
        resource_url=environ.get("MCP_RESOURCE_URL", ""),
        oauth_url=environ.get("MCP_OAUTH_URL", "").rstrip("/"),
        oauth_client_id=environ.get("MCP_OAUTH_CLIENT_ID", ""),
        oauth_binding=_binding(environ.get("MCP_OAUTH_BINDING", "aud")),
        oauth_scope_prefix=environ.get("MCP_OAUTH_SCOPE_PREFIX", ""),
        scopes_supported=words(environ, "MCP_SCOPES_SUPPORTED"),
        scope_hierarchy=_hierarchy(environ.get("MCP_SCOPE_HIERARCHY", "")),
        allowed_origins=frozenset(_items(environ.get("MCP_ALLOWED_ORIGINS", ""))),
        server_name=environ.get("MCP_SERVER_NAME", stack),
        server_version=environ.get("MCP_SERVER_VERSION", "0"),
        max_body_bytes=_integer(environ, "MCP_MAX_BODY_BYTES", MAX_BODY_BYTES),
        list_ttl_ms=_integer(environ, "MCP_LIST_TTL_MS", LIST_TTL_MS),
        max_state_chars=_integer(environ, "MCP_MAX_STATE_CHARS", MAX_STATE_CHARS),
        max_open_tasks=_integer(environ, "MCP_MAX_OPEN_TASKS", MAX_OPEN_TASKS),
        max_task_ttl=max(1, _integer(environ, "MCP_MAX_TASK_TTL_SECONDS", MAX_TASK_TTL_SECONDS)),
        task_lease=max(1, _integer(environ, "MCP_TASK_LEASE_SECONDS", TASK_LEASE_SECONDS)),
        earlier_revisions=boolean(environ, "MCP_EARLIER_REVISIONS"),
        session_seconds=max(1, _integer(environ, "MCP_SESSION_SECONDS", SESSION_SECONDS)),
        question_seconds=max(1, _integer(environ, "MCP_QUESTION_SECONDS", QUESTION_SECONDS)),
        questions_since=_revision(environ.get("MCP_QUESTIONS_SINCE", QUESTIONS_SINCE)),
        page_size=max(1, _integer(environ, "MCP_PAGE_SIZE", PAGE_SIZE)),
        dialects=_items(environ.get("MCP_DIALECTS", "")),
    )


def _check_jwt(environ: Mapping[str, str], auth_mode: str) -> None:
    needed = JWT_VARIABLES + (OAUTH_VARIABLES if auth_mode == "oauth" else ())
    for name in needed:
        if not environ.get(name, "").strip(", "):
            raise Misconfigured(reason=f"AuthMode is {auth_mode}, but {name} is not set: a token could be for anybody")
    resource_url = environ.get("MCP_RESOURCE_URL", "")
    if resource_url and not re.fullmatch(RESOURCE_URL, resource_url):
        message = "MCP_RESOURCE_URL must be the URL that clients connect to: https, its host in lower case, no query"
        raise Misconfigured(message)
    oauth_url = environ.get("MCP_OAUTH_URL", "")
    if auth_mode == "oauth" and oauth_url and not re.fullmatch(RESOURCE_URL, oauth_url):
        message = "MCP_OAUTH_URL must be the URL of the sign-in front: https, its host in lower case, no query"
        raise Misconfigured(message)


def _binding(text: str) -> TokenBinding:
    if text not in TOKEN_BINDINGS:
        message = (
            "MCP_OAUTH_BINDING must be aud or client_id: a provider that can bind tokens to neither cannot be used"
        )
        raise Misconfigured(message)
    return TOKEN_BINDINGS[text]


def _stopped_callers(environ: Mapping[str, str]) -> frozenset[str]:
    stopped = frozenset(_items(environ.get("MCP_STOPPED_CALLERS", "")))
    if stopped and not environ.get("MCP_LOG_CALLERS"):
        message = "MCP_STOPPED_CALLERS needs MCP_LOG_CALLERS: without its key nobody knows these callers"
        raise Misconfigured(message)
    return stopped


def _hierarchy(text: str) -> Hierarchy:
    try:
        return scopes.read_hierarchy(text)
    except ValueError as error:
        message = f"MCP_SCOPE_HIERARCHY holds {error}: write chains, the broadest scope first, as in a > b > c, d > b"
        raise Misconfigured(message) from None


def _integer(environ: Mapping[str, str], name: str, default: int) -> int:
    value = environ.get(name, str(default))
    if not value.isdecimal():
        raise Misconfigured(reason=f"{name} must be a whole number")
    return int(value)


def _revision(text: str) -> str:
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
        raise Misconfigured(reason="MCP_QUESTIONS_SINCE must be a revision, as in 2025-11-25")
    return text


def boolean(environ: Mapping[str, str], name: str) -> bool:
    """Read a variable that is "on" or "off", and on by default.

    Raises:
        Misconfigured: it has another value.
    """
    value = environ.get(name, "on")
    if value not in {"on", "off"}:
        raise Misconfigured(reason=f"{name} must be on or off")
    return value == "on"


def words(environ: Mapping[str, str], name: str) -> tuple[str, ...]:
    """Read a list with blanks or commas between its words."""
    return tuple(environ.get(name, "").replace(",", " ").split())


def _items(value: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in value.split(",") if item.strip())
