"""A store on S3 behind a proxy that is busy, cuts, flips and resets: the same dataset."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpusmill.store import open_store
from tasks.chain import build
from tests.faultproxy import Faults, faulty
from tests.golden import recipe, write_crawl
from tests.servers import S3Server


@pytest.mark.usefixtures("brief_waits")
def test_a_store_behind_a_busy_proxy_gets_every_object_once(
    s3_uri: str, s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crawl = recipe(write_crawl(tmp_path / "crawl"))

    def built(uri: str) -> str:
        return build(crawl, open_store(uri, create=True), lambda stage, fn, units: [fn(one) for one in units]).digest

    want = built(str(tmp_path / "plain"))
    open_store(s3_uri, create=True)
    with faulty(s3_server.endpoint, Faults(busy=0.3, reset=0.02, seed=11, retry_after=None)) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
        assert built(s3_uri) == want
        assert proxy.faults["busy"] > 50
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_server.endpoint)
    store = open_store(s3_uri)
    assert sorted(store.list("objects/")) == sorted(open_store(tmp_path / "plain").list("objects/"))
    assert sorted(store.list("receipts/")) == sorted(open_store(tmp_path / "plain").list("receipts/"))
