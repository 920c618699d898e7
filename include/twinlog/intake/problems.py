"""What is wrong with a file, collected so that one reading names all of it."""

from __future__ import annotations

from collections.abc import Mapping

from twinlog.errors import TopologyError
from twinlog.intake.located_yaml import Problem
from twinlog.model import references


class Problems:
    """The problems of one file, and the environment its references are resolved in."""

    def __init__(self, path: str, environ: Mapping[str, str]) -> None:
        self.found: list[Problem] = []
        self._path = path
        self._environ = environ

    def add(self, line: int, text: str) -> None:
        """Note a problem; `text` begins with the key it is about."""
        self.found.append(Problem(line, text))

    def raise_if_any(self) -> None:
        """Raise one TopologyError with every problem on its own line, in the file's order."""
        if self.found:
            # One default can be wrong for several flows; it is still one problem.
            ordered = sorted(set(self.found))
            raise TopologyError("\n".join(f"{self._path}:{found.line}: {found.text}" for found in ordered))

    def resolve(self, key: str, text: str, line: int) -> str:
        """A text with its `${env:NAME}` replaced; a variable that is not set is a problem."""
        for reference in references.find(text):
            if reference.provider != "env":
                continue
            if reference.path not in self._environ:
                self.add(line, f'{key}: the environment variable "{reference.path}" is not set')
            text = text.replace(reference.text, self._environ.get(reference.path, ""))
        return text
