"""What authors hand over: values that JSON can carry, the protocol's own types, and hints in decorators."""
