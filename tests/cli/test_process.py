"""The command as a process: what is loaded, a closed pipe, Ctrl-C, and input that is shown as it flows."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from time import sleep

import pyarrow.parquet as pq
import pytest
import typer

from wireformat.cli.exits import exit_codes

from .. import handmade
from ..golden_cases import find_case
from .commands import start

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and pipes are those of POSIX")
SECONDS = 120
"""Long enough for the first call on a slow machine, which compiles."""

FULL = Path("/dev/full")
"""Where nothing can be written."""


def test_short_commands_do_not_load_what_takes_time() -> None:
    program = (
        "import sys; from wireformat.cli.main import app\n"
        "try: app(sys.argv[1:])\n"
        "finally: print(sorted({'numba', 'pyarrow', 'pyspark', 'rich'} & set(sys.modules)))"
    )
    for argument in ("--version", "formats", "--help"):
        done = subprocess.run([sys.executable, "-c", program, argument], capture_output=True, text=True, check=True)
        assert done.stdout.endswith("\n[]\n")


def test_a_message_of_a_file_needs_no_arrow(tmp_path: Path) -> None:
    """It takes longer to load than everything else that `inspect` does with a small file."""
    path = tmp_path / "capture.bin"
    path.write_bytes(handmade.SAMPLES["insert"])
    program = (
        "import sys; from wireformat.cli.main import app\n"
        "try: app(sys.argv[1:])\n"
        "finally: print(sorted({'numba', 'numpy', 'pyarrow', 'pyspark'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", program, "inspect", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "INSERT" in done.stdout
    assert done.stdout.endswith("\n[]\n")


def test_a_closed_pipe_ends_it_without_a_word(tmp_path: Path) -> None:
    case = find_case("b_1mb_batch")
    process = start("show", case.path)
    assert process.stdout is not None
    assert process.stdout.readline().startswith(b"current_lsn: ")
    process.stdout.close()
    process.stdout = None
    _, stderr = process.communicate(timeout=SECONDS)
    assert (process.returncode, stderr) == (0, b"")


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [("inspect",), ("typed", "public.orders", "--rows", "500"), ("tables", "--json")], ids=" ".join
)
def test_a_closed_pipe_ends_what_rich_prints_without_a_word(command: tuple[str, ...]) -> None:
    process = start(command[0], "examples/sample_capture.parquet", *command[1:])
    assert process.stdout is not None
    assert process.stdout.read(1)
    process.stdout.close()
    process.stdout = None
    _, stderr = process.communicate(timeout=SECONDS)
    assert process.returncode == 0
    assert b"Traceback" not in stderr


@pytest.mark.slow
@pytest.mark.parametrize("to", ["csv", "jsonl", "arrow"])
def test_a_closed_pipe_ends_a_table_without_a_word(to: str) -> None:
    process = start("decode", "examples/sample_capture.parquet", "-o", "-", "--to", to)
    assert process.stdout is not None
    assert process.stdout.read(10)
    process.stdout.close()
    process.stdout = None
    _, stderr = process.communicate(timeout=SECONDS)
    assert (process.returncode, stderr) == (0, b"")


@pytest.mark.slow
@pytest.mark.skipif(not FULL.exists(), reason="a device of Linux")
def test_output_that_cannot_be_written_is_an_error() -> None:
    with FULL.open("wb") as full:
        process = start("show", find_case("b_1mb_batch").path, stdout=full)
        _, stderr = process.communicate(timeout=SECONDS)
    assert (process.returncode, stderr) == (1, b"wireformat: standard output: No space left on device\n")


@pytest.mark.slow
def test_it_works_without_standard_streams(tmp_path: Path) -> None:
    arguments = ("decode", find_case("b_types_batch").path, "-", "-o", tmp_path / "out.parquet")
    command = [sys.executable, "-m", "wireformat.cli", *map(str, arguments)]
    subprocess.run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *command], check=True, timeout=SECONDS)
    assert pq.read_metadata(tmp_path / "out.parquet").num_rows == find_case("b_types_batch").record_count


@pytest.mark.skipif(not FULL.exists(), reason="a device of Linux")
@pytest.mark.parametrize("command", [("--version",), ("--help",), ("decode", "-h"), ("formats",)], ids=" ".join)
def test_help_that_cannot_be_written_is_an_error(command: tuple[str, ...]) -> None:
    with FULL.open("wb") as full:
        process = start(*command, stdout=full)
        _, stderr = process.communicate(timeout=SECONDS)
    assert (process.returncode, stderr) == (1, b"wireformat: standard output: No space left on device\n")


def closed_pipe() -> int:
    """The writing end of a pipe that has no reader."""
    reader, writer = os.pipe()
    os.close(reader)
    return writer


def test_help_for_a_reader_that_is_gone() -> None:
    process = start("--help", stdout=closed_pipe())
    _, stderr = process.communicate(timeout=SECONDS)
    assert (process.returncode, stderr) == (0, b"")


@pytest.mark.parametrize(
    "command",
    [
        ("--version",),
        ("formats",),
        ("show", "CAPTURE"),
        pytest.param(("tables", "CAPTURE"), marks=pytest.mark.slow),
        pytest.param(("decode", "CAPTURE", "-o", "-", "--to", "csv"), marks=pytest.mark.slow),
    ],
    ids=" ".join,
)
def test_a_standard_output_that_is_closed_is_an_error(command: tuple[str, ...]) -> None:
    path = str(find_case("b_types_batch").path)
    words = [sys.executable, "-m", "wireformat.cli", *(path if word == "CAPTURE" else word for word in command)]
    done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *words], capture_output=True, timeout=SECONDS)
    assert (done.returncode, done.stderr) == (1, b"wireformat: standard output is closed\n")


def report_that_is_lost() -> list[int]:
    full = [os.open(FULL, os.O_WRONLY)] if FULL.exists() else []
    return [closed_pipe(), *full]


def test_the_work_is_done_if_the_report_cannot_be_printed(tmp_path: Path) -> None:
    output = tmp_path / "out.parquet"
    for stderr in report_that_is_lost():
        process = start(
            "convert", "--skip", "--to", "gaussdb-json", find_case("b_types_batch").path, "-o", output, stderr=stderr
        )
        process.communicate(timeout=SECONDS)
        os.close(stderr)
        assert process.returncode == 0
        assert pq.read_metadata(output).num_rows
        output.unlink()


@pytest.mark.parametrize(
    ("command", "code"),
    [(("show", "--colour", "-"), 2), (("show", "-f", "bogus", "-"), 2), (("show", "no.bin"), 2), (("show", "-"), 1)],
    ids=str,
)
def test_the_exit_code_of_an_error_that_cannot_be_printed(command: tuple[str, ...], code: int) -> None:
    for stderr in report_that_is_lost():
        process = start(*command, stderr=stderr)
        process.communicate(b"no message", timeout=SECONDS)
        os.close(stderr)
        assert process.returncode == code


def test_a_broken_pipe_that_is_not_standard_output_is_an_error() -> None:
    """Such as that of a file system across a network."""
    with pytest.raises(typer.Exit) as ended, exit_codes():
        raise BrokenPipeError(errno.EPIPE, "Broken pipe", "lake")
    assert ended.value.exit_code == 1


@pytest.mark.slow
def test_standard_input_is_shown_as_it_flows_until_ctrl_c() -> None:
    process = start("show", "-")
    assert process.stdin is not None
    assert process.stdout is not None
    for message in (handmade.SAMPLES["commit, bare"], handmade.SAMPLES["unknown"]):
        process.stdin.write(message)
        process.stdin.flush()
        assert process.stdout.readline().startswith(b"current_lsn: 0/10 ")
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=SECONDS)
    assert (process.returncode, stdout, stderr) == (130, b"", b"")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
@pytest.mark.parametrize(
    "command", [("decode", "-", "-o", "out.parquet"), ("latest", "-", "s.t", "-o", "out.parquet")], ids=" ".join
)
def test_a_signal_leaves_no_file(command: tuple[str, ...], name: str, tmp_path: Path) -> None:
    """Neither an unfinished output nor a copy of standard input."""
    number = getattr(signal, name)
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd()), "TMPDIR": str(tmp_path)}
    process = start(  # also where the tests were started with nohup
        *command, cwd=tmp_path, env=environment, preexec_fn=lambda: signal.signal(number, signal.SIG_DFL)
    )
    assert process.stdin is not None
    process.stdin.write(handmade.SAMPLES["insert"])
    process.stdin.flush()
    while not list(tmp_path.iterdir()):
        assert process.poll() is None
        sleep(0.01)
    signals = 0
    while process.poll() is None:
        # Where LLVM links code it calls Python, and what such a call raises is printed and lost.
        process.send_signal(number)
        signals += 1
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=10)
    _, stderr = process.communicate()
    assert process.returncode == 128 + number
    assert signals > 1 or stderr == b""
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_signal_that_is_ignored_stays_ignored(tmp_path: Path) -> None:
    """As `nohup` starts a command."""
    process = start("show", "-", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(handmade.SAMPLES["insert"])
    process.stdin.flush()
    assert process.stdout.readline()
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=SECONDS)
    assert process.returncode == 0


@pytest.mark.slow
def test_ctrl_c_while_a_module_executes_a_text(tmp_path: Path) -> None:
    """As dataclasses do, of which a library that is being loaded has many."""
    (tmp_path / "interrupted.py").write_text(
        "import wireformat.cli.decoding as decode\n"
        "from wireformat.cli.__main__ import main\n"
        "decode.decode = lambda *_, **__: exec('raise KeyboardInterrupt')\n"
        "main()\n"
    )
    command = [sys.executable, "-m", "interrupted", "decode", "-", "-o", "out.parquet"]
    done = subprocess.run(command, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS)
    assert (done.returncode, done.stderr) == (130, b"")


def test_bad_data_gives_one_line_and_exit_code_1() -> None:
    process = start("show", "-")
    stdout, stderr = process.communicate(b"no message", timeout=SECONDS)
    assert (process.returncode, stdout) == (1, b"")
    assert stderr.startswith(b"wireformat: standard input: ")
    assert stderr.count(b"\n") == 1
