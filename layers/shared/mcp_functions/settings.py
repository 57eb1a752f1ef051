"""The settings of a deployment: `read(os.environ)` makes a `Settings`, once, at a function's first event.

template.yaml sets the variables, and the local harness sets the same ones. Each field of `Settings` has one variable:
`MCP_PAGE_SIZE=50` sets `page_size` to 50. A wrong value is a `Misconfigured`, whose text names the variable. Other
modules read only X-Ray's trace id (`observability`), and the variables of a call to AWS, which boto3 reads too (`aws`).
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
# For callers with a value of type `str`: the same words as `AuthMode`.
AUTH_MODES: dict[str, AuthMode] = {"iam": "iam", "jwt": "jwt", "oauth": "oauth", "none": "none"}
JWT_VARIABLES = ("MCP_JWT_ISSUER", "MCP_JWT_AUDIENCE")
OAUTH_VARIABLES = ("MCP_OAUTH_CLIENT_ID",)
# RFC 9728, section 2: an https URL without a fragment. Its host is in lower case, because clients compare the text. A
# URL with http is only for this machine.
URL = r"(https://[a-z0-9.-]+|http://(localhost|127\.0\.0\.1))(:\d+)?(/[^\s?#\"]*)?"
# Variable -> the pattern that its value must match, and the same in words, for the error.
PATTERNS = {
    "MCP_AUTH_MODE": ("iam|jwt|oauth|none", "iam, jwt, oauth or none"),
    "MCP_OAUTH_BINDING": (
        "aud|client_id",
        "aud or client_id: a provider that can bind tokens to neither cannot be used",
    ),
    "MCP_QUESTIONS_SINCE": (r"\d{4}-\d{2}-\d{2}", "a revision, as in 2025-11-25"),
}
# Variable -> what its URL is, for the error.
URLS = {"MCP_RESOURCE_URL": "the URL that clients connect to", "MCP_OAUTH_URL": "the URL of the sign-in front"}
# Field -> its variable, where the variable does not have the name of the field.
VARIABLES = {
    "jwt_audiences": "MCP_JWT_AUDIENCE",
    "max_task_ttl": "MCP_MAX_TASK_TTL_SECONDS",
    "task_lease": "MCP_TASK_LEASE_SECONDS",
    "sam_local": "AWS_SAM_LOCAL",
}
# A 0 in these variables stays 0; the seal refuses it as the length of a state. In any other variable it is read as 1.
ZERO_IS_A_LIMIT = ("MCP_LIST_TTL_MS", "MCP_MAX_OPEN_TASKS", "MCP_MAX_STATE_CHARS")

MAX_OPEN_TASKS = 100  # tasks that one principal may have open
MAX_TASK_TTL_SECONDS = 7 * 24 * 3600
QUESTION_SECONDS = 900  # the time for the user's answer, if the client polls for it
MAX_STATE_CHARS = 24 * 1024  # the length of a sealed state, which each round of a call receives and returns
MAX_BODY_BYTES = 4 * 1024 * 1024  # the size of a request before it is parsed; Lambda's own limit for an event is 6 MB


class Settings(NamedTuple):
    """The settings of a deployment, the same in all of its functions.

    The variable of a field is its name in capitals after `MCP_`; `VARIABLES` has the exceptions. The type of the
    default says how the variable is read.
    """

    stack: str
    qualifier: str = ""  # the version or alias of the functions behind the endpoint: "" is $LATEST, ":live" an alias
    kms_keys: tuple[str, ...] = ()  # ARNs; the first key seals, each of them opens
    table: str = ""  # the DynamoDB table for tasks, for rounds that run once, and for questions to clients of 2025
    blobs: str = ""  # the S3 bucket for values that are larger than an item of the table
    stage: str = "prod"
    generation: str = "1"  # part of what a data key is bound to: another number makes every older state invalid
    auth_mode: AuthMode = "iam"
    log_callers: str = ""  # the ARN of the HMAC key that makes the callers' names in the log; empty: they have no names
    stopped_functions: frozenset[str] = frozenset()  # the folders of functions that refuse every request
    stopped_callers: frozenset[str] = frozenset()  # the names, as in the log, of callers that every function refuses
    jwt_issuer: str = ""
    jwt_audiences: tuple[str, ...] = ()
    resource_url: str = ""  # the URL that clients connect to; empty: the domain of each request, and /mcp
    # The sign-in front is a function before the identity provider, and hosts see it as the issuer of tokens.
    oauth_url: str = ""  # the URL of the front; empty: the origin of the resource
    oauth_client_id: str = ""  # the front's own id at the provider, which no other application uses
    oauth_binding: Literal["aud", "client_id"] = "aud"  # the claim that binds an access token to this server
    oauth_scope_prefix: str = ""  # the text that the provider writes before each scope of this server
    scopes_supported: tuple[str, ...] = ()
    scope_hierarchy: Hierarchy = {}  # noqa: RUF012 - never changed
    allowed_origins: frozenset[str] = frozenset()  # the web pages that may call, by origin (CORS)
    server_name: str = "mcp-functions"
    server_version: str = "0"
    max_body_bytes: int = MAX_BODY_BYTES
    list_ttl_ms: int = 60_000  # milliseconds for which clients may cache a list
    page_size: int = 100  # entries in one page of a list
    max_state_chars: int = MAX_STATE_CHARS
    max_open_tasks: int = MAX_OPEN_TASKS
    max_task_ttl: int = MAX_TASK_TTL_SECONDS
    task_lease: int = 30  # seconds without a sign of life after which another worker continues the task
    dialects: tuple[str, ...] = ()  # proposals for the protocol that clients may use with this server
    earlier_revisions: bool = True  # whether clients of 2025 are answered
    session_seconds: int = 24 * 3600  # the life of a session, which only an earlier revision has
    question_seconds: int = QUESTION_SECONDS
    questions_since: str = "2025-11-25"  # the first revision whose clients poll for the answer to a question
    sam_local: str = ""  # not empty under `sam local`, which calls a function by its logical id in the template

    def function_name(self, folder: str) -> str:
        """Return the physical name of a function; a stack's name has no underscore, so no two stacks share one."""
        return f"{self.stack}_{folder}"

    def folder(self, function_name: str) -> str:
        """Return the folder of a function by its physical name, `<stack>_<folder>`.

        Under `sam local` it is a logical id: AuditYear is the folder audit_year.
        """
        name = function_name.removeprefix(f"{self.stack}_")
        if not self.sam_local:
            return name
        words = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
        return words.lstrip("_").replace("_worker", WORKER)

    def only(self, *, key: bool, table: bool) -> Settings:
        """Return the settings without the keys, or without the table, if the function does not need them.

        Every function has both names in its environment, but only some have the permission.
        """
        kms_keys = self.kms_keys if key else ()
        table_name = self.table if table else ""
        return self._replace(kms_keys=kms_keys, table=table_name)

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
    for name, (pattern, expected) in PATTERNS.items():
        if name in environ:
            _check_pattern(name, environ[name], pattern, expected)
    values: dict[str, Any] = {"stack": stack, "server_name": stack}
    for field, default in Settings._field_defaults.items():
        name = VARIABLES.get(field, f"MCP_{field.upper()}")
        if name in environ:
            values[field] = _value(name, environ[name], default)
    settings = Settings(**values)
    if settings.takes_tokens:
        _check_tokens(environ, settings.auth_mode)
    if settings.stopped_callers and not settings.log_callers:
        message = "MCP_STOPPED_CALLERS needs MCP_LOG_CALLERS: without its key nobody knows these callers"
        raise Misconfigured(message)
    # Blanks may separate scopes, as in the `scope` of an access token; `_value` splits at commas only.
    scopes_supported = words(environ, "MCP_SCOPES_SUPPORTED")
    return settings._replace(oauth_url=settings.oauth_url.rstrip("/"), scopes_supported=scopes_supported)


