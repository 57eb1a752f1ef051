"""`mcp-functions auth MODE` rewrites the lines of template.yaml that decide who may call, and leaves all other lines.

The tests rewrite two templates: that of this repository, and that of a new project. `checks.complaints` returns what
`make test` of a project complains about.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mcp_functions.local import checks, command, template
from mcp_functions.local.auth import set_auth
from mcp_functions.local.problems import Problem
from mcp_functions.local.scaffold import blocks, files, samples
from mcp_functions.local.scaffold.template_editor import TemplateEditor
from mcp_functions.settings import AUTH_MODES

if TYPE_CHECKING:
    from mcp_functions.settings import AuthMode

ROOT = Path(__file__).parents[2]
TEMPLATE = (ROOT / "template.yaml").read_text(encoding="utf-8")  # of this repository
NEW_PROJECT_TEMPLATE = (files.HERE / "project/template.yaml.in").read_text(encoding="utf-8")
MODES = list(AUTH_MODES)  # iam, jwt, oauth, none; the templates are delivered with iam

for_each_template = pytest.mark.parametrize(
    "text", [TEMPLATE, NEW_PROJECT_TEMPLATE], ids=["this repository", "a new project"]
)


@pytest.fixture(scope="module")
def project() -> checks.Project:
    """Return this repository as the checks of `make test` read it."""
    return checks.read(ROOT)


@pytest.fixture
def new_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the current folder a project that has only the template of a new project, and return the folder."""
    (tmp_path / "template.yaml").write_text(NEW_PROJECT_TEMPLATE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@for_each_template
@pytest.mark.parametrize("mode", MODES)
def test_a_mode_that_replaces_another_mode_gives_the_same_file(mode: AuthMode, text: str) -> None:
    expected = set_auth(text, mode)
    for earlier_mode in MODES:
        assert set_auth(set_auth(text, earlier_mode), mode) == expected


@for_each_template
@pytest.mark.parametrize("mode", MODES)
def test_iam_after_another_mode_restores_the_delivered_file(mode: AuthMode, text: str) -> None:
    assert set_auth(set_auth(text, mode), "iam") == text


@pytest.mark.parametrize("mode", MODES)
def test_the_template_of_each_mode_passes_the_checks(mode: AuthMode, project: checks.Project) -> None:
    new_template = template.parse(set_auth(TEMPLATE, mode))
    assert checks.complaints(replace(project, template=new_template)) == []


@pytest.mark.parametrize("mode", MODES)
def test_the_functions_get_the_mode_in_mcp_auth_mode(mode: AuthMode) -> None:
    new_template = template.parse(set_auth(TEMPLATE, mode))
    assert new_template["Globals"]["Function"]["Environment"]["Variables"]["MCP_AUTH_MODE"] == mode


@pytest.fixture
def project_with_scopes(project: checks.Project) -> checks.Project:
    """Return this repository with the mode oauth, and with handlers that require the scopes read and write."""
    oauth_template = template.parse(set_auth(TEMPLATE, "oauth"))
    return replace(project, template=oauth_template, catalog=project.catalog | {"scopes": ["read", "write"]})


def test_the_checks_name_a_required_scope_that_the_sign_in_front_does_not_grant(
    project_with_scopes: checks.Project,
) -> None:
    variables = project_with_scopes.template["Globals"]["Function"]["Environment"]["Variables"]
    variables["MCP_SCOPES_SUPPORTED"] = "read, admin"
    assert checks.complaints(project_with_scopes) == [
        "the sign-in front grants no scope write: add it to MCP_SCOPES_SUPPORTED in Globals"
    ]


def test_the_checks_accept_a_sign_in_front_that_grants_all_required_scopes(
    project_with_scopes: checks.Project,
) -> None:
    variables = project_with_scopes.template["Globals"]["Function"]["Environment"]["Variables"]
    variables["MCP_SCOPES_SUPPORTED"] = "read write"
    assert checks.complaints(project_with_scopes) == []


@pytest.fixture
def commented_template() -> str:
    """Return the template with comments of its author: one on a line of its own, two at the end of other lines."""
    text = TEMPLATE
    for line, commented_line in (
        ("  Mcp:\n", "  # mine\n  Mcp: # too\n"),
        ("      Timeout: 29\n", "      Timeout: 29 # mine\n"),
    ):
        assert f"\n{line}" in text
        text = text.replace(f"\n{line}", f"\n{commented_line}")
    return text


def test_only_the_lines_of_the_mode_disappear(commented_template: str) -> None:
    lines_after = set_auth(commented_template, "jwt").splitlines()
    assert set(commented_template.splitlines()) - set(lines_after) == {
        "        EnableIamAuthorizer: true",
        "        DefaultAuthorizer: AWS_IAM",
        "        MCP_AUTH_MODE: iam # who may call; written by: mcp-functions auth iam|jwt|oauth|none",
    }


def test_a_rewritten_template_with_comments_passes_the_checks(commented_template: str, project: checks.Project) -> None:
    new_template = template.parse(set_auth(commented_template, "jwt"))
    assert checks.complaints(replace(project, template=new_template)) == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("      # auth: who may call;", "`# auth: who may call`"),
        ("        # auth: open routes;", "`# auth: open routes`"),
        ("        MCP_AUTH_MODE: iam", "must set MCP_AUTH_MODE once, in Globals: it does so 0 times"),
    ],
)
def test_a_template_without_a_line_that_auth_needs_is_refused(line: str, message: str) -> None:
    assert line in TEMPLATE
    with pytest.raises(Problem, match=message):
        set_auth(TEMPLATE.replace(line, "# gone"), "jwt")


