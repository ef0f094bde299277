// SPDX-License-Identifier: Apache-2.0
//
// Streams of text through the whole backend under many threads, with a stand-in for Triton: good,
// bad, cancelled and superseded ones on two instances of two models, one that decodes in loops and
// one in calls. The parts of each good stream, joined, are the answer of a model that does not
// stream; an error is one response, and the last one. Before them, an answer of many rows that is
// not taken, and a request beside it. Meant to run under a sanitizer.
//
// stream_stress <seconds> <seed> <folder of a prepared model>
#include <atomic>
#include <cstdio>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "stress.h"
#include "text_tensors.h"
#include "triton_stand_in.h"

namespace {

using stand_in::Answer;
using stand_in::Call;
using stand_in::ReadStrings;
using stand_in::Require;
using stand_in::Strings;
using stress::Draw;
using stress::Pick;
using stress::Random;
using Texts = std::vector<std::string>;

constexpr size_t kInstances = 2;
constexpr size_t kCases = 24;
constexpr stress::Pace kPace = {4, 4000, 5, 12};

const Texts kSentences = {"Gate C19 closes in 6 minutes!", "The ticket office opens at 5:45.",
                          "Good morning.", "Where is the station?", "---"};
const Texts kGaps = {" ", "\n", "\n\n\t", "  "};
const Texts kLanguages = {"deu_Latn", "fr", "es", "it", "nld_Latn"};

std::string Config(const std::string& decoding, bool streams, const std::string& workers = "2") {
  return R"({"name":"model","backend":"ctranslate2","max_batch_size":0,"output":[],)"
         R"("input":[{"name":"text_input"},{"name":"target_languages","optional":true}],)"
         R"("instance_group":[{"kind":"KIND_CPU"}],"model_transaction_policy":{"decoupled":)" +
         std::string(streams ? "true" : "false") +
         R"(},"parameters":{"beam_size":{"string_value":"1"},)"
         R"("source_language":{"string_value":"en"},"compute_type":{"string_value":"float32"},)"
         R"("max_decoding_length":{"string_value":"8"},"inter_threads":{"string_value":")" +
         workers + R"("},"decoding":{"string_value":")" + decoding + R"("}}})";
}

struct Case {
  std::string text;
  Texts targets;
  Texts translations;
};

stand_in::RequestContent Content(const Case& one, Texts outputs) {
  stand_in::RequestContent content;
  content.inputs = {Strings("text_input", {one.text}), Strings("target_languages", one.targets)};
  content.outputs = std::move(outputs);
  return content;
}

Case SomeCase(stand_in::Model* unary, Random* random) {
  Case one;
  for (int64_t i = Draw(random, 0, 4); i > 0; --i) {
    one.text += Pick(kSentences, random) + Pick(kGaps, random);
  }
  for (int64_t i = Draw(random, 1, 3); i > 0; --i) one.targets.push_back(Pick(kLanguages, random));
  const auto call = std::make_shared<Call>();
  unary->Execute(0, {stand_in::NewRequest(Content(one, {"text_output"}), call)});
  const Answer& answer = call->Wait();
  Require(!answer.error, "a good request failed: " + answer.message);
  one.translations = ReadStrings(answer.outputs.at("text_output"));
  return one;
}

struct Sent {
  std::shared_ptr<Call> call = std::make_shared<Call>();
  const Case* of = nullptr;
  bool bad = false;
  bool cancelled = false;
  bool keyed = false;
};

struct Counts {
  size_t good = 0, refused = 0, cancelled = 0, superseded = 0, parts = 0;
};

// Spoils a request in one of the ways a client can.
void Spoil(stand_in::RequestContent* content, Random* random) {
  switch (Draw(random, 0, 4)) {
    case 0:
      content->inputs[0] = Strings("text_input", {"caf\xE9"});
      return;
    case 1:
      content->inputs[1] = Strings("target_languages", {"klingon"});
      return;
    case 2:
      content->parameters.emplace_back("beam_size", int64_t{2});
      return;
    case 3:
      content->parameters.emplace_back("sampling_topk", int64_t{5});
      return;
    default:
      content->inputs.erase(content->inputs.begin());
  }
}