def _value(name: str, text: str, default: object) -> object:
    """Read the text of a variable as a value of the default's type.

    Raises:
        Misconfigured: the text is no value of this type.
    """
    if isinstance(default, bool):
        return boolean({name: text}, name)
    if isinstance(default, int):
        _check_pattern(name, text, r"\d+", "a whole number")
        return int(text) if name in ZERO_IS_A_LIMIT else max(1, int(text))
    if isinstance(default, dict):
        return _hierarchy(text)
    if isinstance(default, tuple | frozenset):
        return type(default)(item.strip() for item in text.split(",") if item.strip())
    return text


def _check_pattern(name: str, text: str, pattern: str, expected: str) -> None:
    if not re.fullmatch(pattern, text):
        raise Misconfigured(reason=f"{name} must be {expected}")


def _check_tokens(environ: Mapping[str, str], auth_mode: str) -> None:
    """Check the variables without which a token could be for anybody, and the URLs that clients compare."""
    needed = JWT_VARIABLES + (OAUTH_VARIABLES if auth_mode == "oauth" else ())
    for name in needed:
        if not environ.get(name, "").strip(", "):
            raise Misconfigured(reason=f"AuthMode is {auth_mode}, but {name} is not set: a token could be for anybody")
    for name, meaning in URLS.items():
        _check_pattern(name, environ.get(name, ""), f"({URL})?", f"{meaning}: https, its host in lower case, no query")


def _hierarchy(text: str) -> Hierarchy:
    try:
        return scopes.read_hierarchy(text)
    except ValueError as error:  # it says what is wrong; its traceback would add nothing
        message = f"MCP_SCOPE_HIERARCHY holds {error}: write chains, the broadest scope first, as in a > b > c, d > b"
        raise Misconfigured(message) from None


def boolean(environ: Mapping[str, str], name: str) -> bool:
    """Read a variable that is "on" or "off", and on by default.

    Raises:
        Misconfigured: it has another value.
    """
    value = environ.get(name, "on")
    _check_pattern(name, value, "on|off", "on or off")
    return value == "on"


def words(environ: Mapping[str, str], name: str) -> tuple[str, ...]:
    """Read a list with blanks or commas between its words."""
    return tuple(environ.get(name, "").replace(",", " ").split())
