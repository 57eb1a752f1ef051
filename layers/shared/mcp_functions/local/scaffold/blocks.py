"""Puts a function's block into template.yaml as text, after the last block, so that the rest does not change.

A block is the resources that deploy one function. Before a file is written, the project's own checks read the new
template. If they complain about more than before, nothing is written.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mcp_functions.local import checks, template
from mcp_functions.local.checks.iam import KEEP, SEAL
from mcp_functions.local.checks.imports import a_function_finds_on_lambda_what_it_imports
from mcp_functions.local.lambdas.modules import COMMON
from mcp_functions.local.problems import stop
from mcp_functions.local.scaffold import files
from mcp_functions.local.scaffold.template_editor import TemplateEditor, policies_property, tag_property

if TYPE_CHECKING:
    from mcp_functions.local.checks import Project
    from mcp_functions.local.scaffold.samples import Draft

# these read catalog.json and the code of functions, which the commands have not written yet
CHECKS_OF_OTHER_FILES = (checks.routes.every_folder_is_listed, a_function_finds_on_lambda_what_it_imports)
CHECKS_OF_BLOCKS = [check for check in checks.CHECKS if check not in CHECKS_OF_OTHER_FILES]
BY_HAND = "template.yaml is not as init wrote it, so nothing was written; by hand: {}"


def block(draft: Draft) -> str:
    """Return the resources that deploy a function: the function with its route, and its worker if it has one."""
    access = ""
    if draft.policies:
        access = tag_property(draft.name) + policies_property(draft.policies)
    values = {"name": draft.name, "id": draft.logical_id, "comment": draft.comment, "access": access}
    text = files.template("block.yaml", values)
    if draft.has_worker:
        text += worker(draft)
    return text


def worker(draft: Draft) -> str:
    """Return the resource that continues a function's tasks."""
    return files.template("worker.yaml", {"name": draft.name, "id": draft.logical_id})


def with_block_added(text: str, draft: Draft, project: Project) -> str:
    """Return the text of a template with the block of a new function.

    Args:
        text: the text of template.yaml.
        draft: the function.
        project: the project without the function.

    Raises:
        Problem: the template has one of its names already, or is not written as `init` writes it.
    """
    editor = TemplateEditor(text)
    append(editor, draft, project)
    check(draft, project, with_template(_with_function(project, draft), editor.text))
    return editor.text


def append(editor: TemplateEditor, draft: Draft, project: Project) -> None:
    """Insert the block of a function after the last one.

    Raises:
        Problem: the template has one of its names already.
    """
    names = project.template["Resources"].keys() | project.template.get("Parameters", {}).keys()
    for logical_id in (draft.logical_id, f"{draft.logical_id}Worker"):
        if logical_id in names:
            stop(f"template.yaml has a {logical_id} already: choose another name than {draft.name}")
    editor.append_function(block(draft))


def with_template(project: Project, text: str) -> Project:
    """Return a project with another template.

    Raises:
        Problem: the text is no template.
    """
    try:
        return replace(project, template=template.parse(text))
    except ValueError as error:
        stop(BY_HAND.format(str(error)), after=error)


def check(draft: Draft, before: Project, after: Project) -> None:
    """Refuse a new template where the checks complain about the function, or about more than before.

    Raises:
        Problem: the template is not written as `init` writes it, so a change by hand is needed.
    """
    folder = f"functions/{draft.name}"
    names_of_function = (f"{folder} ", f"{folder}/", f"{draft.logical_id} ", f"{draft.logical_id}Worker ")
    complaints_before = _complaints(before)
    for line in _complaints(after):
        is_new = line not in complaints_before
        if is_new or line.startswith(names_of_function):
            stop(BY_HAND.format(line))


def _with_function(project: Project, draft: Draft) -> Project:
    """Return the project with a function that is not written yet."""
    name = frozenset({draft.name})
    catalog = project.catalog
    if draft.has_worker:
        catalog = {**catalog, "tasks": sorted(project.tasks | name)}
    asking = project.asking | name if SEAL in draft.policies else project.asking
    keeping = project.keeping | name if KEEP in draft.policies else project.keeping
    return replace(project, folders=project.folders | name, asking=asking, keeping=keeping, catalog=catalog)


def _complaints(project: Project) -> list[str]:
    """List the complaints that concern template.yaml."""
    complaints = [line for check_block in CHECKS_OF_BLOCKS for line in check_block(project)]
    of_imports = a_function_finds_on_lambda_what_it_imports(project)
    # Of these, some say that the template lacks the layer of shared code. The others concern the code.
    return complaints + [line for line in of_imports if f" of {COMMON}: " in line]
