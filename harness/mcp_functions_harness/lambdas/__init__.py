"""Lambda on this machine: it loads the functions of a project, calls them and records each invocation."""
