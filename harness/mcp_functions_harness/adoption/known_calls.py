"""Names of calls in a server's source: those that only read, and those that must not run again.

A tool that asks its user runs again from its first line with each answer. `check` explains these rounds, and steps.
"""

from __future__ import annotations

import builtins

# Calls that ask the user or the client.
QUESTIONS = frozenset({"elicit", "elicit_url", "elicit_form", "create_message", "sample", "sample_step", "list_roots"})

# Why a call is a finding.
WRITES = "it changes something, so it would happen again in every round: put it into a step"
UNKNOWN = "nobody knows here what it does: put it into a step, unless it only reads"
CHANGES = "it differs from round to round, and a question that depends on it would diverge: put it into a step"
MODULE_STATE = "it changes what this process keeps: the next round or caller may not find it, and others may read it"
SESSION = "a Lambda has no session: this state ends with the call"
NOT_DELIVERED = "a Lambda cannot send this notification: no stream is open when the lists or a resource change"
BACKGROUND = "a task that its call does not await is cancelled when the call ends"
CONCURRENT = "questions inside it would end the call, because their order is not certain"
CATCHES = "it catches what ends a round that asks, so the lines after it run without an answer: catch Exception"
STREAM = "a Lambda holds no stream open"
HTTP_OPTION = "only MCP is served: this option of HTTP does not restrict who may call the function; AuthMode does"
HTTP_APP = "only MCP is served: what an HTTP application adds does not restrict who may call; AuthMode does"
NO_HTTP_REQUEST = "a Lambda passes no HTTP request to the server: it has no headers, and no client address"
CLAIMS = "a Lambda passes on the issuer and the subject of a token, and no other claim"

# Calls that are findings wherever a handler makes them: the last part of the dotted name -> the reason.
ANYWHERE = {
    **dict.fromkeys(("set_state", "get_state", "delete_state", "enable_components", "disable_components"), SESSION),
    **dict.fromkeys(("reset_visibility", "get_session"), SESSION),
    **dict.fromkeys(("notify_tools_changed", "notify_prompts_changed", "notify_resources_changed"), NOT_DELIVERED),
    **dict.fromkeys(("notify_resource_updated", "send_resource_updated", "send_elicit_complete"), NOT_DELIVERED),
    **dict.fromkeys(
        ("send_tool_list_changed", "send_prompt_list_changed", "send_resource_list_changed", "send_notification"),
        NOT_DELIVERED,
    ),
    **dict.fromkeys(("create_task", "ensure_future", "start_soon", "run_in_executor", "Thread", "Timer"), BACKGROUND),
    **dict.fromkeys(("close_sse_stream", "close_standalone_sse_stream"), STREAM),
}
# Calls that read the HTTP request or the claims of a token, and attributes of a context that hold them.
HTTP_READERS = frozenset({"get_http_request", "get_http_headers", "CurrentRequest", "CurrentHeaders"})
HTTP_ATTRIBUTES = frozenset({
    f"{context}.{attribute}"
    for context in ("ctx", "context", "request_context")
    for attribute in ("request", "headers")
})  # fmt: skip
# Calls that make an HTTP application of a server, or run one, and their options that say who may call.
HTTP_APPS = frozenset({"http_app", "streamable_http_app", "sse_app"})
HTTP_MANAGER = "StreamableHTTPSessionManager"
HTTP_RUNS = frozenset({"run", "run_async", "run_http_async", "run_streamable_http_async", "run_sse_async"})
RESTRICTING = frozenset({
    "middleware", "auth", "token_verifier", "auth_server_provider", "transport_security", "host_origin_protection",
    "allowed_hosts", "allowed_origins", "custom_starlette_routes",
})  # fmt: skip
# The other options of an application; one that a later release adds is a finding.
NOT_RESTRICTING = frozenset({
    "path", "transport", "json_response", "stateless_http", "retry_interval", "session_idle_timeout", "max_sessions",
    "max_request_body_size", "host", "debug", "streamable_http_path", "sse_path", "message_path", "event_store",
})  # fmt: skip
# Calls before a question whose results differ from round to round: by the first part of the dotted name, or the last.
CHANGING = frozenset({"random", "secrets", "uuid", "time"})
CHANGING_NAMES = frozenset({"now", "utcnow", "today"})
# Calls that run several things at once, and calls that write: by the last part of the dotted name.
GROUPS = frozenset({"gather", "TaskGroup", "create_task_group", "wait", "as_completed"})
WRITING_NAMES = frozenset({
    "add", "charge", "commit", "create", "delete", "delete_item", "execute", "executemany", "insert", "insert_one",
    "invoke", "mkdir", "open", "patch", "pay", "post", "publish", "put", "put_item", "remove", "rename", "replace_one",
    "rmtree", "run", "save", "send", "send_message", "system", "touch", "transfer", "unlink", "update", "update_item",
    "write", "write_bytes", "write_text",
})  # fmt: skip
_WRITING_BUILTINS = frozenset({"open", "exec", "eval", "input", "__import__", "setattr", "delattr"})
READING_BUILTINS = frozenset(name for name in dir(builtins) if name not in _WRITING_BUILTINS)
READING_MODULES = frozenset({
    "base64", "dataclasses", "decimal", "fractions", "functools", "hashlib", "html", "itertools", "json", "logging",
    "math", "operator", "re", "statistics", "string", "textwrap", "urllib.parse", "zoneinfo",
})  # fmt: skip
# Methods of text, numbers and plain containers, and methods of an MCP context that may run twice without harm.
READING_METHODS = frozenset({
    "append", "capitalize", "casefold", "copy", "count", "decode", "encode", "endswith", "error", "extend", "format",
    "fromisoformat", "get", "hexdigest", "index", "info", "debug", "isdigit", "isoformat", "items", "join", "keys",
    "log", "lower", "lstrip", "model_copy", "model_dump", "model_dump_json", "model_validate", "partition",
    "removeprefix", "removesuffix", "replace", "report_progress", "rpartition", "rsplit", "rstrip", "setdefault",
    "sort", "split", "splitlines", "startswith", "strftime", "strip", "strptime", "timedelta", "title", "upper",
    "values", "warning", "zfill",
})  # fmt: skip
# Methods that change the container on which they are called: a finding if that is a variable of the module.
CHANGING_METHODS = frozenset({
    "add", "append", "appendleft", "clear", "discard", "extend", "extendleft", "insert", "move_to_end", "pop",
    "popitem", "popleft", "remove", "reverse", "rotate", "setdefault", "sort", "subtract", "update",
})  # fmt: skip
# Calls that make plain containers, whose methods are known above.
CONTAINERS = frozenset({
    "dict", "list", "set", "defaultdict", "OrderedDict", "Counter", "deque", "collections.defaultdict",
    "collections.OrderedDict", "collections.Counter", "collections.deque",
})  # fmt: skip
# Packages whose classes only hold data: ElicitRequest(…), TextContent(…).
DATA_PACKAGES = frozenset({"mcp", "mcp_types", "fastmcp", "pydantic", "dataclasses"})
STEPS = frozenset({"step", "step.wait"})
