"""`mcp-functions auth MODE` rewrites the lines of template.yaml that decide who may call, and leaves all other lines.

TEMPLATE is a small template.yaml in the mode iam. Two comments, `# auth: <place>` and `# auth: end`, enclose each place
that the command rewrites. The last tests rewrite the template of this repository, and check it as `make test` does.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mcp_functions.settings import AUTH_MODES
from mcp_functions_harness import checks, command, template
from mcp_functions_harness.auth import set_auth
from mcp_functions_harness.problems import Problem
from mcp_functions_harness.scaffold import blocks, files, samples
from mcp_functions_harness.scaffold.template_editor import TemplateEditor

if TYPE_CHECKING:
    from mcp_functions.settings import AuthMode

TEMPLATE = """\
Parameters:
  Color: # of the author
    Type: String
Globals:
  Function:
    Environment:
      Variables:
        MCP_AUTH_MODE: iam # who may call
        # auth: variables
        # auth: end
        COLOR: !Ref Color # of the author
Resources:
  HttpApi:
    Properties:
      # auth: who may call
      Auth:
        EnableIamAuthorizer: true
        DefaultAuthorizer: AWS_IAM
      # auth: end
  Mcp:
    Properties:
      Events:
        # auth: open routes
        Preflight: # a browser sends no credentials with it; unknown origins get 403
          Type: HttpApi
          Properties:
            ApiId: !Ref HttpApi
            Path: /mcp
            Method: OPTIONS
            Auth:
              Authorizer: NONE
        # auth: end
