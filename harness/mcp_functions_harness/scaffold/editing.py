"""The commands `new`, `block` and `remove`: a function of a project, from its first file to its last.

    block     a resource of template.yaml: a function, or its worker
    draft     what the blocks say about their function: the name, the policies, whether it has a worker
    worker    a second Lambda with the code of a function, which continues the function's MCP tasks

All three check everything before they write anything, and change template.yaml as text, so that its comments stay.
"""

import difflib
import re
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from mcp_functions_harness import catalog, checks, template
from mcp_functions_harness.checks import Project, imports
from mcp_functions_harness.checks.iam import KEEP, SEAL
from mcp_functions_harness.lambdas.functions import FRONT_DOOR, SIGN_IN, find
from mcp_functions_harness.problems import Problem
from mcp_functions_harness.scaffold import blocks, files, samples, spelling
from mcp_functions_harness.scaffold.samples import Draft
from mcp_functions_harness.scaffold.template_editor import TemplateEditor

NEW_FILES = """\
{files}
  template.yaml: {logical_id}, with its route /mcp/{name}
  functions/mcp/catalog.json"""
NEXT = "\n\nWrite what it does in functions/{name}/app.py; then: make catalog test"
UNCHANGED = "template.yaml has what {folders} needs"


def new(root: Path, kind: str, name: str) -> str:
    """Add a function of a kind, one of `samples.KINDS`, to a project; return the text for the terminal.

    Raises:
        Problem: the name is not allowed, a file exists already, or the project has no endpoint.
    """
    spelling.check(name)
    return add(root, samples.copied(kind, name)) + NEXT.format(name=name)


def add(root: Path, draft: Draft) -> str:
    """Write a function's files into a project, its block and the catalog; return the text for the terminal.

    Raises:
        Problem: a file exists already, the project has no endpoint, or a function does not load. Nothing is written.
    """
    project = checks.read(root)
    if FRONT_DOOR not in project.folders:
        missing = f"there is no functions/{FRONT_DOOR}/app.py"
        raise Problem(f"{missing}: new adds functions behind an endpoint, as init writes it")
    path = root / template.FILE
    editor = TemplateEditor(template.text(path))
    blocks.append(editor, draft, project)
    blocks.check(draft, project, editor.text)
    files.write(root, draft.files, draft.copies)
    try:
        catalog.refresh(root / checks.FOLDER)
        path.write_text(editor.text, encoding="utf-8", newline="\n")
    except BaseException:
        files.take_back(root, [*draft.copies, *draft.files])
        raise
    names = "\n".join(f"  {file}" for file in [*draft.copies, *draft.files])
    return NEW_FILES.format(files=names, logical_id=draft.logical_id, name=draft.name)


def block_text(root: Path, name: str, kind: str | None) -> str:
    """Return the blocks of a function: by its kind if it is not written yet, else by its code.

    Raises:
        Problem: there is no such function, or a function does not load.
    """
    if kind:
        spelling.check(name)
        return blocks.text(samples.copied(kind, name))
    project = _read(root)
    draft = _describe(project, name)
    editor = _edited(project, draft)
    edited = replace(project, template=template.parse(editor.text))
    new_layers = edited.of_type(imports.LAYER).keys() - project.of_type(imports.LAYER).keys()
    logical_ids = [block.logical_id for block in edited.blocks if block.folder == name]
    return "\n".join(editor.resource_text(logical_id) for logical_id in [*sorted(new_layers), *logical_ids])


def write_blocks(root: Path, names: Sequence[str]) -> str:
    """Give functions (all, without names) in template.yaml what they need, and take away what they no longer need.

    Returns:
        The text for the terminal: the lines that changed.

    Raises:
        Problem: there is no such function, or the template is not written as `init` writes it. Nothing is written.
    """
    project = _read(root)
    path = root / template.FILE
    old_text = new_text = template.text(path)
    chosen = names or sorted(project.offering)
    for name in chosen:
        draft = _describe(project, name)
        new_text = _edited(project, draft, new_text).text
        blocks.check(draft, project, new_text)
        project = replace(project, template=template.parse(new_text))
    if new_text == old_text:
        return UNCHANGED.format(folders=" and ".join(f"{checks.FOLDER}/{name}" for name in chosen))
    path.write_text(new_text, encoding="utf-8", newline="\n")
    return "\n".join(["template.yaml:", *_changed_lines(old_text, new_text)])


