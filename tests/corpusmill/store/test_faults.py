"""What goes wrong outside: disk, server, bucket, credentials. One clear message, the right code, nothing half-done."""

from __future__ import annotations

import errno
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import corpusmill.store.folder
import corpusmill.store.s3
from corpusmill.errors import MillError, NotFound, Refused, Unavailable, UsageError
from corpusmill.redact import redacted
from corpusmill.store import Store, Unit, open_store
from tests.servers import free_ports

UNIT = Unit("extract", 1, {}, ("input",))


def message(caught: pytest.ExceptionInfo[MillError]) -> tuple[int, str]:
    return caught.value.exit_code, str(caught.value)


def test_a_store_that_is_not_there_is_not_found_and_nothing_is_made(tmp_path):
    with pytest.raises(NotFound) as caught:
        open_store(tmp_path / "none")
    code, text = message(caught)
    assert code == 3
    assert str(tmp_path / "none") in text
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_is_not_there_is_not_found_on_s3(s3_uri):
    with pytest.raises(NotFound) as caught:
        open_store(s3_uri)
    assert message(caught)[0] == 3
    assert s3_uri in str(caught.value)


def test_a_folder_with_other_things_does_not_become_a_store(tmp_path):
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(Refused):
        open_store(tmp_path, create=True)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_opening_twice_is_opening_once(store_uri):
    one, other = open_store(store_uri, create=True), open_store(store_uri, create=True)
    assert one.list("") == other.list("") == ["STORE.json"]


def test_a_file_address_is_a_folder_and_other_schemes_are_usage_errors(tmp_path):
    assert open_store(f"file://{tmp_path}/s", create=True).uri == f"{tmp_path}/s"
    for wrong in ("gs://bucket/x", "http://host/x", "s3://", "s3:///x", "s3://bucket/a//b"):
        with pytest.raises(UsageError):
            open_store(wrong)


def test_a_file_in_place_of_the_folder_is_named(tmp_path):
    (tmp_path / "file").write_text("no store")
    for uri in (tmp_path / "file", tmp_path / "file" / "store"):
        with pytest.raises(UsageError, match=f"{tmp_path}/file is a file"):
            open_store(uri, create=True)


def test_a_store_can_be_read_without_the_right_to_write(folder_store):
    receipt = folder_store.commit(UNIT, {"x": folder_store.draft_bytes(b"x")})
    root = Path(folder_store.uri)
    before = sorted(root.rglob("*"))
    reading = open_store(root)
    assert reading.receipt(UNIT) == receipt
    assert reading.bytes(receipt.outputs["x"]) == b"x"
    assert sorted(root.rglob("*")) == before  # not even a temporary folder


def test_files_of_the_store_are_readable_by_others_whatever_the_umask(folder_store):
    old = os.umask(0o077)
    try:
        folder_store.create("runs/x/y", b"y")
    finally:
        os.umask(old)
    assert (Path(folder_store.uri) / "runs/x/y").stat().st_mode & 0o777 == 0o644


# disk


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a tmpfs needs root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def test_a_full_disk_is_told_and_leaves_a_valid_store_that_goes_on_with_more_space(tiny_disk, tmp_path):
    store = open_store(tiny_disk / "store", create=True)
    small, big = os.urandom(300_000), os.urandom(2_000_000)
    first = store.commit(UNIT, {"x": store.draft_bytes(small)})
    second = Unit("extract", 1, {}, ("other",))
    with pytest.raises(Unavailable, match="No space left") as caught:
        store.commit(second, {"x": store.draft_bytes(big)})
    assert message(caught)[0] == 7
    assert str(tiny_disk) in str(caught.value)
    assert [path for path in (tiny_disk / "store/tmp").rglob("*") if path.is_file()] == [
        store.backend._scratch.folder / "owner"
    ]
    assert len(store.list("objects/")) == 1
    assert open_store(store.uri).receipt(UNIT) == first
    assert open_store(store.uri).receipt(second) is None
    subprocess.run(["mount", "-o", "remount,size=8m", tiny_disk], check=True)
    assert store.bytes(store.commit(second, {"x": store.draft_bytes(big)}).outputs["x"]) == big


@pytest.mark.parametrize("call", ["write", "fsync", "link", "mkdir"])
@pytest.mark.parametrize("fault", [errno.ENOSPC, errno.EIO, errno.EACCES])
def test_a_fault_of_any_system_call_is_one_message_and_leaves_nothing(folder_store, monkeypatch, call, fault):
    class Failing:
        def __getattr__(self, name: str) -> object:
            if name == call:
                return self.fail
            return getattr(os, name)

        def fail(self, *_: object, **__: object) -> None:
            raise OSError(fault, os.strerror(fault))

    draft = folder_store.draft_bytes(b"x" * 1000)
    with monkeypatch.context() as patch:
        patch.setattr(corpusmill.store.folder, "os", Failing())
        with pytest.raises(Unavailable) as caught:
            folder_store.commit(UNIT, {"x": draft})
    assert message(caught)[0] == 7
    root = Path(folder_store.uri)
    assert [path for path in root.rglob("*") if path.is_file() and path.name not in ("STORE.json", "owner")] == []
    assert folder_store.commit(UNIT, {"x": draft}).outputs["x"].size == 1000


