"""Write docs/reference from the code: commands, exit codes, keys of recipes and training, schemas, reasons, measures.

`make docs` runs it. The pages are committed, so they can be read where the code is read; a test fails when one of them
is out of date.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import tomllib
import types
import typing
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from corpusmill import config, errors, schema
from corpusmill.kernels.measures import families
from mill import cli
from tasks import stages
from training.config import TrainConfig

REPOSITORY = Path(__file__).resolve().parents[1]
REFERENCE = REPOSITORY / "docs" / "reference"

SCHEMAS = {
    "records": schema.RECORDS,
    "documents": schema.DOCUMENTS,
    "language": schema.LANGUAGE,
    "measures": schema.MEASURES,
    "edits": schema.EDITS,
    "digests": schema.signature_group(112),
    "pii": schema.pii_group(("email",)),
    "perplexity": schema.PERPLEXITY,
    "decisions": schema.DECISIONS,
    "rejects": schema.REJECTS,
    "columns": schema.COLUMNS,
    "counts": schema.COUNTS,
    "reasons": schema.REASONS,
    "lineage": schema.LINEAGE,
    "contamination": schema.CONTAMINATION,
    "benchmark_items": schema.BENCHMARK_ITEMS,
    "exempted_ngrams": schema.EXEMPTED_NGRAMS,
    "pack_rows": schema.PACK_ROWS,
    "pack_docs": schema.PACK_DOCS,
}


def pages() -> dict[str, str]:
    """file name -> text of every generated page."""
    made = {
        "commands.md": commands(),
        "exit-codes.md": exit_codes(),
        "recipe.md": recipe(),
        "training.md": training(),
        "schemas.md": schemas(),
        "reasons.md": reasons(),
        "measures.md": measures(),
    }
    return {name: "\n".join(lines).rstrip() + "\n" for name, lines in made.items()}


def measures() -> list[str]:
    """Every measure by family: whose definition, which quotient, what is counted."""
    lines = ["# Measures", "", _note("`MEASURES` of the files in corpusmill/kernels/measures/"), ""]
    lines += [
        "`text_bytes` and `word_total` (words, symbols not counted) are in every recipe. A ratio without a denominator",
        "is 0. Words and tokens: [rule files](rules.md). Add one: [add a rule](../how-to/add-a-rule.md).",
        "",
        "| measure | family | definition | count or quotient | what |",
        "|---|---|---|---|---|",
    ]
    for measure in families.MEASURES.values():
        quotient = f"`{measure.of}`" if measure.of else ""
        home = f"{measure.family} | {measure.definition}"
        lines.append(f"| `{measure.name}` | {home} | {quotient} | {measure.says} |")
    return lines


def commands() -> list[str]:
    """Every verb with its arguments and options."""
    lines = ["# Commands", "", _note("mill/cli.py"), ""]
    lines += [
        "`REF` names a dataset: `name` (its newest), `name@digest` (6 or more hex digits of the manifest's digest), or",
        "a whole digest. The result goes to stdout, everything else to stderr. `corpusmill` is the same command.",
        "",
    ]
    tree = cli.app()
    for verb in cli.COMMANDS:
        lines += _command(f"mill {verb}", tree[verb])
    for group, (_, verbs) in cli.GROUPS.items():
        for verb in verbs:
            lines += _command(f"mill {group} {verb}", tree[group][verb])
    return lines


def _command(title: str, command: Any) -> list[str]:
    says = inspect.getdoc(command.default_command) or command.help
    lines = [f"## `{title}`", "", says.partition("\n\n")[0].replace("\n", " "), ""]
    shown = [a for a in command.assemble_argument_collection(parse_docstring=True) if a.show and a.names != ("*",)]
    rows = []
    for argument in shown:
        about = (argument.parameter.help or "").replace("\n", " ").replace("|", "\\|")
        about = about[:1].upper() + about[1:]
        names = " ".join(f"`{name}`" for name in argument.positives)
        rows.append(f"| {names} | {about}{' Required.' if argument.required else ''} |")
    if rows:
        lines += ["| argument or option | meaning |", "|---|---|", *rows, ""]
    return lines


def exit_codes() -> list[str]:
    """Every code a command can end with."""
    kinds = [errors.MillError, *errors.MillError.__subclasses__()]
    rows = [(kind.exit_code, kind.id, (inspect.getdoc(kind) or "").partition("\n\n")[0]) for kind in kinds]
    rows[0] = (
        1,
        "internal",
        "An error in corpusmill. The traceback is saved to a file whose path is shown; `-v` prints it.",
    )
    again = "Finished work is stored; run the same command to resume."
    rows += [
        (0, "", "Done."),
        (cli.INTERRUPTED, "", f"Interrupted (Ctrl-C). {again}"),
        (cli.PIPE_CLOSED, "", "The reader of stdout closed it, as in `mill rejects demo | head`."),
        (cli.TERMINATED, "", f"Terminated. {again}"),
    ]
    lines = ["# Exit codes", "", _note("corpusmill/errors.py"), "", "| code | id | meaning |", "|---:|---|---|"]
    for code, name, says in sorted(rows):
        lines.append(f"| {code} | {f'`{name}`' if name else ''} | {' '.join(says.split())} |")
    lines += [
        "",
        "A message says what is wrong and where, why, and what to do. With `--json` it is one JSON document on",
        'stderr: `{"error": id, "exit_code", "what", "why", "do"}`.',
    ]
    return lines


def recipe() -> list[str]:
    """Every key of a recipe."""
    lines = ["# Recipe keys", "", _note("corpusmill/config/"), ""]
    lines += [
        "A recipe is a TOML file; `mill recipe check FILE` lists all its faults at once, `mill recipe schema` prints a",
        "JSON schema for editors, `--set key.path=value` overrides a key. A *what* key affects the result: it is in",
        "the manifest and in the keys of the units that read it. A *where* key sets where or how the work runs and is",
        "never hashed.",
        "",
    ]
    return [*lines, *_keys(config.Recipe)]


def training() -> list[str]:
    """Every key of a training config."""
    lines = ["# Training keys", "", _note("training/config.py"), ""]
    lines += [
        "A training config is a TOML file for `mill train REF --config FILE`; `--set key.path=value` overrides a key.",
        "A *what* key affects the result: it is part of the run id. A *where* key sets where or how the work runs: the",
        "same run may resume with another value.",
        "",
    ]
    return [*lines, *_keys(TrainConfig)]


def _keys(whole: type[BaseModel]) -> list[str]:
    """A table for each section of a file."""
    lines = []
    for title, model in _sections(whole, ""):
        lines += [f"## {title}", "", (inspect.getdoc(model) or "").partition("\n\n")[0], ""]
        lines += ["| key | type | default | kind | meaning |", "|---|---|---|---|---|"]
        for name, field in model.model_fields.items():
            default = "required" if field.is_required() else f"`{_value(field.default)}`"
            if isinstance(field.default, BaseModel):
                default = "see below"
            kind = "where" if config.is_where(field) else "what"
            about = " ".join(part for part in (meaning(field), _bounds(field)) if part)
            lines.append(f"| `{name}` | {_type(field.annotation)} | {default} | {kind} | {about} |")
        lines.append("")
    return lines


def meaning(field: Any) -> str:
    """What a key means: its description; for a key that is a section, or a list or table of one kind, what that is."""
    kinds = list(_models(field.annotation))
    about = field.description or (inspect.getdoc(kinds[0]) if len(kinds) == 1 else "") or ""
    return str(about.partition("\n\n")[0].replace("\n", " "))


def _sections(model: type[BaseModel], path: str) -> Iterator[tuple[str, type[BaseModel]]]:
    yield (f"`[{path}]`" if path else "Top level"), model
    for name, field in model.model_fields.items():
        for inner in _models(field.annotation):
            here = f"{path}.{name}" if path else name
            if "dict" in str(field.annotation):
                kind = inner.model_fields.get("kind")
                said = f' with `kind = "{typing.get_args(kind.annotation)[0]}"`' if kind else ""
                yield f"`[{here}.NAME]`{said}", inner
                yield from islice(_sections(inner, f"{here}.NAME"), 1, None)
            elif "tuple" in str(field.annotation):
                yield f"`[[{here}]]`", inner
            else:
                yield from _sections(inner, here)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in typing.get_args(annotation):
        yield from _models(inner)


def _type(annotation: Any) -> str:
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _type(inner[0])
    if origin is typing.Literal:
        return " or ".join(f"`{value}`" for value in inner)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_type(part) for part in inner if part is not type(None))
    if origin is tuple:
        return f"list of {_type(inner[0])}"
    if origin is dict:
        return "table"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "section"
    return {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}.get(annotation.__name__, "value")


def _value(default: Any) -> str:
    if default is None or default is PydanticUndefined:
        return "none"
    if isinstance(default, tuple):
        return "[" + ", ".join(_value(item) for item in default) + "]"
    return f'"{default}"' if isinstance(default, str) else str(default).lower()


def _bounds(field: Any) -> str:
    signs = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
    found = [f"{said} {getattr(m, sign)}" for m in field.metadata for sign, said in signs.items() if hasattr(m, sign)]
    return f"({', '.join(found)})" if found else ""


def schemas() -> list[str]:
    """Every stored table."""
    about = _comments(Path(inspect.getfile(schema)).read_text(encoding="utf-8"))
    lines = ["# Schemas", "", _note("corpusmill/schema.py"), ""]
    lines += ["Tables are Parquet files with page checksums. Every stored table has one of these schemas.", ""]
    for name, table in SCHEMAS.items():
        lines += [f"## {name}", "", "| column | type | null | meaning |", "|---|---|---|---|"]
        for field in table:
            null, says = "yes" if field.nullable else "no", about.get((name, field.name), "")
            lines.append(f"| `{field.name}` | {_arrow(field.type)} | {null} | {says} |")
        lines.append("")
    lines += [
        "## tokens",
        "",
        "One column `tokens`, a fixed-size binary of `seq_len + 1` little-endian token ids (2 or 4 bytes each),",
        "uncompressed, one page per row group: an ordinary Parquet file that can be memory-mapped. The manifest has",
        "the byte offset, rows and CRC-32 of each row group.",
    ]
    return lines


def _arrow(kind: pa.DataType) -> str:
    if pa.types.is_fixed_size_binary(kind):
        return f"binary({kind.byte_width})"
    if pa.types.is_list(kind):
        return f"list of {_arrow(kind.value_type)}"
    if pa.types.is_struct(kind):
        return "struct of " + ", ".join(f"{field.name} {_arrow(field.type)}" for field in kind)
    return str(kind)


def _comments(source: str) -> dict[tuple[str, str], str]:
    """(table, column) -> the comment at the end of its line."""
    found = {}
    lines = source.splitlines()
    for node in ast.parse(source).body:
        names = [t.id for t in node.targets if isinstance(t, ast.Name)] if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.FunctionDef) and node.name == "signature_group":
            names = ["DIGESTS"]
        for line in lines[node.lineno - 1 : node.end_lineno] if names else []:
            if match := re.search(r'(?:_required|pa\.field)\("(\w+)".*?#\s*(.+)$', line):
                found[names[0].lower(), match[1]] = match[2].replace("|", "\\|")
    return found


def reasons() -> list[str]:
    """Every stage, and every reason a document can end for: fixed ones, and the rules of every rule file."""
    lines = ["# Stages, reasons and rules", "", _note("tasks/stages.py and rules/*.toml"), ""]
    lines += [
        "Stages in the order of a build. A version is raised when the same input would give other output; receipts and",
        "lineage name units by their stage, for example `near.plan` for a part.",
        "",
        "| stage | version | rows of the funnel | what it does |",
        "|---|---:|---|---|",
    ]
    for stage in stages.STAGES:
        lines.append(f"| **{stage.name}** | {stage.version or ''} | {', '.join(stage.rows)} | {stage.says} |")
        lines += [f"| · {part.name} | {part.version} | | {part.says} |" for part in stage.parts]
    lines += [
        "",
        "Every record that is read and not kept has exactly one reason. *policy*: a decision of the owner or of",
        "the recipe; *quality*: the text is not worth keeping; *fault*: something is broken.",
        "",
        "| row of the funnel | reason | class | meaning |",
        "|---|---|---|---|",
    ]
    lines += [f"| {r.row} | `{name}` | {r.kind} | {r.says} |" for name, r in stages.REASONS.items()]
    for file in sorted((REPOSITORY / "rules").glob("*.toml")):
        rules = tomllib.loads(file.read_text(encoding="utf-8"))
        lines += ["", f"## Rules of `{file.stem}`, version {rules['version']}", ""]
        lines += ["| reason (row filter) | measure | at least | at most | source |", "|---|---|---:|---:|---|"]
        for rule in rules["rule"]:
            low, high = rule.get("min", ""), rule.get("max", "")
            lines.append(f"| `{rule['name']}` | `{rule['measure']}` | {low} | {high} | {rule.get('source', '')} |")
        if edits := rules.get("edit"):
            lines += ["", "| edit | test | removes |", "|---|---|---|"]
            lines += [f"| `{edit['name']}` | `{edit['test']}` | {edit['says']} |" for edit in edits]
        if languages := rules.get("language"):
            lines += ["", f"Other bounds for documents in {', '.join(languages)}."]
    return lines


def _note(source: str) -> str:
    return f"Made by `make docs` from {source}; do not edit."


def main() -> None:
    """Write all pages; with --check, exit 1 and name those that differ instead."""
    stale = []
    for name, text in pages().items():
        path = REFERENCE / name
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(str(path.relative_to(REPOSITORY)))
        if "--check" not in sys.argv:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    if stale:
        print(f"{'out of date' if '--check' in sys.argv else 'written'}: {', '.join(stale)}")
    sys.exit(1 if stale and "--check" in sys.argv else 0)


if __name__ == "__main__":
    main()
