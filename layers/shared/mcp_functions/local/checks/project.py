"""A project as its checks see it: the functions on disk, the template that deploys them, and the catalog.

    functions/<folder>/app.py     the code of a function, with its handlers: tools, prompts and resources
    template.yaml                 a block for each function; a function with MCP tasks has a second block, its worker
    functions/mcp/catalog.json    what functions/mcp, the endpoint, lists to clients

A block is a resource of the type AWS::Serverless::Function.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions.local import catalog, environment, template
from mcp_functions.local.checks import iam
from mcp_functions.local.lambdas.functions import FRONT_DOOR, Functions
from mcp_functions.protocol.constants import WORKER_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_functions.protocol.wire_types import JSONValue

FOLDER = "functions"
FUNCTION = "AWS::Serverless::Function"


class Block(NamedTuple):
    """One function's resource in template.yaml."""

    logical_id: str
    properties: dict[str, Any]

    @property
    def is_worker(self) -> bool:
        """Whether the block is a worker, which continues the tasks of a function."""
        return iam.resource_text(self.properties.get("FunctionName")).endswith(WORKER_SUFFIX)

    def variable(self, name: str) -> JSONValue:
        """Return an environment variable's value; None if the block does not set it."""
        return self.properties.get("Environment", {}).get("Variables", {}).get(name)


@dataclass(frozen=True)
class Project:
    """The parts that must agree. Each frozenset has names of folders in functions/."""

    root: Path  # the folder of template.yaml and functions/
    template: dict[str, Any]
    catalog: dict[str, Any] = field(default_factory=dict)
    folders: frozenset[str] = frozenset()  # folders with an app.py
    offering: frozenset[str] = frozenset()  # folders with a handler: usually all but functions/mcp
    asking: frozenset[str] = frozenset()  # folders with a handler that can ask the user
    keeping: frozenset[str] = frozenset()  # folders with a handler that writes to the table

    def of_type(self, kind: str) -> dict[str, dict[str, Any]]:
        """Return the properties of all resources of one type, by logical id."""
        resources = self.template["Resources"].items()
        return {name: resource.get("Properties") or {} for name, resource in resources if resource.get("Type") == kind}

    @property
    def globals(self) -> dict[str, Any]:
        """The properties that the template gives to every function."""
        return dict(self.template.get("Globals", {}).get("Function", {}))

    def variable(self, name: str) -> JSONValue:
        """Return the value of an environment variable of every function; None if Globals does not set it."""
        return self.globals.get("Environment", {}).get("Variables", {}).get(name)

    def blocks_of(self, folder: str) -> list[Block]:
        """Return the block of a function, and that of its worker."""
        return [blocks[folder] for blocks in (self.functions, self.workers) if folder in blocks]

    @property
    def functions(self) -> dict[str, Block]:
        """The blocks of functions, by folder; without workers and partial blocks."""
        return {folder: block for folder, block in self._without_workers() if not self._is_partial(folder, block)}

    @property
    def partial(self) -> dict[str, Block]:
        """The blocks that were copied only in part. Each gets one complaint, so the other checks leave it out."""
        return {folder: block for folder, block in self._without_workers() if self._is_partial(folder, block)}

    def missing_properties(self, folder: str, block: Block) -> list[str]:
        """List the properties that a block lacks and needs, because its folder has handlers."""
        if folder not in self.offering:
            return []
        needed = ["FunctionName", "Events"]
        if folder in self.asking | self.keeping:
            needed = ["FunctionName", "Tags", "Policies", "Events"]
        return [name for name in needed if not block.properties.get(name)]

    @property
    def workers(self) -> dict[str, Block]:
        """The workers, by the folder of the function whose tasks they continue."""
        return {folder: block for folder, block in self._deployed() if block.is_worker}

    @property
    def tasks(self) -> frozenset[str]:
        """The folders with a handler whose calls may become tasks."""
        return frozenset(self.catalog.get("tasks", ()))

    @property
    def blocks(self) -> list[Block]:
        """The blocks of functions and workers, without partial ones."""
        return [*self.functions.values(), *self.workers.values()]

    @property
    def front_door(self) -> Block | None:
        """The block of functions/mcp; None if it is missing, or has handlers and so forwards to no function."""
        if FRONT_DOOR in self.offering:
            return None
        return self.functions.get(FRONT_DOOR)

    def _is_partial(self, folder: str, block: Block) -> bool:
        """Whether a block lacks its route (in Events) and more: then it was probably copied only in part."""
        missing = self.missing_properties(folder, block)
        return "Events" in missing and len(missing) > 1

    def statements(self, block: Block) -> list[dict[str, Any]]:
        """List the statements of a function's policies: inline, and managed by this template.

        MaySeal and MayKeep are left out: `init` wrote them, and other checks read them.
        """
        policies = self.of_type("AWS::IAM::ManagedPolicy")
        statements = iam.own_statements(block.properties)
        for name in iam.managed_policies(block.properties) - {iam.SEAL, iam.KEEP}:
            document = policies.get(name, {}).get("PolicyDocument", {})
            statements += iam.own_statements({"Policies": document})
        return statements

    def _without_workers(self) -> list[tuple[str, Block]]:
        """Return the blocks of functions; a folder may have two by mistake, one of them partial."""
        return [(folder, block) for folder, block in self._deployed() if not block.is_worker]

    def _deployed(self) -> Iterator[tuple[str, Block]]:
        """Yield each block whose code is in functions/, with its folder."""
        for logical_id, properties in self.of_type(FUNCTION).items():
            path = Path(str(properties.get("CodeUri")))
            if path.parts[:1] == (FOLDER,):
                yield path.name, Block(logical_id, properties)


def read(root: Path) -> Project:
    """Import every function of a project, and read its template and its catalog.

    Args:
        root: the folder of template.yaml and functions/.

    Raises:
        Problem: a file is missing, or a function does not load.
    """
    parsed = template.read(root / template.FILE)
    with environment.applied(environment.CREDENTIALS), Functions(root / FOLDER) as loaded:
        handlers = [(folder, handler) for folder, function in loaded.by_folder.items() for handler in function.handlers]
        folders = frozenset(loaded.by_folder)
    return Project(
        root=root.resolve(),
        folders=folders,
        offering=frozenset(folder for folder, _ in handlers),
        asking=frozenset(folder for folder, handler in handlers if handler.needs_state or handler.task),
        keeping=frozenset(folder for folder, handler in handlers if handler.needs_table),
        catalog=catalog.read(root / FOLDER),
        template=parsed,
    )


def pascal(folder: str) -> str:
    """Return the logical id of a folder's block: update_work_item becomes UpdateWorkItem."""
    return "".join(word.capitalize() for word in folder.replace("-", "_").split("_"))
