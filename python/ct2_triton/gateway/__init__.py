# SPDX-License-Identifier: Apache-2.0
"""LibreTranslate's HTTP API, served with text models (docs/gateway.md)."""
