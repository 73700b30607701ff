"""The command where the user has no home, and where the cache is read-only: an image that runs as any user.

The user is another one in a user namespace, so that Python finds no home for it; folders are made read-only by a bind
mount, which stops root too. Where the kernel permits neither, these tests are skipped.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from corpusmill import compiled
from corpusmill.config import load_recipe
from corpusmill.models import model_path
from corpusmill.places import python_environment
from corpusmill.store import open_store
from tasks.chain import build

CODE = "from mill.cli import main; main()"
NOBODY = ["unshare", "--user", "--map-user=12345", "--map-group=12345"]
SAID = "kernels are compiled in memory"
RULES = """version = 1
definition = "datatrove"
[[rule]]
name = "too_few_words"
measure = "word_count"
min = 3
says = "It has fewer than 3 words."
source = "test"
"""


def permitted(*command: str) -> bool:
    try:
        return subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


needs_namespaces = pytest.mark.skipif(
    not permitted(*NOBODY) or not permitted("unshare", "-rm", "sh", "-c", 'mount --bind /tmp /tmp && exec "$@"', "sh"),
    reason="unshare of user and mount namespaces is not permitted here",
)


class Place:
    """A working folder with a recipe, and how the command is run in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        draw = random.Random(0)
        names = ("a", "b", "c")
        for name in names:
            (folder / name).mkdir()
            words = [" ".join("".join(draw.choices("aeiolmnrst", k=6)) for _ in range(60)) for _ in range(4)]
            (folder / name / "a.jsonl").write_text("\n".join(json.dumps({"text": f"{text}."}) for text in words))
        (folder / "any.toml").write_text(RULES)
        sources = "".join(f'[source.{name}]\nkind = "jsonl"\nroot = "{folder / name}"\n' for name in names)
        (folder / "r.toml").write_text(
            f'name = "r"\n{sources}[language]\nkeep = ["*"]\nmin_score = 0.0\n'
            f'[filter]\nrules = "{folder / "any.toml"}"\n'
            "[decontaminate]\nbenchmark = []\n[pack]\nseq_len = 64\nvocab_size = 512\n"
        )

    def run(self, *argv: str, around: list[str] = [], **env: str) -> subprocess.CompletedProcess[str]:  # noqa: B006
        """The command, without HOME and the variables of caches but those given."""
        known = {name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_CACHE_HOME")}
        known = {name: value for name, value in known.items() if not name.startswith(("CORPUSMILL", "PREFECT"))}
        given = python_environment({**known, "CORPUSMILL_MODELS": str(model_path("lid.176.ftz").parent), **env})
        command = [*around, sys.executable, "-c", CODE, *argv]
        return subprocess.run(command, cwd=self.folder, env=given, capture_output=True, text=True, check=False)

    def build(self, store: str, *, around: list[str], workers: int = 1, **env: str) -> tuple[str, str]:
        """Digest of the dataset, and what was said beside it."""
        argv = ["build", "r.toml", "--store", store, "--create-store", "--workers", str(workers), "--json"]
        done = self.run(*argv, around=around, **env)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["manifest"], done.stderr


def read_only(folder: Path) -> list[str]:
    """Runs what follows with a folder mounted read-only."""
    script = f'mount --bind "{folder}" "{folder}" && mount -o remount,ro,bind "{folder}" && exec "$@"'
    return ["unshare", "-rm", "sh", "-c", script, "sh"]


@pytest.fixture(scope="module")
def kernels() -> str:
    """Where this machine keeps compiled kernels."""
    return str(compiled.folders()[0])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("place"))


@pytest.fixture(scope="module")
def digest(place: Place) -> str:
    store = open_store(place.folder / "usual", create=True)
    wanted = load_recipe(place.folder / "r.toml")
    return build(wanted, store, lambda stage, unit, jobs: [unit(job) for job in jobs]).digest


@needs_namespaces
@pytest.mark.parametrize(
    ("argv", "code", "says"),
    [
        (["--version"], 0, ""),
        (["recipe", "check", "r.toml"], 0, "no faults"),
        (["plan", "r.toml", "--store", "none"], 0, "units"),
        (["status"], 0, "nothing is running"),
        (["doctor", "store", "--store", "~/store"], 2, "HOME is not set"),
    ],
)
def test_commands_need_no_home(argv: list[str], code: int, says: str, place: Place) -> None:
    done = place.run(*argv, around=NOBODY)
    assert (done.returncode, says in done.stdout + done.stderr) == (code, True), done.stderr


@needs_namespaces
def test_a_model_that_cannot_be_kept_says_which_variable_names_its_folder(place: Place) -> None:
    for argv in (["models", "fetch"], ["plan", "r.toml"]):
        done = place.run(*argv, around=[*NOBODY, "env", "-u", "CORPUSMILL_MODELS"])
        if done.returncode:  # a clone may have it where earlier versions kept it
            assert "Set CORPUSMILL_MODELS" in done.stderr
            assert "internal" not in done.stderr


@needs_namespaces
def test_a_build_without_a_home_and_with_a_read_only_install_gives_the_same_dataset(
    place: Place, digest: str, kernels: str
) -> None:
    around = [*read_only(Path(kernels)), *NOBODY]
    found, said = place.build("nobody", around=around, CORPUSMILL_KERNELS=kernels)
    assert found == digest
    assert said.count(SAID) == 0


@pytest.mark.long
@needs_namespaces
@pytest.mark.parametrize("how", ["cache", "home"])
def test_a_read_only_cache_with_kernels_in_it_is_used(how: str, place: Place, digest: str, kernels: str) -> None:
    folder = place.folder / how
    cache = folder if how == "cache" else folder / ".cache"
    (cache / "corpusmill").mkdir(parents=True)
    (cache / "corpusmill" / "kernels").symlink_to(kernels)
    name = "XDG_CACHE_HOME" if how == "cache" else "HOME"
    found, said = place.build(f"of-{how}", around=[*read_only(folder), "env", f"{name}={folder}"])
    assert found == digest
    assert said.count(SAID) == 0


@pytest.mark.long
@needs_namespaces
@pytest.mark.parametrize("how", ["no home", "read-only cache", "read-only home"])
def test_without_a_cache_kernels_are_compiled_in_memory_and_one_line_says_so(
    how: str, place: Place, digest: str
) -> None:
    folder = place.folder / how.replace(" ", "-")
    folder.mkdir()
    name = "XDG_CACHE_HOME" if how == "read-only cache" else "HOME"
    around = NOBODY if how == "no home" else [*read_only(folder), "env", f"{name}={folder}"]
    found, said = place.build(f"store-{folder.name}", around=around, workers=2)
    assert found == digest
    assert said.count(SAID) == 1
    assert "once on this machine" not in said
    assert "Traceback" not in said


@pytest.mark.long
@needs_namespaces
def test_the_demo_runs_without_a_home_and_with_a_read_only_cache(place: Place, kernels: str, tmp_path: Path) -> None:
    demo = Place(tmp_path)
    for around in (NOBODY, [*read_only(Path(kernels)), *NOBODY]):
        done = demo.run("demo", "--no-server", around=around, CORPUSMILL_KERNELS=kernels)
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
