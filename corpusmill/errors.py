"""Errors that users can meet, each with the exit code of the command.

Exit codes (docs/reference/exit-codes.md): 0 done, 1 internal error, 2 usage or invalid recipe, 3 not found, 4 a check
failed, 5 refused, 6 too much is missing or nothing was kept, 7 something outside is unavailable (store, server, listed
file, disk space).
"""

from __future__ import annotations

from corpusmill.redact import redacted


class MillError(Exception):
    """An error with one clear message: what is wrong and where; why; what to do. Secrets are taken out of it.

    Args:
        what: first line: what is wrong and where.
        why: what was expected and what came.
        do: what to do: the flag, file or command that helps.
    """

    exit_code = 1
    id = "internal"

    def __init__(self, what: str, why: str = "", do: str = "") -> None:
        what, why, do = redacted(what), redacted(why), redacted(do)
        super().__init__(what, why, do)
        self.what, self.why, self.do = what, why, do

    def __str__(self) -> str:
        return "\n".join(line for line in (self.what, self.why, self.do) if line)

    def __reduce__(self) -> tuple[type[MillError], tuple[str, str, str]]:
        return type(self), (self.what, self.why, self.do)


class UsageError(MillError):
    """A wrong flag, an invalid recipe, a malformed REF."""

    exit_code, id = 2, "usage"


class NotFound(MillError):
    """A store, dataset, recipe or document that does not exist."""

    exit_code, id = 3, "not-found"


class CheckFailed(MillError):
    """A check failed: a digest, an identity, a planted item that was not found, a bench floor."""

    exit_code, id = 4, "check-failed"


class Refused(MillError):
    """To continue would overwrite, mix or contradict stored data."""

    exit_code, id = 5, "refused"


class Incomplete(MillError):
    """The work ended, but more of it is missing than permitted, or nothing was kept; nothing is published."""

    exit_code, id = 6, "incomplete"


class Unavailable(MillError):
    """Something outside is unavailable: store, server, credentials, a listed file, disk space."""

    exit_code, id = 7, "unavailable"
