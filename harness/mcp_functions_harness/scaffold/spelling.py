"""Checks the names of functions and projects: a name becomes a Python function, a folder, a Lambda and a resource."""

import builtins
import keyword
import re
from pathlib import Path

import mcp_functions
from mcp_functions_harness.lambdas.functions import FRONT_DOOR
from mcp_functions_harness.problems import Problem

NAME = re.compile(r"[a-z](?:_?[a-z0-9])*")
MAX_NAME = 33  # characters: Lambda allows 64, and the longest name is "<stack>-prod_<name>-worker"
MAX_STACK = 18
RESERVED = {*mcp_functions.__all__, "elicit", "handler"}  # what an app.py imports or defines


def check(name: str) -> None:
    """Check the name of a new function.

    Raises:
        Problem: the name is not allowed; the text explains the rule.
    """
    if not NAME.fullmatch(name):
        raise Problem(f"{name!r} cannot be a function's name: small letters, digits and single _, as in track_parcel")
    if len(name) > MAX_NAME:
        raise Problem(f"{name!r} is too long: {MAX_NAME} characters at most, because Lambda's names end at 64")
    if name == FRONT_DOOR:
        raise Problem(f"functions/{FRONT_DOOR} is the endpoint: choose another name")
    if name in RESERVED or keyword.iskeyword(name) or hasattr(builtins, name):
        raise Problem(f"{name} is a word of Python's or of the toolkit's: choose another name")


def stack(directory: Path) -> str:
    """Return a stack's name for a project's folder: letters, digits and -, with a letter first."""
    words = re.sub(r"[^A-Za-z0-9]+", "-", directory.resolve().name).strip("-")
    name = words if words[:1].isalpha() else f"mcp-{words}"
    return name[:MAX_STACK].strip("-")
