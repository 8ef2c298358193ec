#pragma once
// ForeignNames: how the names of a model stand in a file of weights that another program wrote.
//
//   module.fc.weight        for fc.weight: a wrapper's name in front of all (module. of
//                           DistributedDataParallel, _orig_mod. of torch.compile, transformer. of
//                           GPT2LMHeadModel, any other, and several of them)
//   module.lm_head.weight   for lm_head.weight: beside module.transformer.wte.weight for wte.weight,
//                           the output layer is within fewer wrappers than all others
//   embed_tokens.weight     for model.embed_tokens.weight: saved without the outer module

#include <span>
#include <string>
#include <vector>

#include "tutti/keep/safetensors.h"
#include "tutti/plan/variables.h"

namespace tutti {

class ForeignNames {
 public:
  /// Both must outlive this.
  ForeignNames(const SafetensorsFile& file, const Variables& variables);

  /// The file's name of what the model calls `name`.
  std::string in_file(const std::string& name) const;
  /// The model's name of what the file calls `name`; as it is where the model has none.
  std::string in_model(const std::string& name) const;
  /// "all names begin with 'module.', which is taken away", for the log; empty: they are the
  /// model's.
  std::string said() const;
  /// in_file(). ConfigError where it has none, naming some that it has; `shape` is for it.
  std::string found(const std::string& name, const Shape& shape) const;
  /// ConfigError for an entry that is none of the model's, of which parts may be on other ranks;
  /// but for those that fit one of `except`, foreign buffers, and the output layer of a model in
  /// which that is the table of the tokens, if it holds the same numbers.
  void check_others(std::span<const std::string> except) const;

 private:
  bool has(const std::string& name) const { return file_.find(name) != nullptr; }
  bool knows(const std::string& name) const;
  bool is_tied_output(const SafetensorsFile::Entry& entry) const;
  std::string others_than(const std::string& name) const;
  std::string shorter_twin(const std::string& name) const;

  const SafetensorsFile& file_;
  const Variables& variables_;
  std::string in_front_{};  ///< of the file's names
  std::string lacking_{};   ///< in front of the model's
};

/// Whether other systems' files hold an entry of this name that is no weight: counts of batches,
/// GPT-2's masks, the frequencies of rotations.
bool is_foreign_buffer(const std::string& name);

}  // namespace tutti