def test_auth_in_a_folder_without_a_template_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command.run(["auth", "jwt"]) == 2
    assert capsys.readouterr().err.startswith("mcp-functions: there is no template.yaml")


def test_auth_rewrites_the_template_in_the_current_folder(
    new_project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    template_file = new_project / "template.yaml"
    template_file.write_text(TEMPLATE, encoding="utf-8")
    assert command.run(["auth", "jwt"]) == 0
    assert "a token of JwtIssuer" in capsys.readouterr().out
    assert template_file.read_text(encoding="utf-8") == set_auth(TEMPLATE, "jwt")


def test_auth_refuses_an_unknown_mode(new_project: Path) -> None:
    assert command.run(["auth", "basic"]) == 2
    assert (new_project / "template.yaml").read_text(encoding="utf-8") == NEW_PROJECT_TEMPLATE


def test_auth_oauth_writes_the_function_of_the_sign_in_front(new_project: Path) -> None:
    assert command.run(["auth", "oauth"]) == 0
    written = (new_project / "functions/oauth/app.py").read_text(encoding="utf-8")
    assert written == (ROOT / "functions/oauth/app.py").read_text(encoding="utf-8")


def test_auth_oauth_keeps_a_changed_function_of_the_sign_in_front(new_project: Path) -> None:
    assert command.run(["auth", "oauth"]) == 0
    app_file = new_project / "functions/oauth/app.py"
    app_file.write_text("# mine\n", encoding="utf-8")

    assert command.run(["auth", "oauth"]) == 0
    assert app_file.read_text(encoding="utf-8") == "# mine\n"


def test_auth_iam_after_auth_oauth_restores_the_template(new_project: Path) -> None:
    assert command.run(["auth", "oauth"]) == 0
    assert command.run(["auth", "iam"]) == 0
    assert (new_project / "template.yaml").read_text(encoding="utf-8") == NEW_PROJECT_TEMPLATE


def test_a_change_of_the_mode_keeps_a_function_that_was_added_after_the_last_change(project: checks.Project) -> None:
    text = set_auth(TEMPLATE, "oauth")
    oauth_project = replace(project, template=template.parse(text))
    editor = TemplateEditor(text)
    blocks.append(editor, samples.copied("tool", "later"), oauth_project)
    assert "\n  Later:" in set_auth(editor.text, "iam")