Sent SomeRequest(const std::vector<Case>& cases, Random* random,
                 std::vector<TRITONBACKEND_Request*>* batch) {
  Sent sent;
  sent.call->takes_parts = true;
  sent.of = &cases[static_cast<size_t>(Draw(random, 0, kCases - 1))];
  auto content = Content(*sent.of, {"text_output", "target_index", "finish_reason"});
  content.parameters.emplace_back("stream", true);
  sent.keyed = Draw(random, 0, 3) == 0;
  if (sent.keyed) {
    content.parameters.emplace_back("supersede_key", "key " + std::to_string(Draw(random, 0, 2)));
  }
  sent.bad = Draw(random, 0, 5) == 0;
  if (sent.bad) Spoil(&content, random);
  batch->push_back(stand_in::NewRequest(std::move(content), sent.call));
  return sent;
}

void AddPart(const Answer& part, Texts* texts, std::vector<bool>* ended) {
  const auto index = static_cast<unsigned char>(part.outputs.at("target_index").bytes[0]);
  Require(index < texts->size(), "a part of no language");
  Require(!(*ended)[index], "a part behind the last one of its language");
  const std::string text = ReadStrings(part.outputs.at("text_output"))[0];
  (*ended)[index] = !ReadStrings(part.outputs.at("finish_reason"))[0].empty();
  Require((*ended)[index] || !text.empty(), "an empty part that is not the last");
  (*texts)[index] += text;
}

// Every part, and of a whole stream that nothing is missing.
void CheckParts(const Sent& sent, const Answer* last) {
  Texts texts(sent.of->targets.size());
  std::vector<bool> ended(texts.size());
  for (const Answer& part : sent.call->parts()) AddPart(part, &texts, &ended);
  if (last != nullptr) AddPart(*last, &texts, &ended);
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string& wanted = sent.of->translations[i];
    Require(wanted.compare(0, texts[i].size(), texts[i]) == 0,
            "parts of another text: " + texts[i] + ", not " + wanted);
    Require(last == nullptr || (ended[i] && texts[i] == wanted), "a stream that is not whole");
  }
}

void CheckStream(const Sent& sent, Counts* counts) {
  const Answer& answer = sent.call->Wait();
  counts->parts += sent.call->parts().size();
  if (sent.bad && answer.error != TRITONSERVER_ERROR_CANCELLED) {
    Require(answer.error == TRITONSERVER_ERROR_INVALID_ARG, "not refused: " + answer.message);
    Require(sent.call->parts().empty(), "a refused request has parts");
    ++counts->refused;
    return;
  }
  CheckParts(sent, answer.error ? nullptr : &answer);
  if (!answer.error) {
    ++counts->good;
    return;
  }
  Require(answer.error == TRITONSERVER_ERROR_CANCELLED, "a good request failed: " + answer.message);
  const bool superseded = answer.message.rfind("superseded", 0) == 0;
  Require(superseded ? sent.keyed : sent.cancelled, "cancelled by nobody");
  ++(superseded ? counts->superseded : counts->cancelled);
}

// No row is decoded on the thread that puts a large answer together: while that one waits, the only
// worker answers the next request.
void AnswerBesideALargeOne(const std::string& folder, const std::string& decoding) {
  stand_in::Model model(folder, Config(decoding, false, "1"), 1);
  const auto large = std::make_shared<Call>();
  const auto small = std::make_shared<Call>();
  std::promise<void> ends;
  large->when_taken_back = [&] {
    ends.set_value();
    small->Wait();
  };
  Case one{"", {"deu_Latn"}, {}};
  for (int i = 0; i < 40; ++i) one.text += "Gate " + std::to_string(i) + " closes. ";
  model.Execute(0, {stand_in::NewRequest(Content(one, {"text_output"}), large)});
  ends.get_future().wait();
  one.text = kSentences[0];
  model.Execute(0, {stand_in::NewRequest(Content(one, {"text_output"}), small)});
  for (const auto& call : {large, small}) {
    Require(!call->Wait().error, "a good request failed: " + call->Wait().message);
  }
}

