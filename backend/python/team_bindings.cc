// SPDX-License-Identifier: Apache-2.0
//
// Threads that help the calling thread, for tests that helpers do not change results, and how a
// model sees whether there are any.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "bindings.h"
#include "engine/team.h"
#include "queue/help_watch.h"

namespace py = pybind11;

namespace ct2triton {
namespace {

// Between Enter and Exit, `count` threads help with everything the calling thread computes.
class PyHelpers {
 public:
  explicit PyHelpers(size_t count) : team_(count + 1, /*eager=*/true), count_(count) {}
  ~PyHelpers() { Exit(); }

  void Enter() {
    leave_ = false;
    team_.Limit(count_);
    while (threads_.size() < count_) threads_.emplace_back([this] { Help(); });
    while (team_.helpers() < count_) std::this_thread::yield();
    owner_ = std::make_unique<Team::Owner>(&team_);
  }
  void Exit() noexcept {
    owner_.reset();
    leave_ = true;
    for (auto& thread : threads_) thread.join();
    threads_.clear();
  }
  size_t parts() const { return team_.parts_by_helpers(); }

 private:
  // Helpers of an eager team do not leave when work is rare; those of other teams do.
  void Help() noexcept {
    while (!leave_) {
      if (const size_t member = team_.Join()) team_.Help(member, leave_);
    }
  }

  Team team_;
  const size_t count_;
  std::atomic<bool> leave_{false};
  std::vector<std::thread> threads_;
  std::unique_ptr<Team::Owner> owner_;
};

std::vector<bool> PyWatchHelp(const std::vector<std::pair<bool, uint64_t>>& steps) {
  HelpWatch watch;
  std::vector<bool> helps;
  for (const auto& [helped, end_ns] : steps) {
    watch.Count(helped, end_ns);
    helps.push_back(watch.Helps(end_ns));
  }
  return helps;
}

}  // namespace

void BindTeam(py::module_& module) {
  module.def("watch_help", &PyWatchHelp, py::arg("steps"),
             "Tell after each step (whether it was helped, its end in ns) whether a model counts "
             "on help.");
  py::class_<PyHelpers>(module, "Helpers",
                        "Threads that help the calling thread to compute while it is in the "
                        "context, whatever it computes.")
      .def(py::init<size_t>(), py::arg("count"))
      .def(
          "__enter__",
          [](PyHelpers* helpers) {
            const py::gil_scoped_release release;
            helpers->Enter();
            return helpers;
          },
          py::return_value_policy::reference)
      .def("__exit__",
           [](PyHelpers* helpers, const py::args&) {
             const py::gil_scoped_release release;
             helpers->Exit();
           })
      .def_property_readonly("parts", &PyHelpers::parts, "Parts that the helpers have computed.");
}

}  // namespace ct2triton
