// SPDX-License-Identifier: Apache-2.0
//
// The engine's interface to CTranslate2, without its types. It is implemented by a separate shared
// library, libct2triton_calls.so, so that a process without calls never loads CTranslate2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/calls/call_engine.h"
#include "engine/device.h"
#include "rows/checked_row.h"

namespace ct2triton {

class VocabularyMap;

// Result of a greedy search that no end token ends.
struct GreedyTruth {
  std::vector<int32_t> chosen;             // after the forced tokens
  std::vector<std::vector<float>> logits;  // of every step, including those of forced tokens
};

// A model as CTranslate2 itself loads it: its weights and vocabularies on one device. Immutable,
// shared by all threads.
class LibraryModel : public std::enable_shared_from_this<LibraryModel> {
 public:
  virtual ~LibraryModel() = default;

  virtual std::unique_ptr<CallEngine> NewEngine() const = 0;
  // Runs a greedy search of these rows up to the limit of the first row. Throws what the library
  // throws.
  virtual std::vector<GreedyTruth> FollowGreedily(
      const std::vector<const CheckedRow*>& rows) const = 0;
  // Runs a few tokens through the model. This checks our declarations of the result structs, and
  // detects a missing library (cuBLAS) at load instead of at the first request. `map`: of vmap.txt;
  // null: none; `end_id`: of the target. Throws Error(kUnsupported).
  virtual void Try(const VocabularyMap* map, int64_t end_id) const = 0;
  // Of the memory of the variables with these names.
  virtual size_t Bytes(const std::set<std::string>& names) const = 0;
  // Of one element of a variable; 0: no such variable.
  virtual size_t ElementSize(const std::string& name) const = 0;
};

// The library of the process. Thread-safe.
class CallLibrary {
 public:
  virtual ~CallLibrary() = default;

  // Opened at the first use, and checked against our declarations of CTranslate2. Throws
  // Error(kUnsupported) if it cannot be opened or does not match them; the next use tries again.
  static const CallLibrary& Get();
  // Null until Get has returned.
  static const CallLibrary* Opened() noexcept;

  virtual std::string Version() const = 0;  // of CTranslate2: "4.8.5"
  // Throws Error, with the reason, if the files, the compute type or the device are unsuitable, or
  // the model is not an encoder-decoder model with one source vocabulary.
  virtual std::unique_ptr<const LibraryModel> Load(const std::string& directory,
                                                   const Device& device,
                                                   const std::string& compute_type) const = 0;

  // The settings of CTranslate2 that belong to the calling thread: see ThreadScope.
  virtual void UseDevice(const Device& device) const = 0;
  virtual void SetThreads(size_t threads) const = 0;
  virtual void Synchronize(const Device& device) const = 0;
  virtual void EndThread(const Device& device) const = 0;
};

// The function that libct2triton_calls.so exports. Returns the library, or null with the reason in
// `complaint`. `build`: of the caller; must be equal, because C++ objects are exchanged.
using OpenCalls = const CallLibrary*(const char* build, char* complaint, size_t room) noexcept;
constexpr const char* kOpenCalls = "ct2triton_open_calls";

}  // namespace ct2triton
