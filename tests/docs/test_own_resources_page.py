"""The page on resources of one's own: its files, in a project that `init` writes, run in each place that it names."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from contextlib import closing
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import boto3
import pytest

from mcp_functions_harness import Harness, checks, template
from mcp_functions_harness.command import run as main
from mcp_functions_harness.problems import Problem
from mcp_functions_harness.scaffold import beginning
from tests.docs.pages import FENCED, Page
from tests.support import modes, wire

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PAGE = Page.named("own-resources.md")
BLOCKS = [(kind.partition(" ")[2], text) for kind, text in FENCED.findall(PAGE.text)]
CALLS = {
    "remember": ({"title": "Milk", "text": "Two litres"}, "Kept: Milk."),
    "flight_status": ({"flight": "LH 400"}, "LH 400 is on time (asked with 5 characters of token)."),
    "read_rates": ({"document": '<rate currency="USD">1.1</rate>'}, "1.10 EUR"),
}


def write_project(directory: Path) -> None:
    """Write a project, with the files of the page and with its blocks in the template."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(beginning, "origin", lambda _package: None)  # as if it came from an index
        beginning.init(directory)
    add_page(directory)


def add_page(directory: Path) -> None:
    """Add the page's files to a project, and its blocks to the template."""
    for name, text in BLOCKS:
        if name:
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / name).write_text(text, encoding="utf-8")
    project_of_page: Any = template.read(directory / "template.yaml")
    for kind, text in FENCED.findall(PAGE.text):
        if kind == "yaml":
            block: Any = template.parse(text)
            for section in block.keys() & {"Parameters", "Resources"}:
                project_of_page[section] |= block[section]
    (directory / "template.yaml").write_text(json.dumps(project_of_page), encoding="utf-8")
    assert main(["catalog", "--functions", str(directory / "functions")]) == 0


@pytest.fixture(scope="module")
def project_of_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("own") / "server"
    write_project(directory)
    return directory


def complaints_of(directory: Path) -> list[str]:
    return checks.complaints(checks.read(directory))


@pytest.fixture
def change_template(project_of_page: Path) -> Callable[[str, str], list[str]]:
    """Return what the checks say of the project with other text in one file."""

    def change(name: str, text: str) -> list[str]:
        path = project_of_page / name
        before = path.read_text(encoding="utf-8") if path.exists() else None
        path.write_text(text, encoding="utf-8")
        try:
            return complaints_of(project_of_page)
        finally:
            path.unlink() if before is None else path.write_text(before, encoding="utf-8")

    return change


def test_the_checks_accept_the_resources_of_the_page(project_of_page: Path) -> None:
    assert complaints_of(project_of_page) == []


def test_the_tests_of_the_page_pass(project_of_page: Path) -> None:
    named = [name for name, _ in BLOCKS if name.startswith("tests/")]
    assert len(named) == 4
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *named]
    ran = subprocess.run(command, cwd=project_of_page, capture_output=True, text=True, check=False)  # noqa: S603 - our own words
    assert re.search(r"^4 passed", ran.stdout, re.MULTILINE), ran.stdout + ran.stderr


@pytest.mark.parametrize("runtime", [False, True], ids=["in one process", "under the real runtime"])
def test_the_function_of_the_page_uses_its_table_its_package_and_shared_code(
    runtime: bool,  # noqa: FBT001 - a parameter of the test
    project_of_page: Path,
    tmp_path: Path,
) -> None:
    if runtime:
        modes.skip_without_runtime()
    with Harness(project_of_page / "functions", state_dir=tmp_path, runtime=runtime) as harness:
        for name, (arguments, text) in CALLS.items():
            assert call_of_page(harness.url, name, arguments) == text
        assert boto3.resource("dynamodb").Table("local-Notes").item_count == 1


def call_of_page(url: str, name: str, arguments: dict[str, str]) -> str:
    message = wire.message("tools/call", {"name": name, "arguments": arguments})
    with closing(HTTPConnection(urlsplit(url).netloc, timeout=60)) as connection:
        connection.request("POST", "/mcp", json.dumps(message), wire.headers(message))
        return str(json.loads(connection.getresponse().read())["result"]["content"][0]["text"])