def test_a_file_system_without_hard_links_is_refused(tmp_path, monkeypatch):
    def no_links(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    with pytest.raises(Unavailable, match="cannot hold a store"):
        open_store(tmp_path / "store", create=True)


def test_a_full_scratch_disk_is_told(folder_store, tiny_disk, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tiny_disk))
    store = open_store(folder_store.uri)
    table = pa.table({"noise": [os.urandom(100_000) for _ in range(30)]})
    with pytest.raises(Unavailable, match="No space left"):
        store.draft_table(table)
    with pytest.raises(Unavailable, match="No space left"):
        store.draft_bytes(os.urandom(3_000_000))
    assert [path.name for path in tiny_disk.rglob("*") if path.is_file()] == ["owner"]
    assert store.draft_bytes(b"small").size == 5


def test_a_draft_stays_when_the_store_that_made_it_is_gone(folder_store):
    draft = open_store(folder_store.uri).draft_bytes(b"z")
    assert draft.path.read_bytes() == b"z"


# server


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"AWS_SECRET_ACCESS_KEY": "wrong"}, "SignatureDoesNotMatch"),
        ({"AWS_ACCESS_KEY_ID": "wrong"}, "InvalidAccessKeyId"),
        ({"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None}, "credentials"),
    ],
)
def test_wrong_or_absent_credentials_are_told_without_showing_them(s3_store, s3_server, monkeypatch, change, says):
    for name, value in change.items():
        if value is None:
            monkeypatch.delenv(name)
        else:
            monkeypatch.setenv(name, value)
    for create in (False, True):
        with pytest.raises(Unavailable, match=says) as caught:
            open_store(s3_store.uri, create=create)
        code, text = message(caught)
        assert code == 7
        assert "AWS_SECRET_ACCESS_KEY" in text
        assert s3_server.secret_key not in text


def test_credentials_that_go_bad_during_a_run_end_it_with_the_finished_work_kept(s3_store, s3_server, monkeypatch):
    receipt = s3_store.commit(UNIT, {"x": s3_store.draft_bytes(b"x")})
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "revoked")
    s3_store.backend.client = corpusmill.store.s3._client(os.getpid(), *corpusmill.store.s3._surroundings())
    with pytest.raises(Unavailable):
        s3_store.commit(Unit("extract", 1, {}, ("other",)), {"x": s3_store.draft_bytes(b"y")})
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3_server.secret_key)
    assert open_store(s3_store.uri).receipt(UNIT) == receipt


@pytest.mark.parametrize("create", [False, True])
def test_a_missing_bucket_is_told_and_never_made(s3_uri, s3_server, create):
    with pytest.raises(Unavailable, match="does not exist") as caught:
        open_store("s3://no-such-bucket/store", create=create)
    assert message(caught)[0] == 7
    assert "no-such-bucket" not in [bucket["Name"] for bucket in s3_server.client().list_buckets()["Buckets"]]


def test_a_server_that_is_away_is_told_within_seconds_at_the_first_contact(s3_uri, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free_ports(1)[0]}")
    start = time.monotonic()
    with pytest.raises(Unavailable, match="does not answer") as caught:
        open_store(s3_uri)
    assert message(caught)[0] == 7
    assert time.monotonic() - start < 30


def test_a_server_that_goes_away_during_a_run_is_waited_for_and_then_told(s3_store, monkeypatch):
    assert s3_store.backend.retry_for_s == 60
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free_ports(1)[0]}")
    s3_store.backend.client = corpusmill.store.s3._client(os.getpid(), *corpusmill.store.s3._surroundings())
    s3_store.backend.retry_for_s = 0.3
    with pytest.raises(Unavailable):
        s3_store.commit(UNIT, {"x": s3_store.draft_bytes(b"x")})


def test_messages_show_neither_signatures_nor_passwords():
    said = 'Could not connect to "http://user:pass@host:1/b/k?X-Amz-Signature=abc&x=1" now'
    assert redacted(said) == 'Could not connect to "http://host:1/b/k?..." now'


def test_a_nonsense_endpoint_is_a_usage_error(s3_uri, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "127.0.0.1:9000")
    with pytest.raises(UsageError, match="AWS_ENDPOINT_URL"):
        open_store(s3_uri)


def test_custom_endpoints_get_path_style_and_amazon_does_not(s3_store, monkeypatch):
    assert _style(s3_store) == "path"
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    client = corpusmill.store.s3._client(os.getpid(), *corpusmill.store.s3._surroundings())
    assert (client.meta.config.s3 or {}).get("addressing_style") != "path"
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://minio:9000")
    client = corpusmill.store.s3._client(os.getpid(), *corpusmill.store.s3._surroundings())
    assert client.meta.config.s3["addressing_style"] == "path"


def _style(store: Store) -> str:
    return str(store.backend.client.meta.config.s3["addressing_style"])  # type: ignore[attr-defined]


def test_an_object_too_large_for_one_put_is_refused_before_it_is_sent(s3_store, monkeypatch):
    monkeypatch.setattr(corpusmill.store.s3, "MAX_OBJECT_BYTES", 10)
    with pytest.raises(UsageError, match="shards"):
        s3_store.create("runs/x/y", b"x" * 11)


def test_a_draft_that_changes_before_it_is_stored_is_noticed(store):
    draft = store.draft_bytes(b"before")
    draft.path.write_bytes(b"after!")
    with pytest.raises(MillError, match="changed after it was hashed"):
        store.commit(UNIT, {"x": draft})
    assert store.list("objects/") == []
