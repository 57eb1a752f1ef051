"""The form of the lines that `open` writes."""

from __future__ import annotations

from datetime import datetime

UNITS = ((86_400, "days"), (3600, "h"), (60, "min"), (1, "s"))  # seconds of a unit, longest first


def line(label: str, text: str) -> str:
    """Return a line that begins with a label."""
    return f"{label:<13} {text}"


def when(time: float, now: float) -> str:
    """Return a time in the user's time zone, and its distance from now."""
    seconds = abs(time - now)
    fitting = [(length, unit) for length, unit in UNITS if seconds >= length]
    length, unit = fitting[0] if fitting else UNITS[-1]
    distance = f"{seconds / length:.0f} {unit}"
    relative = f"in {distance}" if time > now else f"{distance} ago"
    local = datetime.fromtimestamp(time).astimezone()
    return f"{local:%Y-%m-%d %H:%M:%S %Z}, {relative}"
