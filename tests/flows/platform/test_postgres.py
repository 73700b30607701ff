"""B17 on a Prefect server with PostgreSQL, which takes no NUL: artifacts of documents that came with some."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from flows.platform import server
from tests.postgres import running_postgres
from tests.tasks.acquire.reading import outcomes

SHOW = """
import json, sys
from prefect.artifacts import create_markdown_artifact
from flows.run.artifacts import rejects_sample
create_markdown_artifact(key="rejects-sample", markdown=rejects_sample(json.load(sys.stdin)))
"""


@pytest.mark.timeout(600)
def test_a_sample_of_rejects_with_nul_in_their_source_is_stored_and_shown(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flows.run.artifacts import rejects_sample

    keys = {"pattern": "B17-nul-documents.jsonl", "id": "id", "url": "url"}
    raw = (data_dir / "hostile" / keys["pattern"]).read_text(encoding="utf-8")
    found = outcomes("jsonl", data_dir / "hostile", **keys)
    assert "\\u0000" in raw
    assert len(found) == 3
    for outcome in found:
        for value in (outcome.text, outcome.source_id, outcome.url or ""):
            assert value is not None
            assert not {c for c in value if c < " " and c not in "\t\n"}
    rows = [
        {"stage": "filter", "reason": f"reason_{i}", "locator": f"{o.source_id}", "offset": o.offset, "text": o.text}
        for i, o in enumerate(found)
    ]
    want = rejects_sample(rows)
    assert all(f"reason_{i}" in want for i in range(3))

    for name in ("PREFECT_API_URL", "PREFECT_HOME", "PREFECT_API_AUTH_STRING"):
        monkeypatch.delenv(name, raising=False)
    with running_postgres() as address:
        monkeypatch.setenv("PREFECT_API_DATABASE_CONNECTION_URL", address)
        where, listener = server.take_address("127.0.0.1", None)
        child = server.start_server(where, listener, tmp_path)
        try:
            server.wait_healthy(where.api_url, lambda: child.poll() is None, lambda _: None)
            env = {**server.child_env(server.client_env(where, tmp_path)), "PYTHONSAFEPATH": "1"}
            text = json.dumps(rows).encode()
            subprocess.run([sys.executable, "-c", SHOW], input=text, env=env, check=True, timeout=120)
            stored = _artifacts(where.api_url)
        finally:
            child.terminate()
            child.wait(timeout=30)
    assert [(artifact["key"], artifact["data"]) for artifact in stored] == [("rejects-sample", want)]
    assert os.environ["PREFECT_API_DATABASE_CONNECTION_URL"] == address


def _artifacts(api_url: str) -> list[dict[str, str]]:
    """What the server shows."""
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{api_url}/artifacts/filter", data=b"{}", headers=headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        found: list[dict[str, str]] = json.load(answer)
    return found
