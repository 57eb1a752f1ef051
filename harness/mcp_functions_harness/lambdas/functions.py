"""Finds and loads the functions of a project.

    functions/add/app.py     each folder with an app.py is a function; its name `handler` is Lambda's entry point
    functions/mcp/app.py     the endpoint ("front door"), which forwards calls to the other functions
    functions/oauth/app.py   the sign-in front, with AuthMode oauth

If a function cannot be loaded, a `Problem` says in which line, and how to correct it.
"""

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

from mcp_functions.handlers.function_handler import FunctionHandler
from mcp_functions.protocol.constants import ENDPOINT_FOLDER, WORKER_SUFFIX
from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.schemas.forms import read_form
from mcp_functions_harness.lambdas import failures
from mcp_functions_harness.lambdas.loading import Folder
from mcp_functions_harness.lambdas.modules import COMMON
from mcp_functions_harness.lambdas.own_variables import running_function
from mcp_functions_harness.problems import Problem

FRONT_DOOR = ENDPOINT_FOLDER
SIGN_IN = "oauth"
MAX_VERSIONS = 2  # of a function that was loaded again: calls of the version before may still run
EntryPoint: TypeAlias = Callable[[Any, Any], Any]  # called with an event and Lambda's context
NAME = re.compile(r"[A-Za-z0-9_-]+")  # the characters of a Lambda's name


@dataclass(frozen=True)
class Function:
    """One loaded function."""

    folder: str  # the name of its folder
    handler: EntryPoint

    @property
    def handlers(self) -> tuple[Any, ...]:
        """Its tools, prompts and resources. The front door and a function without the toolkit have none."""
        entry_point = inspect.unwrap(self.handler)  # without the author's decorators
        return tuple(getattr(entry_point, "handlers", ()))


class Functions(AbstractContextManager["Functions", None]):
    """The loaded functions; `by_folder` has each by the name of its folder."""

    def __init__(self, directory: Path, *, without: frozenset[str] = frozenset()) -> None:
        """Find and import every function of a directory, without those of some folders.

        Raises:
            Problem: there is no function, or one does not load.
        """
        self.by_folder: dict[str, Function] = {}
        self._versions: dict[str, list[Folder]] = {}
        try:
            for app in find(directory, without):
                self.load(app)
        except Problem:
            self.close()
            raise

    def load(self, app: Path) -> None:
        """Import a function, or import it again. If it does not load, the version before stays.

        Raises:
            Problem: it does not load.
        """
        name = app.parent.name
        folder = Folder.isolated(app.parent)
        try:
            self.by_folder[name] = Function(name, _load_handler(folder, app))
        except Problem:
            folder.close()
            raise
        versions = self._versions.setdefault(name, [])
        versions.append(folder)
        if len(versions) > MAX_VERSIONS:
            versions.pop(0).close()

    def unload(self, name: str) -> None:
        """Remove the function of a folder, with its modules."""
        self.by_folder.pop(name, None)
        for folder in self._versions.pop(name, ()):
            folder.close()

    def close(self) -> None:
        """Remove the modules of every function."""
        for versions in self._versions.values():
            for folder in versions:
                folder.close()

    def __exit__(self, *_error: object) -> None:
        """Close."""
        self.close()


def _load_handler(folder: Folder, app: Path) -> EntryPoint:
    path = _short_path(app)
    token = running_function.set(app.parent.name)  # so the module sees the function's variables
    try:
        module = folder.load("app")
    except (Exception, SystemExit) as error:  # the author's module may raise anything
        raise Problem(why_not_loaded(error, app)) from error
    finally:
        running_function.reset(token)
    _check_forms(app, module)
    handler: EntryPoint | None = getattr(module, "handler", None)
    if not callable(handler):
        raise Problem(f"{path} has no `handler`: end it with `handler = serve(your_tool)`")
    _check_served(path, module)
    return handler


def _check_served(path: str, module: ModuleType) -> None:
    """Check that each handler that the module makes is in a `serve(…)`: no client would see another one."""
    made = {
        name: each
        for name, each in vars(module).items()
        if isinstance(each, FunctionHandler) and each.function.__module__ == module.__name__
    }
    entry_points = [inspect.unwrap(each) for each in vars(module).values() if callable(each)]
    lists = [getattr(entry_point, "handlers", ()) for entry_point in entry_points if not inspect.isclass(entry_point)]
    served = {(each.kind, each.key) for handlers in lists for each in handlers}
    for name, each in made.items():
        if (each.kind, each.key) not in served:
            kind = each.kind.replace("_", " ")
            raise Problem(f"{path}: no client sees the {kind} {name}: handler = serve(…, {name})")


def _short_path(app: Path) -> str:
    """Return the path of an app.py in its project, "functions/add/app.py"."""
    return "/".join(app.parts[-3:])


def why_not_loaded(error: BaseException, app: Path) -> str:
    """Return what failed, in which line, and how to correct it."""
    project = app.parent.parent.parent
    summary = failures.summary(error).replace(f"{project}/", "")
    text = f"{_short_path(app)} does not load: {summary}"
    place = failures.place(error, app.parent)
    if place and place not in summary:
        text += f" ({place})"
    remedy = failures.remedy(error)
    # `Folder` says there what to do.
    if isinstance(error, ModuleNotFoundError) and "on Lambda" not in summary:
        remedy = f"a package belongs in {_short_path(app.with_name('requirements.txt'))}, shared code in {COMMON}/"
    return f"{text}; {remedy}" if remedy else text


def find(directory: Path, without: frozenset[str] = frozenset()) -> list[Path]:
    """Find the app.py of each function, sorted by folder, without some folders.

    Raises:
        Problem: the directory is missing, holds no function, or a folder's name cannot be a Lambda's.
    """
    if not directory.is_dir():
        raise Problem(f"there is no folder {directory}: start in the folder of functions/, or name it with --functions")
    # Folders like __pycache__ and .venv are no functions.
    apps = sorted(app for app in directory.resolve().glob("*/app.py") if not app.parent.name.startswith((".", "_")))
    if not apps:
        needed = "a function is a folder with an app.py that ends in `handler = serve(…)`"
        raise Problem(f"no functions in {directory}: {needed}")
    for app in apps:
        name = app.parent.name
        if not NAME.fullmatch(name):
            raise Problem(f"{directory}/{name}: rename it; a Lambda's name has letters, digits, _ and - only")
        if name.endswith(WORKER_SUFFIX):
            raise Problem(f"{directory}/{name}: rename it; {WORKER_SUFFIX} is for the workers of functions with tasks")
    return [app for app in apps if app.parent.name not in without]


def _check_forms(app: Path, module: ModuleType) -> None:
    """Check that MCP can express the form in each `elicit(key, message, Form)`, before the function asks."""
    for line, key, form in _find_forms(ast.parse(app.read_text(encoding="utf-8"))):
        model = getattr(module, form, None)
        if not isinstance(model, type):  # a local name, whose value is not known here
            continue
        try:
            read_form(model, key, camel_case=False).schema()
        except DeveloperError as error:
            remedy = "; ask for its parts in questions of their own" if "nested" in str(error) else ""
            raise Problem(f"{_short_path(app)}:{line}: the form {form} cannot be sent: {error}{remedy}") from None


def _find_forms(module: ast.AST) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the key and the form's name of each call `elicit("key", …, Form)`."""
    for node in ast.walk(module):
        match node:
            case ast.Call(func=ast.Name(id="elicit"), args=[ast.Constant(value=str(key)), _, ast.Name(id=form), *_]):
                yield node.lineno, key, form
