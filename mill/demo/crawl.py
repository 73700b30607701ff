"""A small web crawl for the demo, made on the spot: a tree like Common Crawl's, with the truth about every record.

Two crawls of three WARC files each. Real text (`mill/demo/pages.py`) stands in several sites' templates; beside it is
what a crawl brings: mirrors, near-duplicates, revisits, other languages, old charsets, spam, benchmark items, owners
who object, redirects, missing pages, files under a wrong type, and an archive whose end is missing. Dates are fixed and
record ids are hashes of the URL, so the same installed packages give the same bytes.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import random
import shutil
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from corpusmill.errors import Refused
from mill.demo.pages import (
    Article,
    articles,
    as_html,
    edited,
    made_items,
    made_language,
    planted,
    spam_pages,
)

CRAWLS = ("DEMO-2026-05", "DEMO-2026-09")
"""Ids of the two crawls, oldest first."""

FILES = 3
"""WARC files a crawl."""

BENCHMARK = "benchmarks/demo-arithmetic.jsonl"
"""The made benchmark, below the folder of the crawl."""

LANGUAGES = (
    ("German", "de", "utf-8"),
    ("French", "fr", "windows-1252"),
    ("Spanish", "es", "utf-8"),
    ("Italian", "it", "iso-8859-1"),
    ("Polish", "pl", "iso-8859-2"),
    ("Russian", "ru", "koi8-r"),
    ("Ukrainian", "uk", "windows-1251"),
    ("Greek", "el", "iso-8859-7"),
    ("Turkish", "tr", "utf-8"),
    ("Vietnamese", "vi", "utf-8"),
    ("Finnish", "fi", "utf-16"),
    ("Hungarian", "hu", "utf-8"),
)


@dataclass(frozen=True)
class Page:
    """One record to write: a response, or a revisit where `revisit_of` names the URL of the first visit."""

    url: str
    kind: str
    body: bytes = b""
    status: str = "200 OK"
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "text/html"),)
    text: str | None = None
    language: str | None = None
    charset: str | None = None
    of: str | None = None
    items: tuple[str, ...] = ()
    revisit_of: str | None = None


def make(folder: Path, size: int | None = None) -> Path:
    """Make the crawl under `folder`, or keep the one that is there.

    Writes collinfo.json, crawl-data/<crawl>/{warc,wet}.paths.gz and the files they list, the benchmark, and
    truth.jsonl: one line a response or revisit, which says where it is, what it is, what it is a copy of.

    Args:
        size: make pages of this number of articles (at least 42), for a smaller crawl; else of all.

    Returns:
        `folder`.

    Raises:
        Refused: the folder holds something else.
    """
    if (folder / "truth.jsonl").is_file():
        return folder
    if folder.exists() and any(folder.iterdir()):
        raise Refused(f"{folder} holds something else than a demo crawl", "", "Name an empty or a new folder.")
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    items = made_items(60)
    truth = []
    for crawl, pages in zip(CRAWLS, plan(items, size), strict=True):
        for number in range(FILES):
            part = pages[number::FILES]
            cut = crawl == CRAWLS[-1] and number == FILES - 1
            if cut:
                part.sort(key=lambda page: page.kind == "real")
            truth += _write_file(partial, crawl, number, part, cut=cut)
        for kind, suffix in (("warc", ".warc.gz"), ("wet", ".warc.wet.gz")):
            lines = [_path(crawl, kind, number, suffix) + "\n" for number in range(FILES)]
            paths = gzip.compress("".join(lines).encode(), mtime=0)
            _write(partial / "crawl-data" / crawl / f"{kind}.paths.gz", paths)
    info = [{"id": crawl, "name": f"Demo {crawl[5:]}", "from": _date(crawl, 0)[:-1]} for crawl in reversed(CRAWLS)]
    _write(partial / "collinfo.json", json.dumps(info, indent=1).encode())
    _write_lines(partial / BENCHMARK, items)
    _write_lines(partial / "truth.jsonl", truth)
    partial.replace(folder)
    return folder


def plan(items: Sequence[dict[str, str]], size: int | None) -> tuple[list[Page], list[Page]]:
    """What each crawl holds, in the order of its records."""
    pool = list(articles())
    random.Random("demo/articles").shuffle(pool)
    pool = pool[:size]
    host, base = pool[:16], pool[16:]
    half = len(base) * 3 // 5
    first = [_page(a, "real", "docs.alpha.example", 0) for a in base[:half]]
    second = [_page(a, "real", "docs.alpha.example", 0) for a in base[half:]]
    for i, article in enumerate(base[:half]):
        url = first[i].url
        if i % 12 == 0:
            second.append(_page(article, "same page again", "docs.alpha.example", 0, of=url))
        elif i % 12 == 1:
            first.append(_page(article, "mirror", "mirror.beta.example", 1, of=url))
        elif i % 12 == 2:
            second.append(_page(article, "mirror", "copy.gamma.example", 2, of=url))
        elif i % 12 == 3:
            near = edited(article, 0.01, "light")
            second.append(_page(near, "near-duplicate", "notes.delta.example", 1, of=url))
        elif i % 12 == 4:
            second.append(Page(url, "revisit", revisit_of=url, of=url))
        elif i % 24 == 5:
            second.append(_page(edited(article, 0.5, "heavy"), "rewritten", "notes.delta.example", 2, of=url))
    for i, article in enumerate(host):
        put = items[2 * i : 2 * i + 2]
        page = _page(planted(article, put), "planted", "quiz.epsilon.example", i % 3)
        (first if i % 2 else second).append(replace(page, items=tuple(item["id"] for item in put)))
    first += [_foreign(*language, number=0) for language in LANGUAGES]
    second += [_foreign(*language, number=1) for language in LANGUAGES]
    for i, article in enumerate(spam_pages()):
        (first if i % 2 else second).append(_page(article, "spam", "offers.zeta.example", i % 3))
    first += _oddities(base[half : half + 12], "one")
    second += _oddities(base[:12], "two")
    for crawl, pages in zip(CRAWLS, (first, second), strict=True):
        random.Random(f"demo/order/{crawl}").shuffle(pages)
    return first, second


def _page(article: Article, kind: str, site: str, template: int, of: str | None = None) -> Page:
    body = as_html(article, site, template).encode()
    language = "en" if article.language == "en" else None
    url = f"https://{site}/{article.slug}"
    return Page(url, kind, body, text=article.text(), language=language, charset="utf-8", of=of)


def _foreign(name: str, language: str, charset: str, *, number: int) -> Page:
    """A page of another language in a charset of its region; an odd number is declared by header, not by the page."""
    article = made_language(name, 320, number)
    declared = charset if number == 0 and charset != "utf-16" else ""
    markup = as_html(article, "welt.eta.example", number, charset=declared)
    body = markup.encode(charset, errors="xmlcharrefreplace")
    header = "text/html" if number == 0 or charset == "utf-16" else f"text/html; charset={charset}"
    return Page(
        f"https://welt.eta.example/{article.slug}",
        "foreign",
        body,
        headers=(("Content-Type", header),),
        text=article.text(),
        language=language,
        charset=charset,
    )


def _oddities(some: Sequence[Article], tag: str) -> Iterator[Page]:
    """Answers that are not simply a page; `some` are at least 12 articles to make them from."""
    site = f"{tag}.theta.example"
    for i in range(5):
        moved = (("Location", f"https://docs.alpha.example/{some[i].slug}"), ("Content-Type", "text/html"))
        yield Page(f"https://{site}/moved/{i}", "redirect", b"<p>Moved.</p>", "301 Moved Permanently", moved)
        yield Page(f"https://{site}/missing/{i}", "missing", b"<h1>Not found</h1>", "404 Not Found")
    private = '<meta name="robots" content="noindex, nofollow">'
    for i, article in enumerate(some[5:8]):
        body = as_html(article, site, i, head=private).encode()
        yield Page(f"https://{site}/private/{i}", "noindex", body, text=article.text(), language="en")
    objecting = (("Content-Type", "text/html"), ("X-Robots-Tag", "noindex"))
    body = as_html(some[8], site, 0).encode()
    yield Page(f"https://{site}/objecting", "noindex", body, headers=objecting, language="en")
    zipped = (("Content-Type", "text/html; charset=utf-8"), ("Content-Encoding", "gzip"))
    body = gzip.compress(as_html(some[9], site, 1).encode(), mtime=0)
    yield Page(f"https://{site}/zipped", "zipped", body, headers=zipped, text=some[9].text(), language="en")
    chunked = (("Content-Type", "text/html"), ("Transfer-Encoding", "chunked"))
    body = _chunked(as_html(some[10], site, 2).encode())
    yield Page(f"https://{site}/chunked", "chunked", body, headers=chunked, text=some[10].text(), language="en")
    yield Page(f"https://{site}/report.pdf", "not html", b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog >>\nendobj\n%%EOF\n")
    yield Page(f"https://{site}/logo.png", "not html", b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    yield Page(f"https://{site}/empty", "empty")


def _chunked(body: bytes) -> bytes:
    parts = [body[i : i + 4096] for i in range(0, len(body), 4096)]
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def _write_file(folder: Path, crawl: str, number: int, pages: Sequence[Page], *, cut: bool) -> list[dict[str, object]]:
    """Write one WARC file and its WET file; with `cut` the last record of the WARC file ends in its middle."""
    truth: list[dict[str, object]] = []
    file = _path(crawl, "warc", number, ".warc.gz")
    out = io.BytesIO()
    writer = WARCWriter(out, gzip=True)
    writer.write_record(_warcinfo(writer, crawl, number))
    for i, page in enumerate(pages):
        date, offset = _date(crawl, number * 1000 + i), out.tell()
        if number == 0:
            writer.write_record(_request(writer, page, date, crawl))
            offset = out.tell()
        writer.write_record(_record(writer, page, date, crawl))
        truth.append(
            {"crawl": crawl, "file": _path(crawl, "warc", number, ".warc.gz"), "offset": offset, **_facts(page)}
        )
    data = out.getvalue()
    if cut:
        start = int(str(truth[-1]["offset"]))
        data = data[: start + (len(data) - start) * 3 // 5]
        truth[-1]["kind"] = "cut"
    _write(folder / file, data)
    wet = io.BytesIO()
    writer = WARCWriter(wet, gzip=True)
    writer.write_record(_warcinfo(writer, crawl, number))
    for i, page in enumerate(pages):
        if page.text is not None and not page.revisit_of:
            headers = _ids(crawl, "conversion", page.url, _date(crawl, number * 1000 + i))
            writer.write_record(_plain(writer, "conversion", page.url, "text/plain", page.text, headers))
    _write(folder / _path(crawl, "wet", number, ".warc.wet.gz"), wet.getvalue())
    return truth


def _facts(page: Page) -> dict[str, object]:
    return {
        "url": page.url,
        "kind": page.kind,
        "language": page.language,
        "charset": page.charset,
        "copy_of": page.of,
        "items": list(page.items),
    }


def _record(writer: WARCWriter, page: Page, date: str, crawl: str) -> object:
    headers = StatusAndHeaders(
        page.status, [*page.headers, ("Content-Length", str(len(page.body)))], protocol="HTTP/1.1"
    )
    ids = _ids(crawl, page.kind, page.url, date)
    if page.revisit_of:
        digest = "sha1:" + base64.b32encode(hashlib.sha1(page.url.encode(), usedforsecurity=False).digest()).decode()
        first = _date(CRAWLS[0], 0)
        return writer.create_revisit_record(page.url, digest, page.revisit_of, first, headers, {**ids})
    return writer.create_warc_record(
        page.url, "response", io.BytesIO(page.body), len(page.body), http_headers=headers, warc_headers_dict={**ids}
    )


def _request(writer: WARCWriter, page: Page, date: str, crawl: str) -> object:
    site = page.url.split("/")[2]
    headers = StatusAndHeaders("GET / HTTP/1.1", [("Host", site)], is_http_request=True)
    ids = _ids(crawl, "request", page.url, date)
    return writer.create_warc_record(
        page.url, "request", io.BytesIO(), 0, http_headers=headers, warc_headers_dict={**ids}
    )


def _warcinfo(writer: WARCWriter, crawl: str, number: int) -> object:
    text = f"software: corpusmill demo\r\nformat: WARC File Format 1.0\r\nisPartOf: {crawl}\r\n"
    ids = _ids(crawl, "warcinfo", str(number), _date(crawl, number * 1000))
    return _plain(writer, "warcinfo", "", "application/warc-fields", text, ids)


def _plain(writer: WARCWriter, kind: str, url: str, mime: str, text: str, headers: dict[str, str]) -> object:
    data = text.encode()
    return writer.create_warc_record(url, kind, io.BytesIO(data), len(data), mime, {**headers})


def _ids(crawl: str, kind: str, url: str, date: str) -> dict[str, str]:
    return {
        "WARC-Record-ID": f"<urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{crawl} {kind} {url}')}>",
        "WARC-Date": date,
    }


def _date(crawl: str, second: int) -> str:
    hour, rest = divmod(second, 3600)
    return f"2026-{crawl[-2:]}-10T{hour:02d}:{rest // 60:02d}:{rest % 60:02d}Z"


def _path(crawl: str, kind: str, number: int, suffix: str) -> str:
    month = crawl[-2:]
    return f"crawl-data/{crawl}/segments/2026{month}.{number % 2}/{kind}/{crawl}-{number:05d}{suffix}"


def _write_lines(path: Path, rows: Sequence[object]) -> None:
    _write(path, "".join(json.dumps(row, ensure_ascii=False, sort_keys=True) + "\n" for row in rows).encode())


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
