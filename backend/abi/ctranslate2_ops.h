// SPDX-License-Identifier: Apache-2.0
//
// Our own declarations of operations of CTranslate2 that run on any device, for the attention of
// the decode loop that runs there too (engine/compute/library_gpu/device_attention.h). The rules
// are those of ctranslate2_layers.h: constructed by the library in more room than they need,
// everything weak, no virtual function called.
//
// The symbols are the same in 4.6.3 and 4.8.5.
#pragma once

#include <vector>

#include "ctranslate2_api.h"

namespace ctranslate2 {
namespace ops {

// An operation without a state: the library exports no constructor, and reads nothing of it.
class Add {
 public:
  // b: of the shape of a, or a scalar in the memory of the CPU; c may be a.
  __attribute__((weak)) void operator()(const StorageView& a, const StorageView& b,
                                        StorageView& c) const;

 private:
  alignas(16) unsigned char opaque_[64] = {};
};

class Mul {  // as Add
 public:
  __attribute__((weak)) void operator()(const StorageView& a, const StorageView& b,
                                        StorageView& c) const;

 private:
  alignas(16) unsigned char opaque_[64] = {};
};

class Concat {
 public:
  __attribute__((weak)) explicit Concat(int axis);
  Concat(const Concat&) = delete;
  __attribute__((weak)) ~Concat();
  __attribute__((weak)) void operator()(const std::vector<const StorageView*>& inputs,
                                        StorageView& output) const;

 private:
  alignas(16) unsigned char opaque_[512];
};

class Gather {
 public:
  __attribute__((weak)) Gather(long axis, long batch_dims);
  Gather(const Gather&) = delete;
  __attribute__((weak)) ~Gather();
  // indices: int32, on the device of the data.
  __attribute__((weak)) void operator()(const StorageView& data, const StorageView& indices,
                                        StorageView& output) const;

 private:
  alignas(16) unsigned char opaque_[512];
};

// c = alpha * a * b, of the last two dimensions.
class MatMul {
 public:
  __attribute__((weak)) MatMul(bool trans_a, bool trans_b, float alpha);
  MatMul(const MatMul&) = delete;
  __attribute__((weak)) ~MatMul();
  __attribute__((weak)) void operator()(const StorageView& a, const StorageView& b,
                                        StorageView& c) const;

 private:
  alignas(16) unsigned char opaque_[512];
};

class Split {
 public:
  __attribute__((weak)) Split(long axis, const std::vector<long>& sizes, bool no_copy);
  Split(const Split&) = delete;
  __attribute__((weak)) ~Split();
  __attribute__((weak)) void operator()(const StorageView& input,
                                        std::vector<StorageView*>& outputs) const;

 private:
  alignas(16) unsigned char opaque_[512];
};

class TopK {
 public:
  __attribute__((weak)) TopK(long k, long axis);  // the last axis
  TopK(const TopK&) = delete;
  __attribute__((weak)) ~TopK();
  // indices: int32.
  __attribute__((weak)) void operator()(const StorageView& x, StorageView& values,
                                        StorageView& indices) const;

 private:
  alignas(16) unsigned char opaque_[512];
};

class Transpose {
 public:
  __attribute__((weak)) explicit Transpose(const std::vector<long>& permutation);
  Transpose(const Transpose&) = delete;
  __attribute__((weak)) ~Transpose();
  __attribute__((weak)) void operator()(const StorageView& x, StorageView& y) const;

 private:
  alignas(16) unsigned char opaque_[512];
};

}  // namespace ops
}  // namespace ctranslate2
