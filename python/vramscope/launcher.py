"""``vramscope run``: from what was typed to the program, started as if vramscope were not there.

The program is not run inside this process's ``__main__``: Python is started anew in its place (same process id), by the
very command that would start it otherwise, so that ``__main__``, ``sys.argv``, tracebacks, exit statuses and what
``multiprocessing`` does are the program's own. All that is added is a directory at the head of ``PYTHONPATH`` with a
``sitecustomize`` that begins the recording and takes the directory away again.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys

from vramscope.launcher_names import ON_START, PYTHONPATH, SETTINGS
from vramscope.options import SEPARATOR, Options
from vramscope.place import new_directory

#: Modules that only start other processes.
LAUNCHERS = ("torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch", "deepspeed.launcher.runner")


#: Characters of the command that are kept.
MOST_COMMAND = 8192


def launch(module: bool, program: list[str], out: str, settings: list[tuple[str, str]]) -> int:
    """Become the program. Returns an exit status only where it could not be started."""
    options = Options()
    for name, value in settings:
        options.set(name, value)
    file, words, is_launcher = command_line(module, program)
    options.children = options.children or is_launcher
    options.pid = os.getpid()
    # A variable of the environment has room for 128 KiB.
    command = " ".join(words).replace(SEPARATOR, " ")
    options.command = command if len(command) <= MOST_COMMAND else f"{command[:MOST_COMMAND]}…"
    environment = dict(os.environ)
    try:
        options.out = os.path.abspath(out)
        options.directory = new_directory(options.out, options.pid)
    except OSError:
        options.directory = ""
    if not options.directory:
        _say(options, "nothing is recorded: the current directory is no more")
    elif sys.flags.ignore_environment or sys.flags.no_site:
        _say(options, "nothing is recorded: Python was told to ignore its environment (-I, -E) or its site (-S)")
    else:
        add_to(environment, options)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    try:
        os.execve(file, words, environment)
    except OSError as error:
        sys.stderr.write(f"error: `{words[0]}` could not be started: {error.strerror}\n")
    return 2


def add_to(environment: dict[str, str], options: Options) -> None:
    """Let a Python process that starts in this environment be recorded."""
    paths = environment.get("PYTHONPATH")
    if paths is not None:
        environment[PYTHONPATH] = paths
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [ON_START, paths]))
    environment[SETTINGS] = options.to_text()


def command_line(module: bool, program: list[str]) -> tuple[str, list[str], bool]:
    """The file to start, the words it is started with, and whether its work is done by processes it starts."""
    name = program[0]
    python = [sys.executable, *interpreter_flags(getattr(sys, "orig_argv", []))]
    if module:
        return sys.executable, [*python, "-m", *program], name in LAUNCHERS
    if not _is_script(name):
        file = shutil.which(name)
        if file is not None:
            return file, program, not os.path.basename(name).startswith("python")
    # Python itself says best what is wrong with a script that is not there.
    return sys.executable, [*python, *program], False


def _is_script(name: str) -> bool:
    return name.endswith((".py", ".pyw", ".pyc", ".pyz", ".zip")) or os.path.isdir(name)


def interpreter_flags(words: list[str]) -> list[str]:
    """The options that this Python was started with, such as ``-u -X dev``, out of the words that started it.

    Python before 3.10 does not tell the words; then what its flags tell must do.
    """
    if not words:
        from subprocess import _args_from_interpreter_flags  # type: ignore[attr-defined]

        unbuffered = getattr(sys.stdout, "write_through", False)
        return [*_args_from_interpreter_flags(), *(["-u"] if unbuffered else [])]
    flags: list[str] = []
    rest = iter(words[1:])
    for word in rest:
        if word in ("-X", "-W", "--check-hash-based-pycs"):
            flags += [word, next(rest, "")]
        elif word.startswith(("-X", "-W", "--")):
            flags.append(word)
        elif not word.startswith("-") or word in ("-", "-c"):
            break
        elif "m" in word:
            # `-um vramscope` is `-u -m vramscope`.
            before = word[: word.index("m")]
            flags += [before] if before != "-" else []
            break
        else:
            flags.append(word)
    return flags


def _say(options: Options, text: str) -> None:
    if not options.quiet:
        sys.stderr.write(f"vramscope: {text}\n")
