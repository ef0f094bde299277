// SPDX-License-Identifier: Apache-2.0
//
// The whole backend on the emulated GPU, with a stand-in for Triton, while the device is lost: the
// environment says when (tests/sanitize/sanitize.sh). The model is ready before and not ready
// afterwards, every request is answered and given back, and a model on the processor goes on.
//
// lost_device <model directory>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "triton_stand_in.h"

namespace {

namespace fs = std::filesystem;
using stand_in::Answer;
using stand_in::Call;
using stand_in::Require;

constexpr size_t kTogether = 4;
constexpr size_t kMostRequests = 200;  // the device is lost before
const std::string kAdvice = "restart the server";

std::string Config(const std::string& decoding) {
  return R"({"name":"model","backend":"ctranslate2","max_batch_size":0,"input":[],"output":[],)"
         R"("instance_group":[{"kind":"KIND_CPU"}],"parameters":{)"
         R"("decoding":{"string_value":")" +
         decoding + R"("},"beam_size":{"string_value":"1"}}})";
}

stand_in::RequestContent Content(int32_t first) {
  const std::vector<int32_t> ids = {first, 60, 70, 2};
  std::string bytes(reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(ids[0]));
  stand_in::RequestContent content;
  content.inputs.push_back({"INPUT_IDS", TRITONSERVER_TYPE_INT32, {1, 4}, std::move(bytes)});
  content.parameters = {{"max_decoding_length", int64_t{8}}};
  content.outputs = {"OUTPUT_IDS"};
  return content;
}

// Answers of requests that run together.
std::vector<Answer> Send(stand_in::Model* model) {
  std::vector<std::shared_ptr<Call>> calls;
  for (size_t i = 0; i < kTogether; ++i) {
    calls.push_back(std::make_shared<Call>());
    const auto first = static_cast<int32_t>(40 + i);
    model->Execute(0, {stand_in::NewRequest(Content(first), calls.back())});
  }
  std::vector<Answer> answers;
  for (const auto& call : calls) answers.push_back(call->Wait());
  return answers;
}

void RequireLost(const Answer& answer) {
  Require(answer.error == TRITONSERVER_ERROR_UNAVAILABLE, "another error: " + answer.message);
  Require(answer.message.find(kAdvice) != std::string::npos, answer.message);
}

size_t SendUntilLost(stand_in::Model* model) {
  for (size_t sent = 0; sent < kMostRequests;) {
    Require(!model->Ready(0).error, "it is not ready before its device is lost");
    size_t failed = 0;
    for (const Answer& answer : Send(model)) {
      if (!answer.error) continue;
      RequireLost(answer);
      ++failed;
    }
    sent += kTogether;
    if (failed > 0) return sent;
  }
  Require(false, "the device was not lost");
  return 0;
}

void Run(const std::string& folder) {
  stand_in::Model host(folder, Config("calls"), 1);
  size_t sent = 0;
  {
    stand_in::Model model(folder, Config("loop"), 1);
    sent = SendUntilLost(&model);
    RequireLost(model.Ready(0));
    for (const Answer& answer : Send(&model)) RequireLost(answer);
  }
  try {
    const stand_in::Model again(folder, Config("loop"), 1);
    Require(false, "a model was loaded on the lost device");
  } catch (const std::runtime_error& error) {
    Require(std::string(error.what()).find(kAdvice) != std::string::npos, error.what());
  }
  Require(!host.Ready(0).error, "a model of the processor is not ready");
  for (const Answer& answer : Send(&host)) Require(!answer.error, answer.message);
  std::printf("%zu requests, and the model was not ready once its device was lost\n", sent);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: lost_device <model directory>\n");
    return 2;
  }
  stand_in::ExpectError(kAdvice);
  const fs::path folder = fs::temp_directory_path() / ("lost_device-" + std::to_string(getpid()));
  fs::create_directories(folder / "1");
  fs::copy(arguments[1], folder / "1" / "model", fs::copy_options::recursive);
  Run(folder.string());
  fs::remove_all(folder);
  Require(stand_in::LiveHandles() == 0, "handles were not freed");
  return 0;
}
