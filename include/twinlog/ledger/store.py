"""The Parquet files of one flow's ledger: how rows get in, how they are read, how files give way to merged
ones.

    <ledger>/source=nyc/target=lon/segments-<from>-<to>-<mark>-<mark>.parquet     rows, named by `chain`
                                   _mark-<mark>.json                              how far the journal was recorded

Two plain folder keys, since the flow's own name, `nyc->lon`, would be escaped in a path and given back
differently by different readers; the column `flow` inside the files has the name as it is. pyarrow, Spark
and DuckDB read the folder as a Hive table with nothing but its path (DuckDB:
`<ledger>/source=*/target=*/*.parquet`).

`Ledger` reads exactly the rows up to a mark, each once, while others record and merge. A foreign reader
that lists the folder itself sees rows twice if it lists between the appearance of a merged file and the
removal of the files it replaces (milliseconds, or the grace asked for, or, after a crash between the two,
until the next compaction sweeps); and if it lists before and opens after, its read fails on a missing file
and is to be repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from urllib.parse import quote

import pyarrow as pa
from pyarrow import fs
from pyarrow import parquet as pq

from twinlog.errors import LedgerError
from twinlog.ledger import chain
from twinlog.ledger.chain import Link, Mark
from twinlog.ledger.folder import TEMPORARY, Folder, StoredFile
from twinlog.ledger.row_groups import ROWS_A_GROUP, Needed, all_rows, needed_groups
from twinlog.ledger.schema import GAP_COLUMNS, IN_MEMORY, SOURCE_COLUMNS, TEXT_COLUMNS, to_files, to_memory
from twinlog.model.offsets import UNKNOWN

_MARK_PREFIX = "_mark-"
_ABANDONED_AFTER_MS = 24 * 3600 * 1000
_ATTEMPTS = 10


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A file that is part of the ledger now."""

    link: Link
    bytes: int
    modified_ms: int


