"""Constants of the specification: the revision, the keys of `_meta`, and the methods. The toolkit's own say so."""

from __future__ import annotations

PROTOCOL_VERSION = "2026-07-28"
SUPPORTED_VERSIONS = (PROTOCOL_VERSION,)

META_PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion"
META_CLIENT_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
META_CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
META_SERVER_INFO = "io.modelcontextprotocol/serverInfo"
META_LOG_LEVEL = "io.modelcontextprotocol/logLevel"
# The toolkit's own: the revision of a client of 2025, whose request `legacy` translated into one of this revision.
META_CLIENT_REVISION = "mcp-functions/earlier"

# The methods that call a handler, and the parameter with its name, which the header `Mcp-Name` repeats.
# "Servers MUST NOT send InputRequiredResult responses on any other client requests."
CALLS = {"tools/call": "name", "resources/read": "uri", "prompts/get": "name"}

# Extension io.modelcontextprotocol/tasks: the parameter with the id of the task, which `Mcp-Name` repeats.
EXTENSION_TASKS = "io.modelcontextprotocol/tasks"
TASKS = {"tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId"}

# Extension io.modelcontextprotocol/ui (MCP Apps): hosts show a form of this server in a frame.
EXTENSION_APPS = "io.modelcontextprotocol/ui"
APP_MIME_TYPE = "text/html;profile=mcp-app"
APP_FORM = "ui://mcp-functions/form"  # the form that asks the questions of every tool

# The toolkit's own, for the log: a message of a dialect continues a call. No request has this method.
RESUME = "turns/resume"

# The toolkit's own. A function `functions/<folder>/app.py` is deployed as `<stack>_<folder>`.
WORKER = "-worker"  # ends the name of the Lambda function that continues the tasks of a function
ENDPOINT = "mcp"  # the folder of the function that clients call, at /mcp

# The methods that list handlers, and the member of their results with the list.
LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}

# Every method that a client of this or an older revision may send. A log line names no other method.
METHODS = frozenset({
    *CALLS, *LISTS, "server/discover", "completion/complete", "subscriptions/listen", "initialize", "ping",
    "logging/setLevel", "resources/subscribe", "resources/unsubscribe", *TASKS, "tasks/list", "tasks/result",
    "tasks/input_response", RESUME,
    "notifications/cancelled", "notifications/initialized", "notifications/progress",
    "notifications/roots/list_changed",
})  # fmt: skip

LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
