#include "tutti/cli/suggest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

namespace tutti {

int edit_distance(std::string_view a, std::string_view b) {
  // d(i, j): distance of the first i letters of a to the first j of b; three rows are enough.
  std::vector<int> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    now[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        now[j] = std::min(now[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, now);
  }
  return last[b.size()];
}

namespace {

/// What other programs call a key or flag, and ours. A word may mean several; the first that is
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

/// The candidate that other programs call `word`, or "".
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
  if (const std::string known = translated(word, candidates); !known.empty()) return known;
  const auto tail = [](std::string_view text) {
    return text.substr(text.rfind('.') + 1);
  };  // npos + 1 == 0
  const bool dotted = word.find('.') != std::string_view::npos;
  std::string best;
  int least = std::max(2, static_cast<int>(word.size()) / 3) + 1;
  for (const std::string& candidate : candidates) {
    int distance = edit_distance(word, candidate);
    if (!dotted)
      distance = std::min(distance, edit_distance(word, tail(candidate)));
    else if (tail(word) == tail(candidate))
      distance = std::min(distance, 2);  // the right key under a wrong section
    if (distance < least) least = distance, best = candidate;
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string found = nearest(word, candidates);
  return found.empty() ? "" : fmt::format(", did you mean '{}'?", found);
}

}  // namespace tutti
