"""HTML for notebooks: a line of text, and a picture where matplotlib is installed."""

from __future__ import annotations

import base64
import io
from html import escape
from typing import TYPE_CHECKING, Any

from sparsedepth.vocabulary import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOTS_PER_INCH = 100


def figure_of(shown: Any) -> Figure:
    """Draw an object of the package.

    Parameters
    ----------
    shown
        A `DepthImage`, `Restoration`, `Match`, `Dictionary` or `Sensor`.

    Returns
    -------
    The figure.

    Raises
    ------
    InputError
        If matplotlib is not installed.
    """
    try:
        from sparsedepth.display.figures import draw
    except ImportError:
        raise InputError("drawing needs matplotlib; install it: pip install 'sparsedepth[plot]'") from None
    return draw(shown)


def html_of(shown: Any) -> str:
    """Return the line of text and the picture of an object as HTML; the text alone where nothing can be drawn."""
    text = f"<pre>{escape(repr(shown))}</pre>"
    try:
        figure = figure_of(shown)
    except InputError:
        return text
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=DOTS_PER_INCH)
    picture = base64.b64encode(content.getvalue()).decode()
    return f'<div>{text}<img alt="{escape(repr(shown), quote=True)}" src="data:image/png;base64,{picture}"></div>'
