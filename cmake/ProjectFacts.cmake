# SPDX-License-Identifier: Apache-2.0
# Reads what CMake shares with Python from the one place where it stands.

function(ct2triton_read_fact variable file pattern)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
  file(READ "${file}" text)
  if(NOT text MATCHES "${pattern}")
    message(FATAL_ERROR "ct2-triton: no text like ${pattern} in ${file}")
  endif()
  set(${variable} "${CMAKE_MATCH_1}" PARENT_SCOPE)
endfunction()

set(ct2triton_root "${CMAKE_CURRENT_LIST_DIR}/..")
ct2triton_read_fact(CT2TRITON_VERSION "${ct2triton_root}/python/ct2_triton/__init__.py"
                    "__version__ = \"([0-9]+\\.[0-9]+\\.[0-9]+)")
ct2triton_read_fact(CT2TRITON_CT2_MIN "${ct2triton_root}/pyproject.toml"
                    "\"ctranslate2>=([0-9]+\\.[0-9]+\\.[0-9]+),<=[0-9]+\\.[0-9]+\\.[0-9]+\"")
ct2triton_read_fact(CT2TRITON_CT2_MAX "${ct2triton_root}/pyproject.toml"
                    "\"ctranslate2>=[0-9]+\\.[0-9]+\\.[0-9]+,<=([0-9]+\\.[0-9]+\\.[0-9]+)\"")
