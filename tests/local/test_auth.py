"""`mcp-functions auth` writes who may call into template.yaml, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mcp_functions.local import checks, command, template
from mcp_functions.local.auth import set_auth
from mcp_functions.local.problems import Problem
from mcp_functions.local.scaffold import blocks, files, samples
from mcp_functions.settings import AUTH_MODES

if TYPE_CHECKING:
    from mcp_functions.settings import AuthMode

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "template.yaml").read_text(encoding="utf-8")
OF_A_PROJECT = (files.HERE / "project/template.yaml.in").read_text(encoding="utf-8")
MODES = list(AUTH_MODES)


@pytest.fixture(scope="module")
def project() -> checks.Project:
    return checks.read(ROOT)


@pytest.mark.parametrize("text", [TEXT, OF_A_PROJECT], ids=["ours", "a project's"])
@pytest.mark.parametrize("mode", MODES)
def test_whatever_stood_there_before_a_mode_is_written_the_same(mode: AuthMode, text: str) -> None:
    written = {set_auth(set_auth(text, before), mode) for before in MODES}
    assert written == {set_auth(text, mode)}
    assert set_auth(set_auth(text, mode), "iam") == text, "as delivered"


@pytest.mark.parametrize("mode", MODES)
def test_functions_believe_what_the_api_enforces(mode: AuthMode, project: checks.Project) -> None:
    parsed = template.parse(set_auth(TEXT, mode))
    assert checks.complaints(replace(project, template=parsed)) == []
    assert parsed["Globals"]["Function"]["Environment"]["Variables"]["MCP_AUTH_MODE"] == mode


def test_make_test_names_a_scope_that_the_front_would_refuse(project: checks.Project) -> None:
    parsed = template.parse(set_auth(TEXT, "oauth"))
    variables = parsed["Globals"]["Function"]["Environment"]["Variables"]
    needs = replace(project, template=parsed, catalog=project.catalog | {"scopes": ["read", "write"]})
    variables["MCP_SCOPES_SUPPORTED"] = "read, admin"
    assert checks.complaints(needs) == [
        "the sign-in front grants no scope write: add it to MCP_SCOPES_SUPPORTED in Globals"
    ]
    variables["MCP_SCOPES_SUPPORTED"] = "read write"
    assert checks.complaints(needs) == []


def test_lines_of_ones_own_stay_and_so_do_comments(project: checks.Project) -> None:
    own = TEXT.replace("\n  Mcp:\n", "\n  # mine\n  Mcp: # too\n").replace(
        "    Timeout: 29\n", "    Timeout: 29 # mine\n"
    )
    kept, changed = set(own.splitlines()), set(set_auth(own, "jwt").splitlines())
    assert kept - changed == {
        "        EnableIamAuthorizer: true",
        "        DefaultAuthorizer: AWS_IAM",
        "        MCP_AUTH_MODE: iam # who may call; written by: mcp-functions auth iam|jwt|oauth|none",
    }
    assert checks.complaints(replace(project, template=template.parse(set_auth(own, "jwt")))) == []


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("      # auth: who may call;", "`# auth: who may call`"),
        ("        # auth: open routes;", "`# auth: open routes`"),
        ("        MCP_AUTH_MODE: iam", "must set MCP_AUTH_MODE once, in Globals: it does so 0 times"),
    ],
)
def test_a_template_without_a_place_is_not_changed(line: str, why: str) -> None:
    assert line in TEXT
    with pytest.raises(Problem, match=why):
        set_auth(TEXT.replace(line, "# gone"), "jwt")


def test_the_command_rewrites_the_template_of_this_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command.run(["auth", "jwt"]) == 2
    assert capsys.readouterr().err.startswith("mcp-functions: there is no template.yaml")
    path = tmp_path / "template.yaml"
    path.write_text(TEXT, encoding="utf-8")
    assert command.run(["auth", "jwt"]) == 0
    assert "a token of JwtIssuer" in capsys.readouterr().out
    assert path.read_text(encoding="utf-8") == set_auth(TEXT, "jwt")
    assert command.run(["auth", "basic"]) == 2


def test_oauth_writes_the_function_of_the_front_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "template.yaml").write_text(OF_A_PROJECT, encoding="utf-8")
    assert command.run(["auth", "oauth"]) == 0
    app = tmp_path / "functions/oauth/app.py"
    assert app.read_text(encoding="utf-8") == (ROOT / "functions/oauth/app.py").read_text(encoding="utf-8")
    app.write_text("# mine\n", encoding="utf-8")
    assert command.run(["auth", "oauth"]) == 0
    assert app.read_text(encoding="utf-8") == "# mine\n"
    assert command.run(["auth", "iam"]) == 0
    assert (tmp_path / "template.yaml").read_text(encoding="utf-8") == OF_A_PROJECT


def test_a_function_that_is_added_later_outlives_another_mode(project: checks.Project) -> None:
    text = set_auth(TEXT, "oauth")
    grown = blocks.with_block_added(
        text, samples.copied("tool", "later"), replace(project, template=template.parse(text))
    )
    assert "\n  Later:" in set_auth(grown, "iam")
