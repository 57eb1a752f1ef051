"""The names that the specification fixes: revision, `_meta` keys, and the methods that call a handler."""

from __future__ import annotations

PROTOCOL_VERSION = "2026-07-28"
SUPPORTED_VERSIONS = (PROTOCOL_VERSION,)

META_PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion"
META_CLIENT_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
META_CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
META_SERVER_INFO = "io.modelcontextprotocol/serverInfo"
META_EARLIER = "mcp-functions/earlier"  # our own: a client of this earlier revision is behind the request
META_LOG_LEVEL = "io.modelcontextprotocol/logLevel"

# The requests that name a handler, and the parameter that holds the name: also what `Mcp-Name` repeats.
# "Servers MUST NOT send InputRequiredResult responses on any other client requests."
CALLS = {"tools/call": "name", "resources/read": "uri", "prompts/get": "name"}

# Extension io.modelcontextprotocol/tasks: all of its methods name a task, and `Mcp-Name` repeats it.
EXTENSION_TASKS = "io.modelcontextprotocol/tasks"
TASKS = {"tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId"}

RESUME = "turns/resume"  # how the endpoint names to itself what goes on in a dialect; no request has this method

WORKER = "-worker"  # what the name of a worker's Lambda has behind that of its function

LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}

# Every method that a client of this or an older revision may send. A line in the log names these and no others.
METHODS = frozenset({
    *CALLS, *LISTS, "server/discover", "completion/complete", "subscriptions/listen", "initialize", "ping",
    "logging/setLevel", "resources/subscribe", "resources/unsubscribe", *TASKS, "tasks/list", "tasks/result",
    "tasks/input_response", RESUME,
    "notifications/cancelled", "notifications/initialized", "notifications/progress",
    "notifications/roots/list_changed",
})  # fmt: skip

LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
