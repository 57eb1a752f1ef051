"""`mcp-functions add NAME` writes into template.yaml what a first project does not have.

    alarms      metric filters and alarms for the topic AlarmTopic
    table       the table of tasks, of rounds that run once, and of questions to clients of 2025
    bucket      storage for data that is too large for an item of the table
    budget      a message when a month becomes expensive
    dashboard   the metrics in one picture
    stops       names of callers in the log; parameters that stop a caller or a function

Each is a fragment of a template in additions/; what a name needs beside it is written too.
"""

import difflib
from dataclasses import replace
from pathlib import Path

from mcp_functions_harness import checks, fragments, template
from mcp_functions_harness.checks import Project
from mcp_functions_harness.problems import Problem
from mcp_functions_harness.scaffold import files

NAMES = ("alarms", "table", "bucket", "budget", "dashboard", "stops")
NEEDED = {"alarms": ("topic",), "budget": ("topic",), "dashboard": ("topic", "alarms"), "bucket": ("table",)}
ALARMS = "HasAlarms"  # the condition of template.yaml that the alarms have
UNCHANGED = "template.yaml has all of it"
NOTES = {  # what an author has to do or to know
    "alarms": "Set their topic: mcp-functions set prod AlarmTopic=arn:aws:sns:…",
    "table": "If this stack had another table before: single-use conversations that began there have to start again.",
    "bucket": "Set what it is: mcp-functions set prod BlobBucket=new",
    "budget": "Set it: mcp-functions set prod AlarmTopic=arn:aws:sns:… MonthlyBudget=50",
    "dashboard": "It is deployed where AlarmTopic is set.",
    "stops": "Turn the names of callers on before you need them: mcp-functions set prod LogCallers=on",
}


def add(root: Path, name: str) -> str:
    """Write an addition, one of `NAMES`, into template.yaml; return the text for the terminal, with the new lines.

    Raises:
        Problem: there is no template, or a check would complain afterwards.
    """
    path = root / template.FILE
    old_text = template.text(path)
    new_text = with_addition(old_text, name)
    if new_text == old_text:
        return UNCHANGED
    _check(checks.read(root), new_text)
    path.write_text(new_text, encoding="utf-8", newline="\n")
    added = [line[2:] for line in difflib.ndiff(old_text.splitlines(), new_text.splitlines()) if line.startswith("+ ")]
    entries = [line.strip().partition(":")[0] for line in added if line.startswith("  ") and line[2:3].isalpha()]
    count = f"template.yaml has {len(added)} lines more: {', '.join(dict.fromkeys(entries))}"
    return f"{count}\n{NOTES[name]}\nDeploy it: sam build && sam deploy"


def with_addition(text: str, name: str) -> str:
    """Return the text of a template with an addition, and with what it needs."""
    for part in (*NEEDED.get(name, ()), name):
        text = fragments.insert(text, files.template(f"additions/{part}.yaml", {}))
    return with_worker_alarms(text) if name in ("alarms", "dashboard") else text


def with_worker_alarms(text: str) -> str:
    """Give each worker its alarm, if the template has alarms."""
    parsed = template.parse(text)
    if ALARMS not in parsed["Conditions"] or "EndedAlarm" not in parsed["Resources"]:
        return text
    for worker in Project(Path(), parsed).workers.values():
        if worker.logical_id.endswith("Worker"):
            text = fragments.insert(text, worker_alarm(worker.logical_id.removesuffix("Worker")))
    return text


def worker_alarm(function_id: str) -> str:
    """Return the fragment with the alarm of a worker."""
    return "Resources:\n" + files.template("worker_alarm.yaml", {"id": function_id})


def _check(project: Project, new_text: str) -> None:
    """Refuse a text about which the checks complain more than about the present one."""
    before = checks.complaints(project)
    after = checks.complaints(replace(project, template=template.parse(new_text)))
    for line in after:
        if line not in before:
            raise Problem(f"template.yaml is not as init wrote it, so nothing was written: {line}")
