"""`--runtime`: each function is a process of the real `awslambdaric`, behind a Lambda Runtime API on loopback.

    Fleet: the environments of all functions -> Launcher: makes one -> Sandbox: one environment, which Lambda reuses
          -> Process: an operating system's process -> RuntimeApi: gives it events, takes its results

This package does what Lambda does around a process: environment variables, timeout and memory from template.yaml, one
environment for each concurrent request, cold starts, crashes and the log lines around an invocation. The interpreter is
the harness's own, not the template's, and there are no containers.
"""
