"""Rewrites the places of template.yaml that decide who may call, and keeps the rest of the text.

SAM takes no condition in `Auth`, so the template holds one mode, in three places: the API's `Auth`, the routes that
need no authorization, and the mode that functions believe. Two comments enclose each of the first two places.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mcp_functions.local.problems import Problem

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_functions.settings import AuthMode

API = "who may call"
ROUTES = "open routes"
METADATA = "/.well-known/oauth-protected-resource"
END = "# auth: end"
BELIEVED = re.compile(r"^( +MCP_AUTH_MODE:) \w+", re.MULTILINE)

IAM = """\
Auth:
  EnableIamAuthorizer: true
  DefaultAuthorizer: AWS_IAM
"""
JWT = """\
Auth:
  DefaultAuthorizer: jwt
  Authorizers:
    jwt:
      IdentitySource: $request.header.Authorization
      JwtConfiguration:
        issuer: !Ref JwtIssuer
        audience: !Ref JwtAudience
"""
NOBODY = "# every caller may call; a state is then bound to no caller\n"
AUTH: dict[AuthMode, str] = {"iam": IAM, "jwt": JWT, "none": NOBODY}

OPEN_ROUTE = """\
{name}: # {remark}
  Type: HttpApi
  Properties:
    ApiId: !Ref HttpApi
    Path: {path}
    Method: {method}
    Auth:
      Authorizer: NONE
"""


def _open_route(name: str, remark: str, method: str, path: str) -> str:
    return OPEN_ROUTE.format(name=name, remark=remark, method=method, path=path)


PREFLIGHT = _open_route(
    "Preflight", "a browser sends no credentials with it; unknown origins get 403", "OPTIONS", "/mcp"
)
DOCUMENTS = _open_route(
    "Metadata", "names the issuer of tokens; clients read this path first", "ANY", f"{METADATA}/mcp"
) + _open_route("RootMetadata", "then this one", "ANY", METADATA)
ALL_OPEN = "# none: every route is open\n"
OPEN: dict[AuthMode, str] = {"iam": PREFLIGHT, "jwt": PREFLIGHT + DOCUMENTS, "none": ALL_OPEN}


WRITTEN = "{path} lets {callers} call. Deploy it: sam build && sam deploy"
CALLERS: dict[AuthMode, str] = {
    "iam": "callers that sign with IAM",
    "jwt": "callers with a token of JwtIssuer for JwtAudience (two parameters)",
    "none": "everybody",
}


def write(path: Path, mode: AuthMode) -> str:
    """Rewrite who may call in a file.

    Returns:
        The text for the terminal.

    Raises:
        Problem: the file is missing, or lacks one of the three places.

    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        missing = f"there is no {path}: start in the folder of template.yaml and functions/"
        raise Problem(missing) from error
    path.write_text(set_auth(text, mode), encoding="utf-8", newline="\n")
    return WRITTEN.format(path=path, callers=CALLERS[mode])


def set_auth(text: str, mode: AuthMode) -> str:
    """Rewrite who may call.

    Args:
        text: of template.yaml.
        mode: "iam" for callers that sign, "jwt" for callers with a token, "none" for everybody.

    Raises:
        Problem: the text lacks one of the three places.

    """
    believing, count = BELIEVED.subn(rf"\1 {mode}", text)
    if count != 1:
        problem = f"template.yaml must set MCP_AUTH_MODE once, in Globals: it does so {count} times"
        raise Problem(problem)
    return _replace(_replace(believing, API, AUTH[mode]), ROUTES, OPEN[mode])


def _replace(text: str, mark: str, block: str) -> str:
    """Replace the lines between a mark and the next END; both comments stay."""
    place = re.compile(rf"^( *)(# auth: {mark}.*\n)(?:.*\n)*?\1{END}\n", re.MULTILINE)
    found = place.findall(text)
    if len(found) != 1:
        problem = f"template.yaml needs the comments `# auth: {mark}` and `{END}` once, around what they enclose"
        raise Problem(problem)

    def filled(match: re.Match[str]) -> str:
        indent, first = match[1], match[2]
        return f"{indent}{first}" + "".join(f"{indent}{line}\n" for line in [*block.splitlines(), END])

    return place.sub(filled, text)
