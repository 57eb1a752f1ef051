"""A project as its checks see it: the functions on disk, the template that deploys them, and the catalog.

    functions/<folder>/app.py     the code of a function, with its handlers: tools, prompts and resources
    template.yaml                 a block for each function; a function with MCP tasks has a second block, its worker
    functions/mcp/catalog.json    what functions/mcp, the endpoint, lists to clients

A block is a resource of the type AWS::Serverless::Function.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from mcp_functions.protocol.catalog_types import Catalog
from mcp_functions.protocol.constants import WORKER_SUFFIX
from mcp_functions.protocol.wire_types import JSONObject, JSONValue
from mcp_functions_harness import catalog, environment, template
from mcp_functions_harness.checks import iam
from mcp_functions_harness.lambdas.functions import FRONT_DOOR, SIGN_IN, Functions
from mcp_functions_harness.template import FUNCTION, Template

FOLDER = "functions"


class Block(NamedTuple):
    """One function's resource in template.yaml."""

    folder: str  # the folder of the code
    logical_id: str
    properties: JSONObject
    role_id: str = ""  # the logical id of the role that it names itself; "" if SAM makes its role
    role: JSONObject = {}  # noqa: RUF012 - the properties of that role, which nobody changes

    @property
    def is_worker(self) -> bool:
        """Whether the block is a worker, which continues the tasks of a function."""
        return iam.resource_text(self.properties.get("FunctionName")).endswith(WORKER_SUFFIX)

    @property
    def policies(self) -> list[Any]:
        """All policies of the function. SAM ignores its Policies if it has a Role, whose own policies count then."""
        if "Role" not in self.properties:
            return iam.as_list(self.properties.get("Policies", []))
        inline = [policy.get("PolicyDocument") for policy in self.role.get("Policies", ())]
        return [*self.role.get("ManagedPolicyArns", ()), *inline]

    @property
    def tag(self) -> JSONValue:
        """The value of the tag by which the toolkit's policies know it; None if it has none. SAM tags no other Role."""
        if "Role" not in self.properties:
            return self.properties.get("Tags", {}).get(iam.TAG)
        return next((tag.get("Value") for tag in self.role.get("Tags", ()) if tag.get("Key") == iam.TAG), None)

    @property
    def place_of_policies(self) -> str:
        """Where its policies are written."""
        return f"ManagedPolicyArns of {self.role_id}" if self.role_id else f"Policies of {self.logical_id}"

    @property
    def managed_policies(self) -> set[str]:
        """The logical ids of the managed policies that it refers to, as in `!Ref MaySeal`."""
        return {policy["Ref"] for policy in self.policies if isinstance(policy, dict) and "Ref" in policy}

    @property
    def access(self) -> set[str]:
        """MaySeal and MayKeep, as far as the function has them."""
        return self.managed_policies & {iam.SEAL, iam.KEEP}

    def variable(self, name: str) -> JSONValue:
        """Return an environment variable's value; None if the block does not set it."""
        return self.properties.get("Environment", {}).get("Variables", {}).get(name)


