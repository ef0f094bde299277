# SPDX-License-Identifier: Apache-2.0
# Every outside source of the build, and nothing is downloaded here:
#   nlohmann/json  headers  Python package nlohmann-json (a build requirement), or CT2TRITON_JSON_INCLUDE_DIR,
#                           or a system package (Debian: nlohmann-json3-dev)
#   pybind11       headers  Python package pybind11 (a build requirement)
#   CTranslate2    none     backend/abi/ctranslate2_api.h declares what we call; found at run time
#   Triton         none     backend/abi/triton_c_api.h declares what we call; the server has the symbols

find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
find_package(Threads REQUIRED)

function(ct2triton_python_package_dir variable expression)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c "${expression}"
    OUTPUT_VARIABLE output OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(failed)
    set(output "")
  endif()
  set(${variable} "${output}" PARENT_SCOPE)
endfunction()

# nlohmann/json
set(CT2TRITON_JSON_INCLUDE_DIR "" CACHE PATH "Folder that holds nlohmann/json.hpp; empty to search")
ct2triton_python_package_dir(json_package_dir
  "import nlohmann_json, os; print(os.path.join(os.path.dirname(nlohmann_json.__file__), 'include'))")
find_path(ct2triton_json_dir nlohmann/json.hpp
          HINTS "${CT2TRITON_JSON_INCLUDE_DIR}" "${json_package_dir}" NO_CACHE)
if(NOT ct2triton_json_dir)
  message(FATAL_ERROR
    "ct2-triton needs the nlohmann/json headers: 'pip install nlohmann-json', or Debian's "
    "nlohmann-json3-dev, or -DCT2TRITON_JSON_INCLUDE_DIR=<folder that holds nlohmann/json.hpp>")
endif()
add_library(ct2triton_json INTERFACE)
target_include_directories(ct2triton_json SYSTEM INTERFACE "${ct2triton_json_dir}")

# pybind11
ct2triton_python_package_dir(pybind11_package_dir "import pybind11; print(pybind11.get_cmake_dir())")
find_package(pybind11 3 CONFIG HINTS "${pybind11_package_dir}")
if(NOT pybind11_FOUND)
  message(FATAL_ERROR "ct2-triton needs pybind11 3 for ${Python_EXECUTABLE}: 'pip install pybind11'")
endif()
