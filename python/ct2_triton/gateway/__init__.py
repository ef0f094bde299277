# SPDX-License-Identifier: Apache-2.0
"""LibreTranslate's HTTP API in front of models that take text (docs/gateway.md)."""
