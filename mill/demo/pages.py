"""Text for the demo crawl that every machine has: Python's manual, docstrings, READMEs of installed packages.

Nothing is imported or run to get it: sources are parsed, metadata is read, so neither paths nor settings of the machine
can slip into a page. An article is a title and blocks of text; `mill/demo/crawl.py` makes pages, mirrors and edits of
it.
"""

from __future__ import annotations

import ast
import html
import random
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import justext
from markdown_it import MarkdownIt

Block = tuple[str, str]
"""(tag, text): tag is h2, h3, p, pre or li."""

MAX_CHARS = 16_000
"""An article is cut at the block that passes this, so that no single README dominates the demo."""


LIBRARIES = (
    "numpy",
    *(f"scipy/{part}" for part in ("interpolate", "linalg", "ndimage", "optimize", "signal", "spatial", "stats")),
    "networkx/algorithms",
)
"""Packages, or folders of them, whose docstrings become pages."""

RAW_ONE_IN = 8
"""One article in this number stays as it is, with code, tables and parameters; of the others the prose is taken."""


@dataclass(frozen=True)
class Article:
    """One page's own content, without any site around it."""

    slug: str
    title: str
    blocks: tuple[Block, ...]
    language: str = "en"

    @property
    def words(self) -> int:
        """Whitespace-separated words of all blocks."""
        return sum(len(text.split()) for _, text in self.blocks)

    def text(self) -> str:
        """Plain text, one line a block, title first."""
        return "\n".join([self.title, *(text for _, text in self.blocks)]) + "\n"


@lru_cache(maxsize=1)
def articles() -> tuple[Article, ...]:
    """Articles of at least 120 words, ordered by slug; the same for the same installed packages."""
    found = sorted([*manual_topics(), *package_readmes(), *module_pages(), *library_pages()], key=lambda a: a.slug)
    chosen = [article if i % RAW_ONE_IN == 0 else prose(article) for i, article in enumerate(found)]
    return tuple(article for article in map(_cut, chosen) if article.words >= 120)


def prose(article: Article) -> Article:
    """The article without code, repeated blocks, and blocks that are more signs than words."""
    blocks: list[Block] = []
    seen = {"parameters", "returns", "notes", "examples", "see also", "references", "other parameters", "raises"}
    for tag, text in article.blocks:
        tokens = re.findall(r"\w+|[^\w\s]", text)
        wordy = len(tokens) >= 6 and sum(token[0].isalpha() for token in tokens) >= 0.75 * len(tokens)
        if tag == "pre" or text.lower() in seen or (tag in ("p", "li") and not wordy):
            continue
        seen.add(text.lower())
        if tag in ("h2", "h3") and blocks and blocks[-1][0] in ("h2", "h3"):
            blocks.pop()  # nothing was left of what it stood over
        blocks.append((tag, text))
    return replace(article, blocks=tuple(blocks))


def manual_topics() -> Iterator[Article]:
    """Chapters of the Python language reference that `pydoc` carries."""
    from pydoc_data.topics import topics

    for name in sorted(topics):
        blocks = list(_plain_blocks(topics[name]))
        title = blocks.pop(0)[1] if blocks and blocks[0][0] == "h2" else name
        yield Article(f"manual/{_slug(name)}", title, tuple(blocks))


def package_readmes() -> Iterator[Article]:
    """Long descriptions of the installed distributions, but our own."""
    seen = {"corpusmill"}
    for dist in sorted(metadata.distributions(), key=lambda d: (d.metadata["Name"] or "").lower()):
        name = (dist.metadata["Name"] or "").lower()
        if name in seen or not name:
            continue
        seen.add(name)
        message: Any = dist.metadata  # an email.message.Message: newer metadata has the text as its payload
        body = str(message.get_payload() or message["Description"] or "")
        markdown = "markdown" in (dist.metadata["Description-Content-Type"] or "")
        blocks = _markdown_blocks(body) if markdown else _plain_blocks(body)
        title = f"{name}: {dist.metadata['Summary'] or 'a package'}"
        yield Article(f"package/{_slug(name)}", " ".join(title.split()), tuple(blocks))


def module_pages() -> Iterator[Article]:
    """Docstrings of the public modules, classes and functions of the standard library, one page a module."""
    root = Path(ast.__file__).parent
    for name in sorted(n for n in sys.stdlib_module_names if not n.startswith("_")):
        for file in (root / f"{name}.py", root / name / "__init__.py"):
            if file.is_file() and name not in ("antigravity", "this", "idlelib", "turtledemo"):
                yield Article(f"module/{_slug(name)}", f"Module {name}", tuple(_docstrings(_parsed(file))))


def library_pages() -> Iterator[Article]:
    """The same for modules of numpy, scipy and, where it is installed, networkx, which have long docstrings."""
    for package in LIBRARIES:
        spec = find_spec(package.partition("/")[0])
        if spec is None or spec.origin is None:
            continue
        root = Path(spec.origin).parents[1]
        for file in sorted((root / package).rglob("*.py")):
            name = ".".join(file.relative_to(root).with_suffix("").parts)
            if "tests" not in file.parts and file.stat().st_size > 8_000:
                yield Article(f"library/{_slug(name)}", f"Module {name}", tuple(_docstrings(_parsed(file))))


