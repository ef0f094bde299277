// SPDX-License-Identifier: Apache-2.0
//
// CTranslate2's own model of some weights, for calls.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "engine/calls/call_library.h"
#include "error.h"

namespace ct2triton {

class Weights;

// In memory while calls need it. A thread of its own loads it when the first row needs it, so that
// no decoding thread waits. It is removed some time after the last call. Thread-safe.
class CallModel {
 public:
  // Called on that thread when the model was loaded or removed. Must not call Remove.
  class Listener {
   public:
    virtual void ModelCame() noexcept = 0;
    virtual void ModelFailed(const Error& error) noexcept = 0;
    virtual void ModelLeft() noexcept = 0;  // call Fetch if it is still needed

   protected:
    ~Listener() = default;
  };

  // The one of these weights. `threads`: for loading it.
  static std::shared_ptr<CallModel> Get(const std::shared_ptr<const Weights>& weights,
                                        size_t threads);

  CallModel(std::shared_ptr<const Weights> weights, size_t threads);
  ~CallModel();
  CallModel(const CallModel&) = delete;
  CallModel& operator=(const CallModel&) = delete;

  void Add(Listener* listener);
  void Remove(Listener* listener) noexcept;  // waits until no call of it runs

  // Loads it now, on the calling thread, for as long as this object lives. Throws Error.
  void Keep();
  // Starts loading unless it is loaded; then all listeners are called.
  void Fetch() noexcept;
  bool here() const noexcept { return here_; }

  // An engine for one call of a model on a CPU. After its release the model stays for another
  // `stay_ns`. Null if the model is not loaded.
  std::shared_ptr<CallEngine> TakeEngine(uint64_t stay_ns);
  // An engine of a model after Keep(), only for the calling thread.
  std::unique_ptr<CallEngine> NewEngine() const;

  size_t bytes() const noexcept { return bytes_; }    // of memory in use
  uint64_t loads() const noexcept { return loads_; }  // how often it was loaded

 private:
  using Lock = std::unique_lock<std::mutex>;

  std::shared_ptr<const LibraryModel> Load() const;
  void Work() noexcept;
  void LoadUnlocked(Lock* lock) noexcept;
  void RemoveUnlocked(Lock* lock) noexcept;
  void GiveBack(CallEngine* engine, uint64_t stay_ns) noexcept;
  template <class Action>
  void Notify(const Action& action) noexcept;

  const std::shared_ptr<const Weights> weights_;
  const size_t threads_;

  std::mutex listeners_mutex_;
  std::set<Listener*> listeners_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<const LibraryModel> model_;
  std::vector<std::unique_ptr<CallEngine>> engines_;  // not in use
  size_t taken_ = 0;
  uint64_t stays_until_ns_ = 0;
  bool awaits_call_ = false;  // no call since it was loaded
  bool kept_ = false;
  bool wanted_ = false;
  bool ending_ = false;
  std::thread thread_;  // from the first Fetch on
  std::atomic<bool> here_{false};
  std::atomic<size_t> bytes_{0};
  std::atomic<uint64_t> loads_{0};
};

}  // namespace ct2triton
