"""`init` writes a new project, `new` adds a function to it: folder, block, policy, test, events and catalog.

The files beside this one are templates with @placeholders@: project/ is a whole project without a function, samples/
has functions with their tests and conversations, and block.yaml.in deploys a function.
"""
