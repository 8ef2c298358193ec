#pragma once
// The state of one compilation: graph + backend -> Plan. Each method is one phase, in the order of
// compile(); each group stands in the file that its heading names. Private to compile*.cpp.

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tutti/ops/reorder.h"
#include "tutti/plan/bands.h"
#include "tutti/plan/memory.h"
#include "tutti/plan/plan.h"
#include "tutti/plan/plan_exchanges.h"
#include "tutti/plan/tune.h"

namespace tutti {

inline size_t index_of(Value v) { return static_cast<size_t>(v.id); }

class Compiler {
 public:
  Compiler(const Graph& graph, const Backend& backend, const PlanOptions& options);
  Plan compile();

 private:
  // --- compile.cpp: the batch, lifetimes, layouts and tiles ---
  void find_batch();
  void find_lifetimes();
  void choose_layouts();
  /// A tile's whole working set should fit the core's own cache.
  void choose_tiles();

  // --- compile_kernels.cpp: which kernel each node gets ---
  /// What is known of a node's operands before its kernel is chosen.
  Step describe(int n, const PlanBand* band);
  KernelCandidate pick(Step& step);
  /// The size of a tile for which the candidate's kernel is not there once layouts are fixed; 0:
  /// none. Shares of the batch may be cut into tiles of several sizes, and oneDNN may know other
  /// implementations for another size, or for a layout that it was free to choose before.
  int64_t size_refused(const Step& step, const KernelCandidate& candidate) const;
  /// Seconds that a run of the candidate owes to the packing of its weights, once a step for all
  /// samples.
  double packing_seconds(const Step& step, const KernelCandidate& candidate) const;
  /// Parameters take the layout in which the backward pass produces their gradient, so that a
  /// gradient is never reordered.
  void lay_out_variables();
  /// Results of updates are sized by how their parameters lie in memory.
  void lay_out_update_results();
  void choose_kernels();
  Step choose_kernel(int n, const PlanBand* band);
  /// What the chosen kernel needs besides its operands; equal problems are asked once.
  void note_memory(Step& step, const KernelCandidate& chosen);
  /// Of a thread, now that every step is there.
  void sum_memory();
  /// Offset in the packed arena of `parameter` as `wanted`; adds the step that makes it, once.
  size_t packed(Value parameter, const TensorDesc& wanted);

  // --- compile_variables.cpp: where parameters, statistics and states lie ---
  void place_variables();
  bool is_bucket(const Node& n) const;
  /// By bucket, and in a bucket in the order in which their gradients are produced; then those
  /// that are not trained.
  std::vector<Value> parameter_order() const;
  /// Where parameters and statistics lie in their arenas.
  void size_variables();
  /// Optimizer state "PARAMETER.KIND" lies at its parameter's offset in the arena of its kind.
  void place_state();
  void place_scalars_and_inputs();

  // --- compile_results.cpp: where results lie ---
  /// Results that never leave their band live in the thread's tile scratch; all others in the
  /// arena. An output may take over the memory of an input nobody reads afterwards.
  void place_results();
  bool leaves_band(Value v) const;
  template <class Find>
  void share_in_place(int n, std::vector<int>& owner, const Find& find, std::vector<int>& last);
  /// Within a band steps follow each other tile by tile, so a stored value lives for whole bands; a
  /// tile value for steps.
  template <class Find>
  void assign_offsets(const std::vector<int>& results,
                      const std::map<int, std::pair<int, int>>& spans, const Find& find,
                      const std::vector<bool>& stored);

  /// Now that every value has a place, the operands of all steps get theirs.
  void resolve_places();

  const Node& node(int n) const { return graph_.nodes()[static_cast<size_t>(n)]; }
  bool is_output(Value v) const {
    return std::ranges::find(graph_.outputs(), v) != graph_.outputs().end();
  }
  size_t sample_bytes(Value v) const {
    const TensorDesc& desc = plan_.descs[index_of(v)];
    return desc.bytes() / static_cast<size_t>(std::max<int64_t>(desc.shape[0], 1));
  }
  int band_of(int n) const { return schedule_.band_of[static_cast<size_t>(n)]; }

  const Graph& graph_;
  const Backend& backend_;
  const Schedule schedule_;
  Plan plan_;
  std::vector<int> last_reader_;          // execution position of the last reader
  std::map<std::string, size_t> packed_;  // parameter and desc -> offset
  std::vector<std::shared_ptr<const Reorder>> reorders_;
  std::map<std::string, std::pair<size_t, size_t>> memory_of_kernel_;  // workspace, state
};

}  // namespace tutti
