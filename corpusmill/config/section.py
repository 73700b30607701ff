"""The base of all sections of a recipe: typed and frozen, each field `what` or `where`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError


def where(default: Any = ..., **kwargs: Any) -> Any:
    """A field that says where or how the work runs: never hashed, never in a manifest."""
    return Field(default, json_schema_extra={"where": True}, **kwargs)


class Section(BaseModel):
    """A section of a recipe. Unknown keys are errors; values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    all_keys: ClassVar[str] = ""
    """Where the keys of a whole file are documented."""
    mark: ClassVar[str] = ""
    """The key that every file of this kind has, and files of other kinds in the same folder do not."""
    stand_ins: ClassVar[Mapping[str, Any]] = {}
    """What stands for a required key of a whole file while the search for other faults goes on."""

    def what(self) -> dict[str, Any]:
        """The fields that decide bytes, as plain JSON values."""
        return {
            name: _plain(getattr(self, name)) for name, info in type(self).model_fields.items() if not is_where(info)
        }


def is_where(info: Any) -> bool:
    """Whether a field is marked with `where()`."""
    return bool((info.json_schema_extra or {}).get("where"))


def _plain(value: Any) -> Any:
    if isinstance(value, Section):
        return value.what()
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def fault(says: str, *keys: str) -> PydanticCustomError:
    """A fault that a check of several keys found.

    Args:
        says: what was expected and what came.
        keys: those that it is about, below the section that checks; the first is the one to look at.
    """
    return PydanticCustomError("fault", "{says}", {"says": says, "keys": keys})


NAME = r"^[a-z0-9][a-z0-9._-]{0,63}$"
PREFERENCE = r"^(longest|oldest|newest|quality:[a-z0-9][a-z0-9._-]{0,63})$"
MODULE = r"^[A-Za-z_][\w.]*$"
FUNCTION = r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$"
PATTERNS = {
    NAME: "a name: small letters, digits, and after the first of them also . _ - (64 characters at most)",
    PREFERENCE: "longest, oldest, newest or quality:NAME",
    MODULE: "package.module",
    FUNCTION: "package.module:function",
}
"""What texts of these forms are called in messages."""

Name = Annotated[str, Field(pattern=NAME)]
Strings = Annotated[tuple[str, ...], Field(strict=False)]
Fraction = Annotated[float, Field(gt=0, le=1, strict=False)]
Share = Annotated[float, Field(ge=0, le=1, strict=False)]
