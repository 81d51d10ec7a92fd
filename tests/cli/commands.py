"""Run the command in this process, or as a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import Any

from typer.testing import CliRunner, Result

from wireformat.cli.main import app


def run(*arguments: object, stdin: bytes = b"") -> Result:
    """Run `wireformat` with these arguments; an exception that no command should let out is raised here."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], stdin, prog_name="wireformat")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def start(*arguments: object, **options: Any) -> subprocess.Popen[bytes]:
    """Start `wireformat` as a process, with pipes. Ctrl-C ends it, also where a shell started the tests with `&`."""
    command = [sys.executable, "-m", "wireformat.cli", *map(str, arguments)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    ended = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    return subprocess.Popen(command, **(pipes | ended | options))
