"""Checks the values that a deployment gives: those of the template's parameters, and of the toolkit's variables."""

from collections.abc import Iterator

from mcp_functions.aws.endpoints import CLIENT_VARIABLE
from mcp_functions.oauth.settings import OAuthSettings
from mcp_functions.protocol.errors import Misconfigured
from mcp_functions.settings import Settings, rows
from mcp_functions_harness import samconfig
from mcp_functions_harness.checks.project import Project
from mcp_functions_harness.template import FUNCTION

SETTINGS = {row.variable: row for row in (*rows(Settings).values(), *rows(OAuthSettings).values())}


def functions_know_the_variables_of_the_template(project: Project) -> Iterator[str]:
    """Check that each variable MCP_… is a setting, and that a value which is written in the template is valid."""
    blocks = {"Globals": project.globals, **project.of_type(FUNCTION)}
    for place, block in blocks.items():
        for name, value in block.get("Environment", {}).get("Variables", {}).items():
            if not name.startswith("MCP_") or name == CLIENT_VARIABLE:
                continue
            if name not in SETTINGS:
                yield f"{place} sets {name}, which no function reads: docs/settings.md lists the variables"
            elif isinstance(value, str):
                try:
                    SETTINGS[name].read({name: value})
                except Misconfigured as error:
                    yield f"{place}: {error.reason}"


def every_parameter_has_a_value(project: Project) -> Iterator[str]:
    """Check that a parameter has a Default, or a value in an environment of samconfig.toml.

    An author who has given one knows the parameter: `doctor` names the environments that are still without.
    """
    for name, without in samconfig.without_value(project.root, project.template).items():
        if without == samconfig.environments(project.root / samconfig.FILE):
            nothing = f"the parameter {name} has no value, so CloudFormation would refuse the deployment"
            yield f"template.yaml: {nothing}: {samconfig.remedy(name, without)}"
