// SPDX-License-Identifier: Apache-2.0
//
// exit() while models are loaded. Triton calls it when its --exit-timeout-secs is over.
#pragma once

namespace ct2triton {

// While one of these exists, exit() ends the process with its status and destroys nothing. It would
// destroy the static objects of all libraries (ours, CTranslate2's, Triton's) while threads use
// them; and Triton's gRPC server, which is one of them, waits for the requests that run.
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
