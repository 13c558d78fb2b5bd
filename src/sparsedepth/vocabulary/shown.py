"""What can be shown in a notebook: a line of text, a picture, and both as HTML. Drawing is imported when it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Shown:
    """An object with a picture."""

    def plot(self) -> Figure:
        """Draw the object.

        Returns
        -------
        matplotlib.figure.Figure
            A figure of its own: show it in a notebook, or save it by ``figure.savefig``. It needs matplotlib.
        """
        from sparsedepth.display import figure_of

        return figure_of(self)

    def _repr_html_(self) -> str:
        from sparsedepth.display import html_of

        return html_of(self)
