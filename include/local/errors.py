"""Errors of the embedded default.

They stand apart from `twinlog.errors` because nothing here may import twinlog: this package only brings up
the Kafka, Spark and Airflow that a laptop or a test needs. Each message is one sentence that says what to do.
"""

from __future__ import annotations


class LocalError(Exception):
    """Something the embedded default needs is not there, or did not come up."""


class PreconditionError(LocalError):
    """The machine lacks what is asked for; nothing was started or changed."""


class StartError(LocalError):
    """A process was started and did not become ready."""
