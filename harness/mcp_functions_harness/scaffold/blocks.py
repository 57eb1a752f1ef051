"""The blocks of a function in template.yaml: its own resource, and that of its worker if it has one.

Before a file is written, the project's own checks read the new template. If they complain about more than before,
nothing is written.
"""

from collections.abc import Sequence
from dataclasses import replace

from mcp_functions_harness import checks, fragments, template
from mcp_functions_harness.checks import Project, imports
from mcp_functions_harness.checks.iam import KEEP, SEAL
from mcp_functions_harness.checks.project import Block
from mcp_functions_harness.lambdas.modules import COMMON
from mcp_functions_harness.problems import Problem
from mcp_functions_harness.scaffold import additions, files
from mcp_functions_harness.scaffold.samples import Draft
from mcp_functions_harness.scaffold.template_editor import TemplateEditor

DEPENDENCIES_LAYER = "DependenciesLayer"  # the layer after which it is written
RESOURCES = "Resources:\n"
# These read catalog.json and the code of functions, which the commands have not written yet.
CHECKS_OF_OTHER_FILES = (checks.routes.every_folder_is_listed, imports.a_function_finds_on_lambda_what_it_imports)
BY_HAND = "template.yaml is not as init wrote it, so nothing was written; by hand: {}"


def text(draft: Draft) -> str:
    """Return the blocks of a function."""
    values = {"name": draft.name, "id": draft.logical_id, "comment": draft.comment}
    editor = TemplateEditor(RESOURCES + files.template("block.yaml", values))
    update(editor, draft, worker_id=None)
    return editor.text.removeprefix(RESOURCES)


def append(editor: TemplateEditor, draft: Draft, project: Project) -> None:
    """Insert the blocks of a function after the last one.

    Raises:
        Problem: the template has one of its names already.
    """
    names = project.template["Resources"].keys() | project.template["Parameters"].keys()
    for logical_id in (draft.logical_id, f"{draft.logical_id}Worker"):
        if logical_id in names:
            raise Problem(f"template.yaml has a {logical_id} already: choose another name than {draft.name}")
    editor.append_function(text(draft))
    editor.text = additions.with_worker_alarms(editor.text)


def complete(editor: TemplateEditor, draft: Draft, block: Block, missing: Sequence[str]) -> None:
    """Give a block that was copied only in part the properties that it lacks; what the author wrote stays."""
    whole = TemplateEditor(RESOURCES + text(draft))
    for name in missing:
        editor.insert_property(block.logical_id, whole.property_text(draft.logical_id, name))


def update(editor: TemplateEditor, draft: Draft, worker_id: str | None, *, has_role: bool = False) -> None:
    """Give a function the tag, the policies and the worker that it needs, and take away what it does not need.

    The function may have a worker now, by its logical id, or a Role of its own.
    """
    function_id = draft.logical_id
    if not has_role:  # SAM ignores both beside a Role; the checks read the role
        editor.set_tag(function_id, draft.name, needed=bool(draft.policies))
        editor.set_policies(function_id, draft.policies)
    if draft.has_worker and worker_id is None:
        editor.insert_after(function_id, files.template("worker.yaml", {"name": draft.name, "id": function_id}))
        editor.copy_property("Environment", function_id, f"{function_id}Worker")
        editor.text = additions.with_worker_alarms(editor.text)
    elif worker_id is not None and not draft.has_worker:
        editor.remove(worker_id)
        editor.text = fragments.remove(editor.text, additions.worker_alarm(function_id))


def add_common_layer(editor: TemplateEditor, draft: Draft, project: Project) -> None:
    """Add the layer of the code that functions share, and give it to the blocks of a function."""
    edited = replace(project, template=_parse(editor.text))
    layer = imports.common_layer(edited)
    if not layer:
        layer = imports.COMMON_LAYER
        if layer in edited.template["Resources"]:
            raise Problem(BY_HAND.format(f"{layer} must have the ContentUri {COMMON.parent}/"))
        editor.insert_after(DEPENDENCIES_LAYER, files.template("common_layer.yaml", {}))
    for block in edited.blocks:
        if block.folder == draft.name and not imports.has_layer(edited, block, layer):
            editor.add_layer(block.logical_id, layer)


def check(draft: Draft, project: Project, new_text: str) -> None:
    """Refuse a new template where the checks complain about the function, or about more than before.

    Raises:
        Problem: the template is not written as `init` writes it, so a change by hand is needed.
    """
    name = frozenset({draft.name})
    after = replace(
        project,
        template=_parse(new_text),
        folders=project.folders | name,
        offering=project.offering | name,
        asking=project.asking | name if SEAL in draft.policies else project.asking,
        keeping=project.keeping | name if KEEP in draft.policies else project.keeping,
        catalog={**project.catalog, "tasks": sorted(project.tasks | name if draft.has_worker else project.tasks)},
    )
    folder = f"functions/{draft.name}"
    names_of_function = (f"{folder} ", f"{folder}/", f"{draft.logical_id} ", f"{draft.logical_id}Worker ")
    complaints_before = _complaints(project)
    for line in _complaints(after):
        if line not in complaints_before or line.startswith(names_of_function):
            raise Problem(BY_HAND.format(line))


def _parse(text: str) -> template.Template:
    try:
        return template.parse(text)
    except ValueError as error:
        raise Problem(BY_HAND.format(error)) from error


def _complaints(project: Project) -> list[str]:
    """List the complaints that concern template.yaml."""
    check_functions = [check for check in checks.CHECKS if check not in CHECKS_OF_OTHER_FILES]
    complaints = [line for check_function in check_functions for line in check_function(project)]
    of_imports = imports.a_function_finds_on_lambda_what_it_imports(project)
    # Of these, some say that the template lacks the layer of shared code. The others concern the code.
    return complaints + [line for line in of_imports if f" of {COMMON}: " in line]
