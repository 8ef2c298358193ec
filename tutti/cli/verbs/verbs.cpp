#include "tutti/cli/verbs/verbs.h"

namespace tutti::cli {

std::vector<Verb> all_verbs() {
  struct Task {
    const char* name;
    std::vector<Verb (*)()> verbs;
  };
  const Task tasks[] = {
      {"Train",
       {train_verb, replay_verb, study_verb, eval_verb, infer_verb, generate_verb, translate_verb}},
      {"Look before you run", {config_verb, plan_verb, advise_verb, model_verb, data_verb}},
      {"Know the machine", {doctor_verb, bench_verb}},
      {"Help", {help_verb}},
  };
  std::vector<Verb> verbs;
  for (const Task& task : tasks)
    for (const auto make : task.verbs) {
      verbs.push_back(make());
      verbs.back().task = task.name;
    }
  return verbs;
}

}  // namespace tutti::cli
