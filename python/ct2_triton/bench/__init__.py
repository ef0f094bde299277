# SPDX-License-Identifier: Apache-2.0
"""Compares ways to serve a translation model: same model, same rows, same machine, in turn."""
