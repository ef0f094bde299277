// SPDX-License-Identifier: Apache-2.0
//
// A proof says that decode loops compute a model as CTranslate2 does: a trial (trial.h) of these
// files has passed, in the type in which loops hold them, with this build of the engine. At int8
// that is no proof of equal rows: attention adds in another order, and its last bits tip a rounding
// in 0.4 % of the demo model's rows (docs/guarantees.md).
#pragma once

#include <string>

namespace ct2triton {

class Weights;

// Names what a proof is about: the sources of the engine, the type, the kernels of this processor,
// config.json, vocabularies, maps and lists, and of model.bin its list of variables with a sum of
// all bytes of each. So it does not depend on where the files lie. Reads all of them once.
std::string ProofId(const Weights& weights);

struct ProofSearch {
  bool found = false;
  std::string remark;  // for the log: where it was found, or what does not hold
};

// Searches ct2_model.json, which ct2-prepare writes into the model's folder or that of a version,
// and in the user's cache. What cannot be read is no proof.
// Throws Error(kUnsupported), with its reason, where ct2-prepare has refused the loop.
ProofSearch FindProof(const Weights& weights, const std::string& id);

// Keeps the proof in the user's cache for the next load. What fails is left: that load tries the
// model again. `report`: of the trial.
void KeepProof(const std::string& id, const std::string& report) noexcept;

}  // namespace ct2triton
