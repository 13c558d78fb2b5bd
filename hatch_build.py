"""Compile the kernels when the package is built or installed: C sources to shared libraries that ctypes loads.

The libraries depend on no Python version: a wheel fits every Python of its platform. ``python hatch_build.py`` compiles
them in place. Where no C compiler is installed, the build asks the package index for one (``ziglang``).
"""

from __future__ import annotations

import os
import platform
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run as a script, without the build system
    BuildHookInterface = object

ROOT = Path(__file__).parent
KERNELS = ROOT / "src" / "sparsedepth" / "kernels"
COMPILED = KERNELS / "compiled"
FLAGS = ("-std=c11", "-O3", "-Wall", "-Wextra", "-fPIC", "-shared")
EXACT = ("-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math")
"""No fused or reordered operations: every compiler and processor computes the same bits."""
LEVELS = {"baseline": (), "avx2": ("-mavx2",)}
"""Instruction sets: the loader takes the best that the processor has."""
OLDEST_MACOS = {"arm64": "11.0", "x86_64": "10.13"}
OLDEST_GLIBC = 2, 17
"""The oldest versions that wheels are tagged for."""


def compiler() -> list[str] | None:
    """Find a C compiler: $CC, one on the path, or that of the package index; None if there is none."""
    for name in (os.environ.get("CC"), "cc", "gcc", "clang"):
        if name and shutil.which(name.split()[0]):
            return name.split()
    try:
        import ziglang  # noqa: F401  # pyright: ignore[reportMissingImports]
    except ImportError:
        return None
    return [sys.executable, "-m", "ziglang", "cc"]


def levels() -> dict[str, tuple[str, ...]]:
    """Return the instruction sets of this platform and their flags."""
    intel = platform.machine().lower() in ("x86_64", "amd64")
    return LEVELS if intel else {"baseline": ()}


def compile_kernels() -> list[Path]:
    """Compile all sources, once for each instruction set; each library appears whole or not at all."""
    command = compiler()
    if command is None:
        raise SystemExit("no C compiler was found; install one, or: pip install ziglang")
    suffix = ".dll" if sys.platform == "win32" else ".so"
    COMPILED.mkdir(exist_ok=True)
    sources, made = sorted(map(str, KERNELS.glob("*.c"))), []
    target = (f"-mmacosx-version-min={OLDEST_MACOS[platform.machine()]}",) if sys.platform == "darwin" else ()
    checksum = runpy.run_path(str(KERNELS / "checksum.py"))["sources_checksum"](KERNELS)
    named = f"-DKERNEL_SOURCES={checksum}u"
    for level, flags in levels().items():
        made.append(COMPILED / f"{level}{suffix}")
        part = made[-1].with_suffix(f".{os.getpid()}")
        subprocess.run([*command, *FLAGS, *EXACT, *target, *flags, named, "-o", str(part), *sources], check=True)
        os.replace(part, made[-1])
    return made


def platform_tag(libraries: list[Path]) -> str:
    """Return the platform of a wheel with these libraries: the oldest systems that can load them."""
    plain = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    if sys.platform == "darwin":
        return f"macosx_{OLDEST_MACOS[platform.machine()].replace('.', '_')}_{platform.machine()}"
    if not plain.startswith("linux_") or platform.libc_ver()[0] != "glibc":
        return plain
    wanted = max((OLDEST_GLIBC, *(glibc_wanted(path) for path in libraries)))
    return f"manylinux_{wanted[0]}_{wanted[1]}_{plain.removeprefix('linux_')}"


def glibc_wanted(library: Path) -> tuple[int, int]:
    """Return the version of the C library that a library asks for: the newest of its symbols."""
    versions = re.findall(rb"\0GLIBC_(\d+)\.(\d+)", library.read_bytes())
    return max(((int(major), int(minor)) for major, minor in versions), default=(0, 0))


MAN_PAGE = r""".TH SPARSEDEPTH 1
.SH NAME
sparsedepth \- restore depth maps with a variance for every pixel
.SH SYNOPSIS
.B sparsedepth
.I COMMAND
[\fIARGUMENT\fR ...] [\fIOPTION\fR ...]
.br
.B sparsedepth
.I COMMAND
.B \-\-help
.SH DESCRIPTION
Denoise and inpaint depth and disparity maps, match stereo pairs, restore the streams of depth cameras.
Results go to standard output, all else to standard error.
.SH COMMANDS
{commands}
.SH OPTIONS
.TP
.BR \-h ", " \-\-help
Show the help of the program, or of a command with all its options.
.TP
.B \-\-version
Print the version.
.TP
.BR \-\-install\-completion ", " \-\-show\-completion
Complete commands and options in the current shell.
.SH STANDARD INPUT AND OUTPUT
For denoise, inpaint, show and cloud the name \fB\-\fR is standard input, or standard output after \fB\-o\fR:
.PP
.nf
cat scan.png | sparsedepth denoise \- \-o \- \-\-profile mm | sparsedepth show \- \-o \- > scan.view.png
.fi
.SH EXIT STATUS
0 all was done; 1 a file failed, the others are done; 2 the command was wrong, nothing was done; 130 it was stopped.
.SH ENVIRONMENT
.TP
.B SPARSEDEPTH_DATA
Folder of the data sets, for experiments.
.TP
.B SPARSEDEPTH_TOKEN
What clients of \fBsparsedepth serve\fR must know.
.TP
.B SPARSEDEPTH_TRACEBACK
If set, mistakes of the program are shown with where they happened.
"""


def write_man_page(path: Path) -> Path:
    """Write the man page, with the commands of the program."""
    commands = runpy.run_path(str(ROOT / "src" / "sparsedepth" / "cli" / "commands.py"))["COMMANDS"]
    told = (f".TP\n.B {name}\n{entry.help}" for name, entry in commands.items())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(MAN_PAGE.format(commands="\n".join(told).replace("--", r"\-\-")))
    return path


class CustomBuildHook(BuildHookInterface):
    """Adds the compiled libraries to wheels and to editable installs."""

    def dependencies(self) -> list[str]:
        """Return what the build needs besides hatchling."""
        return [] if compiler() else ["ziglang>=0.13"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and name the platform in the tag of the wheel."""
        del version
        if self.target_name == "sdist":
            return
        made = compile_kernels()
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag(made)}"
        page = write_man_page(COMPILED / "sparsedepth.1")
        build_data["shared_data"][str(page)] = "share/man/man1/sparsedepth.1"
        build_data["force_include"].update({str(path): f"sparsedepth/kernels/compiled/{path.name}" for path in made})


if __name__ == "__main__":
    print(*compile_kernels(), sep="\n")
