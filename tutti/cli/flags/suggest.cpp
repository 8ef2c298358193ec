#include "tutti/cli/flags/suggest.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "tutti/base/spelling.h"

namespace tutti::cli {
namespace {

/// Names of keys and flags in other programs, and ours. A word may mean several; the first that is
/// among the candidates counts.
constexpr std::pair<std::string_view, std::string_view> kSynonyms[] = {
    {"learning_rate", "optimizer.lr"},
    {"learning_rate", "--lr"},
    {"base_lr", "optimizer.lr"},
    {"base_lr", "--lr"},
    {"wd", "optimizer.weight_decay"},
    {"l2", "optimizer.weight_decay"},
    {"optim", "optimizer.name"},
    {"optimizer", "optimizer.name"},
    {"scheduler", "schedule.name"},
    {"lr_scheduler", "schedule.name"},
    {"lr_schedule", "schedule.name"},
    {"warmup", "schedule.warmup_epochs"},
    {"batch_size", "batch.local"},
    {"batch_size", "--batch-size"},
    {"train_batch_size", "batch.global"},
    {"train_batch_size", "--global-batch-size"},
    {"per_device_train_batch_size", "batch.local"},
    {"per_device_train_batch_size", "--batch-size"},
    {"arch", "model.name"},
    {"architecture", "model.name"},
    {"model", "model.name"},
    {"num_classes", "data.classes"},
    {"n_classes", "data.classes"},
    {"data_path", "data.dir"},
    {"data_path", "--data-dir"},
    {"data_root", "data.dir"},
    {"data_root", "--data-dir"},
    {"data", "--data-dir"},
    {"num_workers", "data.readers"},
    {"workers", "data.readers"},
    {"num_epochs", "run.epochs"},
    {"num_epochs", "--epochs"},
    {"max_epochs", "run.epochs"},
    {"max_epochs", "--epochs"},
    {"num_train_epochs", "run.epochs"},
    {"num_train_epochs", "--epochs"},
    {"steps", "run.max_steps"},
    {"steps", "--max-steps"},
    {"iterations", "run.max_steps"},
    {"iterations", "--max-steps"},
    {"num_steps", "run.max_steps"},
    {"num_steps", "--max-steps"},
    {"output", "run.output_dir"},
    {"output", "--output-dir"},
    {"save_dir", "run.output_dir"},
    {"save_dir", "--output-dir"},
    {"logdir", "run.output_dir"},
    {"logdir", "--output-dir"},
    {"log_dir", "run.output_dir"},
    {"log_dir", "--output-dir"},
    {"log_interval", "run.log_every"},
    {"eval_interval", "run.eval_every"},
    {"random_seed", "run.seed"},
    {"random_seed", "--seed"},
    {"manual_seed", "run.seed"},
    {"manual_seed", "--seed"},
    {"dtype", "run.precision"},
    {"dtype", "--precision"},
    {"amp", "run.precision"},
    {"amp", "--precision"},
    {"nproc", "--ranks"},
    {"np", "--ranks"},
    {"nproc_per_node", "--ranks"},
    {"num_processes", "--ranks"},
    {"gradient_compression", "comm.compression"},
};

/// Returns the candidate that other programs call `word`, or "".
std::string translated(std::string_view word, const std::vector<std::string>& candidates) {
  std::string name(word.substr(word.rfind('.') + 1));  // npos + 1 == 0
  name.erase(0, std::min(name.find_first_not_of('-'), name.size()));
  for (char& c : name)
    c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const auto& [theirs, ours] : kSynonyms)
    if (theirs == name && std::ranges::find(candidates, ours) != candidates.end())
      return std::string(ours);
  return "";
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string known = translated(word, candidates);
  return known.empty() ? nearest_spelling(word, candidates) : known;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  return tutti::did_you_mean(nearest(word, candidates));
}

std::string verb_elsewhere(std::string_view verb) {
  if (verb == "export" || verb == "convert")
    return ": other programs read the weights.safetensors of a checkpoint as it is.";
  if (verb == "report" || verb == "compare") return ": 'tutti study --collect' reports on runs.";
  return "";
}

std::string about_gpus(std::string_view name) {
  constexpr std::array<std::string_view, 16> kWords = {
      "gpu",  "gpus", "ngpu", "ngpus",       "device",       "devices", "cuda", "nvidia",
      "rocm", "hip",  "amd",  "accelerator", "accelerators", "xpu",     "tpu",  "mps"};
  std::string word;
  for (const char c : std::string(name) + ' ') {
    if (std::isalpha(static_cast<unsigned char>(c))) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      continue;
    }
    if (std::ranges::find(kWords, word) != kWords.end())
      return "a run computes on the CPU or, with run.device = \"cuda\" (--gpu), on one NVIDIA GPU: "
             "the first that CUDA_VISIBLE_DEVICES leaves";
    word.clear();
  }
  return "";
}

std::string about_word(const std::vector<std::string>& choices, std::string_view word) {
  const auto offered = [&](std::string_view choice) {
    return std::ranges::find(choices, choice) != choices.end();
  };
  if (offered(word)) return "";
  if (offered("cuda") && word.starts_with("cuda:"))
    return ": write cuda, and choose among several by CUDA_VISIBLE_DEVICES";
  if (offered("cuda") && !about_gpus(word).empty()) return tutti::did_you_mean("cuda");
  return "";
}

}  // namespace tutti::cli
