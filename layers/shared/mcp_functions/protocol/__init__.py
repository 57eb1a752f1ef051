"""JSON-RPC and the shapes, constants, errors and values of the specification."""
