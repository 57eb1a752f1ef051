"""The text that `serve` and `kms` print when they start: the URL, the functions, and how to connect."""

from collections.abc import Mapping, Sequence

from mcp_functions_harness.environment import TABLE
from mcp_functions_harness.issuer import Issuer
from mcp_functions_harness.lambdas.functions import FRONT_DOOR, Function
from mcp_functions_harness.loopback import HOST

KINDS = {"tool": "tool", "prompt": "prompt", "resource": "resource", "resource_template": "template"}

STALE = "catalog.json is out of date; write it: python -m mcp_functions_harness catalog"
GREETING = """\
mcp-functions serves {url}

{functions}

In a browser: {page}

Connect a client, of MCP 2026-07-28 or of 2025:
{clients}

{auth}
Ctrl-C stops."""
CLIENTS = """\
  Claude Code     claude mcp add --transport http local {url}
  VS Code         .vscode/mcp.json  {{"servers": {{"local": {{"type": "http", "url": "{url}"}}}}}}
  Cursor          .cursor/mcp.json  {{"mcpServers": {{"local": {{"url": "{url}"}}}}}}
  Claude Desktop  its configuration knows no URL; mcp-remote does (Node.js):
                {{"mcpServers": {{"local": {{"command": "npx", "args": ["-y", "mcp-remote", "{url}"]}}}}}}
  MCP Inspector   npx @modelcontextprotocol/inspector --transport http --server-url {url}
  Python          async with Client("{url}", elicitation_callback=...) as client:
                      print(await client.list_tools())  # from mcp import Client; pip install "mcp>=2.3"
  TypeScript      client.connect(new StreamableHTTPClientTransport(new URL("{url}")))
  curl            curl {url} --json '{{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}}'"""
WITHOUT_TOKENS = "AuthMode is none: a requestState is bound to no user, so every client that has it can use it."
WITH_TOKENS = """\
AuthMode is {mode}: a call needs an access token for {url} of {issuer}.
A client with OAuth discovers how to sign in; here every sign-in succeeds, {as_whom}.
Other clients send "Authorization: Bearer ..." with this token of local-user, valid for an hour:
{token}"""

AS_WHOM = {"jwt": "as local-user or login_hint", "oauth": "under any name, after the front's page of consent"}

HOST_OF_CONTAINERS = "host.docker.internal"  # the host's name in a container of Docker Desktop
HINT_FOR_LINUX = """\
That is for Docker Desktop. Containers of an engine on Linux reach its bridge: kms --address 172.17.0.1
"""
KMS = """\
KMS answers at {url}, with this project's key, and so does DynamoDB, with its table. Where `sam local` runs, first:

export AWS_ENDPOINT_URL_KMS={inside}
export AWS_ENDPOINT_URL_DYNAMODB={inside}
export MCP_KMS_KEYS={arn}
export MCP_TABLE={table}
export MCP_AUTH_MODE=none

{hint}Ctrl-C stops."""


def text(
    url: str,
    functions: Mapping[str, Function],
    issuer: Issuer | None = None,
    mode: str = "jwt",
    skills: Sequence[str] = (),
) -> str:
    """Return the text of `serve`; without an issuer the mode is none, whatever `mode` says."""
    function_lines = []
    for function in functions.values():
        if function.folder != FRONT_DOOR:
            function_lines += _function_lines(function)
    function_lines += [f"  skill      {uri}" for uri in skills]
    if FRONT_DOOR not in functions:
        function_lines.append(f"  (no functions/{FRONT_DOOR}: serve answers at /{FRONT_DOOR}, a deployment does not)")
    return GREETING.format(
        url=url,
        page=url.removesuffix(FRONT_DOOR),
        functions="\n".join(function_lines),
        clients=clients(url),
        auth=_auth_text(url, issuer, functions, mode),
    )


def clients(url: str) -> str:
    """Return how clients are told the URL of the endpoint."""
    return CLIENTS.format(url=url)


def kms(url: str, arn: str) -> str:
    """Return the text of `kms`: its URL, and the variables for functions in containers."""
    inside = url.replace(HOST, HOST_OF_CONTAINERS)  # 127.0.0.1 is the container itself there
    hint = "" if inside == url else HINT_FOR_LINUX
    return KMS.format(url=url, arn=arn, table=TABLE, inside=inside, hint=hint)


def stale(differences: Sequence[str]) -> str:
    """Return the text about a catalog that differs from the functions."""
    return "\n".join([STALE, *(f"  {line}" for line in differences)])


def _auth_text(url: str, issuer: Issuer | None, functions: Mapping[str, Function], mode: str) -> str:
    if issuer is None:
        return WITHOUT_TOKENS
    scopes: set[str] = set()
    for function in functions.values():
        for handler in function.handlers:
            scopes.update(handler.scopes)
    token = issuer.token(scope=" ".join(sorted(scopes)))
    return WITH_TOKENS.format(mode=mode, url=url, issuer=issuer.url, as_whom=AS_WHOM[mode], token=token)


def _function_lines(function: Function) -> list[str]:
    if not function.handlers:
        return [f"  function   {function.folder}"]
    lines = []
    for handler in function.handlers:
        kind = KINDS[handler.kind]
        remark = "may ask" if handler.needs_state else ""
        lines.append(f"  {kind:<9}  {handler.key!s:<32}{remark}".rstrip())
    return lines
