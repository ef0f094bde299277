# SPDX-License-Identifier: Apache-2.0
"""Writes docs/parameters.md from the table that the backend itself reads.

python tools/parameters_doc.py            write the page
python tools/parameters_doc.py --check    fail when the page is out of date
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from generated_file import write_or_check

PAGE = Path(__file__).resolve().parents[1] / "docs" / "parameters.md"

_HEAD = """\
<!-- Written by tools/parameters_doc.py from the table in backend/src/config/parameter_table.cc. -->
# Parameters

Every option is set by one name. In `config.pbtxt` it is one of the model's `parameters`, always a
string, and becomes the model's default:

```protobuf
parameters { key: "beam_size" value { string_value: "4" } }
```

Where the scope says "requests", a request may set it for its own rows, as a string or as the type
itself. Lists are JSON text in both places, because Triton takes no arrays there:

```python
client.infer(model, inputs, parameters={"beam_size": 4, "end_token": '["</s>"]'})
```

A value must be of the type and inside the range, and a name must be known; otherwise the model does
not load, or that request alone is answered INVALID_ARGUMENT, and the message says what is allowed.
Names that begin with `triton_` are Triton's own and pass. Other tools' names (forwarded headers,
parameters meant for another member of an ensemble) pass when `allowed_parameters` lists them.

On a CPU, greedy and beam searches and sampling run in decode loops (`decoding`), in which rows of
any options share every step. These run as calls of CTranslate2, where only rows of equal options
meet:

| rows with | why not in a loop |
|---|---|
| `coverage_penalty` | the loop keeps no sums of attention |
| `return_alternatives` with `beam_size` x `num_hypotheses` over 128 | its beams all run at once |
| `use_vmap` with a map that has lines for n-grams | the candidates differ from row to row |
| a model that the loop cannot run, or whose trial at load fails | the load log says the reason |
| a GPU, unless `decoding` is `loop` | one row alone is slower in the loop there |
| beams, several hypotheses, `return_alignments`, `replace_unknowns` on a GPU | not in its loop |

These combinations are refused before CTranslate2 sees them:

| combination | reason |
|---|---|
| `num_hypotheses` > `beam_size` x `patience`, beam search, no alternatives | too few found |
| `return_alternatives`, beam search, `patience` < 0.5 / `beam_size` | it ends the process |
| `min_decoding_length` above the length limit | no such row |
| `coverage_penalty` with greedy search (`beam_size` 1) | CTranslate2 ends the process |
| beam search with 1 < `sampling_topk` < 2 x `beam_size` | CTranslate2 ends the process |
| `return_alternatives`, `min_alternative_expansion_prob` > 0 | CTranslate2 ends the process |
| `return_alternatives`, `prefix_bias_beta` > 0 | CTranslate2 refuses it |
| `draft_bias`; sampling, `return_alternatives` or `prefix_bias_beta` | one search, one bias |
| 0 < `sampling_temperature` < 0.01 | overflows 16-bit types |
| `beam_size` > `max_beam_size`, `num_hypotheses` > `max_num_hypotheses` | the operator's limit |
| `max_decoding_length` > `decoding_length_limit` | the operator's limit |
| hypotheses searched x length limit > `max_search_tokens` | the memory of one call |

Hypotheses searched: `beam_size`; times `num_hypotheses` with `return_alternatives`; when sampling,
`num_hypotheses`; `beam_size` x `patience` with `coverage_penalty`, `replace_unknowns` or
`return_alignments`. Each token of each keeps a key and a value per decoder layer: 98 kB for
NLLB-200 600M at float32.

What is not listed follows CTranslate2: defaults are its own.
"""

_SCOPES = {
    "model": "config.pbtxt",
    "request": "config.pbtxt and requests",
    "request only": "requests",
}


def page(rows: list[dict[str, Any]]) -> str:
    """Give the whole page.

    Args:
        rows: What `ct2_triton._core.parameters()` gives.

    Returns:
        Markdown text.
    """
    sections = {"decoding": "## Decoding", "request": "## Of one request", "engine": "## Engine"}
    parts = [_HEAD]
    for kind, title in sections.items():
        parts += [title, ""]
        parts += [_entry(row) for row in rows if row["kind"] == kind]
    return "\n".join(parts)


def _entry(row: dict[str, Any]) -> str:
    return f"""\
### `{row["name"]}`

{row["help"]}

- Type: {row["type"]}
- Default: {_default(row)}
- Allowed: {row["allowed"]}
- Scope: {_SCOPES[row["scope"]]}

{_example(row)}
"""


def _example(row: dict[str, Any]) -> str:
    name, value = row["name"], row["example"]
    if row["scope"] == "request only":
        return (
            f"```python\nclient.infer(model, inputs, parameters={json.dumps({name: value})})\n```"
        )
    value = value.replace("\\", "\\\\").replace('"', '\\"')
    entry = f'parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}'
    return f"```protobuf\n{entry}\n```"


def _default(row: dict[str, Any]) -> str:
    value = row["default"]
    if value is None or row["scope"] == "request only":
        return "none"
    if isinstance(value, str):
        return f'`"{value}"`'
    if isinstance(value, float):
        return f"`{value:g}`"
    return f"`{json.dumps(value)}`"


def main(arguments: list[str] | None = None) -> int:
    """Write or check the page; `arguments` are those of the command line."""
    from ct2_triton import _core

    return write_or_check(
        "parameters_doc.py",
        __doc__,
        PAGE,
        lambda: page(_core.parameters()),
        arguments,
    )


if __name__ == "__main__":
    sys.exit(main())
