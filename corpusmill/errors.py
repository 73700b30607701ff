"""Errors a user can meet, each with the exit code it ends the command with.

Exit codes (docs/reference/exit-codes.md): 0 done, 1 our fault, 2 usage or invalid recipe, 3 not found, 4 a check is
false, 5 refused, 6 done but incomplete, 7 something outside is away (store, server, listed file, disk space).
"""

from __future__ import annotations


class MillError(Exception):
    """A fault with one clear message: what is wrong and where; why; what to do.

    Args:
        what: first line: what is wrong and where.
        why: what was expected and what came.
        do: the way out: the flag, file or command that helps.
    """

    exit_code = 1
    id = "internal"

    def __init__(self, what: str, why: str = "", do: str = "") -> None:
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
    """A store, dataset, recipe or document that is not there."""

    exit_code, id = 3, "not-found"


class CheckFailed(MillError):
    """Something that must be true is false: a digest, an identity, a planted item that was not found, a bench floor."""

    exit_code, id = 4, "check-failed"


class Refused(MillError):
    """Going on would overwrite, mix or contradict what is stored."""

    exit_code, id = 5, "refused"


class Incomplete(MillError):
    """The work ended, but more than the permitted part of it is missing."""

    exit_code, id = 6, "incomplete"


class Unavailable(MillError):
    """Something outside is away: store, server, credentials, a listed file, disk space."""

    exit_code, id = 7, "unavailable"
