"""How the documentation is built: `make docs`. Nothing is fetched; warnings are errors."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import sparsedepth
from sparsedepth.cli.application import load
from sparsedepth.cli.commands import COMMANDS

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

project = "sparsedepth"
author = copyright = "The sparsedepth developers"
release = version = sparsedepth.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc", "sphinx_gallery.gen_gallery"]
exclude_patterns = [
    "_build",
    "lab",
    "auto_examples/*.ipynb",
    "auto_examples/*.py",
    "auto_examples/sg_execution_times.rst",
]
default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_type_aliases = {name: name for name in ("DepthMap", "Patches", "Codes", "Vector", "Floats", "UnaryCost")}
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 80
numpydoc_show_class_members = False
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
suppress_warnings = ["myst.header", "config.cache"]
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_logo = html_favicon = "_static/logo.svg"
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#1f5f7a",
        "color-brand-content": "#1f5f7a",
        "color-button": "#1f5f7a",
        "font-stack": "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif",
    },
    "dark_css_variables": {
        "color-brand-primary": "#6fd0b3",
        "color-brand-content": "#6fd0b3",
        "color-button": "#1f7a63",
    },
}
html_title = "sparsedepth"
html_show_sourcelink = False


sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "image_scrapers": ("_drawn.scrape",),
    "backreferences_dir": "_build/backreferences",
    "reset_modules": (),
    "download_all_examples": False,
    "remove_config_comments": True,
    "thumbnail_size": (480, 300),
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "abort_on_example_error": True,
    "within_subsection_order": "FileNameSortKey",
}


def write_commands(path: Path) -> None:
    """Write the page of commands from their help texts."""
    lines = ["# Commands", "", "`sparsedepth COMMAND --help` prints the same.", ""]
    for name in COMMANDS:
        command = load(name)
        lines += [f"## {name}", "", *(line.strip() for line in (command.help or "").splitlines()), ""]
        lines += [*(_described(option) for option in command.params if option.name != "help"), ""]
    text = "\n".join(lines)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def _described(option: Any) -> str:
    is_option = option.param_type_name == "option"
    called = ", ".join(f"`{word}`" for word in option.opts) if is_option else f"`{option.name.upper()}`"
    return f"* {called}{' (required)' if option.required else ''}: {option.help or ''}"


write_commands(HERE / "commands.md")
