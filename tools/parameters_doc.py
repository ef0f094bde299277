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

Set a parameter in the model's `config.pbtxt`, always as a string. It becomes the model's default:

```protobuf
parameters { key: "beam_size" value { string_value: "4" } }
```

If its scope includes requests, a request may set it for its own rows, as a string or as the type
itself. Lists are JSON text in both places, because Triton does not accept arrays there:

```python
client.infer(model, inputs, parameters={"beam_size": 4, "end_token": '["</s>"]'})
```

A value must have the type and be in the range, and the name must be known. Otherwise the model
does not load, or that request alone is answered with INVALID_ARGUMENT and a message that says what
is allowed. Names that begin with `triton_` are Triton's own and are ignored, and so are headers
that the server forwards: strings under names with a hyphen, also under that of an alias such as
`max-tokens`, and some names of one word that browsers and proxies send. Other headers of one word
need `allowed_parameters`.
Parameters for another member of an ensemble are ignored if `allowed_parameters` lists them.
Defaults that are not listed are those of CTranslate2.

## Names of other servers

| name | parameter |
|---|---|
ALIASES

A parameter may be given under one name only. `max_tokens` counts the target prefix, and a
`temperature` has an effect only with a `top_k` other than 1. `stop` is not known: `end_token` takes
tokens, not texts.

## Which rows CTranslate2 decodes

On a CPU, greedy search, beam search and sampling run in decode loops, where rows with any options
share every step. These rows run in CTranslate2 calls instead, together with rows of equal options
only:

| rows | reason |
|---|---|
| with `coverage_penalty` | the loop keeps no sums of attention |
| `return_alternatives`, `beam_size` x `num_hypotheses` over 128 | its beams all run at once |
| with `use_vmap` and a map that has lines for n-grams | the candidates differ from row to row |
| of a model that the loop cannot run, or whose trial at load fails | the load log says the reason |
| on a GPU, unless `decoding` is `loop` | the loop's kernels have not run on a GPU yet |
| on a GPU: a source or a limit of more than 1,024 tokens | the size of the loop's buffers |

## Refused combinations

| combination | reason |
|---|---|
| `num_hypotheses` > `beam_size` x `patience`, beam search, no alternatives | too few are found |
| `return_alternatives`, beam search, `patience` < 0.5 / `beam_size` | crashes CTranslate2 |
| `min_decoding_length` above the length limit | no such row |
| `coverage_penalty` with greedy search (`beam_size` 1) | crashes CTranslate2 |
| beam search with 1 < `sampling_topk` < 2 x `beam_size` | crashes CTranslate2 |
| `return_alternatives`, `min_alternative_expansion_prob` > 0 | crashes CTranslate2 |
| `return_alternatives`, `prefix_bias_beta` > 0 | CTranslate2 refuses it |
| `draft_bias` with sampling, `return_alternatives` or `prefix_bias_beta` | one search, one bias |
| 0 < `sampling_temperature` < 0.01 | overflows 16-bit types |
| `beam_size` > `max_beam_size`, `num_hypotheses` > `max_num_hypotheses` | the operator's limit |
| `max_decoding_length` > `decoding_length_limit` | the operator's limit |
| hypotheses searched x length limit > `max_search_tokens` | memory of one search |

The number of hypotheses searched is `beam_size`, multiplied by `num_hypotheses` with
`return_alternatives`; with sampling it is `num_hypotheses`; with `coverage_penalty`,
`replace_unknowns` or `return_alignments` it is `beam_size` x `patience`. Each of their tokens keeps
a key and a value per decoder layer: 98 kB for NLLB-200 600M at float32.
"""

_SCOPES = {
    "model": "config.pbtxt",
    "request": "config.pbtxt and requests",
    "request only": "requests",
}


def page(rows: list[dict[str, Any]]) -> str:
    """Return the whole page.

    Args:
        rows: What `ct2_triton._core.parameters()` gives.

    Returns:
        Markdown text.
    """
    sections = {"decoding": "## Decoding", "request": "## Request", "engine": "## Engine"}
    names = [f"| `{alias}` | `{row['name']}` |" for row in rows for alias in row["aliases"]]
    parts = [_HEAD.replace("ALIASES", "\n".join(names))]
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
