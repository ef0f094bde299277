// SPDX-License-Identifier: Apache-2.0
//
// The whole backend, with a stand-in for Triton, while memory is exhausted for a time: from any
// allocation on of the thread that hands a request over, or of the one that decodes and answers it.
// Each request is answered and given back, and the next one is answered well.
//
// exhausted_backend <model directory>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "failing_memory.h"
#include "triton_stand_in.h"

namespace {

namespace fs = std::filesystem;
using stand_in::Answer;
using stand_in::Call;
using stand_in::Require;

// Longer than any piece of code goes on without waiting for memory.
constexpr size_t kLasting = 8;

enum class Where { kHandingOver, kAnswering };

std::string Config(const std::string& decoding) {
  return R"({"name":"model","backend":"ctranslate2","max_batch_size":0,"input":[],"output":[],)"
         R"("instance_group":[{"kind":"KIND_CPU"}],"parameters":{)"
         R"("decoding":{"string_value":")" +
         decoding + R"("},"beam_size":{"string_value":"1"}}})";
}

stand_in::RequestContent Content() {
  const std::vector<int32_t> ids = {50, 60, 70, 2};
  std::string bytes(reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(ids[0]));
  stand_in::RequestContent content;
  content.inputs.push_back({"INPUT_IDS", TRITONSERVER_TYPE_INT32, {1, 4}, std::move(bytes)});
  content.buffers = 2;
  content.parameters = {{"max_decoding_length", int64_t{8}}, {"supersede_key", std::string("k")}};
  content.outputs = {"OUTPUT_IDS", "HYPOTHESES", "FINISH_REASON", "SCORES"};
  return content;
}

struct Outcome {
  bool answered_well = false;
  bool ran_out = false;
};

class World {
 public:
  World(const std::string& folder, const std::string& decoding)
      : model_(folder, Config(decoding), 1) {
    const auto call = std::make_shared<Call>();
    model_.Execute(0, {stand_in::NewRequest(Content(), call)});
    const Answer& answer = call->Wait();
    Require(!answer.error, answer.message);
    truth_ = answer.outputs.at("OUTPUT_IDS").bytes;
  }

  // Memory runs out at that allocation.
  Outcome Send(Where where, size_t allocation) {
    const auto call = std::make_shared<Call>();
    auto request = stand_in::NewRequest(Content(), call);
    const auto here = std::this_thread::get_id();
    std::atomic<bool> started{where == Where::kHandingOver};
    const size_t failed_before = failing_memory::Failed();
    Outcome outcome;
    if (where == Where::kAnswering) {
      call->when_asked = [&started, here, allocation]() noexcept {
        if (std::this_thread::get_id() == here || started.exchange(true)) return;
        failing_memory::FailFrom(allocation, kLasting);
      };
      call->when_taken_back = []() noexcept { failing_memory::Restore(); };
    }
    std::vector<TRITONBACKEND_Request*> batch = {request};
    if (where == Where::kHandingOver) failing_memory::FailFrom(allocation, kLasting);
    model_.Execute(0, std::move(batch));
    if (where == Where::kHandingOver) failing_memory::Restore();
    const Answer& answer = call->Wait();
    // On whichever thread: the one that lets go of a request last gives it back.
    outcome.ran_out = failing_memory::Failed() > failed_before;
    if (answer.error) {
      Require(answer.message == "the server ran out of memory", answer.message);
    } else {
      outcome.answered_well = answer.outputs.at("OUTPUT_IDS").bytes == truth_;
      Require(outcome.answered_well, "a wrong answer");
    }
    return outcome;
  }

 private:
  stand_in::Model model_;
  std::string truth_;
};

size_t Exhaust(World* world, Where where) {
  size_t refused = 0;
  for (size_t allocation = 1;; ++allocation) {
    const Outcome outcome = world->Send(where, allocation);
    if (!outcome.answered_well) ++refused;
    if (outcome.ran_out) continue;
    Require(outcome.answered_well, "refused without a reason");
    Require(refused > 10, "nothing failed");
    return refused;
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: exhausted_backend <model directory>\n");
    return 2;
  }
  failing_memory::UseOneCore();
  const fs::path folder =
      fs::temp_directory_path() / ("exhausted_backend-" + std::to_string(getpid()));
  fs::create_directories(folder / "1");
  fs::copy(arguments[1], folder / "1" / "model", fs::copy_options::recursive);
  size_t refused = 0;
  for (const char* decoding : {"calls", "loop"}) {
    World world(folder.string(), decoding);
    for (const Where where : {Where::kHandingOver, Where::kAnswering}) {
      refused += Exhaust(&world, where);
    }
  }
  fs::remove_all(folder);
  Require(stand_in::LiveHandles() == 0, "handles were not freed");
  std::printf("%zu allocations failed, %zu requests refused for it, every one given back\n",
              failing_memory::Failed(), refused);
  return 0;
}
