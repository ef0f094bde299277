# SPDX-License-Identifier: Apache-2.0
"""Which models lie in a repository, where they come from, and which of them a server has."""
