"""Extras: what the package can do with more packages installed, and the sentence where one is missing."""

from __future__ import annotations

from types import TracebackType

from sparsedepth.vocabulary import InputError


class MissingExtraError(InputError, ImportError):
    """A package is missing; the message says how to install it."""


class needed_for:  # noqa: N801  # reads as a sentence: with needed_for("pictures", "plot"): import ...
    """Import what an extra installs; where it is missing, say which extra has it.

    Parameters
    ----------
    what
        What needs the packages, in words.
    extra
        Name of the extra of the package that installs them.

    Examples
    --------
    >>> with needed_for("a flight", "wings"):
    ...     import wings
    Traceback (most recent call last):
    sparsedepth.extras.MissingExtraError: a flight needs wings; install it with: pip install 'sparsedepth[wings]'
    """

    def __init__(self, what: str, extra: str) -> None:
        self._what, self._extra = what, extra

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> None:
        if isinstance(error, ModuleNotFoundError) and not (error.name or "").startswith("sparsedepth"):
            package = (error.name or "a package").split(".")[0]
            raise MissingExtraError(
                f"{self._what} needs {package}; install it with: pip install 'sparsedepth[{self._extra}]'"
            ) from None
