"""The page: one file without scripts or network, made of registered sections, from fingerprint files alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overhead.collection import Skipped, collect, tell
from overhead.errors import UsageError
from overhead.reading.format import plain
from overhead.reading.view import View
from overhead.report.parts import Drawing, Part
from overhead.report.registry import register, registered
from overhead.results import Fingerprint

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = ["build", "register", "render"]
PAGE = "index.html"
FIGURES = "figures"


def build(paths: Sequence[Path], out: Path) -> Path:
    """Draw the page from fingerprints, journals and folders of them; returns the path of the page.

    A bad file named alone raises ``BadFile``; among several, or in a folder, it is skipped and listed on stderr and in
    the page. An output folder that cannot be written raises ``UsageError``.
    """
    loaded, skipped = collect(paths)
    tell(skipped)
    return render([one.fingerprint for one in loaded], out, skipped)


def render(fingerprints: Sequence[Fingerprint], out: Path, skipped: Sequence[Skipped] = ()) -> Path:
    """Write ``index.html`` and ``figures/`` under ``out``. The newest machine is shown in full, the others in brief."""
    if not fingerprints:
        raise UsageError("no fingerprint to draw")
    from overhead.report import draw

    machines = _newest(fingerprints)
    try:
        (out / FIGURES).mkdir(parents=True, exist_ok=True)
        with draw.style():
            shown = [_machine(m, out / FIGURES, full=index == 0) for index, m in enumerate(machines)]
        page = out / PAGE
        page.write_text(_page(shown, skipped), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{out}: cannot write the page: {error.strerror or error}") from error
    return page


def _newest(fingerprints: Sequence[Fingerprint]) -> list[Fingerprint]:
    """The newest run of each machine, newest first."""
    machines: dict[str, Fingerprint] = {}
    for fingerprint in sorted(fingerprints, key=lambda f: f.created, reverse=True):
        machines.setdefault(fingerprint.machine.id, fingerprint)
    return list(machines.values())


def _machine(fingerprint: Fingerprint, figures: Path, *, full: bool) -> dict[str, Any]:
    view = View(fingerprint)
    built = [(s, list(s.build(view))) for s in registered() if full or s.brief]
    prefix = "" if full else f"{fingerprint.machine.id}-"
    return {
        "fingerprint": fingerprint,
        "prefix": prefix,
        "sections": [
            {"name": s.name, "title": s.title, "parts": [_drawn(p, figures, prefix) for p in parts]}
            for s, parts in built
            if parts
        ],
    }


def _drawn(part: Part, figures: Path, prefix: str) -> Any:
    """The part as the template takes it; a drawing's files are written on the way."""
    if not isinstance(part, Drawing):
        return part
    from overhead.report import draw

    name = prefix + part.name
    text = draw.svg(part.figure)
    (figures / f"{name}.svg").write_text(text, encoding="utf-8")
    part.figure.savefig(figures / f"{name}.png")
    return {"kind": part.kind, "name": name, "title": part.title, "caption": part.caption,
            "svg": _markup(draw.inline(text, name, part.alt))}  # fmt: skip


def _markup(text: str) -> Markup:
    from markupsafe import Markup

    return Markup(text)  # matplotlib escapes what it draws


def _page(machines: list[dict[str, Any]], skipped: Sequence[Skipped]) -> str:
    import jinja2

    from overhead.report.palette import colour

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("overhead.report", "."), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["plain"] = plain
    environment.globals["colour"] = colour
    css = (Path(__file__).parent / "page.css").read_text(encoding="utf-8")
    return environment.get_template("page.html.j2").render(machines=machines, skipped=skipped, css=_markup(css))
