"""The terminal of `serve`: coloured lines, and a progress bar for each function that reports its progress."""

import contextlib
from threading import Lock
from typing import TextIO

from rich.console import Console
from rich.progress import Progress, TaskID
from rich.style import StyleType
from rich.text import Text

from mcp_functions.local.terminal.log_lines import shown_text

# styles of `rich`
FAILED = "red"
FOLDER = "cyan"


class Screen:
    """Writes to a terminal, or to a file or a pipe without colours."""

    def __init__(self, out: TextIO) -> None:
        """Write to `out`."""
        self._console = Console(file=out, highlight=False, markup=False, emoji=False, soft_wrap=True)
        self._progress = Progress(console=self._console, transient=True, redirect_stdout=False, redirect_stderr=False)
        self._bars: dict[str, TaskID] = {}  # the progress bars by function
        self._lock = Lock()  # guards _bars; functions report from several threads

    def write(self, text: str, style: StyleType = "") -> None:
        """Write a line of the harness."""
        self._print(Text(text, style))

    def write_log(self, folder: str, line: str, style: StyleType = "") -> None:
        """Write a log line of a function, after the function's name; `shown_text` may skip the line."""
        text = shown_text(line)
        if text is not None:
            self._print(Text.assemble((f"  {folder}", FOLDER), "  ", (text, style)))

    def show_progress(self, folder: str, done: float, total: float | None) -> None:
        """Move the bar of a function, or add it. A file or a pipe shows no bars."""
        if not self._console.is_terminal:
            return
        with self._lock:
            if folder not in self._bars:
                self._progress.start()
                self._bars[folder] = self._progress.add_task(folder)
            self._progress.update(self._bars[folder], completed=done, total=total)

    def remove_progress(self, folder: str) -> None:
        """Remove the bar of a function, because its call has ended."""
        with self._lock:
            if folder not in self._bars:
                return
            self._progress.remove_task(self._bars.pop(folder))
            if not self._bars:
                self._progress.stop()

    def _print(self, text: Text) -> None:
        # The reader of a pipe may have ended (OSError), or the file is closed (ValueError). Functions go on.
        with contextlib.suppress(OSError, ValueError):
            self._console.print(text)