def _edited(project: Project, draft: Draft, text: str | None = None) -> TemplateEditor:
    """Edit the template's text (the file's, if left out) so that it has what a function needs."""
    editor = TemplateEditor(template.text(project.root / template.FILE) if text is None else text)
    if draft.name in project.functions:
        worker = project.workers.get(draft.name)
        has_role = "Role" in project.functions[draft.name].properties
        blocks.update(editor, draft, worker_id=worker.logical_id if worker else None, has_role=has_role)
    elif partial := next((block for block in project.partial if block.folder == draft.name), None):
        blocks.complete(editor, draft, partial, project.missing_properties(partial))
    else:
        blocks.append(editor, draft, project)
    if imports.uses_shared_code(project, draft.name):
        blocks.add_common_layer(editor, draft, project)
    return editor


def remove(root: Path, name: str) -> str:
    """Remove a function: its folder, test, events, blocks and entries in the catalog. Return the text for the terminal.

    The function need not load. Nothing is removed while another part of the template names one of its blocks.

    Raises:
        Problem: there is no such function, or it is the endpoint or the sign-in front.
    """
    if name in (FRONT_DOOR, SIGN_IN):
        taken_by = "another mode of mcp-functions auth takes the sign-in away"
        raise Problem(f"functions/{name} belongs to the server; {taken_by}")
    project = Project(root.resolve(), template.read(root / template.FILE))
    paths = [Path(checks.FOLDER, name), Path(f"tests/functions/test_{name}.py"), Path("events", name)]
    present = [path for path in paths if (root / path).exists()]
    blocks_of_function = [block for block in (*project.blocks, *project.partial) if block.folder == name]
    if paths[0] not in present and not blocks_of_function:
        raise _missing(f"functions/{name}", name, [path.parent.name for path in find(root / checks.FOLDER)])
    text = _without(project, name, [block.logical_id for block in blocks_of_function])
    (root / template.FILE).write_text(text, encoding="utf-8", newline="\n")
    for path in present:
        shutil.rmtree(root / path) if (root / path).is_dir() else (root / path).unlink()
    lines = [f"  {path}" for path in present]
    lines += [f"  template.yaml: {block.logical_id}" for block in blocks_of_function]
    try:
        catalog.refresh(root / checks.FOLDER)
    except Problem as problem:  # of another function
        lines.append(f"The catalog still lists it, because {problem}. Then: make catalog")
    return "\n".join(["removed:", *lines])


def _without(project: Project, name: str, logical_ids: list[str]) -> str:
    """Return the template's text without the blocks of a function, which nothing else in it may name."""
    editor = TemplateEditor(template.text(project.root / template.FILE))
    worker = project.workers.get(name)
    blocks.update(editor, Draft(name, "", ()), worker_id=worker.logical_id if worker else None)
    for logical_id in logical_ids:
        if worker is None or logical_id != worker.logical_id:
            editor.remove(logical_id)
    for number, line in enumerate(editor.text.splitlines(), start=1):
        for logical_id in logical_ids:
            if re.search(rf"\b{logical_id}\b", line.partition("#")[0]):
                where = f"template.yaml; remove that first: {line.strip()} (line {number})"
                raise Problem(f"{logical_id} is named elsewhere in {where}")
    return editor.text


def _missing(what: str, name: str, names: Iterable[str]) -> Problem:
    """Say that something is missing, and which name its user may have meant."""
    near = difflib.get_close_matches(name, [*names], n=1)
    return Problem(f"there is no {what}{f'; did you mean {near[0]}?' if near else ''}")


def _read(root: Path) -> Project:
    """Read a project with a catalog of its functions as they are now."""
    return replace(checks.read(root), catalog=catalog.generate(root / checks.FOLDER))


def _describe(project: Project, name: str) -> Draft:
    """Describe a function of the project, to write its block."""
    if name not in project.folders:
        raise _missing(f"functions/{name}/app.py", name, project.folders)
    if name not in project.offering:
        raise Problem(f"functions/{name} offers no tool, prompt or resource: init and auth write its block")
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
