"""Calls that outlive their request: the extension `io.modelcontextprotocol/tasks`, on one table.

A task runs the same handler as every call, in rounds: each round is one Lambda invocation, which replays the handler
with the answers and steps that the task's record holds. The record is kept in an item of the table, where other calls
send it to the client. docs/tasks.md describes the states, the item and the lease.

    task_requests      what a front door needs of this room
    methods, worker    what answers requests, and what runs the rounds; `assembly` wires them
"""
