# SPDX-License-Identifier: Apache-2.0
"""The models of a repository: their origin, their versions, and what a server has loaded."""
