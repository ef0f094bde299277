// SPDX-License-Identifier: Apache-2.0
#include "engine/weights.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "engine/library_check.h"
#include "engine/loop/model_variables.h"
#include "engine/thread_scope.h"
#include "error.h"

namespace ct2triton {
namespace {

namespace fs = std::filesystem;
using ctranslate2::models::SequenceToSequenceModel;

// Which files these are, so that a changed file is another model: name, inode, size, times of
// change. The second one cannot be set back, as a copy that keeps times does with the first.
std::string FilesIdentity(const std::string& directory) {
  std::vector<std::string> entries;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(directory, failed)) {
    struct stat info {};
    if (stat(entry.path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    std::ostringstream line;
    line << entry.path().filename().string() << ':' << info.st_dev << ':' << info.st_ino << ':'
         << info.st_size << ':' << info.st_mtim.tv_sec << '.' << info.st_mtim.tv_nsec << ':'
         << info.st_ctim.tv_sec << '.' << info.st_ctim.tv_nsec;
    entries.push_back(line.str());
  }
  if (failed == std::errc::permission_denied) {
    throw Error(ErrorCode::kUnavailable, directory + " cannot be read: " + failed.message());
  }
  std::error_code ignored;
  if (failed || !fs::exists(fs::path(directory) / "model.bin", ignored)) {
    throw Error(ErrorCode::kNotFound, "no CTranslate2 model in " + directory +
                                          ": model.bin is missing" +
                                          (failed ? " (" + failed.message() + ")" : ""));
  }
  std::sort(entries.begin(), entries.end());
  std::string identity;
  for (const auto& entry : entries) identity += entry + '\n';
  return identity;
}

ModelFileConfig ReadModelFileConfig(const std::string& directory) {
  const fs::path path = fs::path(directory) / "config.json";
  std::ifstream file(path);
  if (!file) {
    throw Error(ErrorCode::kInvalidArgument,
                directory +
                    " has no config.json that can be read: the model was converted by an "
                    "old version of CTranslate2, convert it again");
  }
  std::stringstream text;
  text << file.rdbuf();
  return ParseModelFileConfig(text.str());
}

ctranslate2::ComputeType ComputeTypeByName(const std::string& name) {
  try {
    return ctranslate2::str_to_compute_type(name);
  } catch (const std::exception& error) {
    throw Error(ErrorCode::kInvalidArgument,
                "parameter compute_type: " + std::string(error.what()));
  }
}

// CTranslate2 reads from the first line of the map without asking whether there is one.
void RequireMapLine(const std::string& directory) {
  const fs::path path = fs::path(directory) / "vmap.txt";
  std::ifstream file(path);
  std::string line;
  if (!file || std::getline(file, line)) return;
  throw Error(
      ErrorCode::kInvalidArgument,
      path.string() +
          " has no line: it is empty, or no file; write the vocabulary map again, or remove "
          "it to have none");
}

std::shared_ptr<const ctranslate2::models::Model> Load(const std::string& directory,
                                                       const Device& device,
                                                       const std::string& compute_type) {
  RequireMapLine(directory);
  const auto type = ComputeTypeByName(compute_type);
  try {
    return ctranslate2::models::Model::load(directory, LibraryDevice(device), device.index, type,
                                            /*use_flash_attention=*/false,
                                            /*tensor_parallel=*/false);
  } catch (const std::invalid_argument& error) {
    throw Error(ErrorCode::kInvalidArgument, "CTranslate2 cannot load " + directory +
                                                 " with compute_type \"" + compute_type + "\" on " +
                                                 device.Name() + ": " + error.what());
  } catch (const std::exception& error) {
    throw Error(ErrorCode::kUnavailable, "CTranslate2 cannot load " + directory + " on " +
                                             device.Name() + ": " + error.what());
  }
}

// Where the weights of some files are found while they are in use.
struct Place {
  std::mutex mutex;  // held while they load: whoever wants the same ones waits
  std::weak_ptr<const Weights> weights;
};

std::shared_ptr<Place> PlaceOf(const std::string& key) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<Place>> places;
  const std::lock_guard<std::mutex> lock(mutex);
  for (auto it = places.begin(); it != places.end();) {
    const bool unused = it->second.use_count() == 1 && it->second->weights.expired();
    it = unused ? places.erase(it) : std::next(it);
  }
  auto& place = places[key];
  if (!place) place = std::make_shared<Place>();
  return place;
}

}  // namespace

ctranslate2::Device LibraryDevice(const Device& device) {
  return device.kind == Device::Kind::kCpu ? ctranslate2::Device::CPU : ctranslate2::Device::CUDA;
}

std::shared_ptr<const Weights> Weights::Get(const std::string& directory, const Device& device,
                                            const std::string& compute_type, size_t threads) {
  CheckLibrary();
  RequireDevice(device);
  const auto place = PlaceOf(device.Name() + '\n' + compute_type + '\n' + FilesIdentity(directory));
  const std::lock_guard<std::mutex> lock(place->mutex);
  if (auto weights = place->weights.lock()) return weights;
  std::shared_ptr<const Weights> weights;
  RunInThreadScope(device, threads, [&] {
    weights = std::make_shared<const Weights>(directory, device, compute_type);
  });
  place->weights = weights;
  return weights;
}

Weights::Weights(const std::string& directory, const Device& device,
                 const std::string& compute_type)
    : directory_(directory),
      device_(device),
      files_(ReadModelFileConfig(directory)),
      model_(Load(directory, device, compute_type)),
      plain_(*model_) {
  NewReplica();  // refuses every other kind of model, which makes the cast below right
  const auto* model = static_cast<const SequenceToSequenceModel*>(model_.get());
  if (model->num_source_vocabularies() != 1) {
    throw Error(ErrorCode::kUnsupported,
                directory + " has " + std::to_string(model->num_source_vocabularies()) +
                    " source vocabularies (factors); only one is supported");
  }
  source_ = &model->get_source_vocabulary();
  target_ = &model->get_target_vocabulary();
  source_positions_ = Rows("encoder/position_encodings/encodings");
  target_positions_ = Rows("decoder/position_encodings/encodings");
  map_ = ReadMap();
  lists_ = ReadLists();
  CheckEmbeddingRows();
  SmokeTest();
}

std::unique_ptr<ctranslate2::models::SequenceToSequenceReplica> Weights::NewReplica() const {
  try {
    return model_->as_sequence_to_sequence();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(ErrorCode::kUnsupported,
                directory_ + " is no encoder-decoder model: " + error.what());
  }
}

std::optional<VocabularyMap> Weights::ReadMap() const {
  std::ifstream file(fs::path(directory_) / "vmap.txt");
  if (!file) return std::nullopt;
  return VocabularyMap(file, *target_, end_id(), AlwaysCandidates());
}

VocabularyLists Weights::ReadLists() const {
  const fs::path path = fs::path(directory_) / kShortlistFile;
  if (!fs::exists(path)) return {};
  if (map_) {
    throw Error(ErrorCode::kInvalidArgument,
                directory_ + " has both vmap.txt and " + kShortlistFile +
                    "; keep one list for all languages, or one for each");
  }
  const std::ifstream file(path);
  std::stringstream text;
  if (!file || !fs::is_regular_file(path) || !(text << file.rdbuf())) {
    throw Error(ErrorCode::kInvalidArgument, path.string() + " cannot be read, or is empty");
  }
  return VocabularyLists(ParseShortlists(text.str()), *source_, *target_, end_id(),
                         AlwaysCandidates());
}

Ids Weights::AlwaysCandidates() const {
  Ids own;
  for (const auto& token : {files_.unk_token, files_.bos_token, files_.eos_token,
                            files_.decoder_start_token.value_or(files_.eos_token)}) {
    own.push_back(static_cast<int64_t>(target_->to_id(token)));
  }
  return own;
}

std::vector<const VocabularyMap*> Weights::AllMaps() const {
  std::vector<const VocabularyMap*> maps;
  if (map_) maps.push_back(&*map_);
  for (const VocabularyMap& list : lists_.all()) maps.push_back(&list);
  return maps;
}

int64_t Weights::end_id() const { return static_cast<int64_t>(target_->to_id(files_.eos_token)); }

int64_t Weights::source_end_id() const {
  return static_cast<int64_t>(source_->to_id(files_.eos_token));
}

std::optional<int64_t> Weights::padding_id() const {
  for (const char* token : {"<pad>", "<blank>"}) {
    if (target_->contains(token)) return static_cast<int64_t>(target_->to_id(token));
  }
  return std::nullopt;
}

bool Weights::IsEmptySource(const Ids& source) const {
  const auto token_is = [&](size_t position, const std::string& token) {
    return source_->to_token(static_cast<size_t>(source[position])) == token;
  };
  const size_t size = source.size();
  if (size == 0) return true;
  if (size == 1) return token_is(0, files_.bos_token) || token_is(0, files_.eos_token);
  size_t content = size;
  if (token_is(0, files_.bos_token)) --content;
  if (token_is(size - 1, files_.eos_token)) {
    --content;
  } else if (token_is(size - 2, files_.eos_token)) {  // a language id stands behind the end token
    content = content < 2 ? 0 : content - 2;
  }
  return content == 0;
}

std::optional<int64_t> Weights::Rows(const std::string& variable) const {
  const auto* value = model_->get_variable_if_exists(variable);
  if (value == nullptr) return std::nullopt;
  return value->dim(0);
}

namespace {

// The library does not export the rank of a tensor: beyond it, `dim` throws.
size_t Elements(const ctranslate2::StorageView& value) {
  size_t elements = 1;
  try {
    for (long i = 0;; ++i) elements *= static_cast<size_t>(value.dim(i));
  } catch (const std::invalid_argument&) {
    return elements;
  }
}

}  // namespace

// CTranslate2 tells of a variable only to those who know its name; two names may have one.
size_t Weights::bytes() const {
  std::set<std::string> names;
  try {
    names = ReadVariableNames(directory_);
  } catch (const Error&) {  // a format of which only the loop would have to know
    return fs::file_size(directory_ + "/model.bin");
  }
  std::set<const ctranslate2::StorageView*> counted;
  size_t bytes = 0;
  for (const std::string& name : names) {
    const auto* value = model_->get_variable_if_exists(name);
    if (value == nullptr || !counted.insert(value).second) continue;
    bytes += Elements(*value) * value->item_size();
  }
  return bytes;
}

std::string Weights::WeightWidth() const {
  for (const char* name : {"decoder/layer_0/self_attention/linear_0/weight",
                           "decoder/layer_0/self_attention/linear_0/weight_packed"}) {
    if (const auto* value = model_->get_variable_if_exists(name)) {
      return std::to_string(8 * value->item_size()) + "-bit";
    }
  }
  return "unknown";
}

// CTranslate2 looks rows up unchecked: a longer vocabulary would read outside the table, and a
// shorter one fails on the first generated id that it does not name.
void Weights::CheckEmbeddingRows() const {
  auto source_rows = Rows("encoder/embeddings/weight");
  if (!source_rows) source_rows = Rows("encoder/embeddings_0/weight");
  const auto target_rows = Rows("decoder/embeddings/weight");
  const auto check = [&](const char* side, size_t tokens, const std::optional<int64_t>& rows) {
    if (!rows || static_cast<int64_t>(tokens) == *rows) return;
    throw Error(ErrorCode::kInvalidArgument,
                directory_ + ": the " + side + " vocabulary has " + std::to_string(tokens) +
                    " tokens but its embedding table has " + std::to_string(*rows) +
                    " rows; the files do not belong together, convert the model again");
  };
  check("source", source_->size(), source_rows);
  check("target", target_->size(), target_rows);
}

// Greedy rows are ended by the step callback, and answered with what it reports of them. That must
// be what CTranslate2 then answers. The callback ends the first of two rows at its second step. The
// other one goes on until the callback reports its last step. Both are forced to begin with the
// token that is numbered last: its place shows how many come before it. `map`: the candidates;
// null: the whole vocabulary.
bool Weights::ReportsAnswers(const VocabularyMap* map) const {
  struct Reported {
    Ids ids;
    bool ended = false;
  };
  std::array<Reported, 2> reported;
  bool agrees = true;
  const auto id_of = [&](const ctranslate2::GenerationStepResult& step) -> int64_t {
    if (map == nullptr) return static_cast<int64_t>(target_->to_id(step.token));
    return step.token_id < map->numbered().size() ? map->Id(step.token_id) : -1;
  };
  ctranslate2::TranslationOptions options;
  options.beam_size = 1;
  options.max_decoding_length = 4;
  options.return_end_token = true;
  options.use_vmap = map != nullptr;
  options.callback = [&](const ctranslate2::GenerationStepResult& step) {
    const size_t row = step.batch_id;
    agrees = agrees && row < reported.size() && !reported[row].ended &&
             step.step == reported[row].ids.size() &&
             (map != nullptr || step.token == target_->to_token(step.token_id));
    if (!agrees) return true;
    reported[row].ids.push_back(id_of(step));
    const bool end = row == 0 && step.step == 1;
    reported[row].ended = end || step.is_last;
    return end;
  };
  const std::string& last = source_->to_token(source_->size() - 1);
  const auto numbered_last =
      map != nullptr ? static_cast<size_t>(map->numbered().back()) : target_->size() - 1;
  const std::vector<std::string> prefix = {target_->to_token(static_cast<size_t>(end_id())),
                                           target_->to_token(numbered_last)};
  const auto results =
      NewReplica()->translate({{last, last}, {last, last, last}}, {prefix, prefix}, options);
  for (size_t row = 0; agrees && row < reported.size(); ++row) {
    Ids answered;
    for (const auto& token : results.at(row).hypotheses.at(0)) {
      answered.push_back(static_cast<int64_t>(target_->to_id(token)));
    }
    agrees = reported[row].ended && reported[row].ids == answered;
  }
  return agrees;
}

// Runs a few tokens through the model: what comes back must make sense in our declarations of the
// result structs, and a missing library (cuBLAS) shows at load instead of at the first request.
void Weights::SmokeTest() const {
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorCode::kUnsupported, "a trial translation with " + directory_ + " on " +
                                             device_.Name() + " failed: " + what);
  };
  if (target_->size() < 4) refuse("a target vocabulary of fewer than 4 tokens");
  const std::string& first = source_->to_token(0);
  const std::string& last = source_->to_token(source_->size() - 1);
  const std::vector<std::vector<std::string>> source = {{first, last, last}, {last, last}};
  const std::vector<std::vector<std::string>> prefix(2, {target_->to_token(target_->size() - 1)});
  ctranslate2::TranslationOptions options;
  options.num_hypotheses = 2;
  options.return_scores = true;
  options.max_decoding_length = 3;
  options.min_decoding_length = 0;
  try {
    const auto replica = NewReplica();
    for (const auto& result : replica->translate(source, prefix, options)) {
      if (result.hypotheses.size() != 2 || result.scores.size() != 2) refuse("not two hypotheses");
      for (const auto& token : result.hypotheses[0]) {
        if (!target_->contains(token)) refuse("a token outside the vocabulary came back");
      }
    }
    if (!ReportsAnswers(nullptr)) refuse("the steps of a greedy search do not report its answers");
    if (map_ && map_->fixed() && !ReportsAnswers(&*map_)) {
      refuse("the candidates of vmap.txt are numbered in an unknown way");
    }
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    refuse(error.what());
  }
}

}  // namespace ct2triton
