"""What `make test` of a project says about its skills, and about the route of a hidden function."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from mcp_functions_harness import catalog, checks, template
from mcp_functions_harness.checks.project import Project
from mcp_functions_harness.checks.routes import every_function_has_its_route_behind_the_authorizer
from mcp_functions_harness.checks.skills import every_skill_can_be_served
from mcp_functions_harness.problems import Problem

ROOT = Path(__file__).parents[2]
PAYING = """
from mcp_functions import serve, tool

@tool(scopes=["pay"], hide_without_scopes=True)
def pay() -> str:
    return "paid"

handler = serve(pay)
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a project with the sample skill and one hidden function; it has a route of its own."""
    shutil.copytree(ROOT / "skills", tmp_path / "skills")
    shutil.copytree(ROOT / "functions" / "mcp", tmp_path / "functions" / "mcp")
    (tmp_path / "functions" / "pay").mkdir()
    (tmp_path / "functions" / "pay" / "app.py").write_text(PAYING, encoding="utf-8")
    made = catalog.generate(tmp_path / "functions")
    catalog.write(tmp_path / "functions", made)
    event = {"Type": "HttpApi", "Properties": {"ApiId": {"Ref": "HttpApi"}, "Path": "/mcp/pay", "Method": "ANY"}}
    function = {"CodeUri": "functions/pay/", "FunctionName": "x", "Events": {"Mcp": event}}
    written = json.dumps({"Resources": {"Pay": {"Type": "AWS::Serverless::Function", "Properties": function}}})
    return Project(root=tmp_path, template=template.parse(written), catalog=made, offering=frozenset({"pay"}))


def test_the_path_of_a_hidden_function_gives_it_away(project: Project) -> None:
    (complaint,) = every_function_has_its_route_behind_the_authorizer(project)
    assert complaint.startswith("remove the route ANY /mcp/pay of Pay")
    del project.template["Resources"]["Pay"]["Properties"]["Events"]
    assert list(every_function_has_its_route_behind_the_authorizer(project)) == []
    assert project.partial == []


def test_a_skill_that_was_saved_later_than_the_catalog_is_named(project: Project) -> None:
    assert every_skill_can_be_served in checks.CHECKS
    assert list(every_skill_can_be_served(project)) == []
    skill = project.root / "skills" / "work-with-the-samples" / "SKILL.md"
    skill.write_text(skill.read_text(encoding="utf-8") + "\nMore.\n", encoding="utf-8")
    (complaint,) = every_skill_can_be_served(project)
    assert "run make catalog" in complaint
    new = catalog.generate(project.root / "functions")
    assert "~ skills skill://work-with-the-samples/SKILL.md" in catalog.differences(project.catalog, new)


def test_a_wrong_skill_is_named_with_its_line_and_ends_the_command(project: Project) -> None:
    skill = project.root / "skills" / "work-with-the-samples" / "SKILL.md"
    skill.write_text("no frontmatter", encoding="utf-8")
    (complaint,) = every_skill_can_be_served(project)
    assert complaint.startswith("skills/work-with-the-samples/SKILL.md:1: ")
    with pytest.raises(Problem, match=r"SKILL\.md:1: "):
        catalog.generate(project.root / "functions")


def test_without_skills_there_is_no_skills_json(project: Project) -> None:
    shutil.rmtree(project.root / "skills")
    new = catalog.generate(project.root / "functions")
    assert "skills" not in new
    catalog.write(project.root / "functions", new)
    assert not (project.root / "functions" / "mcp" / "skills.json").exists()
