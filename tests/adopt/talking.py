"""Runs the official client against an original server and the adopted one, and records what each responds."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from mcp import Client, MCPError
from mcp_types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestParams,
    ElicitResult,
    ListRootsResult,
    PromptReference,
    ResourceTemplateReference,
    Root,
    TextContent,
)
from pydantic import FileUrl

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from mcp.client.session import ClientRequestContext
    from pydantic import BaseModel

SERVERS = Path(__file__).parent / "servers"
LISTS = ("list_tools", "list_prompts", "list_resources", "list_resource_templates")
CACHING = ("ttlMs", "cacheScope")  # of a list, which the deployment decides
Step = tuple[str, dict[str, Any]]
Said = dict[str, Any]


def load(name: str) -> Any:  # noqa: ANN401 - a server of three kinds
    """Load a server from its file, as the file of its own project."""
    spec = importlib.util.spec_from_file_location(f"original_{name}", SERVERS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    server = module.server
    return getattr(server, "_mcp_server", server)  # the client takes FastMCP's low-level server


class Person:
    """Answers what a server asks, in turn, and remembers it."""

    def __init__(self, answers: Sequence[Said]) -> None:
        self.answers, self.asked, self.told = list(answers), list[Any](), list[Any]()

    async def elicited(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        del context  # the client passes it by name
        fields = getattr(params, "requested_schema", {}).get("properties")
        self.asked.append([params.message, fields or getattr(params, "url", None)])
        return ElicitResult(**self.answers.pop(0))

    async def sampled(self, context: ClientRequestContext, params: CreateMessageRequestParams) -> CreateMessageResult:
        del context
        self.asked.append(f"model: {len(params.messages)}")
        return CreateMessageResult(role="assistant", content=TextContent(type="text", text="yes"), model="m")

    async def rooted(self, context: ClientRequestContext) -> ListRootsResult:
        del context
        self.asked.append("roots")
        return ListRootsResult(roots=[Root(uri=FileUrl("file:///work"))])

    async def progressed(self, progress: float, total: float | None, message: str | None) -> None:
        self.told.append([progress, total, message])


def talk(target: object, steps: Sequence[Step], *, mode: str, answers: Sequence[Said] = ()) -> list[Any]:
    """Take steps with a server, and return everything that came of them."""
    return anyio.run(_talk, target, steps, mode, Person(answers))


async def _talk(target: Any, steps: Sequence[Step], mode: str, person: Person) -> list[Any]:  # noqa: ANN401 - as Client
    client = Client(
        target,
        mode=mode,
        elicitation_callback=person.elicited,
        sampling_callback=person.sampled,
        list_roots_callback=person.rooted,
    )
    said: list[Any] = []
    async with client:
        said.append(_identity(client))
        for method, params in steps:
            said.append(await _outcome(METHODS[method](client, params, person)))
    return [*said, {"asked": person.asked, "told": person.told}]


def _identity(client: Client) -> Said:
    capabilities = client.server_capabilities
    offered = {name for name in ("tools", "prompts", "resources", "completions") if getattr(capabilities, name)}
    info = client.server_info
    return {
        "revision": client.protocol_version,
        "server": info.model_dump(mode="json", exclude_none=True) if info else None,
        "instructions": client.instructions,
        "capabilities": sorted(offered),
    }


async def _outcome(result: Awaitable[BaseModel]) -> Said:
    try:
        written = (await result).model_dump(mode="json", by_alias=True, exclude_none=True)
    except MCPError as refused:
        return {"code": refused.code, "message": refused.message, "data": refused.error.data}
    is_list = any(name in written for name in ("tools", "prompts", "resources", "resourceTemplates"))
    return {key: value for key, value in written.items() if not (is_list and key in CACHING)}


async def _call(client: Client, params: Said, person: Person) -> BaseModel:
    return await client.call_tool(params["name"], params.get("arguments", {}), progress_callback=person.progressed)


async def _list(client: Client, method: str) -> BaseModel:
    """Read all pages of a list, as one."""
    page = await getattr(client, method)()
    field = next(name for name in ("tools", "prompts", "resources", "resource_templates") if hasattr(page, name))
    entries = getattr(page, field)
    while page.next_cursor:
        page = await getattr(client, method)(cursor=page.next_cursor)
        entries += getattr(page, field)
    whole: BaseModel = page.model_copy(update={field: entries})
    return whole


METHODS: dict[str, Callable[[Client, Said, Person], Awaitable[BaseModel]]] = {
    "list_tools": lambda client, _params, _person: _list(client, "list_tools"),
    "list_prompts": lambda client, _params, _person: _list(client, "list_prompts"),
    "list_resources": lambda client, _params, _person: _list(client, "list_resources"),
    "list_resource_templates": lambda client, _params, _person: _list(client, "list_resource_templates"),
    "call": _call,
    "get": lambda client, params, _person: client.get_prompt(params["name"], params.get("arguments", {})),
    "read": lambda client, params, _person: client.read_resource(params["uri"]),
    "complete": lambda client, params, _person: client.complete(
        PromptReference(name=params["prompt"])
        if "prompt" in params
        else ResourceTemplateReference(uri=params["template"]),
        {"name": params["name"], "value": params["value"]},
    ),
}
