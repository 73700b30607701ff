"""The wheel holds all that the commands read, and works without a clone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from corpusmill.models import model_path

REPOSITORY = Path(__file__).resolve().parents[1]
SHIPPED = ["prefect.yaml", "infra/automations.toml", "infra/prefect.env"]
OURS = ("corpusmill", "tasks", "flows", "training", "mill")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of this clone, built here: nothing is downloaded."""
    builders = pytest.importorskip("hatchling.builders.wheel", reason="it comes with the extra dev: make install")
    folder = tmp_path_factory.mktemp("dist")
    return Path(next(iter(builders.WheelBuilder(str(REPOSITORY)).build(directory=str(folder), versions=["standard"]))))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel unpacked into a `site-packages`; what it depends on is this environment's."""
    site = tmp_path_factory.mktemp("env") / "site-packages"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    return site


def python(site: Path, cwd: Path, code: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Python with the wheel on its path, in a folder without anything of ours, as an entry script runs it."""
    env = {name: value for name, value in os.environ.items() if name != "CORPUSMILL_MODELS"}
    env |= {"PYTHONPATH": str(site), "PYTHONSAFEPATH": "1", "XDG_CACHE_HOME": str(cwd / "cache")}
    return subprocess.run(
        [sys.executable, "-c", code, *words], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )


def mill(site: Path, cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The command of the wheel."""
    return python(site, cwd, f"from mill import cli; assert cli.__file__.startswith({str(site)!r}); cli.main()", *words)


def test_the_wheel_holds_code_data_licence_and_notice_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (notice,) = [name for name in names if name.endswith("licenses/NOTICE")]
        assert "CC-BY-4.0" in archive.read(notice).decode()
    files = [
        *SHIPPED,
        *(str(p.relative_to(REPOSITORY)) for d in ("recipes", "rules") for p in (REPOSITORY / d).rglob("*.t*")),
    ]
    assert {f"corpusmill/data/{file}" for file in files} == {
        name for name in names if name.startswith("corpusmill/data/")
    }
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == set(OURS)
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert "corpusmill/extractor/model/model.npz" in names


def test_what_ships_is_found_by_name_and_the_users_own_comes_first(installed: Path, tmp_path: Path) -> None:
    shutil.copytree(model_path("lid.176.ftz").parent, tmp_path / "cache" / "corpusmill" / "models")  # as if fetched
    done = mill(installed, tmp_path, "recipe", "check", "demo")
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    for folder, file in (("recipes", "demo.toml"), ("rules", "gopher.toml")):
        (tmp_path / folder).mkdir()
        text = (REPOSITORY / folder / file).read_text(encoding="utf-8")
        (tmp_path / folder / file).write_text(text.replace('name = "demo"', 'name = "mine"'), encoding="utf-8")
    assert "it builds 'mine'" in mill(installed, tmp_path, "recipe", "check", "demo").stdout
    (tmp_path / "rules" / "gopher.toml").write_text("not rules", encoding="utf-8")
    assert mill(installed, tmp_path, "recipe", "check", "recipes/demo.toml").returncode == 2


def test_deployments_automations_and_settings_are_read_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    code = """
from corpusmill.places import SHIPPED
from flows.platform.deploy import automations, deployments
from flows.platform.server import tuned_settings
print(SHIPPED, *deployments(), len(automations()), len(tuned_settings()) > 5)
"""
    where, *names, automations, tuned = python(installed, tmp_path, code).stdout.split()
    assert where == str(installed / "corpusmill" / "data")
    assert {"build-dataset/demo", "train/demo"} < set(names)
    assert (automations, tuned) == ("5", "True")


def test_models_and_state_lie_in_the_users_folders(installed: Path, tmp_path: Path) -> None:
    def files() -> list[Path]:
        return sorted(path for path in installed.rglob("*") if "__pycache__" not in path.parts)

    before = files()
    code = (
        "from corpusmill.models import models_folder as f; from mill.platform import HOME; print(f(), HOME.absolute())"
    )
    found = python(installed, tmp_path, code).stdout.split()
    assert found == [str(tmp_path / "cache/corpusmill/models"), str(tmp_path / ".corpusmill")]
    assert mill(installed, tmp_path, "status").returncode == 0
    assert files() == before
