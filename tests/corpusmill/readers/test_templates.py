"""Templates of wikitext: values that belong to a sentence stay in it, others go and are counted by name."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from corpusmill.readers.parsers.templates import _TEMPLATES, Call, shown
from corpusmill.readers.parsers.wikitext import plain
from corpusmill.readers.warc import FileFacts
from tests.tasks.acquire.reading import outcomes


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{{convert|93|m|ft}}", "93 m"),
        ("{{Convert|10|to|20|km|mi|abbr=on}}", "10 to 20 km"),
        ("{{cvt|5|-|7.5|km}}", "5–7.5 km"),
        ("{{convert|2|x|3|x|4|m}}", "2 × 3 × 4 m"),
        ("{{convert|6|ft|2|in|m}}", "6 ft 2 in"),
        ("{{convert|93|m|0}}", "93 m"),
        ("{{convert|1,200.5|km2}}", "1,200.5 km2"),
        ("{{formatnum:1200}}", "1200"),
        ("{{FORMATNUM: 1200|R}}", "1200"),
        ("{{formatnum:{{val|5}}}}", "5"),
        ("{{uc:Abc}}", "Abc"),
        ("{{circa|1871}}", "c. 1871"),
        ("{{C.|1871|1880}}", "c. 1871 – c. 1880"),
        ("{{fl.|1200|1220}}", "fl. 1200–fl. 1220"),
        ("{{lang|fr|Jean ''Tavel''}}", "Jean Tavel"),
        ("{{lang-de|[[Fluss|Fluß]]}}", "Fluß"),
        ("{{langx|fr|eau}}", "eau"),
        ("{{w|salt mining|salt mines}}", "salt mines"),
        ("{{W|salt}}", "salt"),
        ("{{ill|Anna Tavel|de}}", "Anna Tavel"),
        ("{{chem|H|2|O}}", "H2O"),
        ("{{val|12.5|u=m}}", "12.5 m"),
        ("{{val|1.2|0.1|e=5|u=kg}}", "1.2±0.1×10^5 kg"),
        ("{{start date|2001|5|3|df=y}}", "2001-05-03"),
        ("{{birth date and age|1950|12}}", "1950-12"),
        ("{{death date and age|2000|1|2|1930|3|4}}", "2000-01-02"),
        ("{{dts|3 May 2001}}", "3 May 2001"),
        ("{{as of|2020|lc=y}}", "as of 2020"),
        ("{{frac|3|1|2}}", "3 1/2"),
        ("{{frac|1|2}}", "1/2"),
        ("{{ordinal|12}}", "12th"),
        ("{{height|ft=6|in=2}}", "6 ft 2 in"),
        ("{{US$|5 million}}", "US$5 million"),
        ("{{nowrap|{{convert|5|km}} away}}", "5 km away"),
        ("'''{{convert|5|km}}''' [[a|{{val|7}}]]", "5 km 7"),
        ("{{ convert | 93 | m }}", "93 m"),
        ("{{Template:Convert|93|m}}", "93 m"),
        ("{{convert|1=93|2=m}}", "93 m"),
        ("a{{ndash}}b", "a–b"),
    ],
)
def test_what_a_template_takes_with_it_stays(source: str, text: str) -> None:
    dropped: Counter[str] = Counter()
    assert plain(source, frozenset(), dropped) == text
    assert not dropped


def test_other_templates_go_and_are_counted_by_name() -> None:
    dropped: Counter[str] = Counter()
    text = (
        "a {{Citation_needed|date=May}} b {{citation needed}} {{#if:x|y}} {{infobox|n={{convert|5|m}}}} {{convert}} c"
    )
    assert plain(text, frozenset(), dropped) == "a b c"
    assert dropped == {"citation needed": 2, "#if": 1, "infobox": 1, "convert": 1}


@pytest.mark.parametrize("values", [[], [""], ["x"], ["1"], ["1", "2"], ["-"] * 5, ["1", "to"], ["ft"] * 9, ["\ud800"]])
def test_no_values_raise(values: list[str]) -> None:
    for name in [*_TEMPLATES, "lang-fr", "formatnum"]:
        assert shown(Call(name, [v for v in values if v], {"u": "m", "e": "", "ft": "5"})) != ""


def test_the_hostile_page_keeps_its_values(data_dir: Path) -> None:
    facts = FileFacts()
    (found,) = outcomes("mediawiki", data_dir / "hostile", facts, pattern="B123-templates.xml")
    for value in ("93 m", "1200 hectares", "1871", "Jean Tavel", "salt mines", "H2O", "12.5 m"):
        assert value in str(found.text)
    assert not any(name.startswith("template:") for name in facts.counts)


def test_dropped_templates_are_in_the_facts_of_a_file(tmp_path: Path) -> None:
    from tests.tasks.acquire.test_mediawiki import HEAD, page

    facts = FileFacts()
    (tmp_path / "a.xml").write_text(HEAD + page(1, "a {{stub}} {{Stub}}") + page(2, "b {{stub}} {{s\x7ft}}"))
    assert [o.reason for o in outcomes("mediawiki", tmp_path, facts)] == [None, None]
    assert facts.counts == {"template:stub": 3, "template:s\x7ft": 1}
