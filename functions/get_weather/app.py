"""SEP-2322's first example: a tool that needs the user's name."""

from typing import TypedDict

from mcp_functions import Elicit, serve, tool


class GitHubLogin(TypedDict):
    name: str


@tool
def get_weather(location: str, *, elicit: Elicit) -> str:
    """Tell the current weather at a place."""
    elicit("github_login", "Please provide your GitHub username", GitHubLogin)
    return f"Current weather in {location}:\nTemperature: 72°F\nConditions: Partly cloudy"


handler = serve(get_weather)
