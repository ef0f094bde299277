// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace ct2triton {

// Threads that share the parts of a computation: its owner, and helpers that have nothing else to
// do. The owner's code calls Split; parts are claimed one by one, so a slow helper takes fewer.
// Where results depend on the order of operations, the split must not depend on the team.
class Team {
 public:
  // `most`: members at most, the owner included. `eager`, for tests: shares all it can, although it
  // takes longer, and never works alone for a while.
  explicit Team(size_t most, bool eager = false)
      : most_(most), eager_(eager), taken_(new std::atomic<bool>[most]()) {}
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // While it lives, Split on this thread uses the team.
  class Owner {
   public:
    explicit Owner(Team* team) noexcept;
    ~Owner();
    Owner(const Owner&) = delete;
    Owner& operator=(const Owner&) = delete;
  };

  // Calls body(begin, end, member) until all of [0, units) is done, in ranges of at least `least`
  // units if several threads take part. The body must not throw. `member`: 0 for the calling
  // thread, below MostMembers() for helpers; no two threads have the same at a time.
  template <typename Body>
  static void Split(size_t units, size_t least, const Body& body) {
    Team* const team = current_;
    if (team != nullptr && team->eager_) least = 1;
    if (team == nullptr || units < 2 * least || !team->HasHelpers()) {
      if (units > 0) body(size_t{0}, units, size_t{0});
      return;
    }
    const auto call = [](const void* of, size_t begin, size_t end, size_t member) {
      (*static_cast<const Body*>(of))(begin, end, member);
    };
    team->Run(units, units / least, call, &body);
  }
  static size_t MostMembers() noexcept { return current_ == nullptr ? 1 : current_->most_; }
  // Of the calling thread's team, since it was made; 0: it has none.
  static size_t PartsByHelpers() noexcept {
    return current_ == nullptr ? 0 : current_->parts_by_helpers();
  }

  // For a helper: takes a place; 0: none is left. Then it helps until `leave` is set or the owner
  // has had nothing to share for a while, and gives the place back.
  size_t Join() noexcept;
  void Help(size_t member, const std::atomic<bool>& leave) noexcept;

  // Begins a piece of work with which so many helpers may help; 0: none may any more. Call while
  // nothing is shared.
  void Limit(size_t helpers) noexcept {
    limit_ = helpers;
    idle_ = false;
  }
  size_t helpers() const noexcept { return helpers_; }
  size_t parts_by_helpers() const noexcept { return parts_by_helpers_; }
  // How many more would gain something. None after one has left because nothing was shared, and
  // none for a while after one of them kept the owner waiting, because other programs then use its
  // core.
  size_t Wanted(uint64_t now_ns) const noexcept;

 private:
  using Call = void (*)(const void* body, size_t begin, size_t end, size_t member);

  bool HasHelpers() const noexcept;
  void Run(size_t units, size_t most_parts, Call call, const void* body) noexcept;
  void TakeParts(size_t member) noexcept;
  void WaitForOthers() noexcept;

  static thread_local Team* current_;

  const size_t most_;
  const bool eager_;
  const std::unique_ptr<std::atomic<bool>[]> taken_;  // by member
  std::atomic<size_t> helpers_{0};
  std::atomic<size_t> limit_{0};
  std::atomic<bool> idle_{false};  // a helper had nothing to do in this piece of work
  std::atomic<uint64_t> alone_until_ns_{0};
  uint64_t pause_ns_ = 0;   // the last one's length
  uint64_t paused_ns_ = 0;  // when it began
  // The computation that is shared now. Read by a helper only between a claim and the end of the
  // claimed part, while the owner waits.
  Call call_ = nullptr;
  const void* body_ = nullptr;
  size_t units_ = 0;
  size_t parts_ = 0;
  alignas(64) std::atomic<size_t> unclaimed_{0};  // parts
  alignas(64) std::atomic<size_t> open_{0};       // parts that are not done
  std::atomic<size_t> parts_by_helpers_{0};
};

}  // namespace ct2triton
