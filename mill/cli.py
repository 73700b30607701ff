"""The command `mill` (also `corpusmill`): the table of its verbs, and its exit codes.

Every verb is named by a string and imported when it is used, so `mill --help` stays fast.
"""

from __future__ import annotations

import difflib
import errno
import io
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Sequence
from types import FrameType

from cyclopts import (
    App,
    CycloptsError,
    MissingArgumentError,
    Parameter,
    UnknownCommandError,
    UnusedCliTokensError,
)

from corpusmill import __version__, extras
from corpusmill.errors import MillError, Unavailable, UsageError
from corpusmill.redact import guard_logs, redacted
from mill.common import note, show_json

INTERRUPTED, TERMINATED, PIPE_CLOSED = 130, 143, 141

COMMANDS: dict[str, tuple[str, str]] = {
    "plan": ("mill.build:plan", "Show what a recipe has to read and do; writes nothing."),
    "ingest": ("mill.build:ingest", "Publish the documents of every new crawl."),
    "build": ("mill.build:build", "Build one dataset and publish its manifest."),
    "funnel": ("mill.datasets:funnel", "Show how many documents each stage kept, and why the others ended."),
    "rejects": ("mill.datasets:rejects", "Show a sample of rejected documents, by reason."),
    "contamination": (
        "mill.contamination:contamination",
        "Show which documents contain benchmark items, and where.",
    ),
    "whatif": ("mill.queries:whatif", "Show which documents a moved bound would add and remove; builds nothing."),
    "quantiles": (
        "mill.queries:quantiles",
        "Show the distribution of a measure, and the bound that keeps a given share.",
    ),
    "lineage": ("mill.datasets:lineage", "Show the chain from checkpoints and shards back to the files of the crawl."),
    "verify": ("mill.datasets:verify", "Check every digest, row and count of a dataset."),
    "export": ("mill.build:export", "Write documents, or the fate of every record, to a file; or a trained model."),
    "lsh": ("mill.lsh:lsh", "Recommend LSH bands and rows, and draw what they find and miss."),
    "train": ("mill.train:train", "Train a model on a dataset."),
    "runs": ("mill.runs:runs", "List the training runs of a store, or show in what two of them differ."),
    "batch": ("mill.questions:batch", "Show what a step of training reads: documents, addresses, shards, text."),
    "trace": ("mill.questions:trace", "Show which steps read a document, and which checkpoints have seen it."),
    "spikes": ("mill.questions:spikes", "Show the steps of a run that stand out, and the documents that they read."),
    "sample": ("mill.trained:sample", "Let a trained model continue a text."),
    "evaluate": ("mill.trained:evaluate", "Measure a trained model on held-out text and on benchmarks."),
    "up": ("mill.platform:up", "Start server, pools, deployments and workers, and leave them running."),
    "down": ("mill.platform:down", "Stop what `up` started: workers first, then the server."),
    "status": ("mill.platform:status", "Show what is running, and where."),
    "warm": ("mill.warm:warm", "Compile all kernels before they are needed."),
    "demo": ("mill.platform:demo", "Make a sample crawl, build it and train on it through the platform."),
}
"""verb -> (module:function, help text)."""

GROUPS: dict[str, tuple[str, dict[str, tuple[str, str]]]] = {
    "rules": (
        "Compare rule sets on a dataset.",
        {
            "compare": (
                "mill.queries:compare",
                "Show how the rules of two recipes differ on the documents of a dataset.",
            )
        },
    ),
    "recipe": (
        "Check recipes, and print their schema for editors.",
        {
            "check": ("mill.tools:recipe_check", "Report all faults of a recipe at once."),
            "schema": ("mill.tools:recipe_schema", "Print the JSON schema of recipes."),
        },
    ),
    "quality": (
        "Classifiers of good text.",
        {
            "train": ("mill.models:quality_train", "Train a classifier on good and other texts."),
            "score": ("mill.models:quality_score", "Print the score of each text of the given files."),
        },
    ),
    "perplexity": (
        "Language models of clean text.",
        {
            "train": ("mill.models:perplexity_train", "Train a language model on clean text."),
            "convert": ("mill.models:perplexity_convert", "Make a model from an ARPA file."),
            "score": ("mill.models:perplexity_score", "Print the cross entropy of each text of the given files."),
        },
    ),
    "mixture": (
        "Mixtures of partitions that training draws from.",
        {
            "check": (
                "mill.mixture:mixture_check",
                "Show what a training config draws from a dataset, and all its faults.",
            )
        },
    ),
    "models": (
        "Model files that the judges use.",
        {"fetch": ("mill.tools:models_fetch", "Fetch the language model and check its digest.")},
    ),
    "doctor": (
        "Check what builds depend on.",
        {"store": ("mill.tools:doctor_store", "Check writes, digests, listing and clock of a store.")},
    ),
}


