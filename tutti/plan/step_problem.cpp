#include "tutti/plan/step_problem.h"

#include "tutti/plan/bands.h"

namespace tutti::plan {

Step step_of(const graph::Graph& graph, const graph::PerValue<TensorDesc>& descs, int n,
             const PlanBand* band) {
  const graph::Node& node = graph.nodes()[static_cast<size_t>(n)];
  Step step;
  step.samples = band ? band->samples : 0;
  step.node = n;
  step.name = node.name;
  step.walk = graph.walk(node);
  step.request.op = node.op.get();
  const auto add = [&](graph::Value v, bool whole, std::vector<TensorDesc>& list,
                       std::vector<bool>& batched) {
    TensorDesc desc = descs[v];
    const bool in_tiles = graph.type(v).batched && !whole;
    if (in_tiles) desc.shape[0] = band ? band->tile : 0;
    list.push_back(desc);
    batched.push_back(in_tiles);
  };
  for (const graph::Value v : node.in) {
    // A step that runs once sees the whole batch: a table's update reads the gradients of vectors.
    const bool all =
        step.walk == graph::Walk::across || step.walk == graph::Walk::whole || node.op->in_update();
    add(v, all, step.request.in, step.in_batched);
    step.request.in_free.push_back(graph[v].role == graph::Role::parameter &&
                                   !node.op->in_update());
  }
  for (const graph::Value v : node.out) {
    add(v, step.walk == graph::Walk::whole, step.request.out, step.out_batched);
    step.request.out_free.push_back(false);
  }
  return step;
}

backend::KernelRequest with_samples(const Step& step, int64_t samples) {
  backend::KernelRequest request = step.request;
  for (size_t i = 0; i < request.in.size(); ++i)
    if (step.in_batched[i]) request.in[i].shape[0] = samples;
  for (size_t i = 0; i < request.out.size(); ++i)
    if (step.out_batched[i]) request.out[i].shape[0] = samples;
  return request;
}

int64_t tile_of(const Step& step) {
  for (size_t i = 0; i < step.in_batched.size(); ++i)
    if (step.in_batched[i]) return step.request.in[i].shape[0];
  for (size_t i = 0; i < step.out_batched.size(); ++i)
    if (step.out_batched[i]) return step.request.out[i].shape[0];
  return 0;
}

}  // namespace tutti::plan
