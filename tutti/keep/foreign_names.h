#pragma once
// ForeignNames: maps a model's names to those in a file of weights that another program wrote.
//
//   module.fc.weight        for fc.weight: a wrapper's name precedes all names (module. from
//                           DistributedDataParallel, _orig_mod. from torch.compile, transformer.
//                           from GPT2LMHeadModel, any other, and several of them)
//   module.lm_head.weight   for lm_head.weight, in a file that has module.transformer.wte.weight
//                           for wte.weight: the output layer is within fewer wrappers
//   embed_tokens.weight     for model.embed_tokens.weight: saved without the outer module

#include <span>
#include <string>
#include <vector>

#include "tutti/keep/safetensors.h"
#include "tutti/plan/variables.h"

namespace tutti::keep {

class ForeignNames {
 public:
  /// Both arguments must outlive this object.
  ForeignNames(const SafetensorsFile& file, const plan::Variables& variables);

  /// Returns the file's name for the model's `name`.
  std::string in_file(const std::string& name) const;
  /// Returns the model's name for the file's `name`; unchanged where the model has none.
  std::string in_model(const std::string& name) const;
  /// Returns "all names begin with 'module.', which is taken away", for the log; empty: the file
  /// uses the model's names.
  std::string description() const;
  /// Returns in_file(). Throws ConfigError if the file has no such tensor, naming some that it has;
  /// `shape` appears in that message.
  std::string found(const std::string& name, const Shape& shape) const;
  /// Throws ConfigError for an entry that does not belong to the model, parts of which may be on
  /// other ranks. Exceptions are names that fit one of `except`, foreign buffers, and an output
  /// layer with the same numbers as the token table in a model that uses that table as its output
  /// layer.
  void check_others(std::span<const std::string> except) const;

 private:
  bool has(const std::string& name) const { return file_.find(name) != nullptr; }
  bool knows(const std::string& name) const;
  bool is_tied_output(const SafetensorsFile::Entry& entry) const;
  std::string others_than(const std::string& name) const;
  std::string shorter_twin(const std::string& name) const;

  const SafetensorsFile& file_;
  const plan::Variables& variables_;
  std::string in_front_{};  ///< precedes the file's names
  std::string lacking_{};   ///< precedes the model's names only
};

/// Returns whether other systems' files hold an entry of this name that is not a weight: counts of
/// batches, GPT-2's masks, the frequencies of rotations.
bool is_foreign_buffer(const std::string& name);

}  // namespace tutti::keep
