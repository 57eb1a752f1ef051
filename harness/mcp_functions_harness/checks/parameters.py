"""Checks that each parameter of template.yaml has a value, which CloudFormation would find at the deployment."""

from collections.abc import Iterator

from mcp_functions_harness import samconfig
from mcp_functions_harness.checks.project import Project


def every_parameter_has_a_value(project: Project) -> Iterator[str]:
    """Check that a parameter has a Default, or a value in an environment of samconfig.toml.

    An author who has given one knows the parameter: `doctor` names the environments that are still without.
    """
    for name, without in samconfig.without_value(project.root, project.template).items():
        if without == samconfig.environments(project.root / samconfig.FILE):
            nothing = f"the parameter {name} has no value, so CloudFormation would refuse the deployment"
            yield f"template.yaml: {nothing}: {samconfig.remedy(name, without)}"
