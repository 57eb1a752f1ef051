"""Rewrites the places of template.yaml that decide who may call, and keeps the rest of the text.

SAM takes no condition in `Auth`, so the template holds one mode: the API's `Auth`, the routes that need no
authorization, and the mode that functions believe. With `oauth` it holds the sign-in front too. Two comments enclose
each place.
"""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING

from mcp_functions.local.lambdas.functions import SIGN_IN
from mcp_functions.local.open_routes import METADATA, SIGN_IN_ROUTES
from mcp_functions.local.problems import Problem
from mcp_functions.local.scaffold import files

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_functions.settings import AuthMode

API = "who may call"
ROUTES = "open routes"
VARIABLES = "variables"
SIGN_IN_PLACES = ("parameters", "rules", "conditions", "sign-in")  # empty without `oauth`
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
TOKENS = """\
MCP_JWT_ISSUER: !Ref JwtIssuer
MCP_JWT_AUDIENCE: !Join [",", !Ref JwtAudience]
"""

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
NO_SIGN_IN = {VARIABLES: TOKENS, **dict.fromkeys(SIGN_IN_PLACES, "")}
# mode -> place -> what stands there; `oauth` has a file of its own
PLACES: dict[AuthMode, dict[str, str]] = {
    "iam": {API: IAM, ROUTES: PREFLIGHT, **NO_SIGN_IN},
    "jwt": {API: JWT, ROUTES: PREFLIGHT + DOCUMENTS, **NO_SIGN_IN},
    "none": {API: NOBODY, ROUTES: ALL_OPEN, **NO_SIGN_IN},
}
THROTTLE = """\
  ANY {path}:
    ThrottlingRateLimit: !Ref SignInsPerSecond
    ThrottlingBurstLimit: !Ref SignInBurst
"""
FRONT = f"functions/{SIGN_IN}/app.py"
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
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        missing = f"there is no {path}: start in the folder of template.yaml and functions/"
        raise Problem(missing) from error
    written = set_auth(text, mode)
    if mode == "oauth" and not (path.parent / FRONT).exists():
        files.write(path.parent, {FRONT: files.template("samples/oauth/app.py", {})})
    path.write_text(written, encoding="utf-8", newline="\n")
    return WRITTEN.format(path=path, callers=CALLERS[mode])


def set_auth(text: str, mode: AuthMode) -> str:
    """Rewrite who may call.

    Args:
        text: of template.yaml.
        mode: "iam" for callers that sign, "jwt" for callers with a token, "oauth" for callers who sign in at the front,
            "none" for everybody.

    Raises:
        Problem: the text lacks one of the places.
    """
    believing, count = BELIEVED.subn(rf"\1 {mode}", text)
    if count != 1:
        problem = f"template.yaml must set MCP_AUTH_MODE once, in Globals: it does so {count} times"
        raise Problem(problem)
    places = _sign_in() if mode == "oauth" else PLACES[mode]
    for mark, block in places.items():
        believing = _replace(believing, mark, block)
    return believing


def _sign_in() -> dict[str, str]:
    """Return what stands at each place with `oauth`."""
    routes = [_open_route(name, "of the sign-in", "ANY", path) for name, path in SIGN_IN_ROUTES.items()]
    throttles = [THROTTLE.format(path=path) for path in SIGN_IN_ROUTES.values()]
    values = {"routes": textwrap.indent("".join(routes), " " * 6), "throttles": "".join(throttles)}
    blocks = dict(BLOCK.findall(files.template("oauth.yaml", values)))
    return {ROUTES: PREFLIGHT + DOCUMENTS, **blocks}


def _replace(text: str, mark: str, block: str) -> str:
    """Replace the lines between a mark and the next END; both comments stay."""
    place = re.compile(rf"^( *)(# auth: {mark}.*\n)(?:.*\n)*?\1{END}\n", re.MULTILINE)
    found = place.findall(text)
    if len(found) != 1:
        problem = f"template.yaml needs the comments `# auth: {mark}` and `{END}` once, around what they enclose"
        raise Problem(problem)

    def filled(match: re.Match[str]) -> str:
        indent, first = match[1], match[2]
        return f"{indent}{first}" + "".join(f"{indent}{line}".rstrip() + "\n" for line in [*block.splitlines(), END])

    return place.sub(filled, text)
