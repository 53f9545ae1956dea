"""Entry point: runs a command and turns errors into one sentence and an exit code."""

from __future__ import annotations

import errno
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import cast

from wisecrowd.cli.accidental_imports import leave_out_pandas
from wisecrowd.cli.terminal import forget_output, harmless, replace_closed_streams
from wisecrowd.core.exceptions import ParameterError, WisecrowdError
from wisecrowd.core.messages.option_spelling import shell_spelling

OK = 0
USAGE = 2
BAD_DATA = 3
INTERRUPTED = 130  # 128 + SIGINT, as in shells
READER_LEFT = 141  # 128 + SIGPIPE: the reader closed the pipe, as in `yes | head`
# Text of the RuntimeError that torch raises instead of a MemoryError.
_TORCH_OUT_OF_MEMORY = ("can't allocate memory", "out of memory")


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    0 is success, 2 a wrong option or parameter, 3 data or files that cannot be used, 130 Ctrl-C.
    An error in wisecrowd itself is not caught, so that its traceback is shown.

    Parameters
    ----------
    arguments : sequence of str, optional
        Arguments; by default those of the process.
    """
    if arguments is None:  # a process of its own
        leave_out_pandas()
    given = sys.argv[1:] if arguments is None else list(arguments)
    replace_closed_streams()
    try:
        with shell_spelling():
            code = _invoke(given)
        sys.stdout.flush()  # here, where a full disk or a closed pipe can still be reported
    except KeyboardInterrupt:
        return _fail("Interrupted.", INTERRUPTED)
    except BrokenPipeError:
        forget_output()
        return READER_LEFT
    except MemoryError as error:
        return _out_of_memory(str(error))
    except RuntimeError as error:
        if not any(words in str(error) for words in _TORCH_OUT_OF_MEMORY):
            raise
        return _out_of_memory("")
    except OSError as error:
        forget_output()
        if error.errno == errno.EBADF and not error.filename:
            return _fail("Standard output is closed; give a file with -o.", BAD_DATA)
        place = f"{error.filename}: " if error.filename else ""
        return _fail(f"{place}{error.strerror or error}.", BAD_DATA)
    except WisecrowdError as error:
        return fail_with(error)
    return code


def fail_with(error: WisecrowdError) -> int:
    """Print the sentence of an error and return its exit code."""
    return _fail(str(error), USAGE if isinstance(error, ParameterError) else BAD_DATA)


def _out_of_memory(reason: str) -> int:
    said = f" ({reason.rstrip('.')})" if reason else ""
    return _fail(f"There is not enough memory for this{said}; use less data.", BAD_DATA)


def _invoke(arguments: list[str]) -> int:
    """Run the command, and report wrong use of the command line."""
    # Imported here, so that Ctrl-C during the import is handled too.
    import typer

    from wisecrowd.cli.app import build_command, current_names

    command, arguments = build_command(), current_names(arguments)
    # The location of the class changed between typer versions; its subclasses stayed.
    usage_error = cast("type[Exception]", typer.BadParameter.__mro__[1])
    _accept_any_character()
    if not arguments:
        with command.make_context("wisecrowd", [], resilient_parsing=True) as context:
            print(context.get_help(), file=sys.stderr)
        return USAGE
    try:
        with command.make_context("wisecrowd", list(arguments), obj=arguments) as context:
            command.invoke(context)
    except typer.Exit as leave:
        return leave.exit_code
    except typer.Abort:
        raise KeyboardInterrupt from None
    except usage_error as error:
        return _explain_usage(error)
    return OK


def _explain_usage(error: BaseException) -> int:
    context = getattr(error, "ctx", None)
    where = context.command_path if context is not None else "wisecrowd"
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    message = f"{message} See" if message.endswith("?") else f"{message.rstrip('.')}; see"
    return _fail(f"{message} {where} --help.", USAGE)


def _fail(sentence: str, code: int) -> int:
    with suppress(OSError):
        print(f"wisecrowd: {harmless(sentence)}", file=sys.stderr)
    return code


def _accept_any_character() -> None:
    """Print codes for characters that the terminal's encoding lacks, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
