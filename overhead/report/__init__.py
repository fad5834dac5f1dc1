"""The pages: files without scripts or network, made of registered sections, from fingerprint files
alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from overhead.errors import UsageError, require_extra
from overhead.loading.folders import Skipped
from overhead.loading.show import report_skipped
from overhead.report.core.registry import register, register_across
from overhead.results import Fingerprint

if TYPE_CHECKING:
    from overhead.report.core.machines import Machines

__all__ = ["build", "register", "register_across", "render"]


def build(
    paths: Sequence[Path],
    out: Path,
    documents: str = "",
    reference: str = "",
    *,
    example: bool = False,
    one_file: bool = False,
) -> Path:
    """Write the pages of a report to the folder ``out``, from fingerprints (files of runs),
    journals and folders of them; returns the path of the first page.

    It opens with the newest run of the first path that holds one. A bad file named alone raises
    ``BadFile``; among several, or in a folder, it is skipped and listed on stderr and in the page.
    An output folder that cannot be written raises ``UsageError``. ``documents``: where the first
    page finds the documents, so that all pages link to them. ``reference``: the run that the
    machine is compared with: a file, or a part of the name of a machine. ``example``: beside the
    pages of a machine without a GPU stand those of the example run, which has one. ``one_file``:
    all pages go into the file ``out``, which needs no other file, in place of a folder.
    """
    require_extra("report", "jinja2", "matplotlib", "seaborn")
    from overhead.report.core.machines import from_paths, with_example

    machines = from_paths(paths, reference)
    if example:
        machines = with_example(machines)
    report_skipped(machines.skipped)
    return _write(machines, out, documents, one_file=one_file)


def render(
    fingerprints: Iterable[Fingerprint],
    out: Path,
    skipped: Sequence[Skipped] = (),
    *,
    one_file: bool = False,
) -> Path:
    """Write the pages of a report from runs in memory; returns the first page's path. The machine
    of the newest run is shown in full. ``skipped``: files that could not be read, which the page
    lists. ``one_file``: as in ``build``.
    """
    require_extra("report", "jinja2", "matplotlib", "seaborn")
    from overhead.report.core.machines import from_fingerprints

    return _write(from_fingerprints(fingerprints, skipped), out, one_file=one_file)


def _write(machines: Machines, out: Path, documents: str = "", *, one_file: bool) -> Path:
    """Write the pages; a folder that cannot be written is an error of wrong use. ``documents``: as
    in ``build``; '' for no links.
    """
    from overhead.report.core.pages import write_one_file, write_pages

    try:
        if one_file:
            return write_one_file(machines, out)
        return write_pages(machines, out, documents)
    except OSError as error:
        raise UsageError(f"{out}: cannot write the page: {error.strerror or error}") from error
