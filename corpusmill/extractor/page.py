"""A page as the extractors take it: our own reads UTF-8, the others read characters, and few pages need both."""

from __future__ import annotations


class Page:
    """A page; what is not given of it is made when it is first asked for.

    Args:
        page: decoded, or in UTF-8.
    """

    __slots__ = ("_data", "_text")

    def __init__(self, page: str | bytes) -> None:
        self._data = page if isinstance(page, bytes) else None
        self._text = page if isinstance(page, str) else None

    @property
    def data(self) -> bytes:
        """In UTF-8."""
        if self._data is None:
            assert self._text is not None
            self._data = self._text.encode("utf-8", "replace")
        return self._data

    @property
    def text(self) -> str:
        """Decoded."""
        if self._text is None:
            assert self._data is not None
            self._text = self._data.decode("utf-8", "replace")
        return self._text

    def length_within(self, chars: int) -> bool:
        """Whether it has at most that number of characters; decoded only if its bytes do not say."""
        return (self._data is not None and len(self._data) <= chars) or len(self.text) <= chars
