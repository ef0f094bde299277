// SPDX-License-Identifier: Apache-2.0
//
// A proof says that decode loops compute a model as CTranslate2 does: a trial (trial.h) of these
// files has passed, with the loops' weight type and this build of the engine. With int8 weights
// rows can still differ: attention adds in another order, and its last bits change a rounding in
// 0.4 % of the demo model's rows (docs/guarantees.md).
#pragma once

#include <string>

namespace ct2triton {

class Weights;

// Identifies what a proof covers: the sources of the engine, the type, the kernels of this
// processor, config.json, vocabularies, maps and lists, and for model.bin the list of variables
// with a sum of the bytes of each. It does not depend on the files' location. Reads all files once.
std::string ProofId(const Weights& weights);

struct ProofSearch {
  bool found = false;
  std::string remark;  // for the log: where it was found, or what does not match
};

// Searches ct2_model.json, which ct2-prepare writes into the model's folder or that of a version,
// and the user's cache. A file that cannot be read is ignored. Throws Error(kUnsupported), with its
// reason, if ct2-prepare has refused the loop.
ProofSearch FindProof(const Weights& weights, const std::string& id);

// Keeps the proof in the user's cache for the next load. If that fails, the next load runs the
// trial again. `report`: of the trial.
void KeepProof(const std::string& id, const std::string& report) noexcept;

}  // namespace ct2triton
