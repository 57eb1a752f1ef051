"""Tool, Prompt, Resource: an author's function, its description, and how a request calls it.

The signature is the contract. The parameters before `*` are what the client sends, and they become the schema. The
parameters after `*` are what the function may do: a handler without `elicit` can never ask, which the permissions of
its Lambda show. A decorated function can still be called directly. Each kind of handler has its own module, so a tool
does not load what prompts and resources need.
"""
