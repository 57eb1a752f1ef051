"""The commands of `mcp-functions`: one module for each, with its options, and imported only when it runs."""
