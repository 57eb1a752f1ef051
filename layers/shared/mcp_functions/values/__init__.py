"""The values that authors hand over: plain JSON values, types of the protocol, and hints in decorators."""
