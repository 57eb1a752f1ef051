"""Runs one contender in another process: `python -c "import drive; drive.cold()" module function argument`.

The figures exclude the work of Lambda's runtime around a handler. Events and responses are values that marshal passes,
because marshal is part of the interpreter and costs no import. This module imports nothing else for the same reason.
"""

import marshal
import os
import sys
import time

EVENT, OUT, REPLY = 0, 1, 3  # file descriptors
HIGH_WATER = b"VmHWM:"


class Context:
    """Lambda's context object."""

    aws_request_id = "8f5a1c1e-6d0c-4b6b-9a64-0d6c7b1f3a52"
    memory_limit_in_mb = 512
    log_group_name = log_stream_name = "bench"

    def __init__(self, name):
        self.function_name = name
        self.function_version = "$LATEST"
        self.invoked_function_arn = "arn:aws:lambda:us-east-1:123456789012:function:" + name

    def get_remaining_time_in_millis(self):
        return 28000


def made():
    """Import what the command line names, and make its handler."""
    module, function, argument = sys.argv[1:4]
    make = getattr(__import__(module), function)
    return make(int(argument)) if argument else make()


def cold():
    """Answer one event, and write what it took to the reply's descriptor."""
    event, name = marshal.loads(os.read(EVENT, 1 << 26))
    response = made()(event, Context(name))
    ended, cpu = time.clock_gettime_ns(time.CLOCK_MONOTONIC), time.process_time_ns()
    _write((response, ended, cpu, high_water(), len(sys.modules)))
    os._exit(0)  # the end of the interpreter is not part of a response


def nothing():
    """Be an interpreter that answers nothing: the floor of floors."""
    for name in filter(None, sys.argv[1].split(",")):
        __import__(name)
    ended, cpu = time.clock_gettime_ns(time.CLOCK_MONOTONIC), time.process_time_ns()
    _write((None, ended, cpu, high_water(), len(sys.modules)))
    os._exit(0)


def high_water():
    """Say how many KB of memory this process ever had; 0 where there is no /proc."""
    try:
        with open("/proc/self/status", "rb") as status:
            return int(status.read().partition(HIGH_WATER)[2].split()[0])
    except OSError:
        return 0


def warm():
    """Answer commands until there are no more: once, or so many times, or what it has used."""
    commands, replies = os.fdopen(os.dup(EVENT), "rb"), os.fdopen(REPLY, "wb")
    handler = made()
    while True:
        try:
            command = marshal.load(commands)
        except EOFError:
            os._exit(0)
        marshal.dump(_obeyed(handler, *command), replies)
        replies.flush()


def _obeyed(handler, what, *given):
    if what == "once":
        event, name = given
        return handler(event, Context(name))
    if what == "cpu":
        return time.process_time_ns()
    if what == "size":
        return high_water(), len(sys.modules)
    if what == "profile":
        return _profiled(handler, *given)
    event, name, times = given
    context, turns = Context(name), range(times)
    began, cpu = time.perf_counter_ns(), time.process_time_ns()
    for _ in turns:
        handler(event, context)
    return time.perf_counter_ns() - began, time.process_time_ns() - cpu


def _profiled(handler, event, name, times, file):
    import cProfile

    context, turns, profile = Context(name), range(times), cProfile.Profile()
    profile.enable()
    for _ in turns:
        handler(event, context)
    profile.disable()
    profile.dump_stats(file)


def _write(value):
    data = marshal.dumps(value)
    while data:
        data = data[os.write(REPLY, data) :]
