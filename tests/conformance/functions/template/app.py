"""A family of resources, named by a template."""

from mcp_functions import resource, serve


@resource("test://template/{id}/data", mime_type="application/json")
def template(id: str) -> dict[str, object]:  # noqa: A002 - the variable in the suite's template
    """Read the data of an id."""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


handler = serve(template)
