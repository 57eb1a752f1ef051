"""`adopt`: makes a function of a server that was written with mcp or fastmcp."""

from collections.abc import Iterator
from pathlib import Path

import click

from mcp_functions_harness.adoption import libraries, requirements, trial, writing
from mcp_functions_harness.adoption.check import Report, check_sources
from mcp_functions_harness.adoption.sources import Sources
from mcp_functions_harness.adoption.trial import Trial
from mcp_functions_harness.problems import Problem

NOT_CARRIED_OVER = "\nNot carried over: notifications that lists or resources changed."
NOT_LOADED = "it cannot be loaded ({}): its options are unknown"
LISTS_NOTHING = "it has no tool, prompt or resource once its file is loaded: register them there, and not in main()"
IS_FUNCTION = "; {} is a function: adopt a file with `server = {}()`"
NEEDS_VARIABLE = "; it reads {0} while it loads: set it for this command, and in template.yaml: Environment: Variables"
TOO_LARGE = (
    "its packages and the toolkit's need {:.0f} MB unzipped, and Lambda takes {:.0f} MB: leave out what it can spare"
)
NOT_INSTALLED = "{}: {} is not installed here: add its package to requirements.txt if the server needs it"
LOCAL = "requirements.txt names a folder of this machine, which the build cannot install: {}"
NOT_SEEN = "Not seen: what these keep for the next call: {}"
TWO_WAYS = (
    "They return InputRequiredResult too, so they are not refused at 2026-07-28: {}. Name them in replay only if a "
    "call is refused"
)


@click.command("adopt")
@click.argument("server", metavar="FILE:VARIABLE")
@click.option("--check", "only_check", is_flag=True, help="Write nothing; exit 1 if there is something to look at.")
@click.option("--into", type=click.Path(path_type=Path), metavar="DIR", help="A project's functions/ folder.")
@click.option("--name", metavar="NAME", help="The name of the function. Default: that of the file.")
def command(server: str, *, only_check: bool, into: Path | None, name: str | None) -> int:
    """Adopt a server that was written with mcp or fastmcp.

    Its files are read, and loaded once, with the packages that requirements.txt will name. A tool that asks runs again
    from its first line after each answer. So each line before a question that has a side effect is named, and each call
    that this command does not know. So is each option of the server that says who may call, and that is not carried
    over as it is. A server that does not load is not written.
    """
    server_file = writing.ServerFile.parse(server)
    sources = Sources(server_file.path)
    too_old = libraries.complaint(sources)
    if too_old:
        if into is not None and not only_check:
            raise Problem(too_old)
        click.echo(too_old)
        return 1
    tried = trial.run(sources, server_file.variable)
    report = check_sources(sources, tried.functions)
    lines = [f"{sources.shown(finding.file)}:{finding}" for finding in report.findings]
    lines += [f"{server_file.path}: {text}" for text in _complaints(sources, tried, server_file.variable)]
    for line in (*lines, *_advice(sources, report, server_file.variable)):
        click.echo(line)
    if into is None or only_check:
        return 1 if lines else 0
    if tried.refused:
        raise Problem("adopt refuses this server: change the options above first")
    if tried.failure or tried.lists_nothing:
        raise Problem(f"{server_file.path} cannot be adopted, so nothing was written: the reason is above")
    click.echo(writing.write(sources, server_file.variable, tried.requirements, into, name))
    click.echo(NOT_CARRIED_OVER)
    return 0


def _complaints(sources: Sources, tried: Trial, variable: str) -> Iterator[str]:
    """Say what the server's options, its loading and its size mean on Lambda."""
    yield from (*tried.refused, *tried.named)
    if tried.is_of_sdk:
        yield f"{libraries.NEEDS}, and this one seems to be of an earlier release ({tried.failure})"
    elif tried.failure:
        text = NOT_LOADED.format(tried.failure)
        if tried.variable:
            text += NEEDS_VARIABLE.format(tried.variable)
        if variable in _functions_of(sources):
            text += IS_FUNCTION.format(variable, variable)
        yield text
    if tried.lists_nothing:
        yield LISTS_NOTHING
    for line in requirements.local_packages(tried.requirements):
        yield LOCAL.format(line)
    size = requirements.size_on_lambda(tried.requirements)
    if size > requirements.MAX_BYTES:
        yield TOO_LARGE.format(size / 1e6, requirements.MAX_BYTES / 1e6)


def _functions_of(sources: Sources) -> set[str]:
    """Return the names of the functions in the server's file."""
    tree = sources.trees[next(iter(sources.files))]
    return {str(getattr(node, "name", "")) for node in tree.body}


def _advice(sources: Sources, report: Report, variable: str) -> Iterator[str]:
    """Say what is not installed, which tools need `replay`, and what the check has not seen."""
    for module, place in sources.missing.items():
        yield NOT_INSTALLED.format(place, module)
    if report.asking:
        tools = ", ".join(f'"{tool}"' for tool in report.asking)
        accepted = f"adopt({variable}, replay=[{tools}])"
        yield f"Refused until you accept that they run again in every round: {accepted}"
    if report.asking_in_two_ways:
        yield TWO_WAYS.format(", ".join(report.asking_in_two_ways))
    if report.unseen:
        yield NOT_SEEN.format(", ".join(report.unseen))
