// SPDX-License-Identifier: Apache-2.0
//
// Handles exit() while models are loaded. Triton calls it when --exit-timeout-secs has passed.
#pragma once

namespace ct2triton {

// While an object of this class exists, exit() ends the process with its status and destroys
// nothing. Otherwise it would destroy the static objects of all libraries (ours, CTranslate2's,
// Triton's) while threads use them. One of them, Triton's gRPC server, would also wait for the
// requests in progress.
class ExitsAtOnce {
 public:
  ExitsAtOnce();  // throws std::bad_alloc
  ~ExitsAtOnce();
  ExitsAtOnce(const ExitsAtOnce&) = delete;
  ExitsAtOnce& operator=(const ExitsAtOnce&) = delete;
};

// exit() destroys the newest object first, and libraries make some during their first calls. This
// moves our handler before theirs; call it from time to time.
void RenewExitHandler() noexcept;

}  // namespace ct2triton
