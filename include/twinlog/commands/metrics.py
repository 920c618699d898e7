"""`--metrics FILE`: a command's figures as a text file for the textfile collector of Prometheus' node exporter.

The file is replaced as a whole or not at all, so that whoever reads it never sees half of it. A command that measured
nothing, as a run that was skipped, leaves the last one's file as it is. One that an error ended leaves the figures
there too, and says what kind of error it was.
"""

from __future__ import annotations

import argparse
import functools
import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from twinlog.commands.console import Console
from twinlog.errors import ConfigurationError, kind_of
from twinlog.model.metrics import ERRORS, Sample, error_samples, exposition, without

Run = Callable[[argparse.Namespace, Console], int]
_READABLE_BY_ALL = 0o644


def add_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--metrics",
        metavar="FILE",
        type=_file,
        help="also write the figures there, in Prometheus' text format; one file a flow and command (NAME.prom)",
    )


def write(asked: argparse.Namespace, samples: Iterable[Sample]) -> None:
    """Put the samples into the file that was asked for, if one was."""
    if asked.metrics is None:
        return
    text = exposition(samples)
    if text:
        replace_file(asked.metrics, text)


def write_done(asked: argparse.Namespace, samples: Iterable[Sample]) -> None:
    """The same for a verb of one flow, with that no error ended it; see `tells_errors`."""
    measured = list(samples)
    if measured:
        write(asked, [*measured, *error_samples(asked.flow, asked.verb)])


def tells_errors(run: Run) -> Run:
    """What runs a verb of one flow, so that the file says what kind of error ended it."""

    @functools.wraps(run)
    def telling(asked: argparse.Namespace, console: Console) -> int:
        try:
            return run(asked, console)
        except Exception as error:
            if asked.metrics is not None:
                _tell(asked, console, error)
            raise

    return telling


def _tell(asked: argparse.Namespace, console: Console, error: Exception) -> None:
    file: Path = asked.metrics
    try:
        before = file.read_text() if file.exists() else ""
        replace_file(file, without(ERRORS, before) + exposition(error_samples(asked.flow, asked.verb, kind_of(error))))
    except (OSError, ConfigurationError) as unwritable:
        # Beside the error that ended the command, which is what people have to hear.
        console.note(f"twinlog: {unwritable}")


def replace_file(path: Path, text: str) -> None:
    """Make this the file's text, in one step, for everybody to read."""
    try:
        # In the same folder, since only there a rename is one step; hidden, and without .prom, so nobody collects it.
        with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            try:
                file.write(text)
                file.flush()
                os.fchmod(file.fileno(), _READABLE_BY_ALL)
                Path(file.name).replace(path)
            except BaseException:
                Path(file.name).unlink()
                raise
    except OSError as error:
        raise ConfigurationError(f"{path}: the metrics cannot be written: {error.strerror}") from error


def _file(text: str) -> Path:
    path = Path(text)
    if not path.parent.is_dir():
        # Known now rather than after an hour of copying.
        raise argparse.ArgumentTypeError(f"there is no folder {str(path.parent)!r} to write {path.name!r} into")
    return path
