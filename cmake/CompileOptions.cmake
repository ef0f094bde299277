# SPDX-License-Identifier: Apache-2.0
# Warnings and sanitizers, carried by one interface target that only our own targets link.

option(CT2TRITON_WERROR "Treat the warnings of our sources as errors" OFF)
set(CT2TRITON_SANITIZE "" CACHE STRING "Sanitizers to build with, e.g. address,undefined or thread")

add_library(ct2triton_options INTERFACE)
target_compile_features(ct2triton_options INTERFACE cxx_std_17)
target_compile_options(ct2triton_options INTERFACE -Wall -Wextra)
if(CT2TRITON_WERROR)
  target_compile_options(ct2triton_options INTERFACE -Werror)
endif()
if(CT2TRITON_SANITIZE)
  target_compile_options(ct2triton_options INTERFACE
    "-fsanitize=${CT2TRITON_SANITIZE}" -fno-sanitize-recover=all -fno-omit-frame-pointer -g1
    # False in instrumented code, says GCC's own manual.
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_link_options(ct2triton_options INTERFACE "-fsanitize=${CT2TRITON_SANITIZE}")
endif()
