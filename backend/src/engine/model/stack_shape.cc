// SPDX-License-Identifier: Apache-2.0
#include "engine/model/stack_shape.h"

#include <cmath>
#include <numeric>
#include <regex>
#include <set>

#include "error.h"

namespace ct2triton {
namespace {

using Names = std::set<std::string>;

// Names after "encoder/" or "decoder/".
const Names kAttributes = {"activation", "num_heads", "position_encodings/encodings", "pre_norm",
                           "scale_embeddings"};
const Names kEncoderAttributes = {"embeddings_merge", "multi_query_attention"};
const Names kDecoderAttributes = {"alibi",
                                  "alibi_use_positive_positions",
                                  "alignment_heads",
                                  "alignment_layer",
                                  "scale_alibi",
                                  "scale_outputs",
                                  "projection/bias",
                                  "projection/weight",
                                  "projection/weight_scale",
                                  "start_from_zero_embedding"};
// Names after the name of a layer.
const Names kLayerAttributes = {"self_attention/queries_scale",
                                "self_attention/relative_attention_bias",
                                "self_attention/relative_attention_max_distance"};

bool IsKnown(const std::string& name, bool decoder) {
  static const std::regex form("[a-z]*coder/(layer_[0-9]+/)?(.*)");
  static const std::regex sublayer(
      "(self_attention|ffn)/"
      "((linear_[01]|linear_0_noact)/(weight|weight_scale|bias)|"
      "layer_norm/(beta|gamma))");
  static const std::regex source_attention(
      "attention/(linear_[012]/(weight|weight_scale|bias)|"
      "layer_norm/(beta|gamma)|queries_scale)");
  static const std::regex around(
      "embeddings(_0)?/(weight|weight_scale|multiply_by_sqrt_depth)|"
      "(layer_norm|layernorm_embedding)/(beta|gamma)");
  std::smatch parts;
  if (!std::regex_match(name, parts, form)) return false;
  const std::string rest = parts[2];
  if (parts[1].matched) {
    return kLayerAttributes.count(rest) != 0 || std::regex_match(rest, sublayer) ||
           (decoder && std::regex_match(rest, source_attention));
  }
  return kAttributes.count(rest) != 0 ||
         (decoder ? kDecoderAttributes : kEncoderAttributes).count(rest) != 0 ||
         std::regex_match(rest, around);
}

// Reads the shape of one side.
class Reader {
 public:
  Reader(const ModelFile& file, const std::string& side)
      : file_(file), side_(side), decoder_(side == "decoder") {}

  [[noreturn]] void Refuse(const std::string& what) const {
    throw Error(ErrorCode::kUnsupported,
                "the decode loop does not know this kind of " + side_ + ": " + what);
  }
  double Attribute(const std::string& name, double otherwise) const {
    return file_.Attribute(side_ + '/' + name, otherwise);
  }
  // Number of rows of a variable, which must have this many columns.
  size_t Rows(const std::string& name, size_t columns) const {
    const Variable* variable = file_.Find(name);
    if (variable == nullptr) Refuse("it has no variable " + name);
    if (variable->shape.size() != 2 || static_cast<size_t>(variable->columns()) != columns) {
      Refuse("the size of " + name + " is not known");
    }
    return static_cast<size_t>(variable->rows());
  }
  void RequireRows(const std::string& name, size_t columns, size_t rows) const {
    if (Rows(name, columns) != rows) Refuse("the size of " + name + " is not known");
  }

  void Read(StackShape* shape) const;

 private:
  void RequireKnownNames() const;
  void ReadSizes(StackShape* shape) const;
  void RequireLayer(const StackShape& shape, size_t layer) const;
  void RequireNorm(const std::string& scope, const StackShape& shape) const;
  bool InAllLayers(const StackShape& shape, const std::string& name) const;
  void ReadBias(StackShape* shape) const;
  float EmbeddingScale(size_t width) const;