"""
PROJECT_TEMPLATE = (files.HERE / "project/template.yaml.in").read_text(encoding="utf-8")  # of a new project
ROOT = Path(__file__).parents[2]
REPOSITORY_TEMPLATE = (ROOT / "template.yaml").read_text(encoding="utf-8")

for_each_mode = pytest.mark.parametrize("mode", AUTH_MODES)  # iam, jwt, oauth, none


# --- the text of the template


@pytest.mark.parametrize(
    ("mode", "line"),
    [
        ("iam", "        DefaultAuthorizer: AWS_IAM"),
        ("jwt", "        DefaultAuthorizer: jwt"),
        ("none", "      # every caller may call; a state is then bound to no caller"),
        ("oauth", "  Oauth:"),
    ],
)
def test_the_lines_of_a_mode_are_written_with_the_indent_of_their_place(mode: AuthMode, line: str) -> None:
    assert line in set_auth(TEMPLATE, mode).splitlines()


@for_each_mode
def test_the_functions_get_the_mode_in_mcp_auth_mode(mode: AuthMode) -> None:
    rewritten = template.parse(set_auth(TEMPLATE, mode))
    assert rewritten["Globals"]["Function"]["Environment"]["Variables"]["MCP_AUTH_MODE"] == mode


def test_only_the_lines_of_the_mode_disappear() -> None:
    lines_after = set_auth(TEMPLATE, "jwt").splitlines()
    assert set(TEMPLATE.splitlines()) - set(lines_after) == {
        "        EnableIamAuthorizer: true",
        "        DefaultAuthorizer: AWS_IAM",
        "        MCP_AUTH_MODE: iam # who may call",
    }


@for_each_mode
@pytest.mark.parametrize("earlier", AUTH_MODES)
def test_a_mode_that_replaces_another_mode_gives_the_same_file(mode: AuthMode, earlier: AuthMode) -> None:
    assert set_auth(set_auth(TEMPLATE, earlier), mode) == set_auth(TEMPLATE, mode)


@for_each_mode
@pytest.mark.parametrize("text", [TEMPLATE, PROJECT_TEMPLATE, REPOSITORY_TEMPLATE], ids=["small", "new", "repository"])
def test_iam_after_another_mode_restores_the_delivered_file(mode: AuthMode, text: str) -> None:
    assert set_auth(set_auth(text, mode), "iam") == text


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("      # auth: who may call\n", "`# auth: who may call`"),
        ("        # auth: open routes\n", "`# auth: open routes`"),
        ("        MCP_AUTH_MODE: iam", "must set MCP_AUTH_MODE once, in Globals: it does so 0 times"),
    ],
)
def test_a_template_without_a_line_that_auth_needs_is_refused(line: str, message: str) -> None:
    with pytest.raises(Problem, match=message):
        set_auth(TEMPLATE.replace(line, ""), "jwt")


# --- the command, in the current folder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder with TEMPLATE the current one, and return it."""
    (tmp_path / "template.yaml").write_text(TEMPLATE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_auth_rewrites_the_template_in_the_current_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.run(["auth", "jwt"]) == 0
    assert "a token of JwtIssuer" in capsys.readouterr().out
    assert (folder / "template.yaml").read_text(encoding="utf-8") == set_auth(TEMPLATE, "jwt")


@pytest.mark.usefixtures("folder")
def test_auth_says_what_a_deployed_sign_in_needs_before_its_routes_go(capsys: pytest.CaptureFixture[str]) -> None:
    hint = "delete the settings of its routes first: docs/identity.md#leaving-oauth"
    for mode, is_told in (("oauth", False), ("oauth", False), ("jwt", True), ("iam", False)):
        assert command.run(["auth", mode]) == 0
        assert (hint in capsys.readouterr().out) == is_told


def test_auth_refuses_an_unknown_mode(folder: Path) -> None:
    assert command.run(["auth", "basic"]) == 2
    assert (folder / "template.yaml").read_text(encoding="utf-8") == TEMPLATE


def test_auth_in_a_folder_without_a_template_fails(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "template.yaml").unlink()
    assert command.run(["auth", "jwt"]) == 2
    assert capsys.readouterr().err.startswith("mcp-functions: there is no template.yaml")


def test_auth_oauth_writes_the_function_of_the_sign_in_front(folder: Path) -> None:
    assert command.run(["auth", "oauth"]) == 0
    written = (folder / "functions/oauth/app.py").read_text(encoding="utf-8")
    assert written == (ROOT / "functions/oauth/app.py").read_text(encoding="utf-8")


def test_auth_oauth_keeps_a_changed_function_of_the_sign_in_front(folder: Path) -> None:
    app = folder / "functions/oauth/app.py"
    app.parent.mkdir(parents=True)
    app.write_text("# mine\n", encoding="utf-8")
    assert command.run(["auth", "oauth"]) == 0
    assert app.read_text(encoding="utf-8") == "# mine\n"


# --- this repository, by the checks of `make test`


@pytest.fixture(scope="module")
def project() -> checks.Project:
    return checks.read(ROOT)


def with_mode(project: checks.Project, mode: AuthMode) -> checks.Project:
    return replace(project, template=template.parse(set_auth(REPOSITORY_TEMPLATE, mode)))


@for_each_mode
def test_the_template_of_each_mode_passes_the_checks(mode: AuthMode, project: checks.Project) -> None:
    assert checks.complaints(with_mode(project, mode)) == []


@pytest.mark.parametrize(
    ("granted", "complaints"),
    [
        ("read write", []),
        ("read, admin", ["the sign-in front grants no scope write: add it to MCP_SCOPES_SUPPORTED in Globals"]),
    ],
)
def test_the_checks_name_a_required_scope_that_the_sign_in_front_does_not_grant(
    granted: str, complaints: list[str], project: checks.Project
) -> None:
    oauth_project = replace(with_mode(project, "oauth"), catalog=project.catalog | {"scopes": ["read", "write"]})
    oauth_project.template["Globals"]["Function"]["Environment"]["Variables"]["MCP_SCOPES_SUPPORTED"] = granted
    assert checks.complaints(oauth_project) == complaints


def test_a_change_of_the_mode_keeps_a_function_that_was_added_after_the_last_change(project: checks.Project) -> None:
    text = set_auth(REPOSITORY_TEMPLATE, "oauth")
    editor = TemplateEditor(text)
    blocks.append(editor, samples.copied("tool", "later"), with_mode(project, "oauth"))
    assert "\n  Later:" in set_auth(editor.text, "iam")
