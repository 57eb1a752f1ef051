"""`mcp-functions init` writes a project, and `mcp-functions new` adds a function to it.

`python tests/harness/test_scaffold.py` writes this repository's template again after a part of it changed.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions_harness import catalog, checks, fragments, template
from mcp_functions_harness.command import run as main
from mcp_functions_harness.lambdas.functions import NAME
from mcp_functions_harness.problems import Problem
from mcp_functions_harness.scaffold import additions, beginning, blocks, files, samples, spelling
from mcp_functions_harness.scaffold.beginning import init
from mcp_functions_harness.scaffold.editing import new

if TYPE_CHECKING:
    from collections.abc import Callable

    SetOrigin = Callable[[str | None], None]

ROOT = Path(__file__).parent.parent.parent
FILES = """\
.gitignore
Makefile
README.md
events/book_flight/1-call.json
events/book_flight/2-seat.json
functions/book_flight/app.py
functions/mcp/app.py
functions/mcp/catalog.json
layers/dependencies/Makefile
layers/dependencies/python3.12/arm64/platform
layers/dependencies/python3.12/x86_64/platform
layers/dependencies/python3.13/arm64/platform
layers/dependencies/python3.13/x86_64/platform
layers/dependencies/python3.14/arm64/platform
layers/dependencies/python3.14/x86_64/platform
layers/dependencies/requirements.txt
layers/dependencies/toolkit.txt
layers/dependencies/wheels/README
pyproject.toml
samconfig.toml
template.yaml
tests/conftest.py
tests/functions/test_book_flight.py
tests/test_project.py
"""

ORIGIN = beginning.origin


@pytest.fixture(autouse=True)
def _from_an_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """Say that the toolkit comes from a package index, wherever it comes from here."""
    monkeypatch.setattr(beginning, "origin", lambda _package: None)


@pytest.fixture(scope="module")
def new_project_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a project once; who changes it copies it."""
    directory = tmp_path_factory.mktemp("written") / "my-server"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(beginning, "origin", lambda _package: None)
        init(directory)
    return directory