  const ModelFile& file_;
  const std::string side_;
  const bool decoder_;
};

void Reader::Read(StackShape* shape) const {
  RequireKnownNames();
  shape->side = side_;
  shape->embeddings = side_ + "/embeddings";
  if (!file_.Has(shape->embeddings + "/weight")) shape->embeddings += "_0";
  while (file_.Has(shape->LayerScope(shape->layers) + "self_attention/linear_0/weight")) {
    ++shape->layers;
  }
  if (shape->layers == 0) {
    Refuse("it has no variable " + shape->LayerScope(0) + "self_attention/linear_0/weight");
  }
  const double heads = Attribute("num_heads", 8);
  if (heads < 1) Refuse(side_ + "/num_heads is 0");
  shape->heads = static_cast<size_t>(heads);
  if (Attribute("multi_query_attention", 0) != 0) Refuse(side_ + "/multi_query_attention is set");
  shape->pre_norm = Attribute("pre_norm", 1) != 0;
  shape->gated = InAllLayers(*shape, "ffn/linear_0_noact/weight");
  shape->embedding_norm = file_.Has(side_ + '/' + "layernorm_embedding/gamma");
  shape->output_norm = file_.Has(side_ + '/' + "layer_norm/gamma");
  const double activation = Attribute("activation", 0);
  if (activation < 0 || activation >= static_cast<double>(Activation::kNone)) {
    Refuse(side_ + "/activation is " + std::to_string(static_cast<int>(activation)));
  }
  shape->activation = static_cast<Activation>(static_cast<int>(activation));
  ReadSizes(shape);
  shape->embedding_scale = EmbeddingScale(shape->width);
  if (InAllLayers(*shape, "self_attention/relative_attention_bias")) ReadBias(shape);
}

void Reader::RequireKnownNames() const {
  const std::string prefix = side_ + '/';
  const auto& variables = file_.variables();
  for (auto it = variables.lower_bound(prefix); it != variables.end(); ++it) {
    if (it->first.compare(0, prefix.size(), prefix) != 0) break;
    if (!IsKnown(it->first, decoder_)) Refuse("it has a variable " + it->first);
  }
}

void Reader::ReadSizes(StackShape* shape) const {
  const Variable* table = file_.Find(shape->embeddings + "/weight");
  if (table == nullptr || table->shape.size() != 2) {
    Refuse("it has no table " + shape->embeddings + "/weight");
  }
  shape->width = static_cast<size_t>(table->columns());
  const std::string first = shape->LayerScope(0) + "self_attention/linear_0/weight";
  shape->heads_width = Rows(first, shape->width) / 3;
  if (shape->heads_width == 0 || shape->heads_width % shape->heads != 0) {
    Refuse("the size of " + first + " does not fit " + std::to_string(shape->heads) + " heads");
  }
  for (size_t layer = 0; layer < shape->layers; ++layer) RequireLayer(*shape, layer);
  if (shape->embedding_norm) RequireNorm(side_ + "/layernorm_embedding", *shape);
  if (shape->output_norm) RequireNorm(side_ + "/layer_norm", *shape);
  const std::string positions = side_ + '/' + "position_encodings/encodings";
  if (file_.Has(positions)) Rows(positions, shape->width);
}

void Reader::RequireLayer(const StackShape& shape, size_t layer) const {
  const std::string scope = shape.LayerScope(layer);
  const size_t width = shape.width;
  const size_t heads_width = shape.heads_width;
  RequireNorm(scope + "self_attention/layer_norm", shape);
  RequireRows(scope + "self_attention/linear_0/weight", width, 3 * heads_width);
  RequireRows(scope + "self_attention/linear_1/weight", heads_width, width);
  if (decoder_) {
    RequireNorm(scope + "attention/layer_norm", shape);
    RequireRows(scope + "attention/linear_0/weight", width, heads_width);
    RequireRows(scope + "attention/linear_2/weight", heads_width, width);
  }
  RequireNorm(scope + "ffn/layer_norm", shape);
  const size_t inner = Rows(scope + "ffn/linear_0/weight", width);
  if (shape.gated) RequireRows(scope + "ffn/linear_0_noact/weight", width, inner);
  RequireRows(scope + "ffn/linear_1/weight", inner, width);
}

void Reader::RequireNorm(const std::string& scope, const StackShape& shape) const {
  const auto require = [&](const std::string& name) {
    const Variable* variable = file_.Find(name);
    if (variable == nullptr) Refuse("it has no variable " + name);
    if (static_cast<size_t>(variable->elements()) != shape.width) {
      Refuse("the size of " + name + " is not known");
    }
  };
  require(scope + "/gamma");
  if (file_.Has(scope + "/beta")) require(scope + "/beta");
}

// Whether all layers have this variable. Throws if only some have it.
bool Reader::InAllLayers(const StackShape& shape, const std::string& name) const {
  size_t found = 0;
  for (size_t layer = 0; layer < shape.layers; ++layer) {
    if (file_.Has(shape.LayerScope(layer) + name)) ++found;
  }
  if (found != 0 && found != shape.layers) Refuse("only some of its layers have " + name);
  return found != 0;
}

void Reader::ReadBias(StackShape* shape) const {
  const std::string name = shape->LayerScope(0) + "self_attention/relative_attention_max_distance";
  if (!file_.Has(name)) Refuse("it has no variable " + name);
  const double distance = file_.Attribute(name, 0);
  const size_t buckets = Rows(shape->BiasName(), shape->heads);
  const size_t exact = decoder_ ? buckets / 2 : buckets / 4;  // of one side
  constexpr double kMost = 65536;
  if (exact == 0 || distance <= static_cast<double>(exact) || distance > kMost) {
    Refuse("the size of " + shape->BiasName() + " is not known");
  }
  shape->bias_max_distance = static_cast<size_t>(distance);
}

// A flag "multiply by the root of the width", or the factor itself.
float Reader::EmbeddingScale(size_t width) const {
  const float root = std::sqrt(static_cast<float>(width));
  std::string name = side_ + "/scale_embeddings";
  if (!file_.Has(name)) name = side_ + '/' + "embeddings/multiply_by_sqrt_depth";
  const Variable* scale = file_.Find(name);
  if (scale == nullptr) return root;
  const auto value = static_cast<float>(file_.Attribute(name, 1));
  if (ElementBytes(scale->type) > 1) return value == 0 ? root : value;
  return value != 0 ? root : 1;
}

// As CTranslate2 chooses them (src/layers/transformer.cc): the first heads of a layer, 0 for all
// heads; a negative layer counts from the end.
AlignmentHeads AlignmentOf(const Reader& reader, const DecoderShape& shape) {
  const double named_layer = reader.Attribute("alignment_layer", -1);
  const double named_heads = reader.Attribute("alignment_heads", 1);
  const auto layers = static_cast<double>(shape.layers);
  const double layer = named_layer < 0 ? named_layer + layers : named_layer;
  if (layer < 0 || layer >= layers) {
    reader.Refuse("decoder/alignment_layer is " + std::to_string(static_cast<int>(named_layer)));
  }
  if (named_heads < 0 || named_heads > static_cast<double>(shape.heads)) {
    reader.Refuse("decoder/alignment_heads is " + std::to_string(static_cast<int>(named_heads)));
  }
  AlignmentHeads alignment;
  alignment.layer = static_cast<size_t>(layer);
  alignment.heads.resize(named_heads == 0 ? shape.heads : static_cast<size_t>(named_heads));
  std::iota(alignment.heads.begin(), alignment.heads.end(), 0);
  return alignment;
}

}  // namespace

StackShape ReadEncoder(const ModelFile& file) {
  StackShape shape;
  Reader(file, "encoder").Read(&shape);
  return shape;
}

DecoderShape ReadDecoder(const ModelFile& file) {
  const Reader reader(file, "decoder");
  for (const auto& [name, variable] : file.variables()) {
    if (name.rfind("encoder/", 0) == 0 || name.rfind("decoder/", 0) == 0) continue;
    throw Error(ErrorCode::kUnsupported, "the decode loop does not know the variable " + name);
  }
  DecoderShape shape;
  reader.Read(&shape);
  if (reader.Attribute("alibi", 0) != 0) reader.Refuse("decoder/alibi is set");
  shape.start_from_zero_embedding = reader.Attribute("start_from_zero_embedding", 0) != 0;
  shape.output_scale = static_cast<float>(reader.Attribute("scale_outputs", 1));
  shape.vocabulary = reader.Rows("decoder/projection/weight", shape.width);
  // Keys and values are of the encoder's output.
  const Variable& keys = file.Get(shape.LayerScope(0) + "attention/linear_1/weight");
  for (size_t layer = 0; layer < shape.layers; ++layer) {
    reader.RequireRows(shape.LayerScope(layer) + "attention/linear_1/weight",
                       static_cast<size_t>(keys.columns()), 2 * shape.heads_width);
  }
  shape.alignment = AlignmentOf(reader, shape);
  return shape;
}

std::shared_ptr<const AlignmentHeads> ChooseAlignment(const EngineOptions& engine,
                                                      const DecoderShape& shape) {
  if (!engine.alignment_layer && engine.alignment_heads.empty()) return nullptr;
  const auto require = [](const char* name, int64_t value, size_t count, const char* of) {
    if (value < static_cast<int64_t>(count)) return;
    ThrowInvalid(std::string("parameter ") + name + ": the decoder has no " + of + " " +
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
