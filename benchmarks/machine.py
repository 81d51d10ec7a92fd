"""What the numbers were measured on, in words."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path

import psutil

LIBRARIES = ("wireformat", "construct", "numba", "numpy", "pyarrow", "pandas", "pyspark", "orjson")


def description() -> str:
    """The day, the machine and its programs."""
    gigabytes = psutil.virtual_memory().total / 2**30
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    return (
        f"{datetime.now(timezone.utc):%Y-%m-%d}; {cpu()}, {os.cpu_count()} cores, {gigabytes:.0f} GiB; "
        f"{platform.system()} {platform.release()}; Python {platform.python_version()}, Java {java_version()}, "
        f"{libraries}"
    )


def cpu() -> str:
    """The processor's name."""
    facts = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*: (.*)", facts.read_text()) if facts.exists() else None
    return found[1] if found else platform.processor() or platform.machine()


def java_version() -> str:
    """The version of the Java that Spark starts."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else "java"
    shown = subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr
    found = re.search(r'version "([^"]+)"', shown)
    return found[1] if found else "unknown"