def app() -> App:
    """The command tree. No verb is imported before it is used."""
    about = "Turn web crawls into training shards with a verifiable history."
    root = App(
        name="mill",
        help=about,
        version=__version__,
        default_parameter=Parameter(negative=()),  # no --no-json, no --empty-set
        suppress_keyboard_interrupt=False,
    )
    for verb, (target, says) in COMMANDS.items():
        root.command(target, name=verb, help=says)
    for group, (about, verbs) in GROUPS.items():
        branch = App(name=group, help=about)
        for verb, (target, says) in verbs.items():
            branch.command(target, name=verb, help=says)
        root.command(branch)
    return root


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point: run one command and exit with its code (docs/reference/exit-codes.md)."""
    if argv is None:
        _read_names_as_utf8()
    sys.exit(run(sys.argv[1:] if argv is None else argv))


def _read_names_as_utf8() -> None:
    """Begin again in UTF-8 mode where the locale has another encoding (C, ISO-8859-1).

    Else the names of files, which are part of a dataset, would be others than elsewhere, or none. The output keeps the
    encoding that it has.
    """
    if sys.getfilesystemencoding().lower().replace("-", "") == "utf8":
        return
    env = {"PYTHONIOENCODING": f"{getattr(sys.stdout, 'encoding', 'ascii')}:replace", **os.environ}
    os.execve(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]], env)


def run(argv: Sequence[str]) -> int:
    """Run one command; every way to end has an exit code and one clear message on stderr.

    Returns:
        0 or the exit code of the error; 130 interrupted, 143 terminated, 141 the reader of stdout closed it.
    """
    flags = [word for word in argv if word.startswith("-")]
    as_json, verbose = "--json" in flags, "-v" in flags or "--verbose" in flags
    guard_logs()
    _forgive(sys.stdout, sys.stderr)
    before = signal.getsignal(signal.SIGTERM)
    try:
        signal.signal(signal.SIGTERM, _terminate)
        result = app()(
            list(argv),
            exit_on_error=False,
            print_error=False,
            result_action="return_value",
        )
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except CycloptsError as err:
        return _say(UsageError(_usage(err), "", f"See `{_verb(err)} --help`."), as_json)
    except MillError as err:
        if verbose:
            note(redacted(traceback.format_exc()).rstrip("\n"))
        return _say(err, as_json)
    except KeyboardInterrupt:
        note("interrupted; finished work is stored; run the same command to resume")
        return INTERRUPTED
    except _Terminated:
        note("terminated; finished work is stored; run the same command to resume")
        return TERMINATED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except Exception as err:
        outside = extras.missing(err) or _outside(err)
        if verbose:
            note(redacted(traceback.format_exc()).rstrip("\n"))
        return _say(outside or _our_fault(err), as_json)
    finally:
        signal.signal(signal.SIGTERM, before)


def _forgive(*outputs: object) -> None:
    """Letters that an output does not have are replaced: no name or text of a page ends a command."""
    for output in outputs:
        if isinstance(output, io.TextIOWrapper) and output.errors in ("strict", "surrogateescape"):
            output.reconfigure(errors="replace")


def _usage(err: CycloptsError) -> str:
    """What is wrong with the command line. Cyclopts would import every verb to word an unknown one."""
    match err:
        case UnknownCommandError():
            word = (err.unused_tokens or [""])[0]
            known = [*COMMANDS, *GROUPS, *(verb for _, verbs in GROUPS.values() for verb in verbs)]
            near = difflib.get_close_matches(word, known, n=1)
            return f'unknown command "{word}"' + (f'; did you mean "{near[0]}"?' if near else "")
        case UnusedCliTokensError():
            return f"too much is given: {' '.join(err.unused_tokens or [])}"
        case MissingArgumentError() if err.argument and not err.keyword:
            says = (err.argument.parameter.help or "").rstrip(".")
            return f"`{_verb(err)}` needs {err.argument.name}" + (f": {says}" if says else "")
    return str(err)


def _verb(err: CycloptsError) -> str:
    return " ".join(("mill", *(err.command_chain or ())))


class _Terminated(BaseException):
    """SIGTERM, as an exception, so that pools and scratch folders are cleaned up on the way out."""


def _terminate(number: int, frame: FrameType | None) -> None:
    raise _Terminated


_FULL = (errno.ENOSPC, errno.EDQUOT)
_DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)


def _outside(err: Exception) -> Unavailable | None:
    """An error of the operating system as one of ours; None where it is not one."""
    if not isinstance(err, OSError):
        return None
    where = f": {err.filename}" if err.filename else ""
    if err.errno in _FULL or "No space left on device" in str(err):
        return Unavailable(
            f"no space left on the disk{where}",
            str(err),
            "Nothing is half-written. Free some space and run the same command again; finished work is kept.",
        )
    if err.errno in _DENIED:
        return Unavailable(f"no permission{where}", str(err), "Check the owner and the mode of that path.")
    if isinstance(err, ConnectionError):
        return Unavailable("a connection was lost", str(err), "Run the same command again; finished work is kept.")
    return None


def _our_fault(err: Exception) -> MillError:
    handle, path = tempfile.mkstemp(prefix="mill-fault-", suffix=".txt")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(redacted("".join(traceback.format_exception(err))))
    return MillError(
        f"{type(err).__name__}: {err}",
        "This is an error in corpusmill, not in your input.",
        f"The traceback is in {path}; -v prints it. Please report it.",
    )


def _say(err: MillError, as_json: bool) -> int:
    if as_json:
        fault = {"error": err.id, "exit_code": err.exit_code, "what": err.what, "why": err.why, "do": err.do}
        show_json(fault, to=sys.stderr)
    else:
        more = (line for part in (err.why, err.do) if part for line in part.split("\n"))
        lines = [f"error[{err.id}] {err.what}", *more]
        note("\n  ".join(lines))
    return err.exit_code
