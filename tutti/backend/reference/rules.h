#pragma once
// The arithmetic of every op as plain loops over PlainTensors. ReferenceKernel (reference.cpp)
// loads and stores operands around these rules, keeps the sums of reductions, and passes the call's
// data to the rules.

#include <concepts>
#include <functional>
#include <map>
#include <span>
#include <typeindex>
#include <vector>

#include "tutti/backend/backend.h"
#include "tutti/backend/reference/plain_tensor.h"
#include "tutti/ops/activation.h"

namespace tutti::backend {

/// The data of one call. `sums` are this thread's accumulators in run, all threads' totals in
/// finish.
struct RuleCall {
  std::vector<PlainTensor>& in;
  std::vector<PlainTensor>& out;
  std::span<double> sums;
  int64_t first_sample;
  const StepInfo& step;
};

struct Rule {
  std::function<void(const RuleCall&)> run;
  // Reductions only:
  size_t sums = 0;  ///< accumulators, zero at first
  std::function<void(const RuleCall&)> finish =
      {};  ///< makes the unbatched outputs from the totals
  std::vector<size_t> unbatched_in = {}, unbatched_out = {};  ///< operands that finish may touch
};

/// Returns f(x).
double activate(const ops::ActivationAttributes& f, double x);

/// The rule of each op. A file of rules defines
///   void register_NAME(RuleTable& table) { table.add<Op>(rule); }
/// and is found by the build.
class RuleTable {
 public:
  /// Registers the rule of each of the ops O: the loops, called as rule(call) or rule(op, call); a
  /// Rule, or the function that makes it, called as rule(op) or rule(op, request).
  template <class... O, class F>
  void add(F rule) {
    (rules_.emplace(typeid(O), typed<O>(rule)), ...);
  }
  /// Returns the rule for an op, without `run` if there is none.
  Rule find(const KernelRequest& request) const;

 private:
  template <class O, class F>
  static std::function<Rule(const KernelRequest&)> typed(F rule) {
    return [rule]([[maybe_unused]] const KernelRequest& r) -> Rule {
      if constexpr (std::same_as<F, Rule>)
        return rule;
      else if constexpr (std::invocable<F, const RuleCall&>)
        return {.run = rule};
      else if constexpr (std::invocable<F, const O&, const RuleCall&>)
        return {
            .run = [rule, op = static_cast<const O&>(*r.op)](const RuleCall& c) { rule(op, c); }};
      else if constexpr (std::invocable<F, const O&>)
        return rule(static_cast<const O&>(*r.op));
      else
        return rule(static_cast<const O&>(*r.op), r);
    };
  }

  std::map<std::type_index, std::function<Rule(const KernelRequest&)>> rules_;
};

/// Calls the register functions of all files of rules; the build writes it.
void register_all(RuleTable& table);

/// Returns the table of all rules, which is made at the first call.
const RuleTable& reference_rules();

}  // namespace tutti::backend
