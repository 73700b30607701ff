"""Names of tags and words of class, id, role and itemprop attributes that the scanner knows, as hash tables."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
from numpy.typing import NDArray

_OFFSET, _PRIME, _MASK = 0xCBF29CE484222325, 0x100000001B3, 0xFFFFFFFFFFFFFFFF

ROLES: dict[str, str] = {
    "nav": "nav navigation navbar navi menu menus submenu topnav sidenav mainmenu menubar menuitem dropdown megamenu "
    "gnb",
    "header": "header masthead topbar head banner top",
    "footer": "footer foot copyright colophon bottom legal contentinfo",
    "aside": "aside sidebar side widget widgets rail complementary secondary sidebars supplementary",
    "article": "article story news articles blog blogpost hentry newsarticle blogposting",
    "content": "content main body maincontent entry post text copy prose articlebody bodytext pagecontent richtext rte "
    "wysiwyg markdown postbody postcontent contents maintext textblock storybody paragraph",
    "comment": "comment comments commentlist disqus respond commentary discussion usercomments",
    "related": "related recommended recommendations recirc suggest suggested similar also more trending popular latest "
    "upsell crosssell readmore recent mostread",
    "share": "share social sharing sns facebook twitter follow addthis sharedaddy socials pinterest whatsapp",
    "ad": "ad ads advert advertisement advertising sponsor sponsored promo promotion promotions dfp adsense taboola "
    "outbrain gpt affiliate",
    "byline": "byline author meta date time timestamp published dateline authors postmeta info posted datetime bio",
    "cookie": "cookie cookies consent gdpr onetrust privacy",
    "form": "form search login signup subscribe newsletter modal popup dialog signin register subscription overlay "
    "paywall optin",
    "hidden": "hidden sr screenreader visuallyhidden offscreen noprint invisible skip skiplink",
    "card": "card cards tile tiles teaser teasers item items grid thumb thumbnail thumbnails swiper slide",
    "table": "table row cell infobox datatable td tr tbody",
    "code": "code highlight pre snippet codeblock syntax hljs prism sourcecode",
    "product": "product products price prices sku buy cart pdp shop stock shipping addtocart variant purchase offer",
    "forum": "forum thread topic message messages posts postrow bbcode msg question answer answers cooked topics",
    "title": "title headline heading headings subtitle name h1 h2 posttitle",
    "description": "description summary excerpt abstract overview details desc detail about productdescription",
    "list": "list listing listings results result feed archive loop catalog index",
    "breadcrumb": "breadcrumb breadcrumbs crumb crumbs breadcrumblist",
    "media": "caption figure image images gallery media slider carousel video photo photos img player embed credit",
    "tags": "tag tags category categories label labels taxonomy cat cats hashtag badge badges",
    "tab": "tab tabs tabpanel accordion collapse panel faq faqs toggle expandable collapsible",
    "hero": "hero intro lead lede standfirst jumbotron introduction deck dek",
    "review": "review reviews rating ratings testimonial testimonials stars feedback quote",
    "feature": "feature features spec specs specification specifications section sections block benefit benefits step "
    "steps instructions ingredients recipe",
    "user": "user profile avatar member account username poster signature userinfo sig",
    "pager": "toc pagination pager next prev previous page pages tableofcontents prevnext postnav",
    "button": "button btn buttons cta action actions toolbar link links tools print vote likes like",
}
"""Role of a container -> the words that tell it; a role is a bit, in this order."""

ROLE_BITS = {role: 1 << i for i, role in enumerate(ROLES)}
HIDDEN = ROLE_BITS["hidden"]
N_ROLES = len(ROLES)

INLINE, CONTAINER, LEAF, SKIPPED, BREAK, RULE, LINK, BOLD, TITLE, MATH, RAW = range(11)
"""What the scanner does at a tag: nothing; open a container; start a line of its own kind; skip the element; end the
line; end the line too; count links; count bold; note the title's words; take its TeX; skip to the end tag or the end of
the page."""

_ACTIONS = {
    CONTAINER: "div section article nav ul ol menu table tr td th li header footer aside main form blockquote figure "
    "dl body fieldset details center dialog address hgroup tbody thead tfoot noscript",
    LEAF: "p h1 h2 h3 h4 h5 h6 pre dt dd figcaption caption summary label button legend",
    SKIPPED: "svg select template iframe object audio video canvas datalist applet map",
    BREAK: "br",
    RULE: "hr html head frameset noframes",
    LINK: "a",
    BOLD: "b strong",
    TITLE: "title",
    MATH: "math",
    RAW: "script style textarea xmp",
}
TAGS: dict[str, int] = {"": 0}
ACTIONS: list[int] = [INLINE]
for _action, _names in _ACTIONS.items():
    for _name in _names.split():
        TAGS[_name] = len(TAGS)
        ACTIONS.append(_action)
_INLINE = "span time em i cite code font img small sup sub input u s mark q abbr kbd tt"
for _name in _INLINE.split():
    TAGS[_name] = len(TAGS)
    ACTIONS.append(INLINE)
CUSTOM = len(TAGS)
"""Code of elements with a dash in their name."""
ACTIONS.append(CONTAINER)
TAG_NAMES = [*TAGS, "custom"]

KINDS = ("text", "p", "h1", "h2", "h3", "h4", "li", "pre", "cell", "dt", "dd", "caption", "quote", "control")
"""Kind of a line, by the tag that began it."""
_KIND_OF = {
    **{"p": "p", "h1": "h1", "h2": "h2", "h3": "h3", "h4": "h4", "h5": "h4", "h6": "h4", "li": "li", "pre": "pre"},
    **{"td": "cell", "th": "cell", "dt": "dt", "dd": "dd", "figcaption": "caption", "caption": "caption"},
    **{"blockquote": "quote", "label": "control", "button": "control", "legend": "control", "summary": "h4"},
}
TAG_KINDS = [KINDS.index(_KIND_OF.get(name, "text")) for name in TAG_NAMES]
_ROLES_OF = {
    "nav": "nav", "header": "header", "footer": "footer", "aside": "aside", "article": "article", "main": "content",
    "form": "form", "figure": "media", "figcaption": "media", "table": "table", "dialog": "form", "time": "byline",
    "address": "byline", "button": "button", "pre": "code", "code": "code", "fieldset": "form", "label": "form",
    "details": "tab", "cite": "byline", "noscript": "hidden",
}  # fmt: skip
TAG_ROLES = [ROLE_BITS.get(_ROLES_OF.get(name, ""), 0) for name in TAG_NAMES]


def word_hash(word: str) -> int:
    """FNV-1a of an ASCII word."""
    state = _OFFSET
    for byte in word.encode("ascii"):
        state = (state ^ byte) * _PRIME & _MASK
    return state


@cache
def tag_table() -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Open-addressed keys and values: hash of a tag's name -> its code."""
    return _table({word_hash(name): code for name, code in TAGS.items() if name})


@cache
def word_table() -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Open-addressed keys and values: hash of a word -> bits of the roles it tells."""
    bits: dict[int, int] = {}
    for role, words in ROLES.items():
        for word in words.split():
            bits[word_hash(word)] = bits.get(word_hash(word), 0) | ROLE_BITS[role]
    return _table(bits)


@cache
def tag_facts() -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64]]:
    """Action, kind of line and role bits of each tag code."""
    return np.array(ACTIONS, np.uint64), np.array(TAG_KINDS, np.uint64), np.array(TAG_ROLES, np.uint64)


def _table(entries: Mapping[int, int]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    size = 1 << (4 * len(entries) - 1).bit_length()
    keys, values = np.zeros(size, np.uint64), np.zeros(size, np.uint64)
    for key, value in sorted(entries.items()):
        slot = key & size - 1
        while keys[slot]:
            slot = slot + 1 & size - 1
        keys[slot], values[slot] = key, value
    return keys, values
