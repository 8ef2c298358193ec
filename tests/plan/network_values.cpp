// network_values cosmoflow2|cosmoflow3|deepcam|fc-densenet|vgg|gpt2|llama|transformer|vit|sequence|
// sequence-samples FILE:
// writes what a small network of batch 2 computes in one pass on the CPU backend, as safetensors:
// in, target, out, loss, weight.NAME, gradient.NAME. With -full behind its name: the network of
// MLPerf HPC on one sample, cut for two threads, with measured kernels, as training computes it.
// What benchmarks/peers/cosmoflow.py, deepcam.py, microscopy.py, gpt2.py, llama.py, transformer.py,
// vit.py and sequence_encoder.py are compared with.

#include <cstdio>
#include <string_view>

#include "tests/plan/science_step.h"
#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/base/error.h"
#include "tutti/train/safetensors.h"

int main(int argc, char** argv) {
  using namespace tutti;
  if (argc != 3) {
    std::fprintf(
        stderr,
        "usage: network_values (cosmoflow2|cosmoflow3|deepcam|gpt2|transformer|vit)[-full]|"
        "fc-densenet|vgg|llama|sequence|sequence-samples FILE\n");
    return 2;
  }
  try {
    const std::string_view network = argv[1];
    const bool full = network.ends_with("-full");
    test::ScienceStep step =
        full ? test::run_step(test::science_network(argv[1], DType::f32, 1, {.threads = 2}),
                              CpuBackend(), {.threads = 2, .measure = true})
             : test::run_step(test::science_network(argv[1], DType::f32, 2), CpuBackend(),
                              {.layout = "last", .measure = false});
    std::vector<TensorRef> tensors{step.in.ref(), step.target.ref(), step.out.ref(),
                                   step.loss.ref()};
    if (!step.source.bytes.empty()) tensors.push_back(step.source.ref());
    for (NamedTensor& t : step.model) {
      t.name = "weight." + t.name;
      tensors.push_back(t.ref());
    }
    for (NamedTensor& t : step.gradients) {
      t.name = "gradient." + t.name;
      tensors.push_back(t.ref());
    }
    write_safetensors(argv[2], tensors, {{"network", argv[1]}});
  } catch (const Error& error) {
    std::fprintf(stderr, "network_values: %s\n", error.what());
    return 1;
  }
  return 0;
}
