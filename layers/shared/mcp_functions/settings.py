"""The settings of a deployment, from the environment variables that template.yaml sets.

    Settings({"MCP_STACK": "shop", "MCP_PAGE_SIZE": "50"}).page_size  ->  50

A function reads them once, at its first event. A wrong value raises `Misconfigured`, whose text names the variable.
"""

from __future__ import annotations

import os
import re
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, get_args

from mcp_functions.protocol import scopes
from mcp_functions.protocol.errors import Misconfigured

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcp_functions.protocol.scopes import Hierarchy

AuthMode: TypeAlias = Literal["iam", "jwt", "oauth", "none"]
AUTH_MODES: tuple[AuthMode, ...] = get_args(AuthMode)

Choice = TypeVar("Choice", bound=str)


class Settings:
    """The settings of a deployment, the same in all of its functions.

    A text or a list is empty if the deployment has no such thing. Code that needs other values changes a copy.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        """Read the settings from an environment, as `os.environ`.

        Raises:
            Misconfigured: a variable is missing or invalid.
        """
        # ---- The CloudFormation stack, and the server
        self.stack = environ.get("MCP_STACK", "")
        if not self.stack:
            raise Misconfigured(reason="MCP_STACK is not set: the template sets it to the stack's name")
        # A state of one stage, "test" for example, does not open in another. Nor do data keys.
        self.stage = environ.get("MCP_STAGE", "prod")
        # The version or alias of the functions that the endpoint calls, as in ":live".
        self.qualifier = environ.get("MCP_QUALIFIER", "")
        # The folders of functions that refuse every request.
        self.stopped_functions = frozenset(read_list(environ, "MCP_STOPPED_FUNCTIONS"))
        self.server_name = environ.get("MCP_SERVER_NAME", self.stack)
        self.server_version = environ.get("MCP_SERVER_VERSION", "0")
        self.is_sam_local = bool(environ.get("AWS_SAM_LOCAL"))

        # ---- Sealed (encrypted) states, and stored items
        # The ARNs of KMS keys. The first one seals, and each of them opens.
        self.kms_keys = read_list(environ, "MCP_KMS_KEYS")
        # A new generation makes all older states invalid, because each data key is bound to it.
        self.generation = environ.get("MCP_GENERATION", "1")
        # A sealed state goes to the client and back in each request of a call.
        self.max_state_chars = read_number(environ, "MCP_MAX_STATE_CHARS", 24 * 1024)
        # The DynamoDB table, and the S3 bucket for values that are too large for an item of the table.
        self.table = environ.get("MCP_TABLE", "")
        self.blobs = environ.get("MCP_BLOBS", "")

        # ---- Who may call
        self.auth_mode = read_choice(environ, "MCP_AUTH_MODE", AUTH_MODES, "iam")
        # The origins of the web pages that may call (CORS).
        self.allowed_origins = frozenset(read_list(environ, "MCP_ALLOWED_ORIGINS"))
        # The HMAC key that makes pseudonyms of callers for the log, and the pseudonyms of callers that are refused.
        self.caller_key_arn = environ.get("MCP_LOG_CALLERS", "")
        self.stopped_callers = frozenset(read_list(environ, "MCP_STOPPED_CALLERS"))
        if self.stopped_callers and not self.caller_key_arn:
            reason = "MCP_STOPPED_CALLERS needs MCP_LOG_CALLERS: without its key nobody knows these callers"
            raise Misconfigured(reason=reason)

        # ---- What an access token must contain, in the modes `jwt` and `oauth`
        self.jwt_issuer = environ.get("MCP_JWT_ISSUER", "")
        self.jwt_audiences = read_list(environ, "MCP_JWT_AUDIENCE")
        # The URL that clients connect to; by default, the domain of each request, and the path /mcp.
        self.resource_url = environ.get("MCP_RESOURCE_URL", "")
        # The scopes that the OAuth metadata lists, and which of them include others.
        self.scopes_supported = read_words(environ, "MCP_SCOPES_SUPPORTED")
        self.scope_hierarchy = _read_hierarchy(environ, "MCP_SCOPE_HIERARCHY")

        # In the mode `oauth`, the sign-in front, a function of this stack, is between clients and their provider.
        # Its URL; by default, the front has the origin of the resource.
        self.oauth_url = environ.get("MCP_OAUTH_URL", "")
        # The front's own id at the provider, which no other application uses.
        self.oauth_client_id = environ.get("MCP_OAUTH_CLIENT_ID", "")
        # The claim that binds an access token to this server.
        self.oauth_binding: Literal["aud", "client_id"]
        self.oauth_binding = read_choice(environ, "MCP_OAUTH_BINDING", ("aud", "client_id"), "aud")
        # The text that the provider writes before each scope of this server.
        self.oauth_scope_prefix = environ.get("MCP_OAUTH_SCOPE_PREFIX", "")

        # ---- The limits of requests, lists and tasks
        # A request's size before it is parsed. Lambda's own limit for an event is 6 MB.
        self.max_body_bytes = read_number(environ, "MCP_MAX_BODY_BYTES", 4 * 1024 * 1024, at_least=1)
        # How long clients may cache a list, and how many entries one page of it has.
        self.list_ttl_ms = read_number(environ, "MCP_LIST_TTL_MS", 60_000)
        self.page_size = read_number(environ, "MCP_PAGE_SIZE", 100, at_least=1)
        # How many tasks of one caller may be open, and how long a task is kept.
        self.max_open_tasks = read_number(environ, "MCP_MAX_OPEN_TASKS", 100)
        self.max_task_ttl = read_number(environ, "MCP_MAX_TASK_TTL_SECONDS", 7 * 24 * 3600, at_least=1)
        # The time without a sign of life after which another worker continues a task.
        self.task_lease = read_number(environ, "MCP_TASK_LEASE_SECONDS", 30, at_least=1)

        # ---- Which clients of other protocols are answered
        # Proposals for MCP that clients may use with this server.
        self.dialects = read_list(environ, "MCP_DIALECTS")
        # Whether clients of 2025 are answered, and how long one of their sessions lasts.
        self.earlier_revisions = read_switch(environ, "MCP_EARLIER_REVISIONS")
        self.session_seconds = read_number(environ, "MCP_SESSION_SECONDS", 24 * 3600, at_least=1)
        # How long the user of such a client may take to answer a question.
        self.question_seconds = read_number(environ, "MCP_QUESTION_SECONDS", 900, at_least=1)
        # A client of 2025 is asked only if it speaks this revision or a later one.
        self.questions_since = _read_revision(environ, "MCP_QUESTIONS_SINCE", "2025-11-25")

        if self.takes_tokens:
            self._check_tokens()
        # A feature whose folder is not in the layer is off.
        if not is_deployed("dialects"):
            self.dialects = ()
        if not is_deployed("legacy"):
            self.earlier_revisions = False

    def _check_tokens(self) -> None:
        """Check that a token for another server is refused, and that URLs are written as clients compare them."""
        required = {"MCP_JWT_ISSUER": self.jwt_issuer.strip(", "), "MCP_JWT_AUDIENCE": self.jwt_audiences}
        if self.auth_mode == "oauth":
            required["MCP_OAUTH_CLIENT_ID"] = self.oauth_client_id.strip(", ")
        for name, value in required.items():
            if not value:
                reason = f"AuthMode is {self.auth_mode}, but {name} is not set: a token could be for anybody"
                raise Misconfigured(reason=reason)
        _check_url("MCP_RESOURCE_URL", self.resource_url, "the URL that clients connect to")
        _check_url("MCP_OAUTH_URL", self.oauth_url, "the URL of the sign-in front")

    def stops(self, folder: str) -> bool:
        """Tell whether the operator stopped the function in a folder."""
        return folder in self.stopped_functions

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


@cache
def is_deployed(room: str) -> bool:
    """Tell whether the layer has the folder of an optional feature, as "legacy". An operator may delete it."""
    return os.path.isdir(os.path.join(os.path.dirname(__file__), room))  # noqa: PTH112, PTH118, PTH120 - slow to import


def read_list(environ: Mapping[str, str], name: str) -> tuple[str, ...]:
    """Read a list with commas between its items."""
    stripped = [item.strip() for item in environ.get(name, "").split(",")]
    return tuple(item for item in stripped if item)


def read_words(environ: Mapping[str, str], name: str) -> tuple[str, ...]:
    """Read a list of words, with blanks or commas between them."""
    return tuple(environ.get(name, "").replace(",", " ").split())


def read_number(environ: Mapping[str, str], name: str, default: int, *, at_least: int = 0) -> int:
    """Read a whole number. A smaller one counts as `at_least`: no page, for example, can be empty."""
    if name not in environ:
        return default
    if not re.fullmatch(r"\d+", environ[name]):
        raise Misconfigured(reason=f"{name} must be a whole number")
    return max(at_least, int(environ[name]))


def read_choice(environ: Mapping[str, str], name: str, choices: Sequence[Choice], default: Choice) -> Choice:
    """Read one of several words."""
    word = environ.get(name, default)
    for choice in choices:
        if word == choice:
            return choice
    *others, last = choices
    raise Misconfigured(reason=f"{name} must be {', '.join(others)} or {last}")


def read_switch(environ: Mapping[str, str], name: str) -> bool:
    """Read a variable that is "on" or "off"; by default, it is on."""
    return read_choice(environ, name, ("on", "off"), "on") == "on"


def _read_revision(environ: Mapping[str, str], name: str, default: str) -> str:
    """Read a revision of the specification, which is a date."""
    revision = environ.get(name, default)
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", revision):
        raise Misconfigured(reason=f"{name} must be a revision, as in 2025-11-25")
    return revision


def _read_hierarchy(environ: Mapping[str, str], name: str) -> Hierarchy:
    try:
        return scopes.read_hierarchy(environ.get(name, ""))
    except ValueError as error:
        reason = f"{name} holds {error}: write chains, the broadest scope first, as in a > b > c, d > b"
        raise Misconfigured(reason=reason) from None  # the reason repeats the text of the ValueError


def _check_url(name: str, url: str, meaning: str) -> None:
    """Check the URL in a variable, which is "https" and has no fragment (RFC 9728, section 1.2)."""
    pattern = (
        r"(https://[a-z0-9.-]+"  # the host in lower case, because clients compare the text of URLs
        r"|http://(localhost|127\.0\.0\.1))"  # without TLS only on this machine
        r"(:\d+)?"  # the port
        r"(/[^\s?#\"]*)?"  # the path, without a query
    )
    if url and not re.fullmatch(pattern, url):
        raise Misconfigured(reason=f"{name} must be {meaning}: https, its host in lower case, no query")