@pytest.fixture
def project_dir(new_project_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "my-server"
    shutil.copytree(new_project_dir, directory, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.chdir(directory)
    return directory


def contents(directory: Path) -> dict[str, str]:
    found = (path for path in sorted(directory.rglob("*")) if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(directory).as_posix(): path.read_text(encoding="utf-8") for path in found}


def error_line(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Run a command that must end with one line and 2, and return the line."""
    code = main(words)
    captured = capsys.readouterr()
    assert (code, captured.out, captured.err.count("\n")) == (2, "", 1)
    return captured.err.removeprefix("mcp-functions: ").rstrip("\n")


def replace_text(path: Path, before: str, after: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert before in text
    path.write_text(text.replace(before, after), encoding="utf-8")


# ---- init


def test_init_writes_these_files(new_project_dir: Path) -> None:
    assert sorted(contents(new_project_dir)) == FILES.split()


def test_a_new_project_passes_its_checks(new_project_dir: Path) -> None:
    project = checks.read(new_project_dir)
    assert checks.complaints(project) == []
    assert project.catalog == catalog.generate(new_project_dir / "functions")
    assert project.catalog["functions"]["tools"] == {"book_flight": "book_flight"}


def test_the_toolkits_version_is_written_in_one_place(new_project_dir: Path) -> None:
    named = [name for name, text in contents(new_project_dir).items() if re.search(r"mcp-functions *[=<>~]+ *\d", text)]
    assert named == ["layers/dependencies/toolkit.txt"]
    assert f"\nmcp-functions=={version('mcp-functions')}\n" in contents(new_project_dir)[named[0]]


def test_no_placeholder_is_left(new_project_dir: Path) -> None:
    for name, text in contents(new_project_dir).items():
        assert not files.PLACEHOLDER.search(text), name


def test_the_readme_of_a_project_names_only_existing_files(new_project_dir: Path) -> None:
    readme, makefile = ((new_project_dir / name).read_text(encoding="utf-8") for name in ("README.md", "Makefile"))
    for target in re.findall(r"(?:`|^)make (\w+)", readme, re.MULTILINE):
        assert f"\n{target}:" in makefile, target
    for link in re.findall(r"\]\((?!https?:)([^)]+)\)", readme):
        assert (new_project_dir / link).exists(), link
    for event in re.findall(r"events/book_flight/\S+\.json", readme):
        assert (new_project_dir / event).exists(), event


def test_the_output_names_every_next_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", str(tmp_path / "new")]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert f"{tmp_path / 'new'} is a project of {len(FILES.split())} files" in captured.out
    makefile = (tmp_path / "new" / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"make (\w+)", captured.out):
        assert f"\n{target}:" in makefile


def test_init_accepts_an_existing_folder_if_it_overwrites_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "LICENSE").write_text("mine")
    init(tmp_path)
    (tmp_path / "template.yaml").write_text("mine too")
    before = contents(tmp_path)
    for name in before.keys() - {"LICENSE", "template.yaml"}:
        (tmp_path / name).unlink()
    message = f"{tmp_path / 'template.yaml'} is there already: nothing was written"
    assert error_line(capsys, "init", str(tmp_path)) == message
    assert contents(tmp_path) == {"LICENSE": "mine", "template.yaml": "mine too"}


def test_init_without_a_name_writes_to_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init"]) == 0
    output = capsys.readouterr().out
    assert output.startswith(f"{tmp_path.name} is a project of ")
    assert "  cd " not in output
    assert sorted(contents(tmp_path)) == FILES.split()


def test_init_does_not_follow_a_broken_symbolic_link(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "Makefile").symlink_to(tmp_path / "elsewhere")
    assert "Makefile is there already" in error_line(capsys, "init", str(tmp_path))
    assert not (tmp_path / "elsewhere").exists()


def test_init_reports_a_file_in_place_of_the_folder_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    for directory in (tmp_path / "file", tmp_path / "file" / "in it"):
        assert error_line(capsys, "init", str(directory)).startswith(f"{directory} cannot be written: ")


@pytest.mark.parametrize(
    ("folder", "stack"),
    [
        ("my-server", "my-server"),
        ("my_server", "my-server"),
        ("3 wishes", "mcp-3-wishes"),
        ("Ångström", "ngstr-m"),
        ("___", "mcp"),
        ("a" * 50, "a" * 18),
        ("abcdefghijklmnopq-rstuv", "abcdefghijklmnopq"),
    ],
)
def test_the_stack_is_named_after_the_folder(folder: str, stack: str, tmp_path: Path) -> None:
    assert spelling.stack(tmp_path / folder) == stack
    assert re.fullmatch(r"[A-Za-z][A-Za-z0-9-]*", stack)
    assert len(f"{stack}-prod_-worker") + spelling.MAX_NAME <= 64


# ---- where the toolkit came from


class Installed:
    """A distribution that pip installed from somewhere."""

    version = "1.2.3"

    def __init__(self, told: str | None) -> None:
        self._told = told

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return self._told


@pytest.fixture
def set_origin(monkeypatch: pytest.MonkeyPatch) -> SetOrigin:
    def from_(told: str | None) -> None:
        monkeypatch.setattr(beginning, "distribution", lambda _name: Installed(told))
        monkeypatch.setattr(beginning, "origin", ORIGIN)

    return from_


def test_init_copies_the_wheel_of_the_toolkit_into_the_project(set_origin: SetOrigin, tmp_path: Path) -> None:
    wheel = tmp_path / "with space" / "mcp_functions-1.2.3-py3-none-any.whl"
    wheel.parent.mkdir()
    wheel.write_bytes(b"wheel")
    set_origin(json.dumps({"url": wheel.as_uri(), "archive_info": {}}))
    output = init(tmp_path / "own")
    assert (tmp_path / "own/layers/dependencies/wheels" / wheel.name).read_bytes() == b"wheel"
    assert "mcp-functions==1.2.3" in (tmp_path / "own/layers/dependencies/toolkit.txt").read_text()
    assert "pip wheel" not in output


def test_an_error_names_a_missing_wheel(set_origin: SetOrigin, tmp_path: Path) -> None:
    set_origin(json.dumps({"url": (tmp_path / "gone.whl").as_uri(), "archive_info": {}}))
    with pytest.raises(Problem, match=r"wheel cannot be copied to .*wheels, copy it yourself: FileNotFoundError"):
        init(tmp_path / "own")


@pytest.mark.parametrize("name", ["folder", "mcp_functions-1.2.3.tar.gz"])
def test_a_toolkit_that_was_not_installed_from_a_wheel_has_to_be_built(
    name: str, set_origin: SetOrigin, tmp_path: Path
) -> None:
    set_origin(json.dumps({"url": (tmp_path / name).as_uri()}))
    output = init(tmp_path / "own")
    wheels = tmp_path / "own/layers/dependencies/wheels"
    assert output.endswith(f"python -m pip wheel --no-deps --wheel-dir {wheels} {tmp_path / name}")


@pytest.mark.parametrize("message", [None, "", "{}", "[]", "{", '{"url": "https://example.org/mcp_functions.whl"}'])
def test_a_project_of_a_toolkit_from_an_index_needs_no_wheel(
    message: str | None, set_origin: SetOrigin, tmp_path: Path
) -> None:
    set_origin(message)
    init(tmp_path / "own")
    assert [path.name for path in (tmp_path / "own/layers/dependencies/wheels").iterdir()] == ["README"]


def test_init_reports_a_toolkit_that_is_not_installed_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(beginning, "PACKAGE", "no-such-package")
    message = "no-such-package is not installed, so its version is unknown: pip install its wheel first"
    assert error_line(capsys, "init", str(tmp_path / "own")) == message
    assert not (tmp_path / "own").exists()


def test_make_explains_missing_arguments_and_passes_arguments_on(project_dir: Path) -> None:
    for missing in ([], ["KIND=tool"], ["NAME=track_parcel"]):
        ran = run_make(project_dir, "new", *missing)
        assert (ran.returncode, "make new KIND=tool NAME=track_parcel" in ran.stderr) == (2, True)
    assert (
        run_make(project_dir, "new", "KIND=task", "NAME=x").stdout.rstrip().endswith("mcp_functions_harness new task x")
    )
    for makefile in (project_dir, ROOT):
        on_a_port = run_make(makefile, "serve", "PORT=8001").stdout.rstrip()
        assert on_a_port.endswith("mcp_functions_harness serve --port 8001")
        assert run_make(makefile, "serve").stdout.rstrip().endswith("mcp_functions_harness serve")


def run_make(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Ask make what it would do."""
    command = ["make", "--dry-run", "--no-print-directory", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603 - our own words


# ---- new


@pytest.mark.parametrize(
    ("kind", "listed", "key"),
    [
        ("tool", "tools", "track_parcel"),
        ("asking", "tools", "track_parcel"),
        ("prompt", "prompts", "track_parcel"),
        ("resource", "resourceTemplates", "track-parcel://{number}"),
        ("task", "tools", "track_parcel"),
        ("single_use", "tools", "track_parcel"),
    ],
)
def test_new_adds_a_function_to_every_file_that_lists_functions(
    kind: str, listed: str, key: str, project_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(project_dir)
    assert main(["new", kind, "track_parcel"]) == 0
    output = capsys.readouterr().out
    project = checks.read(project_dir)
    assert checks.complaints(project) == []
    assert project.catalog == catalog.generate(project_dir / "functions")
    folders: Any = project.catalog["functions"]
    assert folders[listed][key] == "track_parcel"
    assert ("track_parcel" in project.asking) is (kind not in {"tool", "resource"})
    assert ("track_parcel" in project.keeping) is (kind in {"task", "single_use"})
    assert ("track_parcel" in project.workers) is (kind == "task")
    added = contents(project_dir).keys() - before.keys()
    assert {"functions/track_parcel/app.py", "tests/functions/test_track_parcel.py"} < added
    assert all(name in output for name in added)
    changed = {name for name in before if contents(project_dir)[name] != before[name]}
    assert changed == {"template.yaml", "functions/mcp/catalog.json"}


def test_update_events_writes_what_the_tests_record_and_removes_what_is_stale(
    project_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = project_dir / "events/book_flight"
    before = contents(events)
    (events / "2-seat.json").unlink()
    (events / "2-consent.json").write_text("{}", encoding="utf-8")
    (events / "1-call.json").write_text("{}", encoding="utf-8")
    (events / "by-hand.json").write_text("{}", encoding="utf-8")
    assert main(["events", "book_flight"]) == 0
    output_lines = capsys.readouterr().out.splitlines()
    folder = Path("events/book_flight")
    assert output_lines == [
        f"wrote {folder / '1-call.json'}",
        f"wrote {folder / '2-seat.json'}",
        f"removed {folder / '2-consent.json'}",
    ]
    assert contents(events) == {**before, "by-hand.json": "{}"}
    assert main(["events"]) == 0
    assert capsys.readouterr().out == "events/ is up to date\n"


def test_events_of_a_failing_or_missing_test_are_not_written(
    project_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert error_line(capsys, "events", "no_such") == (
        f"there is no {Path('tests/functions/test_no_such.py')}: a test of the function records its conversation"
    )
    replace_text(project_dir / "functions/book_flight/app.py", "Booked: ", "No: ")
    assert main(["events"]) == 1
    assert "AssertionError" in capsys.readouterr().out


def test_new_functions_of_every_kind_pass_their_tests_and_write_their_events(project_dir: Path) -> None:
    for kind in samples.KINDS:
        new(project_dir, kind, f"my_{kind}")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    ran = subprocess.run(command, cwd=project_dir, capture_output=True, text=True, check=False)  # noqa: S603 - our own words
    assert ran.returncode == 0, ran.stdout


def test_the_generated_files_are_linted_and_formatted(project_dir: Path) -> None:
    for kind in samples.KINDS:
        new(project_dir, kind, f"my_{kind}")
    for command in (["format", "--check"], ["check", "--select=E,F,W,I,B,UP,PTH,SIM"]):
        ruff = [sys.executable, "-m", "ruff", command[0], "--isolated", "--line-length=120", *command[1:], "."]
        ran = subprocess.run(ruff, cwd=project_dir, capture_output=True, text=True, check=False)  # noqa: S603 - our own words
        assert ran.returncode == 0, ran.stdout + ran.stderr


def test_new_keeps_changes_of_the_author_to_the_template(project_dir: Path) -> None:
    path = project_dir / "template.yaml"
    replace_text(path, "      Timeout: 29\n", "      Timeout: 29 # seconds, I say\n")
    replace_text(
        path,
        "  # ---- What a function that asks",
        "  # My own table.\n\n  Table:\n    Type: AWS::DynamoDB::Table\n\n  # ---- The key that",
    )
    before = path.read_text(encoding="utf-8").splitlines()
    new(project_dir, "tool", "track_parcel")
    after = path.read_text(encoding="utf-8").splitlines()
    block = blocks.text(samples.copied("tool", "track_parcel")).splitlines()
    start = after.index(block[0])
    assert after[start : start + len(block)] == block
    assert after[: start - 1] + after[start + len(block) :] == before
    assert after.index(block[0]) < after.index("  # My own table.")


def test_new_adds_functions_to_the_end_of_the_template(project_dir: Path) -> None:
    for name in ("zebra", "ant"):
        new(project_dir, "resource", name)
    ids = list(template.read(project_dir / "template.yaml")["Resources"])
    assert [id_ for id_ in ids if id_ in {"BookFlight", "Zebra", "Ant"}] == ["BookFlight", "Zebra", "Ant"]


@pytest.mark.parametrize("name", ["a", "track_parcel", "v2", "get_2_things", "x" * 33])
def test_a_valid_name_can_name_a_folder_a_python_function_and_a_lambda(name: str) -> None:
    spelling.check(name)
    assert name.isidentifier()
    assert NAME.fullmatch(name)
    assert re.fullmatch(r"[A-Za-z0-9]+", checks.pascal(name))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "cannot be a function's name"),
        ("Track", "cannot be a function's name"),
        ("track-parcel", "cannot be a function's name"),
        ("track parcel", "cannot be a function's name"),
        ("2_things", "cannot be a function's name"),
        ("_private", "cannot be a function's name"),
        ("two__lines", "cannot be a function's name"),
        ("end_", "cannot be a function's name"),
        ("über", "cannot be a function's name"),
        ("../outside", "cannot be a function's name"),
        ("line\nbreak", "cannot be a function's name"),
        ("x" * 34, "too long: 33 characters at most"),
        ("mcp", "functions/mcp is the endpoint"),
        ("class", "a word of Python's or of the toolkit's"),
        ("str", "a word of Python's or of the toolkit's"),
        ("tool", "a word of Python's or of the toolkit's"),
        ("serve", "a word of Python's or of the toolkit's"),
        ("handler", "a word of Python's or of the toolkit's"),
        ("book_flight", "template.yaml has a BookFlight already"),
        ("stage", "template.yaml has a Stage already"),
        ("http_api", "template.yaml has a HttpApi already"),
        ("may_seal", "template.yaml has a MaySeal already"),
    ],
)
def test_new_reports_an_invalid_name_in_one_line_and_writes_nothing(
    name: str, why: str, project_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(project_dir)
    assert why in error_line(capsys, "new", "tool", name)
    assert contents(project_dir) == before


def test_two_names_with_the_same_resource_id_are_refused(project_dir: Path) -> None:
    new(project_dir, "tool", "part_1")
    with pytest.raises(Problem, match=r"template\.yaml has a Part1 already: choose another name than part1"):
        new(project_dir, "tool", "part1")


@pytest.mark.parametrize("there", ["functions/x/app.py", "tests/functions/test_x.py", "events/x/1-call.json"])
def test_no_file_is_overwritten(there: str, project_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project_dir / there).parent.mkdir(parents=True, exist_ok=True)
    (project_dir / there).write_text("def handler(event, context): ...\n", encoding="utf-8")
    before = contents(project_dir)
    assert error_line(capsys, "new", "tool", "x") == f"{Path(there)} is there already: nothing was written"
    assert contents(project_dir) == before


def test_new_outside_a_project_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    message = error_line(capsys, "new", "tool", "x")
    assert message == "there is no template.yaml: start in the folder of template.yaml and functions/"


def test_new_refuses_a_second_function_in_a_project_without_an_endpoint(
    project_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(project_dir / "functions/mcp")
    assert "there is no functions/mcp/app.py" in error_line(capsys, "new", "tool", "x")


def test_new_refuses_a_project_with_a_function_that_does_not_load(
    project_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project_dir / "functions/book_flight/app.py").write_text("import nothing_of_this_name\n", encoding="utf-8")
    before = contents(project_dir)
    message = "functions/book_flight/app.py does not load: ModuleNotFoundError: No module named 'nothing_of_this_name'"
    assert error_line(capsys, "new", "tool", "x").startswith(message)
    assert contents(project_dir) == before


@pytest.mark.parametrize(
    ("usual", "instead", "by_hand"),
    [
        ("  Mcp:\n", "  Door:\n", None),
        ("Type: AWS::Serverless::Function", "Type: 'AWS::Serverless::Function'", None),
        ("\n  ", "\n    ", "functions/x has no block in template.yaml"),
    ],
)
def test_new_changes_a_template_in_another_notation_correctly_or_not_at_all(
    usual: str, instead: str, by_hand: str | None, project_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (project_dir / "template.yaml").read_text(encoding="utf-8").replace(usual, instead)
    (project_dir / "template.yaml").write_text(text, encoding="utf-8")
    before = contents(project_dir)
    if by_hand is None:
        assert main(["new", "tool", "x"]) == 0
        assert "X" in template.read(project_dir / "template.yaml")["Resources"]
        return
    message = error_line(capsys, "new", "tool", "x")
    assert message.startswith("template.yaml is not as init wrote it, so nothing was written; by hand: ")
    assert by_hand in message
    assert contents(project_dir) == before


# ---- by hand


def test_checks_name_the_missing_parts_of_a_function_added_by_hand(project_dir: Path) -> None:
    app = samples.copied("asking", "by_hand").files["functions/by_hand/app.py"]
    (project_dir / "functions/by_hand").mkdir()
    (project_dir / "functions/by_hand/app.py").write_text(app, encoding="utf-8")
    assert checks.complaints(checks.read(project_dir)) == [
        (
            "functions/by_hand has no block in template.yaml: add ByHand with CodeUri functions/by_hand/ and an event"
            " of type HttpApi"
        ),
        "functions/by_hand offers nothing in functions/mcp/catalog.json: run make catalog",
    ]
    path = project_dir / "template.yaml"
    text = path.read_text(encoding="utf-8")
    copied = text[text.index("  BookFlight:") : text.index("  # ---- What a function that asks")]
    path.write_text(text.replace(copied, copied + copied.replace("BookFlight", "ByHand")), encoding="utf-8")
    project = checks.read(project_dir)
    assert "ByHand must have FunctionName" not in "\n".join(checks.complaints(project))
    copy = copied.replace("BookFlight", "ByHand").replace("book_flight", "by_hand")
    path.write_text(text.replace(copied, copied + copy), encoding="utf-8")
    catalog.write(project_dir / "functions", catalog.generate(project_dir / "functions"))
    assert checks.complaints(checks.read(project_dir)) == []


def test_checks_name_the_statement_that_a_function_with_a_question_needs(project_dir: Path) -> None:
    new(project_dir, "resource", "note")
    app = '''
from pydantic import BaseModel
from mcp_functions import Elicit, resource, serve

class Why(BaseModel):
    why: str

@resource("note://{number}")
def note(number: int, *, elicit: Elicit) -> str:
    """Read a note."""
    return elicit("why", "Why?", Why).why

handler = serve(note)
'''
    (project_dir / "functions/note/app.py").write_text(app, encoding="utf-8")
    (complaint,) = checks.complaints(checks.read(project_dir))
    assert complaint.startswith("functions/note needs MaySeal: add !Ref MaySeal to Policies of Note")
    path, line = project_dir / "template.yaml", "      CodeUri: functions/note/\n"
    replace_text(path, line, f"{line}      Policies: !Ref MaySeal\n")
    (complaint,) = checks.complaints(checks.read(project_dir))
    assert complaint.startswith("Note must have Tags: mcp-function: note, not None, ")
    replace_text(path, line, f"{line}      Tags:\n        mcp-function: note\n")
    assert checks.complaints(checks.read(project_dir)) == []


def test_a_parameter_without_a_value_is_named_with_the_commands_that_give_it_one(
    project_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    replace_text(project_dir / "template.yaml", "\nParameters:\n", "\nParameters:\n  BankUrl: {Type: String}\n")
    (complaint,) = checks.complaints(checks.read(project_dir))
    assert complaint.startswith("template.yaml: the parameter BankUrl has no value, so CloudFormation would")
    assert "mcp-functions set prod BankUrl=..." in complaint
    assert main(["set", "default", "BankUrl=https://bank.example"]) == 0
    assert checks.complaints(checks.read(project_dir)) == []
    assert main(["set", "dev", "BankUrl=https://bank.example"]) == 0
    capsys.readouterr()
    assert main(["doctor"]) == 1
    told = capsys.readouterr().out
    assert "deploy         the parameter BankUrl has no value in prod\n" in told
    assert "  mcp-functions set prod BankUrl=...; or give it a Default in template.yaml\n" in told
    replace_text(project_dir / "template.yaml", "BankUrl: {Type: String}", 'BankUrl: {Type: String, Default: ""}')
    assert checks.complaints(checks.read(project_dir)) == []


def test_checks_ignore_other_resources_of_a_project(project_dir: Path) -> None:
    replace_text(
        project_dir / "template.yaml",
        "  # ---- What a function that asks",
        """\
  Sweeper:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: sweeper/
      Policies: AWSLambdaBasicExecutionRole
  HealthRoute:
    Type: AWS::ApiGatewayV2::Route
    Properties:
      ApiId: !Ref HttpApi
      RouteKey: GET /health
      Target: !Sub integrations/${SweeperIntegration}

  # ---- The key that""",
    )
    assert checks.complaints(checks.read(project_dir)) == []


def test_several_handlers_in_one_lambda_need_no_endpoint_function(project_dir: Path) -> None:
    shutil.rmtree(project_dir / "functions/mcp")
    shutil.move(project_dir / "functions/book_flight", project_dir / "functions/mcp")
    path = project_dir / "template.yaml"
    text = path.read_text(encoding="utf-8")
    block = section(text, "  BookFlight:", "  # ---- What a function that asks")
    invoking = section(text, "        - LambdaInvokePolicy:", "      Events:")
    path.write_text(text.replace(block, "").replace(invoking, ""), encoding="utf-8")
    assert checks.complaints(checks.read(project_dir)) == []


def test_the_checks_name_an_open_route(project_dir: Path) -> None:
    replace_text(
        project_dir / "template.yaml",
        "Path: /mcp/book_flight\n",
        "Path: /mcp/book_flight\n            Auth: {Authorizer: NONE}\n",
    )
    (complaint,) = checks.complaints(checks.read(project_dir))
    assert complaint.startswith("the route ANY /mcp/book_flight of BookFlight must have no Auth of its own")


@pytest.mark.parametrize("text", ["", "Resources: 3\n", "Resources: {\n", "- a\n", "\x00"])
def test_an_invalid_template_is_reported_in_one_line(
    text: str, project_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project_dir / "template.yaml").write_text(text, encoding="utf-8")
    assert error_line(capsys, "new", "tool", "x").startswith("template.yaml is no template: ")


# ---- A new project agrees with this repository


def test_new_writes_the_blocks_of_the_template_of_this_repository() -> None:
    text = (ROOT / "template.yaml").read_text(encoding="utf-8")
    project = checks.read(ROOT)
    for folder, deployed in project.functions.items():
        if folder not in {
            "mcp",
            "pay_invoice",
            *project.tasks,
        }:  # pay_invoice reads a secret, and a worker names its topic
            comment = text.partition(f"\n  {deployed.logical_id}: # ")[2].partition("\n")[0]
            asks = ("MaySeal",) if folder in project.asking else ()
            policies = ("MaySeal", "MayKeep") if folder in project.keeping else asks
            draft = samples.Draft(folder, comment, policies)
            assert blocks.text(draft) in text, f"functions/{folder}"


def test_a_function_is_one_resource_of_at_most_fifteen_lines() -> None:
    for policies in ((), ("MaySeal",), ("MaySeal", "MayKeep")):
        block = blocks.text(samples.Draft("name", "a tool", policies))
        assert len(block.splitlines()) <= 15
        assert list(template.parse(f"Resources:\n{block}")["Resources"]) == ["Name"]


OF_THE_SAMPLES = """\
Parameters:
  BankSecret:
    Type: String
    Default: ""
    Description: >-
      ARN of a secret in Secrets Manager - the token of the bank that pay_invoice calls. Empty - the
      simulated bank of the sample needs none. A secret costs 0.40 USD a month.
Conditions:
  HasBankSecret: !Not [!Equals [!Ref BankSecret, ""]]
Globals:
  Function:
    Layers:
      - !Ref SharedLayer
"""


def derived_template() -> str:
    """Derive this repository's template: that of a project with all additions, and its own functions and layers."""
    ours = (ROOT / "template.yaml").read_text(encoding="utf-8")
    text = (files.HERE / "project/template.yaml.in").read_text(encoding="utf-8")
    for mark, end in (
        ("  # ---- The functions:", "  # ---- What a function that asks"),
        ("  # ---- The layer", "  # ---- What operators"),
    ):
        text = text.replace(section(text, mark, end), section(ours, mark, end))
    text = fragments.insert(text, OF_THE_SAMPLES)
    for name in ("table", *additions.NAMES):
        text = additions.with_addition(text, name)
    return text


def section(text: str, first: str, following: str) -> str:
    start = text.index(first)
    return text[start : text.index(following, start)]


def test_the_template_of_this_repository_is_that_of_a_project_with_all_additions() -> None:
    ours = (ROOT / "template.yaml").read_text(encoding="utf-8")
    assert ours == derived_template(), "a part has changed: python tests/harness/test_scaffold.py"


def test_the_layer_of_a_project_has_the_same_content_as_this_repositorys() -> None:
    ours = (ROOT / "layers/dependencies/requirements.txt").read_text(encoding="utf-8")
    assert (files.HERE / "layer.txt").read_text(encoding="utf-8") == ours


def test_the_layer_of_a_project_is_compiled_like_that_of_this_repository() -> None:
    ours = (ROOT / "layers/Makefile").read_text(encoding="utf-8")
    project_dir = (files.HERE / "project/layers/dependencies/Makefile.in").read_text(encoding="utf-8")
    before = ours[: ours.index(".PHONY: build-DependenciesLayer")]
    assert project_dir.startswith(before)
    assert project_dir.splitlines()[-1] == ours.splitlines()[-1]


@pytest.mark.parametrize("name", ["samconfig.toml", "functions/mcp/app.py"])
def test_other_files_of_a_project_equal_those_of_this_repository(name: str, new_project_dir: Path) -> None:
    ours = (ROOT / name).read_text(encoding="utf-8").replace('"mcp-functions', '"my-server')
    project_dir = (new_project_dir / name).read_text(encoding="utf-8")
    assert project_dir.splitlines()[1:] == ours.splitlines()[1:]


def test_the_tool_of_a_project_is_the_tool_of_the_readme(new_project_dir: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    tool = "\n".join(line for line in re.findall(r"```python\n(.*?)```", readme, re.DOTALL)[0].splitlines() if line)
    project_dir = (new_project_dir / "functions/book_flight/app.py").read_text(encoding="utf-8")
    ours = {line.replace("serve(book_flight)", "serve(book_flight, logger=logger)") for line in tool.splitlines()}
    ours = {line for line in ours if "import" not in line}
    assert ours <= set(project_dir.splitlines())


if __name__ == "__main__":
    (ROOT / "template.yaml").write_text(derived_template(), encoding="utf-8")
