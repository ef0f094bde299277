# SPDX-License-Identifier: Apache-2.0
"""Hook of mkdocs: links that leave docs/ lead to the repository."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig

_OUTSIDE = re.compile(r"(\]\()\.\./(?=[^)]+\))")


def on_page_markdown(markdown: str, config: MkDocsConfig, **_: object) -> str:
    """Rewrite the links of a page before it is rendered.

    Args:
        markdown: The text of the page.
        config: The site's configuration; its `repo_url` names the repository.

    Returns:
        The text with absolute links.
    """
    return _OUTSIDE.sub(rf"\g<1>{config['repo_url']}/blob/main/", markdown)
