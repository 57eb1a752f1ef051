"""Rewrites the places of template.yaml that decide who may call, and keeps the rest of the text.

    # auth: open routes       the comment before a place
      ...                     the lines of the chosen mode, from scaffold/auth/
    # auth: end               the comment after it

SAM takes no condition in `Auth`, so the template holds one mode: the API's `Auth`, the routes that need no
authorization, and the mode that functions read from MCP_AUTH_MODE. With `oauth` it also holds functions/oauth, the
sign-in front.
"""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING

from mcp_functions.local import template
from mcp_functions.local.lambdas.functions import SIGN_IN
from mcp_functions.local.problems import stop
from mcp_functions.local.scaffold import files

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_functions.settings import AuthMode

PLACES = ("who may call", "open routes", "variables", "parameters", "rules", "conditions", "sign-in")
END = "# auth: end"
MODE_VARIABLE = re.compile(r"^( +MCP_AUTH_MODE:) \w+", re.MULTILINE)
FRONT = f"functions/{SIGN_IN}/app.py"
# in a file of scaffold/auth/: the name of a place, and its lines
BLOCK = re.compile(r"^# auth: (.+)\n((?:(?!# auth: end).*\n)*)# auth: end$", re.MULTILINE)

WRITTEN = "{path} lets {callers} call. Deploy it: sam build && sam deploy"
CALLERS: dict[AuthMode, str] = {
    "iam": "callers that sign with IAM",
    "jwt": "callers with a token of JwtIssuer for JwtAudience (two parameters)",
    "oauth": "callers who signed in at the front, with a token of JwtIssuer",
    "none": "everybody",
}


def write(path: Path, mode: AuthMode) -> str:
    """Rewrite who may call in a file; with `oauth`, write the front's function if it is missing.

    Returns:
        The text for the terminal.

    Raises:
        Problem: the file is missing, or lacks one of the places.
    """
    new_text = set_auth(template.text(path), mode)
    if mode == "oauth" and not (path.parent / FRONT).exists():
        files.write(path.parent, {FRONT: files.template("samples/oauth/app.py", {})})
    path.write_text(new_text, encoding="utf-8", newline="\n")
    return WRITTEN.format(path=path, callers=CALLERS[mode])


def set_auth(text: str, mode: AuthMode) -> str:
    """Rewrite who may call.

    Args:
        text: the text of template.yaml.
        mode: "iam" for callers that sign, "jwt" for callers with a token, "oauth" for callers who sign in at the front,
            "none" for everybody.

    Raises:
        Problem: the text lacks one of the places.
    """
    new_text, count = MODE_VARIABLE.subn(rf"\1 {mode}", text)
    if count != 1:
        stop(f"template.yaml must set MCP_AUTH_MODE once, in Globals: it does so {count} times")
    blocks = dict(BLOCK.findall(files.template(f"auth/{mode}.yaml", {})))
    for place in PLACES:
        new_text = _replace(new_text, place, blocks.get(place, ""))
    return new_text


def _replace(text: str, mark: str, block: str) -> str:
    """Replace the lines between a mark and the next END; both comments stay."""
    place = re.compile(rf"^( *)(# auth: {mark}.*\n)(?:.*\n)*?\1{END}\n", re.MULTILINE)
    matches = place.findall(text)
    if len(matches) != 1:
        stop(f"template.yaml needs the comments `# auth: {mark}` and `{END}` once, around what they enclose")
    [(indent, mark_line)] = matches
    filled = indent + mark_line + textwrap.indent(f"{block}{END}\n", indent)
    return place.sub(lambda _old: filled, text)  # a function, because sub() would read a backslash in a text
