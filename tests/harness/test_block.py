"""`mcp-functions block --write NAME` adds what a function needs to template.yaml, and changes nothing else."""

from __future__ import annotations

import shutil
from difflib import ndiff
from typing import TYPE_CHECKING

import pytest

from mcp_functions_harness import catalog, checks, template
from mcp_functions_harness.checks import imports
from mcp_functions_harness.command import run
from mcp_functions_harness.scaffold import beginning, samples
from mcp_functions_harness.scaffold.editing import new
from mcp_functions_harness.scaffold.template_editor import TemplateEditor

if TYPE_CHECKING:
    from pathlib import Path

NAME = "track_parcel"
PLAIN_BLOCK = """\
      CodeUri: functions/track_parcel/
      Events: # how it is reached
"""
ASKING_BLOCK = """\
      CodeUri: functions/track_parcel/
      Tags:
        mcp-function: track_parcel
      Policies: !Ref MaySeal
      Events: # how it is reached
"""


@pytest.fixture(scope="module")
def new_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a project with a tool that never asks, and comments of its author's."""
    directory = tmp_path_factory.mktemp("written") / "my-server"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(beginning, "origin", lambda _package: None)
        beginning.init(directory)
    new(directory, "tool", NAME)
    path = directory / "template.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(PLAIN_BLOCK.replace(" # how it is reached", ""), PLAIN_BLOCK), encoding="utf-8")
    return directory