class Ledger:
    """The ledger of the flow from `source` to `target` under `root` (a path, or an s3, s3a or hdfs URI)."""

    def __init__(self, root: str, source: str, target: str, filesystem: fs.FileSystem | None = None) -> None:
        self.flow = f"{source}->{target}"
        self.filesystem = filesystem
        keys = f"source={quote(source, safe='')}/target={quote(target, safe='')}"
        self.folder = Folder(f"{root.rstrip('/')}/{keys}", filesystem)
        # Spark writes here before a merged file is adopted; out of the way of readers that glob *.parquet.
        self.work_uri = f"{root.rstrip('/')}/_work"
        self._root, self._keys = root.rstrip("/"), keys
        self.readiness_uri = self.beside("_readiness")

    def beside(self, kind: str) -> str:
        """The flow's folder for tables of another kind (`_readiness`), which readers of the ledger pass over."""
        return f"{self._root}/{kind}/{self._keys}"

    def files(self) -> list[LiveFile]:
        """The files that hold the ledger's rows, in the journal's order."""
        return _live(self.folder.files())

    def mark(self) -> Mark:
        """How far the journal has been recorded; the start if nothing has been."""
        for _ in range(_ATTEMPTS):
            files = self.files()
            if not files:
                return Mark()
            try:
                return Mark.from_json(self.folder.read(_mark_name(files[-1].link.after)).decode())
            except FileNotFoundError:
                if self.files() == files:
                    raise LedgerError(
                        f"{self.folder.uri}: the mark of {files[-1].link.name} is missing; run `twinlog ledger rebuild`"
                    ) from None
        raise LedgerError(f"{self.folder.uri}: files keep changing while they are read; is a merge looping?")

    def read(self, columns: Sequence[str] = IN_MEMORY.names, needed: Needed = all_rows) -> pa.Table:
        """All rows, each once, texts dictionary-encoded; groups of rows that are not `needed` may be left out."""
        return self.read_some(lambda files: files, columns, needed)[1]

    def read_some(
        self,
        choose: Callable[[list[LiveFile]], list[LiveFile]],
        columns: Sequence[str] = IN_MEMORY.names,
        needed: Needed = all_rows,
    ) -> tuple[list[LiveFile], pa.Table]:
        """The files that `choose` takes of the ledger's, and their rows as of one moment."""
        for _ in range(_ATTEMPTS):
            listed = self.files()
            try:
                chosen = choose(listed)
                rows = self.read_files(chosen, columns, needed)
            except (OSError, LedgerError) as failure:
                # Merged and removed between listing and opening: the merged file is in the next listing.
                if self.files() != listed:
                    continue
                if isinstance(failure, FileNotFoundError):
                    raise LedgerError(f"{self.folder.uri}: {failure}; run `twinlog ledger rebuild`") from failure
                raise
            # Where storage gives a file's parts one by one, one that was written anew meanwhile came mixed.
            if not _written_anew(chosen, self.files()):
                return chosen, rows
        raise LedgerError(f"{self.folder.uri}: files keep changing while they are read; is a merge looping?")

    def read_files(
        self, files: Sequence[LiveFile], columns: Sequence[str] = IN_MEMORY.names, needed: Needed = all_rows
    ) -> pa.Table:
        """The rows of these files, less the groups of rows that are not `needed`."""
        schema = pa.schema([IN_MEMORY.field(name) for name in columns])
        tables = [self._read_file(file, columns, needed).cast(schema) for file in files]
        return pa.concat_tables([schema.empty_table(), *tables]).unify_dictionaries()

    def _read_file(self, file: LiveFile, columns: Sequence[str], needed: Needed) -> pa.Table:
        try:
            return self._rows_of(file, columns, needed)
        except OSError as failure:
            # Of a corrupt page pyarrow says so, too; storage that does not answer is another matter.
            if "CRC" not in str(failure) and "Corrupt" not in str(failure):
                raise
            raise self._damaged(file, failure) from failure
        except Exception as failure:
            # Damage shows in as many ways as there are steps in reading Parquet: a wrong footer, a missing column, a
            # text that is none.
            raise self._damaged(file, failure) from failure

    def _damaged(self, file: LiveFile, failure: Exception) -> LedgerError:
        why = (str(failure).splitlines() or [""])[0]
        return LedgerError(
            f"{self.folder.uri}/{file.link.name} is damaged ({type(failure).__name__}: {why}); run `twinlog ledger "
            "rebuild`"
        )

    def _rows_of(self, file: LiveFile, columns: Sequence[str], needed: Needed) -> pa.Table:
        texts = [name for name in columns if name in TEXT_COLUMNS]
        path = self.folder.file_path(file.link.name)
        # One file at a time: a dataset would read the folder's keys into columns and list it anew.
        with pq.ParquetFile(
            path, filesystem=self.folder.filesystem, read_dictionary=texts, page_checksum_verification=True
        ) as opened:
            groups = needed_groups(opened.metadata, needed)
            there = set(opened.schema_arrow.names)
            # Written before this kind of gap, or these columns, were known.
            filled = dict.fromkeys(GAP_COLUMNS.values(), 0) | dict.fromkeys(SOURCE_COLUMNS, UNKNOWN)
            missing = [name for name in columns if name in filled and name not in there]
            rows = opened.read_row_groups(groups, columns=[name for name in columns if name not in missing])
            for name in missing:
                value = pa.scalar(filled[name], IN_MEMORY.field(name).type)
                rows = rows.append_column(name, pa.repeat(value, rows.num_rows))
            return rows.select(list(columns))

    def last_run(self) -> str | None:
        """The run that was recorded last; None before the first."""

        def last_with_rows(listed: list[LiveFile]) -> list[LiveFile]:
            return next(([file] for file in reversed(listed) if self.row_count([file.link.name])), [])

        files, runs = self.read_some(last_with_rows, ["run", "copied_at_ms"])
        return str(runs.sort_by("copied_at_ms").column("run")[-1].as_py()) if files else None

    def row_count(self, names: Sequence[str]) -> int:
        """How many rows these files hold, by their footers alone."""
        return sum(
            pq.read_metadata(self.folder.file_path(name), filesystem=self.folder.filesystem).num_rows for name in names
        )

    def append(self, table: pa.Table, before: Mark, after: Mark) -> Link:
        """Publish the rows that the journal gained from `before` to `after`."""
        link = Link(before.node, after.node)
        # The mark first: a mark without rows says nothing, rows without a mark could not be continued.
        self.folder.publish(_mark_name(link.after), after.to_json().encode())
        self.folder.publish(link.name, encode(table))
        return link

    def replace(self, files: Sequence[LiveFile], table: pa.Table) -> Link:
        """Publish one file in place of consecutive `files`; it counts from the moment it appears."""
        link = merged_link(files)
        self.folder.publish(link.name, encode(table))
        return link

    def sweep(self, now_ms: int, grace_ms: int = 0) -> list[str]:
        """Remove what is no longer read and was replaced longer than `grace_ms` ago; the names removed."""
        stored = self.folder.files()
        files = _live(stored)
        doomed = []
        used = {_mark_name(chain.START)}
        for file in stored:
            link = Link.parse(file.name)
            if link is None:
                if file.name.startswith(TEMPORARY) and file.modified_ms < now_ms - _ABANDONED_AFTER_MS:
                    doomed.append(file.name)
            elif _replaced(link, files, now_ms - grace_ms):
                doomed.append(file.name)
            else:
                used.add(_mark_name(link.after))
        doomed += [
            file.name
            for file in stored
            # A fresh mark may belong to a file that is just being written.
            if file.name.startswith(_MARK_PREFIX)
            and file.name not in used
            and file.modified_ms < now_ms - _ABANDONED_AFTER_MS
        ]
        for name in doomed:
            self.folder.remove(name)
        return doomed


