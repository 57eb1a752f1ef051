"""Starts MiniStack with the patches: `python launcher.py`, or `python launcher.py --list`.

The interpreter is the one of the environment that has MiniStack. It is also the interpreter of the functions, so it
has the Python of their layers. The settings are MiniStack's own environment variables; `process.py` sets them.
"""

import sys

import names  # type: ignore[import-not-found] # noqa: F401 - both are in the folder of this script
from ministack_patches import PATCHES, VERSION  # type: ignore[import-not-found]


def main(arguments: list[str]) -> int:
    """Apply the patches, and serve until a signal. Return the exit code if something is not as expected."""
    if "--list" in arguments:
        for patch in PATCHES:
            sys.stdout.write(f"{patch.name:<20} {patch.gap}\n")
        return 0
    changed = [f"  {patch.name}: {problem}" for patch in PATCHES for problem in patch.problems()]
    if changed:
        lines = "\n".join(changed)
        sys.stderr.write(f"this MiniStack is not {VERSION}, and these patches do not fit it:\n{lines}\n")
        return 2
    for patch in PATCHES:
        patch.apply()
    from ministack.app import main as serve  # after the patches

    sys.argv[1:] = []
    serve()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
