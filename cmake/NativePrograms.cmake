# SPDX-License-Identifier: Apache-2.0
# For programs of the tests that hold the core, or the whole backend. They are linked against the
# library of the ctranslate2 wheel itself, where it lies; its private libgomp lies beside it.

ct2triton_python_package_dir(ct2triton_engine_dir
  "import importlib.util as u, pathlib; \
print(pathlib.Path(u.find_spec('ctranslate2').origin).parent.parent / 'ctranslate2.libs')")
file(GLOB ct2triton_engine_library "${ct2triton_engine_dir}/libctranslate2*.so*")
if(NOT ct2triton_engine_library)
  message(FATAL_ERROR "the native tests need the ctranslate2 wheel: 'pip install ctranslate2'")
endif()

# DT_RPATH, as in backend/CMakeLists.txt: it must also hold for the library's own libgomp.
function(ct2triton_link_wheel target)
  set_target_properties(${target} PROPERTIES
    BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "${ct2triton_engine_dir}")
  target_link_libraries(${target} PRIVATE ct2triton_calls_objects)
  target_link_options(${target} PRIVATE
    "LINKER:--disable-new-dtags" "LINKER:--allow-shlib-undefined"
    "LINKER:--no-as-needed" "${ct2triton_engine_library}")
endfunction()

# The backend and the stand-in for Triton, to be one program with them.
get_target_property(ct2triton_backend_sources triton_ctranslate2 SOURCES)
list(REMOVE_ITEM ct2triton_backend_sources src/engine/calls/open_library.cc)  # linked.cc stands for it
get_target_property(ct2triton_backend_dir triton_ctranslate2 SOURCE_DIR)
list(TRANSFORM ct2triton_backend_sources PREPEND "${ct2triton_backend_dir}/" REGEX "^[^/]")
set(ct2triton_native_dir "${PROJECT_SOURCE_DIR}/tests/native")
if(NOT TARGET ct2triton_stand_in)
  add_library(ct2triton_stand_in OBJECT
    "${ct2triton_native_dir}/triton_stand_in.cc" "${ct2triton_native_dir}/triton_stand_in_request.cc"
    ${ct2triton_backend_sources})
  target_link_libraries(ct2triton_stand_in PUBLIC ct2triton_core)
  target_include_directories(ct2triton_stand_in PUBLIC "${ct2triton_native_dir}")
endif()
