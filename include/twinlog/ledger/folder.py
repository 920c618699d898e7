"""A folder that pyarrow and Spark both reach, in which a file appears whole or not at all.

On a disk or HDFS a file is written under a name that readers ignore (a leading underscore, no `.parquet`)
and then renamed; an object store shows an object only once it is complete. Bytes are handed over in one
piece, so an exception half-way cannot close, and thereby publish, half a file.

Keys, region and endpoint of an object store come from the environment, as its own tools have them (AWS_ACCESS_KEY_ID,
AWS_REGION, AWS_ENDPOINT_URL and so on): a place in a topology holds no secret.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
from pyarrow import fs

from twinlog.errors import LedgerError

TEMPORARY = "_writing-"
_OBJECT_STORES = frozenset({"s3", "gcs", "abfs"})


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of the folder, with the time the storage says it was written."""

    name: str
    bytes: int
    modified_ms: int


class Folder:
    """One folder, by the URI that Spark is given; made when the first file is published."""

    def __init__(self, uri: str, filesystem: fs.FileSystem | None = None) -> None:
        self.uri = uri.rstrip("/")
        if filesystem is not None:
            self.filesystem, self.path = filesystem, self.uri.partition("://")[2] or self.uri
        elif "?" in uri and "://" in uri:
            raise LedgerError(
                f"{uri.partition('?')[0]}: a ledger's place takes no options after a question mark, which Spark would "
                "not understand; name the endpoint of an s3 of your own in AWS_ENDPOINT_URL"
            )
        elif "://" in uri:
            # Spark writes s3a:// for what everybody else calls s3://.
            self.filesystem, self.path = fs.FileSystem.from_uri(_without_hadoop_scheme(self.uri))
        else:
            self.filesystem, self.path = fs.LocalFileSystem(), str(Path(self.uri).absolute())
            # Spark would look for a bare path wherever its default file system is.
            self.uri = f"file://{self.path}"

    def files(self) -> list[StoredFile]:
        """What lies directly in the folder; nothing if there is no folder yet."""
        selector = fs.FileSelector(self.path, allow_not_found=True)
        return [
            StoredFile(info.base_name, info.size, (info.mtime_ns or 0) // 1_000_000)
            for info in self.filesystem.get_file_info(selector)
            if info.type == fs.FileType.File
        ]

    def file_path(self, name: str) -> str:
        return f"{self.path}/{name}"

    def file_uris(self, names: Sequence[str]) -> list[str]:
        """The files as Spark is to be told them."""
        return [f"{self.uri}/{name}" for name in names]

    def read(self, name: str) -> bytes:
        with self.filesystem.open_input_stream(self.file_path(name)) as stream:
            content: bytes = stream.read()
        return content

    def publish(self, name: str, content: pa.Buffer | bytes) -> None:
        """Make `name` appear with this content, in place of an earlier file of that name."""
        if self.filesystem.type_name in _OBJECT_STORES:
            self._write(self.file_path(name), content)
            return
        self.filesystem.create_dir(self.path, recursive=True)
        draft = self.file_path(f"{TEMPORARY}{uuid4().hex}")
        self._write(draft, content)
        if self.filesystem.type_name == "local":
            _sync(Path(draft))
        self.adopt(draft, name)

    def adopt(self, path: str, name: str) -> None:
        """Move a complete file of the same storage to `name` in this folder."""
        if self.filesystem.type_name == "local":
            Path(self.path).mkdir(parents=True, exist_ok=True)
            Path(path).replace(self.file_path(name))
            _sync(Path(self.path))
            return
        if self.filesystem.type_name == "hdfs":
            # HDFS renames onto nothing only. Names tell contents, so what is removed here is what is coming.
            self.remove(name)
        self.filesystem.move(path, self.file_path(name))

    def remove(self, name: str) -> None:
        """Remove a file; one that is already gone, perhaps by another's hand, is what was wanted."""
        try:
            self.filesystem.delete_file(self.file_path(name))
        except FileNotFoundError:
            return

    def destroy(self) -> None:
        """Remove the folder with all that is in it, if there is one."""
        if self.filesystem.get_file_info(self.path).type == fs.FileType.Directory:
            self.filesystem.delete_dir(self.path)

    def _write(self, path: str, content: pa.Buffer | bytes) -> None:
        with self.filesystem.open_output_stream(path) as stream:
            stream.write(content)


def _without_hadoop_scheme(uri: str) -> str:
    scheme, _, rest = uri.partition("://")
    return f"s3://{rest}" if scheme in ("s3a", "s3n") else uri


def _sync(path: Path) -> None:
    """Force a file, or a folder's entries, to the disk: a ledger file must not be empty after a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