def made_language(language: str, words: int, number: int) -> Article:
    """A page of random words of a language: enough for a language classifier, and nobody's text.

    Args:
        language: a name of jusText's word lists, as "German".
        words: how many.
        number: another number, another page.
    """
    pool = sorted(w for w in justext.get_stoplist(language) if len(w) > 1 and w.isalpha())
    draw = random.Random(f"{language}/{number}")
    sentences = []
    while words > 0:
        size = draw.randint(7, 16)
        sentences.append(" ".join(draw.choice(pool) for _ in range(size)).capitalize() + ".")
        words -= size
    paragraphs = [" ".join(sentences[i : i + 5]) for i in range(0, len(sentences), 5)]
    return Article(
        f"{_slug(language)}/{number}",
        " ".join(draw.choice(pool) for _ in range(3)).capitalize(),
        tuple(("p", p) for p in paragraphs),
        language,
    )


def edited(article: Article, share: float, seed: str) -> Article:
    """About `share` of the words of each paragraph replaced by other words of the same article."""
    draw = random.Random(f"edit/{seed}/{article.slug}")
    pool = sorted({w for _, text in article.blocks for w in text.split() if w.isalpha() and len(w) > 3}) or ["word"]

    def change(text: str) -> str:
        return " ".join(draw.choice(pool) if draw.random() < share else word for word in text.split(" "))

    blocks = tuple((tag, change(text) if tag == "p" else text) for tag, text in article.blocks)
    return replace(article, slug=f"{article.slug}-edited", blocks=blocks)


def spam_pages() -> Iterator[Article]:
    """Pages that a quality rule should catch, each by another fault."""
    offers = ["cheap watches", "free prizes", "fast loans", "easy money", "miracle pills", "secret tricks"]
    for i, offer in enumerate(offers):
        line = f"Buy {offer} now and save on {offer} today because our {offer} are the best {offer} of all."
        yield Article(f"repeated-line/{i}", f"Best {offer}", tuple(("p", line) for _ in range(30)))
        yield Article(f"stuffed/{i}", f"{offer} {offer}", (("p", " ".join([f"{offer} online"] * 120)),))
        soon = (
            f"This page will tell you what everybody ought to know about {offer}, but nothing of it is written so far. "
            "Please come back in a week or two, when we have found an author with enough time for such questions."
        )
        yield Article(f"short/{i}", "Coming soon", (("p", soon),))
        teasers = [f"Story {n} about {offer} and the people who like the {offer} of that year ..." for n in range(25)]
        yield Article(f"teasers/{i}", f"News of {offer}", tuple(("p", teaser) for teaser in teasers))
        tags = " ".join(f"#{word}{n}" for n in range(40) for word in offer.split())
        yield Article(f"tags/{i}", "Tags", (("p", f"The tags of the page that have to be with you: {tags}"),))


