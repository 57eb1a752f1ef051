"""The tables of template.yaml for one test, and the variables by which functions know them.

    def test_a_note_is_kept(tables):
        assert Conversation(handler).call(title="Milk").text == "Kept: Milk."
        assert tables["Notes"].get_item(Key={"title": "Milk"})["Item"]

They are the tables that `serve` makes, in the deployment around the test. Each test finds them empty.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import boto3

from mcp_functions_harness import environment, services
from mcp_functions_harness.lambdas.functions import find
from mcp_functions_harness.runtime.configuration import Template
from mcp_functions_harness.testing.deployment import deployed


@contextmanager
def of_template(root: Path) -> Iterator[Mapping[str, Any]]:
    """Make the tables that template.yaml declares, until the end of the block.

    Args:
        root: the project's folder.

    Yields:
        Each table as boto3's resource `Table`, by its logical id.

    Raises:
        Problem: the template cannot be read.
    """
    directory = root / "functions"
    with ExitStack() as stack:
        if not os.environ.get("MCP_STACK"):  # no deployment is around the test
            stack.enter_context(deployed())
        stack.enter_context(environment.applied(_variables(directory)))
        dynamodb = boto3.resource("dynamodb")
        tables: dict[str, Any] = {}
        for logical_id, parameters in services.author_tables(directory).items():
            tables[logical_id] = dynamodb.create_table(**parameters)
            stack.callback(tables[logical_id].delete)
        yield tables


def _variables(directory: Path) -> dict[str, str | None]:
    """Return the variables that the template gives to functions, those of all functions together."""
    settings = environment.settings(port=80, name="tested", key_arn=os.environ["MCP_KMS_KEYS"])
    template = Template.beside(directory, settings | environment.CREDENTIALS, os.environ)
    if template is None:
        return {}
    of_functions, _missing = template.own_variables(directory, [app.parent.name for app in find(directory)])
    return {name: value for variables in of_functions.values() for name, value in variables.items()}
