// SPDX-License-Identifier: Apache-2.0
#include "engine/model/decoder_shape.h"

#include <numeric>
#include <optional>
#include <regex>
#include <stdexcept>

#include "error.h"

namespace ct2triton {
namespace {

using ctranslate2::StorageView;
using ctranslate2::models::Model;

[[noreturn]] void Refuse(const std::string& what) {
  throw Error(ErrorCode::kUnsupported,
              "the decode loop does not know this kind of decoder: " + what);
}

using Names = std::set<std::string>;

// What the decoders that decoder_step.cc computes have, and no others: behind "decoder/".
const Names kAttributes = {"activation",
                           "alibi",
                           "alibi_use_positive_positions",
                           "alignment_heads",
                           "alignment_layer",
                           "num_heads",
                           "pre_norm",
                           "scale_alibi",
                           "scale_embeddings",
                           "scale_outputs",
                           "start_from_zero_embedding",
                           "embeddings/multiply_by_sqrt_depth",
                           "embeddings/weight",
                           "embeddings/weight_scale",
                           "position_encodings/encodings"};
const Names kProducts = {"projection"};
const Names kNorms = {"layer_norm", "layernorm_embedding"};
// Behind "decoder/layer_3/".
const Names kLayerAttributes = {"attention/queries_scale", "self_attention/queries_scale",
                                "self_attention/relative_attention_bias",
                                "self_attention/relative_attention_max_distance"};
const Names kLayerProducts = {"attention/linear_0",      "attention/linear_1",
                              "attention/linear_2",      "ffn/linear_0",
                              "ffn/linear_0_noact",      "ffn/linear_1",
                              "self_attention/linear_0", "self_attention/linear_1"};
const Names kLayerNorms = {"attention/layer_norm", "ffn/layer_norm", "self_attention/layer_norm"};

bool IsKnown(const std::string& name) {
  static const std::regex form("decoder/(layer_[0-9]+/)?(.*)");
  std::smatch parts;
  if (!std::regex_match(name, parts, form)) return false;
  const bool in_layer = parts[1].matched;
  const std::string rest = parts[2];
  if ((in_layer ? kLayerAttributes : kAttributes).count(rest) != 0) return true;
  const size_t slash = rest.rfind('/');
  if (slash == std::string::npos) return false;
  const std::string scope = rest.substr(0, slash);
  const std::string last = rest.substr(slash + 1);
  if (last == "weight" || last == "weight_scale" || last == "bias") {
    return (in_layer ? kLayerProducts : kProducts).count(scope) != 0;
  }
  return (last == "beta" || last == "gamma") && (in_layer ? kLayerNorms : kNorms).count(scope) != 0;
}

void RequireKnownNames(const Names& names) {
  const std::string decoder = "decoder/";
  for (auto name = names.lower_bound(decoder); name != names.end(); ++name) {
    if (name->compare(0, decoder.size(), decoder) != 0) break;
    if (!IsKnown(*name)) Refuse("it has a variable " + *name);
  }
}

std::string InLayer(size_t layer, const std::string& name) {
  return LayerScope(layer) + '/' + name;
}

void Require(const Names& names, const std::string& name) {
  if (names.count(name) == 0) Refuse("it has no variable " + name);
}

// The same in every layer, or else nothing that we know.
bool InAllLayers(const Names& names, size_t layers, const std::string& name) {
  size_t found = 0;
  for (size_t layer = 0; layer < layers; ++layer) {
    found += names.count(InLayer(layer, name));
  }
  if (found != 0 && found != layers) Refuse("only some of its layers have " + name);
  return found != 0;
}

template <typename T>
std::optional<double> ValueAs(const StorageView& value) {
  try {
    return static_cast<double>(*value.data<T>());
  } catch (const std::invalid_argument&) {  // it is of another type
    return std::nullopt;
  }
}

}  // namespace

std::string LayerScope(size_t layer) { return "decoder/layer_" + std::to_string(layer); }

double Attribute(const Model& model, const std::string& name, double otherwise) {
  const auto* variable = model.get_variable_if_exists(name);
  if (variable == nullptr) return otherwise;
  if (const auto value = ValueAs<float>(*variable)) return *value;
  if (const auto value = ValueAs<int>(*variable)) return *value;
  if (const auto value = ValueAs<short>(*variable)) return *value;
  if (const auto value = ValueAs<signed char>(*variable)) return *value;
  Refuse(name + " is of a type that is not known");
}

// A flag "multiply by the root of the width", or the factor itself.
float EmbeddingScale(const Model& model, const std::string& side) {
  std::string name = side + '/' + "scale_embeddings";
  const auto* scale = model.get_variable_if_exists(name);
  if (scale == nullptr) {
    name = side + '/' + "embeddings/multiply_by_sqrt_depth";
    scale = model.get_variable_if_exists(name);
  }
  if (scale == nullptr) return 0;
  const auto value = static_cast<float>(Attribute(model, name, 1));
  if (scale->item_size() == 1) return value != 0 ? 0 : 1;
  return value;
}

const float* FloatsOf(const Model& model, const std::string& name) {
  const auto* variable = model.get_variable_if_exists(name);
  if (variable == nullptr) return nullptr;
  try {
    return variable->data<float>();
  } catch (const std::invalid_argument&) {
    Refuse(name + " is not held in float32");
  }
}

namespace {

// As CTranslate2 (src/layers/transformer.cc) chooses them: so many heads of a layer, 0 being all;
// a layer below 0 counts from the end.
AlignmentHeads AlignmentOf(const Model& model, size_t layers, size_t heads) {
  const double named_layer = Attribute(model, "decoder/alignment_layer", -1);
  const double named_heads = Attribute(model, "decoder/alignment_heads", 1);
  const double layer = named_layer < 0 ? named_layer + static_cast<double>(layers) : named_layer;
  if (layer < 0 || layer >= static_cast<double>(layers)) {
    Refuse("decoder/alignment_layer is " + std::to_string(static_cast<int>(named_layer)));
  }
  if (named_heads < 0 || named_heads > static_cast<double>(heads)) {
    Refuse("decoder/alignment_heads is " + std::to_string(static_cast<int>(named_heads)));
  }
  AlignmentHeads alignment;
  alignment.layer = static_cast<size_t>(layer);
  alignment.heads.resize(named_heads == 0 ? heads : static_cast<size_t>(named_heads));
  std::iota(alignment.heads.begin(), alignment.heads.end(), 0);
  return alignment;
}

}  // namespace

DecoderShape::DecoderShape(const Model& model, const std::set<std::string>& names) {
  RequireKnownNames(names);
  const auto attribute = [&](const char* name, double otherwise) {
    return Attribute(model, std::string("decoder/") + name, otherwise);
  };
  if (attribute("alibi", 0) != 0) Refuse("decoder/alibi is set");
  while (names.count(InLayer(layers, "self_attention/linear_0/weight")) != 0) ++layers;
  if (layers == 0) Refuse("it has no variable decoder/layer_0/self_attention/linear_0/weight");
  for (size_t layer = 0; layer < layers; ++layer) {
    for (const std::string& norm : kLayerNorms) Require(names, InLayer(layer, norm + "/gamma"));
  }
  heads = static_cast<size_t>(attribute("num_heads", 8));
  if (heads == 0) Refuse("decoder/num_heads is 0");
  pre_norm = attribute("pre_norm", 1) != 0;
  gated = InAllLayers(names, layers, "ffn/linear_0_noact/weight");
  relative_bias = InAllLayers(names, layers, "self_attention/relative_attention_bias");
  if (relative_bias) {
    const std::string name = "decoder/layer_0/self_attention/relative_attention_max_distance";
    Require(names, name);
    bias_max_distance = static_cast<size_t>(Attribute(model, name, 0));
  }
  start_from_zero_embedding = attribute("start_from_zero_embedding", 0) != 0;
  embedding_norm = names.count("decoder/layernorm_embedding/gamma") != 0;
  output_norm = names.count("decoder/layer_norm/gamma") != 0;
  embedding_scale = EmbeddingScale(model, "decoder");
  output_scale = static_cast<float>(attribute("scale_outputs", 1));
  alignment = AlignmentOf(model, layers, heads);
  const double number = attribute("activation", 0);
  if (number < 0 || number > static_cast<int>(ctranslate2::ops::ActivationType::Sigmoid)) {
    Refuse("decoder/activation is " + std::to_string(static_cast<int>(number)));
  }
  activation = static_cast<ctranslate2::ops::ActivationType>(static_cast<int>(number));
}

std::shared_ptr<const AlignmentHeads> ChooseAlignment(const EngineOptions& engine,
                                                      const DecoderShape& shape) {
  if (!engine.alignment_layer && engine.alignment_heads.empty()) return nullptr;
  const auto require = [](const char* name, int64_t value, size_t count, const char* of) {
    if (value < static_cast<int64_t>(count)) return;
    throw Error(ErrorCode::kInvalidArgument,
                std::string("parameter ") + name + ": the decoder has no " + of + " " +
                    std::to_string(value) + "; allowed are 0 to " + std::to_string(count - 1));
  };
  auto chosen = std::make_shared<AlignmentHeads>(shape.alignment);
  if (engine.alignment_layer) {
    require("alignment_layer", *engine.alignment_layer, shape.layers, "layer");
    chosen->layer = static_cast<size_t>(*engine.alignment_layer);
    chosen->heads.resize(shape.heads);
    std::iota(chosen->heads.begin(), chosen->heads.end(), 0);
  }
  if (!engine.alignment_heads.empty()) chosen->heads.clear();
  for (const int64_t head : engine.alignment_heads) {
    require("alignment_heads", head, shape.heads, "head");
    chosen->heads.push_back(static_cast<size_t>(head));
  }
  return chosen;
}

}  // namespace ct2triton