@pytest.fixture
def project(new_project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "my-server"
    shutil.copytree(new_project, directory, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.chdir(directory)
    return directory


def change_kind(project: Path, kind: str) -> None:
    """Write the function again as another kind, as an author does who begins or stops to ask."""
    app = samples.copied(kind, NAME).files[f"functions/{NAME}/app.py"]
    (project / f"functions/{NAME}/app.py").write_text(app, encoding="utf-8")
    catalog.write(project / "functions", catalog.generate(project / "functions"))


def replace(project: Path, before: str, after: str) -> None:
    path = project / "template.yaml"
    text = path.read_text(encoding="utf-8")
    assert before in text
    path.write_text(text.replace(before, after), encoding="utf-8")


def text(project: Path) -> str:
    return (project / "template.yaml").read_text(encoding="utf-8")


def import_shared_code(project: Path) -> None:
    """Let the function import a module of layers/common."""
    shared = project / "layers/common/python"
    shared.mkdir(parents=True)
    (shared / "prices.py").write_text("PRICES = {}\n", encoding="utf-8")
    (project / f"functions/{NAME}/app.py").write_text(SHARED, encoding="utf-8")


@pytest.mark.parametrize("kind", ["asking", "task", "single_use"])
def test_block_write_resolves_every_complaint_of_the_checks(
    kind: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = text(project)
    change_kind(project, kind)
    complaints = checks.complaints(checks.read(project))
    assert complaints
    assert all(line.endswith(", or run: mcp-functions block --write track_parcel") for line in complaints)
    assert run(["block", "--write", NAME]) == 0
    assert checks.complaints(checks.read(project)) == []
    output = capsys.readouterr().out
    assert output.startswith("template.yaml:\n  + ")
    assert "  +         mcp-function: track_parcel\n" in output

    change_kind(project, "tool")
    complaints = checks.complaints(checks.read(project))
    assert "mcp-functions block --write track_parcel" in complaints[0]
    assert run(["block", "--write", NAME]) == 0
    assert checks.complaints(checks.read(project)) == []
    assert text(project) == before


def test_block_write_changes_only_the_lines_of_its_function(project: Path) -> None:
    before = text(project)
    change_kind(project, "asking")
    assert run(["block", "--write", NAME]) == 0
    assert text(project) == before.replace(PLAIN_BLOCK, ASKING_BLOCK)


def test_block_write_does_not_change_a_complete_block(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = text(project)
    assert run(["block", "--write", NAME]) == 0
    assert capsys.readouterr().out == "template.yaml has what functions/track_parcel needs\n"
    assert text(project) == before


@pytest.mark.parametrize(
    ("policies", "asking", "keeping"),
    [
        (
            "      Policies: AWSXrayWriteOnlyAccess # to trace\n",
            "      Policies: [!Ref MaySeal, AWSXrayWriteOnlyAccess] # to trace\n",
            "      Policies: [!Ref MaySeal, !Ref MayKeep, AWSXrayWriteOnlyAccess] # to trace\n",
        ),
        (
            "      Policies:\n        # mine\n        - AWSXrayWriteOnlyAccess # to trace\n",
            "      Policies:\n        - !Ref MaySeal\n        # mine\n        - AWSXrayWriteOnlyAccess # to trace\n",
            """\
      Policies:
        - !Ref MayKeep
        - !Ref MaySeal
        # mine
        - AWSXrayWriteOnlyAccess # to trace
""",
        ),
    ],
)
def test_block_write_keeps_policies_tags_and_comments_of_the_author(
    policies: str, asking: str, keeping: str, project: Path
) -> None:
    tags = "      Tags:\n        team: parcels # who pays\n"
    ours = "      Tags:\n        mcp-function: track_parcel\n        team: parcels # who pays\n"
    replace(project, PLAIN_BLOCK, PLAIN_BLOCK.replace("      Events", f"{tags}{policies}      Events"))
    before = text(project)
    for kind, shown in (("asking", asking), ("single_use", keeping)):
        change_kind(project, kind)
        assert run(["block", "--write", NAME]) == 0
        assert text(project) == before.replace(f"{tags}{policies}", f"{ours}{shown}")
        assert checks.complaints(checks.read(project)) == []
    change_kind(project, "tool")
    assert run(["block", "--write", NAME]) == 0
    assert text(project) == before


def test_block_write_keeps_the_comment_of_a_line_that_it_removes(project: Path) -> None:
    with_remarks = "      Tags:\n        mcp-function: track_parcel # ours\n      Policies: !Ref MaySeal # the key\n"
    replace(project, PLAIN_BLOCK, PLAIN_BLOCK.replace("      Events", f"{with_remarks}      Events"))
    assert run(["block", "--write", NAME]) == 0
    assert "        # ours\n      # the key\n      Events: # how it is reached\n" in text(project)
    assert checks.complaints(checks.read(project)) == []


def test_a_worker_gets_the_variables_of_its_function(project: Path) -> None:
    variables = "      Environment:\n        Variables:\n          DEPOT: north # where\n"
    replace(project, PLAIN_BLOCK, PLAIN_BLOCK.replace("      Events", f"{variables}      Events"))
    change_kind(project, "task")
    assert run(["block", "--write", NAME]) == 0
    worker = template.read(project / "template.yaml")["Resources"]["TrackParcelWorker"]["Properties"]
    assert worker["Environment"] == {"Variables": {"DEPOT": "north"}}
    assert checks.complaints(checks.read(project)) == []


SHARED = """\
from mcp_functions import serve, tool
from prices import PRICES

@tool
def track_parcel(text: str) -> str:
    return PRICES[text]

handler = serve(track_parcel)
"""


def test_a_function_that_imports_shared_code_gets_its_layer_once(project: Path) -> None:
    import_shared_code(project)
    (complaint,) = imports.missing_on_lambda(project / "functions")
    assert complaint.endswith(f", to Layers of TrackParcel: mcp-functions block --write {NAME}")
    before = text(project)
    assert run(["block", "--write", NAME]) == 0
    assert imports.missing_on_lambda(project / "functions") == []
    assert [line for line in ndiff(before.splitlines(), text(project).splitlines()) if line[0] == "-"] == []
    new_project = text(project)
    assert "      Layers:\n        - !Ref CommonLayer\n      Events: # how it is reached\n" in new_project
    assert run(["block", "--write", NAME]) == 0
    assert text(project) == new_project
    replace(project, new_project, before)
    replace(project, f"functions/{NAME}/", "functions/other/")
    replace(project, "  TrackParcel:", "  Other:")
    assert run(["block", "--write", NAME]) == 0
    assert text(project).count("- !Ref CommonLayer") == 1


@pytest.mark.parametrize("words", [[NAME], [NAME, "other"], []], ids=["one", "both", "all"])
@pytest.mark.parametrize("has_block", [True, False])
def test_functions_that_share_code_get_its_layer_by_one_command_whatever_the_others_lack(
    words: list[str], project: Path, *, has_block: bool
) -> None:
    if has_block:
        new(project, "asking", "other")
    shared = project / "layers/common/python"
    shared.mkdir(parents=True)
    (shared / "prices.py").write_text("PRICES = {}\n", encoding="utf-8")
    (project / "functions/other").mkdir(exist_ok=True)
    for name in (NAME, "other"):
        app = SHARED.replace(NAME, name)
        (project / f"functions/{name}/app.py").write_text(app, encoding="utf-8")
    assert run(["block", "--write", *words]) == 0
    left = imports.missing_on_lambda(project / "functions")
    assert [line for line in left if NAME in line] == []
    assert bool(left) is (words == [NAME])
    assert run(["block", "--write", "other"]) == 0
    catalog.write(project / "functions", catalog.generate(project / "functions"))
    assert checks.complaints(checks.read(project)) == []


def test_a_layer_of_other_code_with_the_name_of_the_shared_one_is_left_alone(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import_shared_code(project)
    layer = "  CommonLayer:\n    Type: AWS::Serverless::LayerVersion\n    Properties:\n      ContentUri: other/\n"
    replace(project, "Resources:\n", f"Resources:\n{layer}")
    before = text(project)
    assert run(["block", "--write", NAME]) == 2
    assert "by hand: CommonLayer must have the ContentUri layers/common/\n" in capsys.readouterr().err
    assert text(project) == before


def test_a_function_without_a_block_is_reported_with_the_command_that_adds_it(project: Path) -> None:
    replace(project, f"functions/{NAME}/", "functions/mcp/")
    (complaint,) = imports.missing_on_lambda(project / "functions")
    message = "has no block in template.yaml, so it is not deployed: mcp-functions block --write"
    assert complaint == f"functions/{NAME} {message} {NAME}"


def test_a_module_that_shadows_a_module_of_python_is_reported_with_its_path(project: Path) -> None:
    (project / f"functions/{NAME}/random.py").write_text("X = 1\n", encoding="utf-8")
    (complaint,) = imports.missing_on_lambda(project / "functions")
    hides = "hides Python's own module random from every package: give it another name"
    assert complaint == f"functions/{NAME}/random.py {hides}"


def test_block_write_adds_a_block_for_a_folder_without_one(project: Path) -> None:
    before = text(project)
    (project / "functions/by_hand").mkdir()
    app = samples.copied("asking", "by_hand").files["functions/by_hand/app.py"]
    (project / "functions/by_hand/app.py").write_text(app, encoding="utf-8")
    assert run(["block", "--write", "by_hand"]) == 0
    assert not [line for line in ndiff(before.splitlines(), text(project).splitlines()) if line.startswith("- ")]
    catalog.write(project / "functions", catalog.generate(project / "functions"))
    assert checks.complaints(checks.read(project)) == []


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["track_parcl"], "there is no functions/track_parcl/app.py; did you mean track_parcel?"),
        (["mcp"], "functions/mcp offers no tool, prompt or resource: init and auth write its block"),
    ],
)
def test_block_reports_an_unknown_function_in_one_line(
    words: list[str], why: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = text(project)
    assert run(["block", "--write", *words]) == 2
    assert capsys.readouterr().err == f"mcp-functions: {why}\n"
    assert text(project) == before


def test_block_write_does_not_change_a_block_in_another_notation(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    replace(
        project, PLAIN_BLOCK, PLAIN_BLOCK.replace("      Events", "      Policies: [{Statement: []}]\n      Events")
    )
    before = text(project)
    change_kind(project, "asking")
    assert run(["block", "--write", NAME]) == 2
    error_output = capsys.readouterr().err
    assert error_output.startswith(
        "mcp-functions: template.yaml is not as init wrote it, so nothing was written; by hand: "
    )
    assert "functions/track_parcel needs MaySeal: add !Ref MaySeal to Policies of TrackParcel" in error_output
    assert text(project) == before


@pytest.mark.parametrize("kind", ["tool", "task", "single_use"])
def test_remove_undoes_new(kind: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {
        path: path.read_bytes() for path in project.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    }
    new(project, kind, "other")
    assert run(["remove", "other"]) == 0
    output = capsys.readouterr().out
    for removed in ("functions/other", "tests/functions/test_other.py", "events/other", "template.yaml: Other"):
        assert f"  {removed}\n" in f"{output}\n"
    after = {
        path: path.read_bytes() for path in project.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    }
    assert after == before


def test_remove_takes_away_a_function_that_does_not_load(project: Path) -> None:
    (project / f"functions/{NAME}/app.py").write_text("def f(:\n", encoding="utf-8")
    assert run(["remove", NAME]) == 0
    assert checks.all_complaints(project) == []


def test_remove_removes_nothing_that_another_part_of_the_template_names(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    replace(project, "Outputs:\n", "Outputs:\n  Mine:\n    Value: !GetAtt TrackParcel.Arn # mine\n")
    before = text(project)
    assert run(["remove", NAME]) == 2
    assert (
        "TrackParcel is named elsewhere in template.yaml; remove that first: Value: !GetAtt" in capsys.readouterr().err
    )
    assert text(project) == before
    assert (project / f"functions/{NAME}/app.py").exists()
    assert run(["remove", "track_parcl"]) == run(["remove", "mcp"]) == 2
    assert "there is no functions/track_parcl; did you mean track_parcel?" in capsys.readouterr().err


def test_auth_takes_the_sign_in_front_away_unless_its_author_changed_it(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for mode in ("none", "jwt", "iam"):
        assert run(["auth", "oauth"]) == run(["auth", mode]) == 0
        assert not (project / "functions/oauth").exists()
        assert "oauth is removed: no other mode than oauth deploys it" in capsys.readouterr().out
    assert run(["auth", "oauth"]) == 0
    (project / "functions/oauth/mine.py").touch()
    assert run(["auth", "none"]) == 0
    assert "It stays, because it is not as `auth oauth` wrote it" in capsys.readouterr().out
    assert (project / "functions/oauth/app.py").exists()


def test_block_write_appends_to_a_file_without_a_final_line_break() -> None:
    text = "Resources:\n  Add:\n    Type: AWS::Serverless::Function\n    DependsOn: Table"
    block = "  New:\n    Type: AWS::Serverless::Function\n"
    editor = TemplateEditor(text)
    editor.append_function(block)
    assert editor.text == f"{text}\n{block}"


def test_an_edit_after_an_edit_that_broke_the_yaml_raises_no_exception() -> None:
    editor = TemplateEditor("Resources:\n  Add:\n    Properties:\n      CodeUri: functions/add/")
    editor.set_tag("Add", "add", needed=True)  # it follows the last line, which has no line break
    broken = editor.text
    editor.set_policies("Add", ["MaySeal"])  # `block` then refuses the template, because it cannot be read
    assert editor.text.startswith(broken)


def test_block_prints_what_block_write_writes_with_the_authors_own_lines_and_the_layer(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import_shared_code(project)
    policies = "      Policies: AWSXrayWriteOnlyAccess # to trace\n"
    replace(project, PLAIN_BLOCK, PLAIN_BLOCK.replace("      Events", f"{policies}      Events"))
    before = text(project)
    assert run(["block", NAME]) == 0
    printed = template.parse(f"Resources:\n{capsys.readouterr().out}")["Resources"]
    assert text(project) == before
    assert run(["block", "--write", NAME]) == 0
    written = template.read(project / "template.yaml")["Resources"]
    assert printed == {name: written[name] for name in ("CommonLayer", "TrackParcel")}
    assert printed["TrackParcel"]["Properties"]["Policies"] == "AWSXrayWriteOnlyAccess"


def test_block_prints_the_block_of_a_function_or_of_a_kind_of_function(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["block", NAME]) == 0
    assert "MaySeal" not in capsys.readouterr().out
    change_kind(project, "single_use")
    assert run(["block", NAME]) == 0
    assert "Policies: [!Ref MaySeal, !Ref MayKeep]" in capsys.readouterr().out
    change_kind(project, "task")
    assert run(["block", NAME]) == 0
    resources = template.parse(f"Resources:\n{capsys.readouterr().out}")["Resources"]
    assert list(resources) == ["TrackParcel", "TrackParcelWorker"]
    assert run(["block"]) == run(["block", NAME, "book_flight"]) == 2
    assert "Name one function" in capsys.readouterr().err
    assert run(["block", "--kind", "task", "find_parcel"]) == 0
    resources = template.parse(f"Resources:\n{capsys.readouterr().out}")["Resources"]
    assert list(resources) == ["FindParcel", "FindParcelWorker"]
