"""Reads the forms of a function's questions when it is loaded: so a form that cannot be sent fails before a call."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from mcp_functions.local.problems import Problem
from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.schemas.forms import read_form

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


def check(app: Path, names: Mapping[str, Any]) -> None:
    """Read each form that a function names in `elicit(key, message, Form)`.

    Args:
        app: the function's app.py.
        names: what its module holds.

    Raises:
        Problem: a form cannot be sent.
    """
    for line, key, form in _forms(ast.parse(app.read_text(encoding="utf-8"))):
        if not isinstance(names.get(form), type):
            continue
        try:
            read_form(names[form], key, camel_case=False).schema()
        except DeveloperError as error:
            shown = f"{app.parent.parent.name}/{app.parent.name}/app.py:{line}"
            mend = "; ask for its parts in questions of their own" if "nested" in str(error) else ""
            unsendable = f"{shown}: the form {form} cannot be sent: {error}{mend}"
            raise Problem(unsendable) from None


def _forms(module: ast.AST) -> Iterator[tuple[int, str, str]]:
    """Yield line, key and name of each form."""
    for node in ast.walk(module):
        match node:
            case ast.Call(func=ast.Name(id="elicit"), args=[ast.Constant(value=str(key)), _, ast.Name(id=form), *_]):
                yield node.lineno, key, form
