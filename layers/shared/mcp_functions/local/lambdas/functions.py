"""Finds and loads the functions of a project: each is a folder with an app.py whose `handler` is Lambda's entry point.

A function that cannot be loaded is reported as a `Problem`, whose text says in which line, and how to correct it.
"""

from __future__ import annotations

import ast
import inspect
import re
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcp_functions.local import failures
from mcp_functions.local.lambdas.loading import COMMON, Folder
from mcp_functions.local.lambdas.own_variables import running_function
from mcp_functions.local.problems import Problem, stop
from mcp_functions.protocol.constants import WORKER_SUFFIX
from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.schemas.forms import read_form

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

FRONT_DOOR = "mcp"  # the folder that answers /mcp itself
SIGN_IN = "oauth"  # the folder of the sign-in front, which AuthMode oauth alone deploys
NAME = re.compile(r"[A-Za-z0-9_-]+")  # the characters of a Lambda's name


@dataclass(frozen=True)
class Function:
    """One loaded function: its folder's name, its app.py and its entry point."""

    folder: str
    app: Path
    handler: Callable[[dict[str, Any], Any], Any]

    @property
    def handlers(self) -> tuple[Any, ...]:
        """Its tools, prompts and resources. The front door and a function without the toolkit have none."""
        return tuple(getattr(inspect.unwrap(self.handler), "handlers", ()))


class Functions(AbstractContextManager["Functions", None]):
    """The loaded functions by folder, importable until `close` or the end of the block."""

    def __init__(self, directory: Path, *, without: frozenset[str] = frozenset()) -> None:
        """Find and import every function.

        Args:
            directory: contains a folder for each function.
            without: names of folders that are not loaded.

        Raises:
            Problem: there is no function, or one does not load.
        """
        self._folders: dict[str, list[Folder]] = {}  # the last two versions: calls of the earlier one may still run
        self.by_folder: dict[str, Function] = {}
        try:
            for app in find(directory, without):
                self.load(app)
        except Problem:
            self.close()
            raise

    def load(self, app: Path) -> None:
        """Import a function, or import it again; the earlier one stays if this fails.

        Raises:
            Problem: it does not load.
        """
        name = app.parent.name
        folder = Folder(app.parent)
        try:
            self.by_folder[name] = Function(name, app, _load_handler(folder, app))
        except Problem:
            folder.close()
            raise
        versions = self._folders.get(name, [])
        for old in versions[:-1]:
            old.close()
        self._folders[name] = [*versions[-1:], folder]

    def unload(self, name: str) -> None:
        """Forget the function of a folder."""
        self.by_folder.pop(name, None)
        for folder in self._folders.pop(name, []):
            folder.close()

    def close(self) -> None:
        """Remove the modules of every function."""
        for versions in self._folders.values():
            for folder in versions:
                folder.close()

    def __exit__(self, *_error: object) -> None:
        """Close."""
        self.close()


def _load_handler(folder: Folder, app: Path) -> Callable[[dict[str, Any], Any], Any]:
    path = f"{app.parent.parent.name}/{app.parent.name}/app.py"
    token = running_function.set(app.parent.name)
    try:
        module = folder.load("app")
    except (Exception, SystemExit) as error:  # the author's module may raise anything
        raise Problem(_not_loaded(error, app, path)) from error
    finally:
        running_function.reset(token)
    _check_forms(app, vars(module))
    handler: Callable[[dict[str, Any], Any], Any] | None = getattr(module, "handler", None)
    if not callable(handler):
        stop(f"{path} has no `handler`: end it with `handler = serve(your_tool)`")
    return handler


def _not_loaded(error: BaseException, app: Path, path: str) -> str:
    """Return what failed, in which line, and how to correct it."""
    place = failures.place(error, app.parent)
    summary = failures.summary(error).replace(f"{app.parent.parent.parent}/", "")
    text = f"{path} does not load: {summary}"
    if place and place not in summary:
        text += f" ({place})"
    remedy = failures.remedy(error)
    if isinstance(error, ModuleNotFoundError) and "on Lambda" not in str(error):
        remedy = f"a package belongs in {path.removesuffix('app.py')}requirements.txt, shared code in {COMMON}/"
    return f"{text}; {remedy}" if remedy else text


def find(directory: Path, without: frozenset[str] = frozenset()) -> list[Path]:
    """Find the app.py of each folder that `without` does not name, sorted by folder.

    Raises:
        Problem: the directory is missing, holds no function, or a folder's name cannot be a Lambda's.
    """
    if not directory.is_dir():
        stop(f"there is no folder {directory}: start in the folder of functions/, or name it with --functions")
    apps = sorted(app for app in directory.resolve().glob("*/app.py") if app.parent.name[0] not in "._")
    if not apps:
        stop(f"no functions in {directory}: a function is a folder with an app.py that ends in `handler = serve(…)`")
    for name in (app.parent.name for app in apps):
        if not NAME.fullmatch(name):
            stop(f"{directory}/{name}: rename it; a Lambda's name has letters, digits, _ and - only")
        if name.endswith(WORKER_SUFFIX):
            stop(f"{directory}/{name}: rename it; {WORKER_SUFFIX} is for the workers of functions with tasks")
    return [app for app in apps if app.parent.name not in without]


def _check_forms(app: Path, names: Mapping[str, Any]) -> None:
    """Check each form that a function names in `elicit(key, message, Form)`; a form is a class of questions to a user.

    Without this check, a form that MCP cannot express would fail only when the function asks.

    Args:
        app: the function's app.py.
        names: the names in the loaded module, with their values.

    Raises:
        Problem: a form cannot be sent.
    """
    for line, key, form in _forms(ast.parse(app.read_text(encoding="utf-8"))):
        if not isinstance(names.get(form), type):
            continue
        try:
            read_form(names[form], key, camel_case=False).schema()
        except DeveloperError as error:
            place = f"{app.parent.parent.name}/{app.parent.name}/app.py:{line}"
            remedy = "; ask for its parts in questions of their own" if "nested" in str(error) else ""
            stop(f"{place}: the form {form} cannot be sent: {error}{remedy}")


def _forms(module: ast.AST) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the key and the form's name of each call of `elicit`."""
    for node in ast.walk(module):
        match node:
            case ast.Call(func=ast.Name(id="elicit"), args=[ast.Constant(value=str(key)), _, ast.Name(id=form), *_]):
                yield node.lineno, key, form
