"""How ``make docs`` builds the site: from the Markdown files beside, and from pages that are made of the package."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "site"))

import lossmith

project = "Lossmith"
author = "The Lossmith developers"
copyright = "The Lossmith developers"  # noqa: A001 - Sphinx's name
version = release = lossmith.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "made_pages",
]
exclude_patterns = ["_build", "site", "**.ipynb_checkpoints"]
source_suffix = {".md": "myst-nb"}
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
suppress_warnings = ["mystnb.unknown_mime_type"]

nb_execution_mode = "cache"  # a tutorial is run again when it changes
nb_execution_timeout = 900
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_merge_streams = True
nb_execution_show_tb = True
nb_output_stderr = "remove"  # progress of other tools, and their complaints about a page without widgets

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_default_options = {"members": True, "show-inheritance": True, "no-value": True}
maximum_signature_line_length = 100
napoleon_google_docstring = True
napoleon_numpy_docstring = False

html_theme = "furo"
html_title = f"Lossmith {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_search_summary = False  # it would fetch every page that was found, which browsers refuse for files on disk
highlight_language = "text"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
