# SPDX-License-Identifier: Apache-2.0
"""The servers that ours is compared with: Triton's Python backend, and FastAPI.

They run in their own processes. Modules that only those processes import have their heavy imports
at the top: `hugging_face`, `engine`, `python_model` and `web_app`.
"""
