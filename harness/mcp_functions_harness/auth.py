"""`mcp-functions auth MODE`: rewrites the lines of template.yaml that decide who may call.

    # auth: open routes     template.yaml has these two comments around the lines of each place in PLACES;
      ...                   scaffold/auth/<mode>.yaml.in has the same comments around the lines of a mode
    # auth: end

A mode also has entries of its own in the sections of the template, such as parameters: the fragments in SECTIONS. All
other lines stay. SAM takes no condition in an API's `Auth`, so a template cannot hold several modes, and is
rewritten instead. With the mode `oauth` it also deploys functions/oauth, the authorization server for MCP clients. Its
name for operators is the sign-in front.
"""

import re
import shutil
import textwrap
from pathlib import Path

from mcp_functions.settings import AuthMode
from mcp_functions_harness import fragments, template
from mcp_functions_harness.lambdas.functions import SIGN_IN
from mcp_functions_harness.problems import Problem
from mcp_functions_harness.scaffold import files

PLACES = ("who may call", "open routes", "variables")
SECTIONS: dict[AuthMode, tuple[str, ...]] = {
    "iam": (),
    "jwt": ("origins", "tokens"),
    "oauth": ("origins", "tokens", "sign-in"),
    "none": ("origins",),
}
END = "# auth: end"
MODE_VARIABLE = re.compile(r"^( +MCP_AUTH_MODE:) \w+", re.MULTILINE)
SIGN_IN_FILE = f"functions/{SIGN_IN}/app.py"
LINES_OF_PLACE = re.compile(
    r"^# auth: (.+)\n"  # the name of the place
    r"((?:(?!# auth: end).*\n)*)"  # its lines, up to the next END
    r"# auth: end$",
    re.MULTILINE,
)

WRITTEN = "{path} lets {callers} call. Deploy it: sam build && sam deploy"
# CloudFormation changes the routes before the stage, whose settings then name routes that are gone (SAM, issue 1939).
FIRST = "If the stack is deployed with oauth, delete the settings of its routes first: docs/identity.md#leaving-oauth"
CALLERS: dict[AuthMode, str] = {
    "iam": "callers that sign with IAM",
    "jwt": "callers with a token of JwtIssuer for JwtAudience (two parameters)",
    "oauth": "callers who signed in at the front, with a token of JwtIssuer",
    "none": "everybody",
}


def write(path: Path, mode: AuthMode) -> str:
    """Rewrite who may call in template.yaml. With `oauth`, also write the sign-in front, if it is missing.

    Returns:
        The text for the terminal.

    Raises:
        Problem: the file is missing, or lacks one of the places.
    """
    old_text = template.text(path)
    new_text = set_auth(old_text, mode)
    if mode == "oauth" and not (path.parent / SIGN_IN_FILE).exists():
        files.write(path.parent, {SIGN_IN_FILE: files.template("samples/oauth/app.py", {})})
    path.write_text(new_text, encoding="utf-8", newline="\n")
    written = WRITTEN.format(path=path, callers=CALLERS[mode])
    if mode != "oauth" and (path.parent / SIGN_IN_FILE).exists():
        written += f"\n{_remove_sign_in(path.parent)}"
    loses_routes = "RouteSettings:" in old_text and "RouteSettings:" not in new_text
    return f"{written}\n{FIRST}" if loses_routes else written


def _remove_sign_in(root: Path) -> str:
    """Remove functions/oauth, which no other mode deploys, unless its author changed it; return what was done."""
    file = root / SIGN_IN_FILE
    others = [path for path in file.parent.iterdir() if path != file and path.name != "__pycache__"]
    if others or file.read_text(encoding="utf-8") != files.template("samples/oauth/app.py", {}):
        return f"{file.parent} is no longer deployed. It stays, because it is not as `auth oauth` wrote it"
    shutil.rmtree(file.parent)
    return f"{file.parent} is removed: no other mode than oauth deploys it"


def set_auth(text: str, mode: AuthMode) -> str:
    """Rewrite who may call in the text of template.yaml; for the modes, see CALLERS.

    Raises:
        Problem: the text lacks one of the places.
    """
    new_text, count = MODE_VARIABLE.subn(rf"\1 {mode}", text)
    if count != 1:
        raise Problem(f"template.yaml must set MCP_AUTH_MODE once, in Globals: it does so {count} times")
    lines_by_place = dict(LINES_OF_PLACE.findall(files.template(f"auth/{mode}.yaml", {})))
    for place in PLACES:
        new_text = _replace(new_text, place, lines_by_place.get(place, ""))
    for name in SECTIONS["oauth"]:
        edit = fragments.insert if name in SECTIONS[mode] else fragments.remove
        new_text = edit(new_text, files.template(f"auth/{name}.yaml", {}))
    return new_text


def _replace(text: str, place: str, lines: str) -> str:
    """Replace the lines between the two comments of a place; the comments stay."""
    pattern = re.compile(
        rf"^( *)(# auth: {place}.*\n)"  # the indent, and the first comment
        rf"(?:.*\n)*?\1{END}\n",  # the old lines, and the next END with the same indent
        re.MULTILINE,
    )
    matches = list(pattern.finditer(text))
    if len(matches) != 1:
        raise Problem(f"template.yaml needs the comments `# auth: {place}` and `{END}` once, around what they enclose")
    match = matches[0]
    indent, comment = match.groups()
    new_lines = indent + comment + textwrap.indent(f"{lines}{END}\n", indent)
    return text[: match.start()] + new_lines + text[match.end() :]
