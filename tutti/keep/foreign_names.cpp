#include "tutti/keep/foreign_names.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string_view>

#include "tutti/base/error.h"
#include "tutti/base/name_pattern.h"
#include "tutti/base/spelling.h"

namespace tutti::keep {
namespace {

/// Returns the dotted beginning, "a.b.", that all names share; names that do not count are skipped.
std::string common_front(const SafetensorsFile& file,
                         const std::function<bool(const std::string&)>& counts) {
  std::string front;
  bool first = true;
  for (const SafetensorsFile::Entry& entry : file.entries()) {
    if (!counts(entry.name)) continue;
    if (first) {
      front = entry.name.substr(0, entry.name.rfind('.') + 1);
      first = false;
    }
    const auto end = std::ranges::mismatch(front, entry.name).in1;
    front.erase(static_cast<size_t>(end - front.begin()));
    front.erase(front.rfind('.') + 1);
  }
  return front;
}

constexpr std::string_view kOutput = "lm_head.weight";

/// Returns the part of the output layer's name that precedes kOutput, such as "_orig_mod."; nothing
/// for any other name.
std::optional<std::string_view> before_output(std::string_view name) {
  if (!name.ends_with(kOutput)) return {};
  name.remove_suffix(kOutput.size());
  return name.empty() || name.back() == '.' ? std::optional(name) : std::nullopt;
}

}  // namespace

bool is_foreign_buffer(const std::string& name) {
  return name.ends_with("num_batches_tracked") || name.ends_with(".attn.bias") ||
         name.ends_with(".attn.masked_bias") || name.ends_with(".rotary_emb.inv_freq");
}

bool ForeignNames::knows(const std::string& name) const {
  return variables_.find_parameter(name) || variables_.find_statistic(name) ||
         variables_.find_table(name);
}

ForeignNames::ForeignNames(const SafetensorsFile& file, const plan::Variables& variables)
    : file_(file), variables_(variables) {
  if (variables.parameters.empty() || std::ranges::any_of(file.entries(), [&](const auto& entry) {
        return entry.name != kOutput && knows(entry.name);
      }))
    return;
  const auto counts = [](const std::string& name) {
    return !before_output(name) && !is_foreign_buffer(name);
  };
  // With several wrappers, strips the shortest part that yields a name of the model.
  const std::string front = common_front(file, counts);
  for (size_t end = front.find('.'); end != front.npos; end = front.find('.', end + 1)) {
    const std::string tried = front.substr(0, end + 1);
    if (std::ranges::any_of(file.entries(), [&](const auto& entry) {
          return counts(entry.name) && entry.name.starts_with(tried) &&
                 knows(entry.name.substr(tried.size()));
        })) {
      in_front_ = tried;
      return;
    }
  }
  const std::string& name = variables.parameters.front().name;
  if (const size_t end = name.find('.'); end != name.npos && has(name.substr(end + 1)))
    lacking_ = name.substr(0, end + 1);
}

std::string ForeignNames::in_file(const std::string& name) const {
  if (!in_front_.empty() && has(in_front_ + name)) return in_front_ + name;
  if (name == kOutput)
    for (const SafetensorsFile::Entry& entry : file_.entries())
      if (in_model(entry.name) == kOutput) return entry.name;
  if (!lacking_.empty() && name.starts_with(lacking_) && !has(name))
    return name.substr(lacking_.size());
  return name;
}

std::string ForeignNames::in_model(const std::string& name) const {
  if (!in_front_.empty() && name.starts_with(in_front_)) return name.substr(in_front_.size());
  if (const auto before = before_output(name).value_or("");
      !before.empty() && in_front_.starts_with(before))
    return std::string(kOutput);
  if (!lacking_.empty() && !knows(name) && knows(lacking_ + name)) return lacking_ + name;
  return name;
}

std::string ForeignNames::description() const {
  if (!in_front_.empty())
    return fmt::format("all names begin with '{}', which is taken away", in_front_);
  if (!lacking_.empty())
    return fmt::format("names are without the model's '{}', which is put in front", lacking_);
  return "";
}

bool ForeignNames::is_tied_output(const SafetensorsFile::Entry& entry) const {
  if (in_model(entry.name) != kOutput || knows(std::string(kOutput))) return false;
  for (const char* table : {"wte.weight", "model.embed_tokens.weight"}) {
    const SafetensorsFile::Entry* tokens = knows(table) ? file_.find(in_file(table)) : nullptr;
    if (!tokens) continue;
    if (tokens->type == entry.type && tokens->shape == entry.shape &&
        file_.bytes(*tokens) == file_.bytes(entry))
      return true;
    throw ConfigError(fmt::format(
        "tensor '{}' differs from '{}', and the model has one for both: the weights are of a model "
        "whose output layer has weights of its own",
        entry.name, tokens->name));
  }
  return false;
}

std::string ForeignNames::found(const std::string& name, const Shape& shape) const {
  if (std::string own = in_file(name); has(own)) return own;
  throw ConfigError(
      fmt::format("tensor '{}' ({}) is missing from the weights: they are of another model, or "
                  "incomplete{}",
                  name, shape.to_string(), others_than(name)));
}

void ForeignNames::check_others(std::span<const std::string> except) const {
  for (const SafetensorsFile::Entry& entry : file_.entries()) {
    const std::string name = in_model(entry.name);
    if (knows(name) || is_foreign_buffer(name) || fits_any(except, name) ||
        std::ranges::find(variables_.elsewhere, name) != variables_.elsewhere.end() ||
        is_tied_output(entry))
      continue;
    if (const std::string twin = shorter_twin(entry.name); !twin.empty())
      throw ConfigError(fmt::format(
          "tensor '{}' in the weights belongs to no layer of the model, and '{}' is there, too: "
          "the file has two sets of weights; keep one of them",
          entry.name, twin));
    std::vector<std::string> own;
    for (const auto* list : {&variables_.parameters, &variables_.statistics})
      for (const plan::Variable& variable : *list) own.push_back(variable.name);
    throw ConfigError(fmt::format("tensor '{}' in the weights belongs to no layer of the model{}",
                                  entry.name, did_you_mean(nearest_spelling(name, own))));
  }
}

/// Returns the model's name that the file has both with and without something in front; empty:
/// none.
std::string ForeignNames::shorter_twin(const std::string& name) const {
  for (size_t dot = name.find('.'); dot != name.npos; dot = name.find('.', dot + 1))
    if (std::string rest = name.substr(dot + 1); knows(rest) && has(rest)) return rest;
  return "";
}

/// Returns some of the file's names, the nearest to `name` first.
std::string ForeignNames::others_than(const std::string& name) const {
  constexpr size_t kMost = 4;
  std::vector<std::string> names;
  for (const SafetensorsFile::Entry& entry : file_.entries())
    if (!is_foreign_buffer(entry.name)) names.push_back(entry.name);
  if (names.empty()) return "; the file has no tensors";
  const std::string nearest = nearest_spelling(name, names);
  if (const auto at = std::ranges::find(names, nearest); at != names.end())
    std::rotate(names.begin(), at, std::next(at));
  const size_t shown = std::min(names.size(), kMost);
  std::string text = fmt::format(
      "; the file has '{}'",
      fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), "', '"));
  if (names.size() > shown) text += fmt::format(" and {} more", names.size() - shown);
  const std::string of_file = file_.path().filename().string();
  if (of_file.find("-of-") != of_file.npos && file_.path().extension() == ".safetensors")
    text +=
        ", and its name is that of a part: give the index of all parts "
        "(model.safetensors.index.json)";
  return text;
}

}  // namespace tutti::keep
