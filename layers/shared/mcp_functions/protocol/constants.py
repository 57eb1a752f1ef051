"""Names and values of the specification: the revision, the keys of `_meta`, the methods, the extensions.

Those that the specification does not have are at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final

    from mcp_functions.protocol.catalog_types import ListName

PROTOCOL_VERSION = "2026-07-28"
SUPPORTED_VERSIONS = (PROTOCOL_VERSION,)

META_PROTOCOL_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
META_CLIENT_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
META_CLIENT_INFO: Final = "io.modelcontextprotocol/clientInfo"
META_SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
META_LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"

LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

# The methods that call a tool, a resource or a prompt, and the parameter that names it. The header `Mcp-Name` repeats
# this parameter. Only these methods may ask the user: "Servers MUST NOT send InputRequiredResult responses on any other
# client requests."
CALL_METHODS = {"tools/call": "name", "resources/read": "uri", "prompts/get": "name"}

LIST_METHODS: Mapping[str, ListName] = {  # and the member of the result that holds the list
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
DISCOVERY_METHODS = ("server/discover", *LIST_METHODS)

# Extension io.modelcontextprotocol/tasks: the methods, and the parameter with the id of the task, which `Mcp-Name`
# repeats.
EXTENSION_TASKS = "io.modelcontextprotocol/tasks"
TASK_METHODS = {"tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId"}

# Extension io.modelcontextprotocol/ui (MCP Apps): hosts show a form of this server in a frame.
EXTENSION_APPS = "io.modelcontextprotocol/ui"
APP_MIME_TYPE = "text/html;profile=mcp-app"

# Extension io.modelcontextprotocol/skills (SEP-2640): a skill is a folder of files that teach a model a task.
EXTENSION_SKILLS = "io.modelcontextprotocol/skills"
SKILL_METHODS = ("skills/list", "skills/get", "resources/directory/read")
SKILL_SCHEME = "skill://"

# ---- Of this toolkit

APP_FORM_URI = "ui://mcp-functions/form"  # the form that asks the questions of every tool

# The keys of `_meta` that begin so are this toolkit's own: its form believes what they say.
OWN_META = "mcp-functions/"
META_FORM: Final = "mcp-functions/form"  # in a result: what the form shows and returns
META_CLIENT_REVISION: Final = "mcp-functions/earlier"  # in a request: that of a client of 2025
META_TASK_TTL: Final = "mcp-functions/task-ttl"  # in a request of a dialect: milliseconds

# The method in the log if a message of a dialect continues a call. No request has this method.
RESUME_METHOD = "turns/resume"

# A function `functions/<folder>/app.py` is deployed as the Lambda function `<stack>_<folder>`.
WORKER_SUFFIX = "-worker"  # of the function that continues the tasks of another
ENDPOINT_FOLDER = "mcp"  # the folder of the function that clients call, at /mcp

# Every method that a client of this or an older revision may send. A log line names no other method.
METHODS = frozenset({
    *CALL_METHODS, *LIST_METHODS, "server/discover", "completion/complete", "subscriptions/listen", "initialize",
    "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", *TASK_METHODS, *SKILL_METHODS,
    "tasks/list", "tasks/result", "tasks/input_response", RESUME_METHOD,
    "notifications/cancelled", "notifications/initialized", "notifications/progress",
    "notifications/roots/list_changed",
})  # fmt: skip
