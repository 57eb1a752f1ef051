"""The settings of a deployment, from the environment variables that template.yaml sets.

    Settings({"MCP_STACK": "shop", "MCP_PAGE_SIZE": "50"}).page_size  ->  50

A function reads them once, at its first event. A wrong value raises `Misconfigured`, whose text names the variable.
Each setting is one row of the class: the variable, its default, what reads it, and the page that explains it. The rows
make docs/settings.md, the texts of errors, and the check of a template (`mcp_functions_harness.checks.settings`).
"""

from __future__ import annotations

import os
import re
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar, get_args

from mcp_functions.protocol import scopes
from mcp_functions.protocol.errors import Misconfigured

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.protocol.scopes import Hierarchy
    from mcp_functions.protocol.wire_types import Implementation, ResultObject

AuthMode: TypeAlias = Literal["iam", "jwt", "oauth", "none"]
AUTH_MODES: tuple[AuthMode, ...] = get_args(AuthMode)

NONE: tuple[str, ...] = ()
ON = True
Value = TypeVar("Value")
Choice = TypeVar("Choice", bound=str)


class Setting(Generic[Value]):
    """One row of the table of settings: what an environment variable means.

    Attributes:
        variable: the name of the variable.
        default: the value if the variable is not set.
        page: the page of docs/ that explains it.
        about: what it decides, for the page of all variables.
    """

    def __init__(self, variable: str, default: Value, read: Callable[[str], Value], page: str, about: str) -> None:
        """Take a row; `read` turns the text into the value, and raises a ValueError with the rule that it breaks."""
        self.variable = variable
        self.default = default
        self.page = page
        self.about = about
        self._read = read

    def read(self, environ: Mapping[str, str]) -> Value:
        """Read the value from an environment; Misconfigured if the text is invalid."""
        if self.variable not in environ:
            return self.default
        try:
            return self._read(environ[self.variable])
        except ValueError as error:
            raise Misconfigured(reason=f"{self.variable} {error}") from None

    def __get__(self, instance: object, owner: type) -> Value:
        """Tell a type checker the type of the value. `read_all` writes the value over this row."""
        return self.default


def rows(settings: type) -> dict[str, Setting[Any]]:
    """Return the rows of a class of settings, by the name of the value in Python."""
    return {name: row for name, row in vars(settings).items() if isinstance(row, Setting)}


def read_all(settings: object, environ: Mapping[str, str]) -> None:
    """Set the value of each row of a class on its new instance."""
    for name, row in rows(type(settings)).items():
        setattr(settings, name, row.read(environ))


def read_items(text: str) -> tuple[str, ...]:
    """Read a list with commas between its items."""
    stripped = [item.strip() for item in text.split(",")]
    return tuple(item for item in stripped if item)


def read_set(text: str) -> frozenset[str]:
    """Read a list whose order means nothing."""
    return frozenset(read_items(text))


def read_words(text: str) -> tuple[str, ...]:
    """Read a list of words, with blanks or commas between them."""
    return tuple(text.replace(",", " ").split())


def number(text: str) -> int:
    """Read a whole number."""
    if not re.fullmatch(r"\d+", text):
        raise ValueError("must be a whole number")
    return int(text)


def positive(text: str) -> int:
    """Read a whole number. A smaller one counts as 1: no page, for example, can be empty."""
    return max(1, number(text))


def one_of(*choices: Choice) -> Callable[[str], Choice]:
    """Return what reads one of several words."""

    def read(text: str) -> Choice:
        for choice in choices:
            if text == choice:
                return choice
        *others, last = choices
        raise ValueError(f"must be {', '.join(others)} or {last}")

    return read


def switch(text: str) -> bool:
    """Read "on" or "off"."""
    return one_of("on", "off")(text) == "on"


def read_revision(text: str) -> str:
    """Read a revision of the specification, which is a date."""
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
        raise ValueError("must be a revision, as in 2025-11-25")
    return text