@dataclass(frozen=True)
class Project:
    """The parts that must agree. Each frozenset has names of folders in functions/."""

    root: Path  # the folder of template.yaml and functions/
    template: Template
    catalog: Catalog = field(default_factory=lambda: catalog.MISSING)
    folders: frozenset[str] = frozenset()  # folders with an app.py
    offering: frozenset[str] = frozenset()  # folders with a handler: usually all but functions/mcp
    asking: frozenset[str] = frozenset()  # folders with a handler that can ask the user
    keeping: frozenset[str] = frozenset()  # folders with a handler that writes to the table

    def of_type(self, resource_type: str) -> dict[str, JSONObject]:
        """Return the properties of all resources of one type, by logical id."""
        resources = self.template["Resources"].items()
        return {name: resource["Properties"] for name, resource in resources if resource["Type"] == resource_type}

    @property
    def globals(self) -> JSONObject:
        """The properties that the template gives to every function."""
        return self.template["Globals"]["Function"]

    def variable(self, name: str) -> JSONValue:
        """Return the value of an environment variable of every function; None if Globals does not set it."""
        return self.globals.get("Environment", {}).get("Variables", {}).get(name)

    @property
    def tasks(self) -> frozenset[str]:
        """The folders with a handler whose calls may become tasks."""
        return frozenset(self.catalog.get("tasks", ()))

    @property
    def hidden(self) -> frozenset[str]:
        """The folders whose handlers are all hidden from callers without their scopes."""
        hidden: JSONObject = {**self.catalog.get("hidden", {})}
        shown: set[str] = set()
        found: set[str] = set()
        for list_name, names in catalog.folders(self.catalog).items():
            for name, folder in names.items():
                (found if name in hidden.get(list_name, ()) else shown).add(folder)
        return frozenset(found - shown)

    @property
    def plain(self) -> frozenset[str]:
        """The folders whose function is not MCP: it offers nothing, and is no part of the toolkit."""
        return self.folders - self.offering - {FRONT_DOOR, SIGN_IN}

    @property
    def functions(self) -> dict[str, Block]:
        """The blocks of functions, by folder; without workers and partial blocks."""
        complete = [block for block in self._deployed if not block.is_worker and not self._is_partial(block)]
        return {block.folder: block for block in complete if block.folder not in self.plain}

    @property
    def partial(self) -> list[Block]:
        """The blocks that were copied only in part. Each gets one complaint, so the other checks leave it out."""
        return [block for block in self._deployed if not block.is_worker and self._is_partial(block)]

    @property
    def workers(self) -> dict[str, Block]:
        """The workers, by the folder of the function whose tasks they continue."""
        return {block.folder: block for block in self._deployed if block.is_worker}

    @property
    def blocks(self) -> list[Block]:
        """The blocks of functions and workers, without partial ones."""
        return [*self.functions.values(), *self.workers.values()]

    @property
    def front_door(self) -> Block | None:
        """The block of functions/mcp; None if it is missing, or has handlers and so forwards to no function."""
        return None if FRONT_DOOR in self.offering else self.functions.get(FRONT_DOOR)

    def missing_properties(self, block: Block) -> list[str]:
        """List the properties that a block lacks and needs, because its folder has handlers."""
        if block.folder not in self.offering:
            return []
        needed = ["FunctionName", "Events"]
        if "Role" not in block.properties and block.folder in self.asking | self.keeping:
            needed = ["FunctionName", "Tags", "Policies", "Events"]
        if block.folder in self.hidden:
            needed.remove("Events")  # it has no route of its own
        return [name for name in needed if not block.properties.get(name)]

    def statements(self, block: Block) -> list[iam.Statement]:
        """List the statements that allow something in a function's policies: inline, and managed by this template.

        MaySeal and MayKeep are left out: `init` wrote them, and other checks read them.
        """
        managed = self.of_type("AWS::IAM::ManagedPolicy")
        names = block.managed_policies - block.access
        documents = [managed.get(name, {}).get("PolicyDocument") for name in names]
        statements = iam.statements([*block.policies, *documents])
        return [statement for statement in statements if statement.get("Effect") != "Deny"]

    @property
    def _deployed(self) -> list[Block]:
        """All blocks whose code is in functions/; a folder may have two by mistake, one of them partial."""
        blocks = []
        roles = self.of_type("AWS::IAM::Role")
        for logical_id, properties in self.of_type(FUNCTION).items():
            path = Path(str(properties.get("CodeUri")))
            if path.parts[:1] == (FOLDER,):
                role_id = iam.resource_name(properties.get("Role", ""))
                role = roles.get(role_id)
                blocks.append(Block(path.name, logical_id, properties, role_id if role else "", role or {}))
        return blocks

    def _is_partial(self, block: Block) -> bool:
        """Whether a block lacks its route (in Events) and more: then it was probably copied only in part."""
        missing = self.missing_properties(block)
        return "Events" in missing and len(missing) > 1


def read(root: Path) -> Project:
    """Import every function of a project, and read its template and its catalog.

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
