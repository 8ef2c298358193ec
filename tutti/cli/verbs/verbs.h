#pragma once
// The verbs of the program: one function in one file verb_*.cpp makes each, with its flags bound to
// variables of its own, and the function that runs once they are parsed.

#include <vector>

#include "tutti/cli/flags/flags.h"

namespace tutti::cli {

/// Returns all verbs in the order of `tutti help`. Each call makes new variables.
std::vector<Verb> all_verbs();

Verb advise_verb();
Verb bench_verb();
Verb bench_comm_verb();  ///< `tutti bench comm`
Verb bench_ops_verb();   ///< `tutti bench ops`
Verb bench_step_verb();  ///< `tutti bench step`
Verb config_verb();
Verb data_verb();
Verb doctor_verb();
Verb eval_verb();
Verb generate_verb();
Verb translate_verb();
Verb help_verb();
Verb infer_verb();
Verb model_verb();
Verb plan_verb();
Verb replay_verb();
Verb study_verb();
Verb train_verb();

}  // namespace tutti::cli