def read_hierarchy(text: str) -> Hierarchy:
    """Read which scopes include others."""
    try:
        return scopes.read_hierarchy(text)
    except ValueError as error:
        raise ValueError(f"holds {error}: write chains, the broadest scope first, as in a > b > c, d > b") from None


class Settings:
    """The settings of a deployment, the same in all of its functions.

    A text or a list is empty if the deployment has no such thing. Code that needs other values changes a copy.
    """

    # fmt: off
    # ---- The CloudFormation stack, and the server
    stack = Setting("MCP_STACK", "", str, "security", "The CloudFormation stack. It must be set.")
    stage = Setting("MCP_STAGE", "prod", str, "security",
        "States and data keys of one stage, as `test`, do not open in another.")
    qualifier = Setting("MCP_QUALIFIER", "", str, "recipes",
        "The version or alias of the functions that the endpoint calls, as `:live`.")
    stopped_functions = Setting("MCP_STOPPED_FUNCTIONS", frozenset[str](), read_set, "runbooks",
        "The folders of functions that refuse every request.")
    server_name = Setting("MCP_SERVER_NAME", "", str, "recipes", "The server's name. Not set: that of the stack.")
    server_version = Setting("MCP_SERVER_VERSION", "0", str, "recipes", "The server's version.")
    # ---- Sealed (encrypted) states, and stored items
    kms_keys = Setting("MCP_KMS_KEYS", NONE, read_items, "security",
        "The ARNs of KMS keys. The first one seals, and each of them opens.")
    generation = Setting("MCP_GENERATION", "1", str, "security",
        "A new generation makes all older states invalid, because each data key is bound to it.")
    max_state_chars = Setting("MCP_MAX_STATE_CHARS", 24 * 1024, number, "security",
        "The most characters of a sealed state. It goes to the client and back in each request of a call.")
    table = Setting("MCP_TABLE", "", str, "tasks", "The DynamoDB table.")
    blobs = Setting("MCP_BLOBS", "", str, "tasks", "The S3 bucket for values that are too large for an item.")
    # ---- Who may call
    auth_mode: Setting[AuthMode] = Setting("MCP_AUTH_MODE", "iam", one_of(*AUTH_MODES), "identity",
        "How the API knows who calls.")
    allowed_origins = Setting("MCP_ALLOWED_ORIGINS", frozenset[str](), read_set, "identity",
        "The origins of the web pages that may call (CORS).")
    caller_key_arn = Setting("MCP_LOG_CALLERS", "", str, "observability",
        "The ARN of the HMAC key that makes pseudonyms of callers for the log.")
    stopped_callers = Setting("MCP_STOPPED_CALLERS", frozenset[str](), read_set, "runbooks",
        "The pseudonyms of callers that are refused.")
    # ---- What an access token must contain, in the modes `jwt` and `oauth`
    jwt_issuer = Setting("MCP_JWT_ISSUER", "", str, "identity", "The issuer of access tokens.")
    jwt_audiences = Setting("MCP_JWT_AUDIENCE", NONE, read_items, "identity", "The audiences that a token may have.")
    resource_url = Setting("MCP_RESOURCE_URL", "", str, "identity",
        "The URL that clients connect to. Empty: the domain of each request, and the path /mcp.")
    scopes_supported = Setting("MCP_SCOPES_SUPPORTED", NONE, read_words, "identity",
        "The scopes that the OAuth metadata lists.")
    scope_hierarchy: Setting[Hierarchy] = Setting("MCP_SCOPE_HIERARCHY", {}, read_hierarchy, "identity",
        "Which scopes include others: `a > b > c, d > b`.")
    # ---- In the mode `oauth`, the sign-in front, a function of this stack, is between clients and their provider.
    oauth_url = Setting("MCP_OAUTH_URL", "", str, "identity",
        "The URL of the sign-in front. Empty: it has the origin of the resource.")
    oauth_client_id = Setting("MCP_OAUTH_CLIENT_ID", "", str, "identity",
        "The front's own id at the provider, which no other application uses.")
    oauth_binding: Setting[Literal["aud", "client_id"]] = Setting("MCP_OAUTH_BINDING", "aud",
        one_of("aud", "client_id"), "identity", "The claim that binds an access token to this server.")
    oauth_scope_prefix = Setting("MCP_OAUTH_SCOPE_PREFIX", "", str, "identity",
        "The text that the provider writes before each scope of this server.")
    # ---- The limits of requests, lists and tasks
    max_body_bytes = Setting("MCP_MAX_BODY_BYTES", 4 * 1024 * 1024, positive, "security",
        "A request's size before it is parsed. Lambda's own limit for an event is 6 MB.")
    list_ttl_ms = Setting("MCP_LIST_TTL_MS", 60_000, number, "costs", "How long clients may cache a list.")
    page_size = Setting("MCP_PAGE_SIZE", 100, positive, "costs", "How many entries one page of a list has.")
    max_open_tasks = Setting("MCP_MAX_OPEN_TASKS", 100, number, "tasks", "How many tasks of one caller may be open.")
    max_task_ttl = Setting("MCP_MAX_TASK_TTL_SECONDS", 7 * 24 * 3600, positive, "tasks", "How long a task is kept.")
    task_lease = Setting("MCP_TASK_LEASE_SECONDS", 30, positive, "tasks",
        "The time without a sign of life after which another worker continues a task.")
    # ---- Which clients of other protocols are answered
    dialects = Setting("MCP_DIALECTS", NONE, read_items, "dialects",
        "Proposals for MCP that clients may use with this server.")
    earlier_revisions = Setting("MCP_EARLIER_REVISIONS", ON, switch, "legacy",
        "Whether clients of 2025 are answered.")
    session_seconds = Setting("MCP_SESSION_SECONDS", 24 * 3600, positive, "legacy",
        "How long a session of a client of 2025 lasts.")
    question_seconds = Setting("MCP_QUESTION_SECONDS", 900, positive, "legacy",
        "How long the user of such a client may take to answer a question.")
    questions_since = Setting("MCP_QUESTIONS_SINCE", "2025-11-25", read_revision, "legacy",
        "A client of 2025 is asked only if it speaks this revision or a later one.")
    # fmt: on

    def __init__(self, environ: Mapping[str, str]) -> None:
        """Read the settings from an environment, as `os.environ`; Misconfigured if a variable is missing or invalid."""
        if not environ.get("MCP_STACK"):
            raise Misconfigured(reason="MCP_STACK is not set: the template sets it to the stack's name")
        read_all(self, environ)
        self.server_name = environ.get("MCP_SERVER_NAME", self.stack)
        self.is_sam_local = bool(environ.get("AWS_SAM_LOCAL"))
        if self.stopped_callers and not self.caller_key_arn:
            raise Misconfigured(
                reason="MCP_STOPPED_CALLERS needs MCP_LOG_CALLERS: without its key nobody knows these callers"
            )
        if self.takes_tokens:
            self._check_tokens()
        if not is_deployed("dialects"):  # a feature whose folder is not in the layer is off
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
                raise Misconfigured(
                    reason=f"AuthMode is {self.auth_mode}, but {name} is not set: a token could be for anybody"
                )
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
    def server_info(self) -> Implementation:
        """The `serverInfo`, which every result contains."""
        return {"name": self.server_name, "version": self.server_version}

    @property
    def cache_hints(self) -> ResultObject:
        """The caching hints of lists. Only lists that anybody may read are "public"."""
        return {"ttlMs": self.list_ttl_ms, "cacheScope": "public" if self.auth_mode == "none" else "private"}


@cache
def is_deployed(room: str) -> bool:
    """Tell whether the layer has the folder of an optional feature, as "legacy". An operator may delete it."""
    package = os.path.dirname(__file__)  # noqa: PTH120 - pathlib is slow to import
    return os.path.isdir(f"{package}/{room}")  # noqa: PTH112


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
