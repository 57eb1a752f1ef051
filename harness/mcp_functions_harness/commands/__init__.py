"""The commands of `mcp-functions`, with their options. A module is imported only when one of its commands runs."""