// The answer of a text of many sentences is put together a slice at a time: a shorter one, whose
// rows ended later, is sent before it.
void ShorterAnswersPassLongOnes(const std::string& folder, const std::string& decoding) {
  stand_in::Model model(folder, Config(decoding, false, "1"), 1);
  std::promise<void> holds, release;
  std::atomic<bool> long_one_sent{false}, short_one_first{false};
  const auto holder = std::make_shared<Call>();
  const auto long_one = std::make_shared<Call>();
  const auto short_one = std::make_shared<Call>();
  // Until it is released, the thread that answers is at this one.
  holder->when_taken_back = [&] {
    holds.set_value();
    release.get_future().wait();
  };
  long_one->when_taken_back = [&] { long_one_sent = true; };
  short_one->when_taken_back = [&] { short_one_first = !long_one_sent; };
  Case one{"", {"deu_Latn"}, {}};
  for (int i = 0; i < 40; ++i) one.text += "Gate " + std::to_string(i) + " closes. ";
  const auto send = [&](const std::shared_ptr<Call>& call) {
    model.Execute(0, {stand_in::NewRequest(Content(one, {"text_output"}), call)});
  };
  send(holder);
  holds.get_future().wait();
  const std::string shorter = one.text;
  one.text.clear();
  for (int i = 0; i < 3500; ++i) one.text += "The gate closes. ";  // equal rows are decoded once
  send(long_one);
  // Each of these takes as many steps as a part of the long text.
  const auto wait_for_others = [&](int count) {
    one.text = kSentences[0];
    for (int i = 0; i < count; ++i) {
      const auto small = std::make_shared<Call>();
      send(small);
      Require(!small->Wait().error, "a good request failed");
    }
  };
  wait_for_others(60);
  one.text = shorter;
  send(short_one);
  wait_for_others(60);
  release.set_value();
  for (const auto& call : {holder, long_one, short_one}) {
    Require(!call->Wait().error, "a good request failed: " + call->Wait().message);
  }
  Require(short_one_first, "the answer of 3500 sentences went before that of 40");
}

Counts Run(const std::string& folder, double seconds, uint64_t seed) {
  Random random(seed);
  stand_in::Model unary(folder, Config("calls", false), 1);
  stand_in::Model calls(folder, Config("calls", true), kInstances);
  stand_in::Model loops(folder, Config("loop", true), kInstances);
  std::vector<Case> cases;
  for (size_t i = 0; i < kCases; ++i) cases.push_back(SomeCase(&unary, &random));
  const auto end = stress::After(seconds);
  std::vector<Counts> counts(2 * kInstances);
  stress::OnThreads(counts.size(), [&](size_t i) {
    const auto make = [&](Random* drawn, std::vector<TRITONBACKEND_Request*>* batch) {
      return SomeRequest(cases, drawn, batch);
    };
    stress::KeepSending<Sent>(i % 2 ? &loops : &calls, i / 2, end, seed + i + 1, kPace, make,
                              [&](const Sent& sent) { CheckStream(sent, &counts[i]); });
  });
  Counts sum;
  for (const Counts& one : counts) {
    sum.good += one.good;
    sum.refused += one.refused;
    sum.cancelled += one.cancelled;
    sum.superseded += one.superseded;
    sum.parts += one.parts;
  }
  return sum;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) {
    std::fprintf(stderr, "usage: stream_stress <seconds> <seed> <folder of a prepared model>\n");
    return 2;
  }
  const auto seed = std::stoull(arguments[2]);
  for (const char* decoding : {"loop", "calls"}) {
    AnswerBesideALargeOne(arguments[3], decoding);
    ShorterAnswersPassLongOnes(arguments[3], decoding);
  }
  const Counts sum = Run(arguments[3], std::stod(arguments[1]), seed);
  Require(stand_in::LiveHandles() == 0, "handles were not freed");
  Require(sum.good > 0 && sum.parts > 0, "no stream was read");
  std::printf(
      "seed %llu: %zu good streams, %zu refused, %zu cancelled, %zu superseded, %zu parts\n", seed,
      sum.good, sum.refused, sum.cancelled, sum.superseded, sum.parts);
  return 0;
}
