"""What mkdocs calls while it builds the site: method pages are made, and formulas drawn."""

from __future__ import annotations

from typing import Any

from maths import render_maths
from method_pages import navigation, pages
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of all methods where the navigation says Methods."""
    for entry in config.nav or []:
        if "Methods" in entry:
            entry["Methods"] = navigation()
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the method pages, which are in no file."""
    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_content(html: str, **_: Any) -> str:
    """Draw the formulas."""
    return render_maths(html)
