# SPDX-License-Identifier: Apache-2.0
"""The servers that ours is compared with: Triton's Python backend, and FastAPI.

They run in processes of their own. Modules that those processes alone import have their heavy
imports at the top: `hugging_face`, `engine`, `python_model` and `web_app`.
"""
