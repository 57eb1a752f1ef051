"""The commands `new` and `block`: `new` adds a function to a project, `block` prints or writes a function's blocks.

    block     a resource of template.yaml: a function, or its worker
    draft     what the blocks say about their function: the name, the policies, whether it has a worker
    worker    a second Lambda with the code of a function, which continues the function's MCP tasks

Both commands check everything before they write anything, and change template.yaml as text, so that its comments stay.
For example, after the function add has begun to ask its user, `block --write add` adds two lines:

    template.yaml:
      +       Tags:
      +         mcp-function: add
      +       Policies: !Ref MaySeal
"""

import difflib
from dataclasses import replace
from pathlib import Path

from mcp_functions_harness import catalog, checks, template
from mcp_functions_harness.checks import Project, imports
from mcp_functions_harness.checks.iam import KEEP, SEAL
from mcp_functions_harness.lambdas.functions import FRONT_DOOR
from mcp_functions_harness.problems import stop
from mcp_functions_harness.scaffold import blocks, files, samples, spelling
from mcp_functions_harness.scaffold.samples import Draft
from mcp_functions_harness.scaffold.template_editor import TemplateEditor

NEW_FILES = """\
{files}
  template.yaml: {logical_id}, with its route /mcp/{name}
  functions/mcp/catalog.json"""
NEXT = "\n\nWrite what it does in functions/{name}/app.py; then: make catalog test"
UNCHANGED = "template.yaml has what functions/{name} needs"


def new(root: Path, kind: str, name: str) -> str:
    """Add a function to a project.

    Args:
        root: the project's folder.
        kind: one of `samples.KINDS`.
        name: the function's name.

    Returns:
        The text for the terminal.

    Raises:
        Problem: the name is not allowed, a file exists already, or the project has no endpoint.
    """
    spelling.check(name)
    return add(root, samples.copied(kind, name)) + NEXT.format(name=name)


def add(root: Path, draft: Draft) -> str:
    """Write a function's files into a project, its block and the catalog; return the text for the terminal.

    Raises:
        Problem: a file exists already, or the project has no endpoint.
    """
    project = checks.read(root)
    if FRONT_DOOR not in project.folders:
        stop(f"there is no functions/{FRONT_DOOR}/app.py: new adds functions behind an endpoint, as init writes it")
    path = root / template.FILE
    editor = TemplateEditor(template.text(path))
    blocks.append(editor, draft, project)
    blocks.check(draft, project, editor.text)
    files.write(root, draft.files)
    path.write_text(editor.text, encoding="utf-8", newline="\n")
    catalog.write(root / checks.FOLDER, catalog.generate(root / checks.FOLDER))
    names = "\n".join(f"  {file}" for file in draft.files)
    return NEW_FILES.format(files=names, logical_id=draft.logical_id, name=draft.name)


def block_text(root: Path, name: str, kind: str | None) -> str:
    """Return the blocks of a function.

    Args:
        root: the project's folder.
        name: the function's name.
        kind: one of `samples.KINDS`, for a function that is not written yet; None: the function's code decides.

    Raises:
        Problem: there is no such function, or a function does not load.
    """
    if kind:
        spelling.check(name)
        return blocks.text(samples.copied(kind, name))
    return blocks.text(_describe(_read(root), name))


def write_block(root: Path, name: str) -> str:
    """Give a function in template.yaml what it needs, and take away what it no longer needs.

    Args:
        root: the project's folder.
        name: the function's name.

    Returns:
        The text for the terminal: the lines that changed.

    Raises:
        Problem: there is no such function, or the template is not written as `init` writes it.
    """
    project = _read(root)
    draft = _describe(project, name)
    path = root / template.FILE
    old_text = template.text(path)
    editor = TemplateEditor(old_text)
    if name in project.functions:
        worker = project.workers.get(name)
        has_role = "Role" in project.functions[name].properties
        blocks.update(editor, draft, worker_id=worker.logical_id if worker else None, has_role=has_role)
    else:
        blocks.append(editor, draft, project)
    if imports.uses_shared_code(project, name):
        blocks.add_common_layer(editor, draft, project)
    blocks.check(draft, project, editor.text)
    if editor.text == old_text:
        return UNCHANGED.format(name=name)
    path.write_text(editor.text, encoding="utf-8", newline="\n")
    return "\n".join(["template.yaml:", *_changed_lines(old_text, editor.text)])


def _read(root: Path) -> Project:
    """Read a project with a catalog of its functions as they are now."""
    return replace(checks.read(root), catalog=catalog.generate(root / checks.FOLDER))


def _describe(project: Project, name: str) -> Draft:
    """Describe a function of the project, to write its block.

    Raises:
        Problem: there is no such function, or it has no handler.
    """
    if name not in project.folders:
        near = difflib.get_close_matches(name, project.folders, n=1)
        suggestion = f"; did you mean {near[0]}?" if near else ""
        stop(f"there is no functions/{name}/app.py{suggestion}")
    if name not in project.offering:
        stop(f"functions/{name} offers no tool, prompt or resource: init and auth write its block")
    if name in project.tasks:
        return Draft(name, "a task", (SEAL, KEEP), has_worker=True)
    if name in project.keeping:
        return Draft(name, "its rounds run once", (SEAL, KEEP))
    if name in project.asking:
        return Draft(name, "a function that asks", (SEAL,))
    return Draft(name, "a function that never asks", ())


def _changed_lines(before: str, after: str) -> list[str]:
    """List the lines that were added (+) or removed (-)."""
    differences = difflib.ndiff(before.splitlines(), after.splitlines())
    return [f"  {line.rstrip()}" for line in differences if line.startswith(("+ ", "- "))]
