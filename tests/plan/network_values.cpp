// network_values NETWORK FILE [--bf16 [--error X]] [--batch N] [--data N] [--layout NAME]
//                [--weights FILE] [--inputs FILE]:
// writes the values that a small network of batch 2 computes in one pass on the CPU backend, as
// safetensors: in, target, out, loss, weight.NAME, gradient.NAME. With -full behind its name: the
// network of MLPerf HPC, or the published one, on one sample, cut for two threads, with measured
// kernels, as training computes it. --bf16: with activations of bf16, and then --error: with
// kernels of at most that error (plan.bf16_error). --data: other random inputs and targets.
// --weights: of a trained model, instead of initial ones. --inputs: in and target of a file. Prints
// which kernels computed it. benchmarks/peers/cosmoflow.py, deepcam.py, resnet.py, microscopy.py,
// gpt2.py, llama.py, transformer.py, vit.py and sequence_encoder.py compare with its output.

#include <cstdio>
#include <string>
#include <string_view>

#include "tests/plan/science_step.h"
#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/base/error.h"
#include "tutti/keep/safetensors.h"

namespace tutti::test {
namespace {

struct Asked {
  std::string network, file, weights, inputs;
  std::string layout;  ///< empty: the network's own
  bool bf16 = false;
  double error = 0;   ///< 0: the plan's default
  int64_t batch = 0;  ///< 0: the network's own
  uint64_t data = 0;
};

/// Reads the arguments. Returns whether they make sense.
bool read(int argc, char** argv, Asked& asked) {
  if (argc < 3) return false;
  asked.network = argv[1];
  asked.file = argv[2];
  for (int i = 3; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--bf16") {
      asked.bf16 = true;
    } else if (++i == argc) {
      return false;
    } else if (flag == "--batch") {
      asked.batch = std::atoll(argv[i]);
      if (asked.batch < 1) return false;
    } else if (flag == "--error") {
      asked.error = std::atof(argv[i]);
      if (asked.error < 1) return false;
    } else if (flag == "--data") {
      asked.data = static_cast<uint64_t>(std::atoll(argv[i]));
    } else if (flag == "--layout") {
      asked.layout = argv[i];
    } else if (flag == "--weights") {
      asked.weights = argv[i];
    } else if (flag == "--inputs") {
      asked.inputs = argv[i];
    } else {
      return false;
    }
  }
  return asked.bf16 || asked.error == 0;
}

ScienceStep step_of(const Asked& asked) {
  const bool full = asked.network.ends_with("-full");
  plan::PlanOptions options{.layout = full ? "auto" : "last", .measure = full};
  if (asked.error > 0) options.most_error = asked.error;
  if (full) options.threads = 2;
  if (!asked.layout.empty()) options.layout = asked.layout;
  split::SplitSettings split{.slabs = 1};
  if (full) split = {.threads = 2};
  const int64_t batch = asked.batch > 0 ? asked.batch : full ? 1 : 2;
  return run_step(
      science_network(asked.network, asked.bf16 ? DType::bf16 : DType::f32, batch, split),
      backend::CpuBackend(), options,
      {.data = asked.data, .weights = asked.weights, .inputs = asked.inputs});
}

void write(const Asked& asked, ScienceStep step) {
  std::vector<keep::TensorRef> tensors{step.in.ref(), step.target.ref(), step.out.ref(),
                                       step.loss.ref()};
  if (!step.source.bytes.empty()) tensors.push_back(step.source.ref());
  for (keep::NamedTensor& t : step.model) {
    t.name = "weight." + t.name;
    tensors.push_back(t.ref());
  }
  for (keep::NamedTensor& t : step.gradients) {
    t.name = "gradient." + t.name;
    tensors.push_back(t.ref());
  }
  keep::write_safetensors(asked.file, tensors, {{"network", asked.network}});
  std::printf("layout %s\n", step.layout.c_str());
  for (const auto& [kernel, steps] : step.kernels) std::printf("%4d %s\n", steps, kernel.c_str());
}

}  // namespace
}  // namespace tutti::test

int main(int argc, char** argv) {
  using namespace tutti;
  test::Asked asked;
  if (!test::read(argc, argv, asked)) {
    std::fprintf(stderr,
                 "usage: network_values "
                 "(cosmoflow2|cosmoflow3|deepcam|resnet44|resnet50|gpt2|transformer|vit)[-full]|"
                 "fc-densenet|vgg|llama|sequence|sequence-samples FILE "
                 "[--bf16 [--error X]] [--batch N] [--data N] [--layout NAME] [--weights FILE] "
                 "[--inputs FILE]\n");
    return 2;
  }
  try {
    test::write(asked, test::step_of(asked));
  } catch (const Error& error) {
    std::fprintf(stderr, "network_values: %s\n", error.what());
    return 1;
  }
  return 0;
}
