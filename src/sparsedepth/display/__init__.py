"""Show results, dictionaries and sensors in notebooks: figures, and HTML with them.

Imported when something is shown; matplotlib is imported when something is drawn.
"""

from sparsedepth.display.html import figure_of, html_of

__all__ = ["figure_of", "html_of"]
