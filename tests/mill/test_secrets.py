"""Canaries in the places where secrets are given; none is found in what a run says, logs, keeps or leaves behind."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from corpusmill.store import open_store
from mill import cli
from tests.tasks.acquire.server import serve
from tests.tasks.ingest.crawls import OLD, add_crawl

CANARY = "CANARYxq7"


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, brief_waits: None) -> Path:
    """A crawl to serve, with secrets in the environment; temporary files are in tmp_path too."""
    for name in ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "HF_TOKEN", "PREFECT_API_KEY", "MY_PASSWORD"):
        monkeypatch.setenv(name, f"{CANARY}-{name.lower()}")
    monkeypatch.setenv("https_proxy", f"http://me:{CANARY}-proxy@127.0.0.1:9")
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", None)
    add_crawl(tmp_path / "tree", OLD)
    return tmp_path


def ask(folder: Path, root: str, *argv: str, capfd: Any, caplog: Any) -> tuple[int, str]:
    """Exit code, and all that was said: stdout, stderr, log records of any level."""
    file = folder / "web.toml"
    file.write_text(f'name = "web"\n[source.crawl]\nkind = "common-crawl"\nroot = "{root}"\ncrawls = ["newest"]\n')
    with caplog.at_level(logging.DEBUG):
        code = cli.run((argv[0], str(file), "--store", str(folder / "store"), *argv[1:]))
    file.unlink()
    out, err = capfd.readouterr()
    said = out + err + caplog.text
    caplog.clear()
    return code, said


def kept(folder: Path) -> bytes:
    """All bytes of the store (checked before compression by its own readers, tables included) and temporary files."""
    found = [path.read_bytes() for part in ("store", "tmp") for path in (folder / part).rglob("*") if path.is_file()]
    found += [str(path).encode() for part in ("store", "tmp") for path in (folder / part).rglob("*")]
    if (folder / "store" / "STORE.json").exists():
        from corpusmill.store import Output
        from corpusmill.store.receipts import unseal

        store = open_store(folder / "store")
        for name in store.list("receipts/"):
            for output in unseal(store.get(name), name)["outputs"].values():
                if output["rows"] is not None:
                    found.append(repr(store.table(Output.from_json(output)).to_pylist()).encode())
    return b"\n".join(found)


def test_an_ingestion_with_a_password_in_the_address_leaves_it_nowhere(planted: Path, capfd: Any, caplog: Any) -> None:
    def busy_twice(number: int, path: str) -> str | None:
        return {1: "429", 2: "reset"}.get(number) if path.endswith("1.warc.gz") else None

    with serve(planted / "tree", busy_twice) as server:
        root = server.url.replace("//", f"//me:{CANARY}@")
        for argv in (
            ("plan",),
            ("ingest", "--create-store", "--workers", "1"),
            ("ingest", "--json"),
            ("plan", "--json"),
        ):
            code, said = ask(planted, root, *argv, capfd=capfd, caplog=caplog)
            assert code == 0, said
            assert CANARY not in said
    assert len(open_store(planted / "store").names()) == 1
    assert CANARY.encode() not in kept(planted)


@pytest.mark.parametrize("as_json", [(), ("--json",), ("-v",)], ids=["text", "json", "verbose"])
@pytest.mark.parametrize("answer", ["400", "403", "404", "500", "reset", "redirect", "nobody", "not a URL"])
def test_an_error_names_host_and_path_and_no_secret(
    planted: Path, capfd: Any, caplog: Any, answer: str, as_json
) -> None:
    signed = f"X-Amz-Signature={CANARY}&X-Amz-Credential={CANARY}"
    fault = f"redirect:http://me:{CANARY}@127.0.0.1:9/elsewhere?{signed}" if answer == "redirect" else answer
    with serve(planted / "tree", lambda number, path: fault) as server:
        root = server.url.replace("//", f"//me:{CANARY}@")
        root = {"nobody": f"http://me:{CANARY}@127.0.0.1:9", "not a URL": f"http://me:{CANARY}@[::1/x"}.get(
            answer, root
        )
        for verb in ("plan", "ingest"):
            more = () if verb == "plan" else ("--create-store", "--workers", "1")
            code, said = ask(planted, f"{root}/status?{signed}", verb, *more, *as_json, capfd=capfd, caplog=caplog)
            assert code not in (0, 1), said
            assert CANARY not in said
            if answer != "not a URL":
                assert "127.0.0.1" in said
            if as_json == ("--json",):
                answered = next(line for line in said.splitlines() if line.startswith('{"'))
                assert {"what", "why", "do"} < json.loads(answered).keys()
    assert CANARY.encode() not in kept(planted)


@pytest.mark.parametrize(
    "root",
    [f"s3://KEY:{CANARY}@bucket/x", f"ftp://me:{CANARY}@host/x", f"https:/me:{CANARY}@host", f"//me:{CANARY}@host/x"],
)
def test_a_root_of_another_kind_is_refused_without_its_secret(
    planted: Path, capfd: Any, caplog: Any, root: str
) -> None:
    code, said = ask(planted, root, "plan", capfd=capfd, caplog=caplog)
    assert code in (2, 3, 7), said
    assert CANARY not in said


@pytest.mark.parametrize(
    "argv",
    [
        ("plan", "none", "--store", f"s3://KEY:{CANARY}@bucket"),
        ("funnel", "web", "--store", f"s3://KEY:{CANARY}@bucket/x"),
        ("funnel", "web", "--store", f"gs://KEY:{CANARY}@bucket/x"),
        ("funnel", f"http://me:{CANARY}@host/x?sig={CANARY}"),
        ("plan", "demo", "--set", f"source.demo.root=['http://me:{CANARY}@h/?t={CANARY}']"),
        ("plan", "demo", "--set", f"http://me:{CANARY}@h/?t={CANARY}"),
        ("plan", f"http://me:{CANARY}@h/recipe.toml?t={CANARY}"),
        ("plan", "demo", f"--nothing=http://me:{CANARY}@h/?t={CANARY}"),
        (f"http://me:{CANARY}@h/?t={CANARY}",),
    ],
)
@pytest.mark.parametrize("as_json", [(), ("--json",)], ids=["text", "json"])
def test_a_wrong_command_line_is_not_repeated_with_its_secrets(capfd: Any, argv: tuple[str, ...], as_json) -> None:
    assert cli.run((*argv, *as_json)) in (2, 3)
    out, err = capfd.readouterr()
    assert err
    assert CANARY not in out + err


def test_a_fault_of_ours_leaves_no_secret_in_its_traceback(planted: Path, monkeypatch, capfd: Any, caplog: Any) -> None:
    def fails(*args: Any) -> None:
        try:
            raise KeyError(f"http://me:{CANARY}@h/?t={CANARY}")
        except KeyError as err:
            raise ZeroDivisionError(f"Authorization: Bearer {CANARY}") from err

    monkeypatch.setattr("tasks.queries.plan.plan", fails)
    code, said = ask(planted, str(planted / "tree"), "plan", "-v", capfd=capfd, caplog=caplog)
    assert code == 1
    assert "ZeroDivisionError" in said
    assert CANARY not in said
    (left,) = (planted / "tmp").glob("mill-fault-*")
    assert "ZeroDivisionError" in left.read_text()
    assert CANARY not in left.read_text()


def test_the_address_of_a_server_that_was_given_is_shown_without_its_password(tmp_path: Path) -> None:
    from flows.platform.supervisor import Platform
    from mill.platform import describe, document

    url = f"http://me:{CANARY}@host:4200/api"
    given = Platform(tmp_path, url, {"PREFECT_API_URL": url}, "store", owned=False)
    said = f"{document(given)}{describe(given)}"
    assert CANARY not in said
    assert "http://host:4200/api" in said
