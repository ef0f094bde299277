// SPDX-License-Identifier: Apache-2.0
//
// The whole backend on two emulated GPUs, with a stand-in for Triton that gives every request to
// the first one's instance, as Triton may: while that one is busy, the other one answers.
//
// two_gpus <model directory>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "triton_stand_in.h"

namespace {

namespace fs = std::filesystem;
using stand_in::Call;
using stand_in::Require;

constexpr int64_t kLong = 1000;  // tokens; a loop on a GPU has room for 1,024
constexpr int64_t kShort = 3;
constexpr int64_t kBusyRows = 8;  // more than an answered row that is still counted
constexpr size_t kRequests = 4;
constexpr unsigned kMost_s = 300;

std::string Config() {
  return R"({"name":"model","backend":"ctranslate2","max_batch_size":0,"input":[],"output":[],)"
         R"("instance_group":[{"kind":"KIND_GPU","gpus":[0,1]}],"parameters":{)"
         R"("decoding":{"string_value":"loop"},"calls":{"string_value":"refuse"},)"
         R"("proof":{"string_value":"off"},"compute_type":{"string_value":"float32"},)"
         R"("decoding_length_limit":{"string_value":"1024"},"beam_size":{"string_value":"1"}}})";
}

std::shared_ptr<Call> Send(stand_in::Model* model, int64_t rows, int64_t length) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < rows; ++i) ids.insert(ids.end(), {50, static_cast<int32_t>(100 + i), 2});
  stand_in::RequestContent content;
  content.inputs = {{"INPUT_IDS",
                     TRITONSERVER_TYPE_INT32,
                     {rows, 3},
                     {reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(ids[0])}}};
  content.parameters = {{"min_decoding_length", length}, {"max_decoding_length", length}};
  content.outputs = {"OUTPUT_IDS"};
  auto call = std::make_shared<Call>();
  model->Execute(0, {stand_in::NewRequest(std::move(content), call)});
  return call;
}

void Run(const std::string& folder) {
  stand_in::Model model(folder, Config(), 2, /*on_gpus=*/true);
  const auto busy = Send(&model, kBusyRows, kLong);
  for (size_t i = 0; i < kRequests; ++i) {
    const auto call = Send(&model, 1, kShort);
    Require(!call->Wait().error, call->Wait().message);
  }
  Require(model.Reported(0) == 0, "a short request waited for the long one");
  Require(model.Reported(1) == kRequests, "the other GPU did not answer all short requests");
  busy->Cancel();
  busy->Wait();
  const auto last = Send(&model, 1, kShort);
  Require(!last->Wait().error, last->Wait().message);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: two_gpus <model directory>\n");
    return 2;
  }
  alarm(kMost_s);  // ends what hangs
  const fs::path folder = fs::temp_directory_path() / ("two_gpus-" + std::to_string(getpid()));
  fs::create_directories(folder / "1");
  fs::copy(arguments[1], folder / "1" / "model", fs::copy_options::recursive);
  Run(folder);
  fs::remove_all(folder);
  Require(stand_in::LiveHandles() == 0, "handles are left");
  std::printf("both GPUs answered\n");
}
