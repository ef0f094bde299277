// SPDX-License-Identifier: Apache-2.0
// All kernels: an encoder, a step of a decoder for rows at different positions, and the choice of
// tokens. NVRTC compiles this file for GPUs, and a C++ compiler for the emulation.
#include "attention.cuh"
#include "choice.cuh"
#include "product.cuh"
#include "rows.cuh"

#ifndef CT2T_KERNEL  // name, argument struct, threads per block, function
#define CT2T_KERNEL(name, Args, threads, ...) \
  extern "C" __global__ void __launch_bounds__(threads, 1) name(const Args a) { __VA_ARGS__(a); }
#endif

using namespace ct2triton::gpu;

#define CT2T_PRODUCTS(of, W, A, many)                                                  \
  CT2T_KERNEL(product_##of##_norm_one, ProductArgs, 256, Product<W, A, 1, true>)       \
  CT2T_KERNEL(product_##of##_norm_many, ProductArgs, 256, Product<W, A, many, true>)   \
  CT2T_KERNEL(product_##of##_plain_one, ProductArgs, 256, Product<W, A, 1, false>)     \
  CT2T_KERNEL(product_##of##_plain_many, ProductArgs, 256, Product<W, A, many, false>) \
  CT2T_KERNEL(embed_##of, EmbedArgs, kEmbedThreads, Embed<W>)

CT2T_PRODUCTS(f32, float, float, kManyTilesFloat32)
CT2T_PRODUCTS(f16, Half, Half, kManyTiles)
CT2T_PRODUCTS(i8, signed char, Half, kManyTiles)
CT2T_KERNEL(attention_f32, AttentionArgs, kThreads, Attention<float>)
CT2T_KERNEL(attention_f16, AttentionArgs, kThreads, Attention<Half>)
#ifdef CT2T_HAS_BFLOAT
CT2T_PRODUCTS(bf16, Bfloat, Bfloat, kManyTiles)
CT2T_KERNEL(attention_bf16, AttentionArgs, kThreads, Attention<Bfloat>)
#endif
CT2T_KERNEL(scan, ChoiceArgs, kThreads, Scan)
CT2T_KERNEL(choose, ChoiceArgs, 32, Choose)
CT2T_KERNEL(align, AlignArgs, 32, Align)
CT2T_KERNEL(pack, PackArgs, kThreads, Pack)
CT2T_KERNEL(gather, GatherArgs, kThreads, Gather)