def encode(table: pa.Table) -> pa.Buffer:
    """`table` as the bytes of a ledger file."""
    sink = pa.BufferOutputStream()
    # Without the Arrow schema in the footer, files of pyarrow and of Spark have the same types for every
    # reader.
    rows = to_files(to_memory(table))
    # With checksums, since a row that was altered by the storage would be a wrong translation.
    pq.write_table(
        rows,
        sink,
        row_group_size=ROWS_A_GROUP,
        compression="zstd",
        store_schema=False,
        write_page_checksum=True,
    )
    return sink.getvalue()


def merged_link(files: Sequence[LiveFile]) -> Link:
    """The name of the file that replaces consecutive `files`."""
    for left, right in pairwise(files):
        if left.link.after != right.link.before:
            raise LedgerError(f"{left.link.name} and {right.link.name} are not neighbours and cannot be merged")
    return Link(files[0].link.before, files[-1].link.after)


def _live(stored: Sequence[StoredFile]) -> list[LiveFile]:
    known = {link: file for file in stored if (link := Link.parse(file.name)) is not None}
    return [LiveFile(link, known[link].bytes, known[link].modified_ms) for link in chain.live(known)]


def _written_anew(read: Sequence[LiveFile], now: Sequence[LiveFile]) -> bool:
    """Whether one of the files that were read is another one now, under the same name."""
    current = {file.link: file for file in now}
    return any(current.get(file.link, file) != file for file in read)


def _replaced(link: Link, files: Sequence[LiveFile], before_ms: int) -> bool:
    if any(link == file.link for file in files):
        return False
    covering = [file for file in files if file.link.covers(link)]
    if covering:
        return covering[0].modified_ms <= before_ms
    # On no way from the start, or beside the way that was taken: its rows are in the files that were.
    return bool(files) and link.after.total <= files[-1].link.after.total and files[-1].modified_ms <= before_ms


def _mark_name(node: chain.Node) -> str:
    return f"{_MARK_PREFIX}{node.digest}.json"
