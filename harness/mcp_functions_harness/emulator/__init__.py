"""An AWS on this machine that others wrote: MiniStack, with patches for the gaps that a deployment meets.

launcher.py          runs in MiniStack's own environment, and imports nothing else of this package
ministack_patches    one file for each service of MiniStack that is patched
process.py           starts the launcher, and stops it
front.py             a URL for clients that cannot sign: it signs their requests
deployment.py        `sam deploy` into it
"""