def made_items(count: int) -> list[dict[str, str]]:
    """Arithmetic word problems made here: a benchmark that is nobody's, each question longer than a 13-gram."""
    names = ["Amara", "Bruno", "Chiara", "Dmitri", "Elif", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Keiko", "Luca"]
    things = ["lanterns", "barrels", "violins", "tickets", "saplings", "kettles", "ribbons", "compasses", "quilts"]
    places = ["harbour", "orchard", "museum", "station", "workshop", "library", "market", "lighthouse"]
    items = []
    for i in range(count):
        draw = random.Random(f"item/{i}")
        name, thing, place = draw.choice(names), draw.choice(things), draw.choice(places)
        boxes, each, sold = draw.randint(11, 97), draw.randint(3, 49), draw.randint(5, 30)
        question = (
            f"{name} carries {boxes} crates with {each} {thing} in every crate to the old {place} and gives {sold} of "
            f"the {thing} to the keeper; how many {thing} does {name} have left to share with the visitors?"
        )
        items.append({"id": f"demo/{i:03d}", "question": question, "answer": str(boxes * each - sold)})
    return items


def planted(article: Article, items: Sequence[dict[str, str]]) -> Article:
    """The article with benchmark items, word for word, between its paragraphs."""
    blocks = list(article.blocks)
    for i, item in enumerate(items):
        at = (i + 1) * len(blocks) // (len(items) + 1)
        blocks.insert(at, ("p", f"{item['question']} {item['answer']}"))
    return replace(article, blocks=tuple(blocks))


def as_html(article: Article, site: str, template: int, *, charset: str = "utf-8", head: str = "") -> str:
    """A whole page: the article in the clothes of a site.

    Args:
        template: 0, 1 or 2: another arrangement and other words around the article.
        charset: what the page declares; empty declares nothing.
        head: further elements of the head.
    """
    meta = f'<meta charset="{charset}">' if charset else ""
    body = "\n".join(_grouped(article.blocks))
    title = html.escape(article.title)
    menu = [("Home", "Guides", "Reference", "About"), ("Start", "Archive", "Contact"), ("Index", "Search", "Help")]
    links = "".join(f'<li><a href="/{word.lower()}">{word}</a></li>' for word in menu[template])
    top = f"<!DOCTYPE html>\n<html>\n<head>\n{meta}\n<title>{title} - {site}</title>\n{head}\n</head>\n"
    if template == 0:
        return (
            f"{top}<body>\n<header><nav><ul>{links}</ul></nav></header>\n<main><article>\n<h1>{title}</h1>\n{body}\n"
            f"</article></main>\n<footer><p>{site}. All pages of this site are made.</p></footer>\n</body>\n</html>\n"
        )
    if template == 1:
        return (
            f'{top}<body>\n<div id="menu"><ul>{links}</ul></div>\n<div class="sidebar"><a href="/tags">Tags</a> '
            f'<a href="/feed">Feed</a></div>\n<div class="content">\n<h1>{title}</h1>\n{body}\n</div>\n'
            f"<script>window.page = {len(article.blocks)};</script>\n</body>\n</html>\n"
        )
    return (
        f'{top}<body>\n<section class="post"><h1>{title}</h1>\n{body}\n</section>\n'
        f'<aside><ul>{links}</ul></aside>\n<div class="comments"><p>No comments.</p></div>\n</body>\n</html>\n'
    )


def _grouped(blocks: Iterable[Block]) -> Iterator[str]:
    in_list = False
    for tag, text in blocks:
        if (tag == "li") != in_list:
            yield "</ul>" if in_list else "<ul>"
            in_list = not in_list
        yield f"<{tag}>{html.escape(text, quote=False)}</{tag}>"
    if in_list:
        yield "</ul>"


def _parsed(file: Path) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other people's escape sequences are not our business
        return ast.parse(file.read_text(encoding="utf-8"))


def _docstrings(tree: ast.Module) -> Iterator[Block]:
    yield from _plain_blocks(ast.get_docstring(tree) or "")
    for node in tree.body:
        if not isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) or node.name.startswith("_"):
            continue
        if text := ast.get_docstring(node):
            yield "h2", node.name
            yield from _plain_blocks(text)
        for inner in node.body if isinstance(node, ast.ClassDef) else []:
            if not isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)) or inner.name.startswith("_"):
                continue
            if text := ast.get_docstring(inner):
                yield "h3", f"{node.name}.{inner.name}"
                yield from _plain_blocks(text)


def _plain_blocks(text: str) -> Iterator[Block]:
    """Blocks of plain or reStructuredText: underlined headings, bullets, indented code, paragraphs."""
    for part in re.split(r"\n[ \t]*\n", text.replace("\r\n", "\n").replace("\t", "    ")):
        lines = part.strip("\n").split("\n")
        stripped = [line.strip() for line in lines if line.strip()]
        if not stripped or stripped[0].startswith(".. ") or all(s.startswith(":") for s in stripped):
            continue
        if _is_rule(stripped[0]):
            stripped = stripped[1:]
        if len(stripped) >= 2 and _is_rule(stripped[1]):
            yield "h2", _inline(stripped[0])
            stripped = lines = stripped[2:]
        if not stripped:
            continue
        if re.match(r"[*+\-] ", stripped[0]):
            for item in re.split(r"\n\s*[*+\-] ", "\n" + "\n".join(lines))[1:]:
                yield "li", _inline(" ".join(item.split()))
        elif stripped[0].startswith((">>>", "$ ")) or (all(line.startswith("    ") for line in lines if line.strip())):
            yield "pre", "\n".join(line.rstrip() for line in lines)
        else:
            yield "p", _inline(" ".join(stripped))


def _is_rule(line: str) -> bool:
    return re.fullmatch(r"([=\-~*^#+])\1{2,}", line) is not None


def _inline(text: str) -> str:
    text = re.sub(r"`([^`<]+?)\s*<[^>`]*>`_+", r"\1", text)
    text = re.sub(r":[a-z:]+:`~?([^`]+)`", r"\1", text)
    return re.sub(r"`+", "", text).removesuffix("::").strip()


def _markdown_blocks(text: str) -> Iterator[Block]:
    tags = {"heading_open": "h2", "paragraph_open": "p", "list_item_open": "li"}
    tag, depth = "p", 0
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        if token.type == "list_item_open":
            depth += 1
        elif token.type == "list_item_close":
            depth -= 1
        elif token.type in tags:
            tag = "li" if depth and token.type == "paragraph_open" else tags[token.type]
        elif token.type in ("fence", "code_block"):
            yield "pre", token.content.rstrip("\n")
        elif token.type == "inline":
            plain = "".join(c.content if c.type in ("text", "code_inline") else " " for c in token.children or [])
            if plain := " ".join(plain.split()):
                yield tag, plain


def _cut(article: Article) -> Article:
    size, kept = 0, []
    for tag, text in article.blocks:
        kept.append((tag, text))
        size += len(text)
        if size > MAX_CHARS:
            break
    return replace(article, blocks=tuple(kept))


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