RATES = "functions/read_rates"
APP = dict(BLOCKS)[f"{RATES}/app.py"]
REFUSED_IMPORTS = [
    (f"{RATES}/requirements.txt", "", f"{RATES}/app.py imports xmltodict, which Lambda does not get: add xmltodict to"),
    (f"{RATES}/app.py", f"import pytest\n{APP}", "imports pytest, which Lambda does not get: add pytest to functions/"),
    (
        f"{RATES}/app.py",
        f"def late():\n    import tests.conftest\n{APP}",
        "imports tests, which Lambda does not get: move tests to layers/common/python/",
    ),
    (
        "layers/common/python/money.py",
        f"import requests\n{dict(BLOCKS)['layers/common/python/money.py']}",
        "layers/common/python/money.py imports requests, which Lambda does not get: add requests to functions/read_rat",
    ),
]


@pytest.mark.parametrize(("name", "text", "said"), REFUSED_IMPORTS, ids=[said for _, _, said in REFUSED_IMPORTS])
def test_an_import_that_lambda_would_not_find_is_refused(
    name: str, text: str, said: str, change_template: Callable[[str, str], list[str]]
) -> None:
    (complaint,) = change_template(name, text)
    assert said in complaint


def test_a_relative_import_beside_app_is_refused(
    project_of_page: Path, change_template: Callable[[str, str], list[str]]
) -> None:
    beside = project_of_page / RATES / "prices.py"
    beside.write_text("EURO = 1\n", encoding="utf-8")
    with pytest.raises(Problem, match=r"Lambda loads app\.py without a package \(functions/read_rates/app\.py:1\)"):
        change_template(f"{RATES}/app.py", f"from .prices import EURO\n{APP}")
    (complaint,) = change_template(f"{RATES}/app.py", f"{APP}\n\ndef later():\n    from .prices import EURO\n")
    beside.unlink()
    assert complaint.startswith(f"{RATES}/app.py imports . (relative): Lambda loads it without a package")


@pytest.mark.parametrize(
    "text",
    [
        f"from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pytest\n{APP}",
        f"try:\n    import pytest\nexcept ImportError:\n    pytest = None\n{APP}",
        f"import boto3, botocore, pydantic, aws_lambda_powertools, dateutil\n{APP}",
    ],
    ids=["for a type checker", "that may fail", "of the layer and the runtime"],
)
def test_another_import_is_accepted(text: str, change_template: Callable[[str, str], list[str]]) -> None:
    assert change_template(f"{RATES}/app.py", text) == []


@pytest.mark.parametrize(
    ("resource", "properties"),
    [
        ("ReadRates", {"Layers": []}),
        ("CommonLayer", {"ContentUri": "elsewhere/"}),
    ],
)
def test_a_function_without_the_common_layer_is_refused(
    resource: str,
    properties: dict[str, Any],
    project_of_page: Path,
    change_template: Callable[[str, str], list[str]],
) -> None:
    other = json.loads((project_of_page / "template.yaml").read_text(encoding="utf-8"))
    other["Resources"][resource]["Properties"] |= properties
    message = "python: add !Ref CommonLayer, whose ContentUri is layers/common/, to Layers of ReadRates"
    assert any(message in complaint for complaint in change_template("template.yaml", json.dumps(other)))


def test_a_layer_from_elsewhere_may_ship_any_package(
    project_of_page: Path, change_template: Callable[[str, str], list[str]]
) -> None:
    other = json.loads((project_of_page / "template.yaml").read_text(encoding="utf-8"))
    other["Resources"]["ReadRates"]["Properties"]["Layers"] += ["arn:aws:lambda:eu-west-1:1:layer:Parsers:7"]
    (project_of_page / RATES / "requirements.txt").rename(project_of_page / "kept.txt")
    try:
        assert change_template("template.yaml", json.dumps(other)) == []
    finally:
        (project_of_page / "kept.txt").rename(project_of_page / RATES / "requirements.txt")
