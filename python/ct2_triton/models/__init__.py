# SPDX-License-Identifier: Apache-2.0
"""Which models a repository has, where they come from, and which of them a server has."""
