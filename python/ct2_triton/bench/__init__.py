# SPDX-License-Identifier: Apache-2.0
"""Compare ways to serve a translation model: same model, same rows, same machine, alternately."""
