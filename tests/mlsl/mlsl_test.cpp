// The acceptance test of the C++ interface: two convolutions, trained on numbers that encode their
// origin.
//
//   mlsl_test GROUP_COUNT [DIST_UPDATE] [USER_BUF] [USE_TEST] [QUANT_LIB]
//
// GROUP_COUNT model parts (1: data parallel, all processes: model parallel, between: hybrid).
// DIST_UPDATE 1: each process updates the kernels it owns. USER_BUF 1: activations are sent from
// memory of Environment::Alloc. USE_TEST 1: gradients are awaited with TestGradientComm. QUANT_LIB:
// gradients are quantised by that library, and their relative errors are printed instead of being
// failures.
//
// Process 0 prints PASSED or FAILED at the end, and every process `exited normally`.

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "mlsl.hpp"

using namespace MLSL;

namespace {

constexpr size_t kMinibatch = 16;
constexpr size_t kSpace = 12 * 12;
constexpr size_t kKernel = 3 * 3;
constexpr size_t kLayers = 2;
constexpr size_t kMaps[kLayers + 1] = {128, 256, 256};
constexpr int kEpochs = 2;
constexpr int kMinibatches = 3;
constexpr double kTolerance = 1e-4;

struct Options {
  size_t model_parts = 1;
  bool distributed = false;
  bool user_buffers = false;
  bool use_test = false;
  char* quantizer = nullptr;
};

struct Errors {
  double least = 1e30, most = 0, sum = 0;
  size_t count = 0;
};

class Layer {
 public:
  Layer(Environment& environment, const Options& options, Operation* operation, size_t index)
      : environment_(environment), options_(options), operation_(operation), index_(index),
        in_(operation->GetInput(0)), out_(operation->GetOutput(0)),
        parameters_(operation->GetParameterSet(0)), samples_(operation->GetLocalMinibatchSize()),
        input_(elements(in_)), output_(elements(out_)), input_gradient_(elements(in_)),
        output_gradient_(elements(out_)),
        weights_(parameters_->GetLocalKernelCount() * kKernel, -1), gradient_(weights_.size()) {
    if (operation->GetDistribution()->GetProcessIdx(GT_GLOBAL) == 0)
      for (size_t i = 0; i < weights_.size(); ++i) weights_[i] = static_cast<float>(i);
    environment.Wait(operation->GetDistribution()->Bcast(weights_.data(), weights_.size(), DT_FLOAT,
                                                         0, GT_GLOBAL));
    if (!options.user_buffers) return;
    for (Activation* activation : {in_, out_})
      if (activation->GetCommBufSize() > 0)
        (activation == in_ ? in_buffer_ : out_buffer_) =
            environment.Alloc(activation->GetCommBufSize(), 64);
  }
  ~Layer() {
    environment_.Free(in_buffer_);
    environment_.Free(out_buffer_);
  }
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  void connect(Layer* previous) {
    previous_ = previous;
    previous->next_ = this;
  }
  size_t wrong() const { return wrong_; }
  const Errors& errors() const { return errors_; }

  void forward() {
    if (const void* received = in_->WaitComm())
      unpack(in_, received, input_);
    else if (previous_ != nullptr)
      input_ = previous_->output_;
    parameters_->WaitIncrementComm();
    for (size_t i = 0; i < parameters_->GetLocalKernelCount() * kKernel; ++i)
      expect("weight", i, weights_[i], static_cast<double>(i));

    if (index_ == 0)
      for (size_t i = 0; i < output_.size(); ++i) output_[i] = static_cast<float>(i);
    else
      check_input();
    out_->StartComm(pack(out_, output_, out_buffer_));
  }

  // Exchanges the gradient of the input.
  void backward1() {
    if (const void* received = out_->WaitComm())
      unpack(out_, received, output_gradient_);
    else if (next_ != nullptr)
      output_gradient_ = next_->input_gradient_;
    if (index_ == 0)
      for (size_t i = 0; i < output_gradient_.size(); ++i)
        expect("gradient of the output", i, output_gradient_[i], static_cast<double>(i));
    else
      for_each_input(
          [&](size_t i, size_t global) { input_gradient_[i] = static_cast<float>(global); });
    in_->StartComm(pack(in_, input_gradient_, in_buffer_));
  }

  // Exchanges the gradient of the weights.
  void backward2() {
    for (size_t i = 0; i < gradient_.size(); ++i) gradient_[i] = static_cast<float>(i);
    parameters_->StartGradientComm(gradient_.data());
  }

  void update() {
    const size_t owned = parameters_->GetOwnedKernelOffset() * kKernel;
    const size_t count = parameters_->GetOwnedKernelCount() * kKernel;
    const auto ranks = static_cast<double>(operation_->GetDistribution()->GetProcessCount(GT_DATA));
    const auto* sum = static_cast<const float*>(finish_gradient());
    if (sum == nullptr) sum = gradient_.data();
    for (size_t i = 0; i < count; ++i) {
      const double right = ranks * static_cast<double>(owned + i);
      if (options_.quantizer != nullptr)
        note(sum[i], right);
      else
        expect("sum of gradients", i, sum[i], right);
      weights_[owned + i] = static_cast<float>(owned + i);
    }
    parameters_->StartIncrementComm(weights_.data());
  }

  void finish() { parameters_->WaitIncrementComm(); }

 private:
  size_t elements(Activation* activation) const {
    return samples_ * activation->GetLocalFmCount() * activation->GetFmSize();
  }

  // Calls body(local element, number of that element in the sample order of all maps).
  template <class Body>
  void for_each_input(Body body) {
    const size_t maps = in_->GetLocalFmCount();
    for (size_t s = 0; s < samples_; ++s)
      for (size_t m = 0; m < maps; ++m)
        for (size_t x = 0; x < kSpace; ++x)
          body((s * maps + m) * kSpace + x, s * maps * kSpace * options_.model_parts +
                                                (in_->GetGlobalFmOffset() + m) * kSpace + x);
  }

  void check_input() {
    for_each_input([&](size_t i, size_t global) {
      expect("input", i, input_[i], static_cast<double>(options_.model_parts * global));
    });
  }

  void* finish_gradient() {
    if (!options_.use_test) return parameters_->WaitGradientComm();
    bool complete = false;
    void* sum = nullptr;
    while (!complete) sum = parameters_->TestGradientComm(&complete);
    return sum;
  }

  void expect(const char* what, size_t i, double got, double right) {
    if (std::fabs(got - right) <= kTolerance) return;
    if (wrong_++ < 3)
      std::fprintf(stderr, "layer %zu: %s %zu is %g, and should be %g\n", index_, what, i, got,
                   right);
  }

  void note(double got, double right) {
    const double error = right == 0 ? std::fabs(got) : std::fabs(got - right) / right;
    errors_.least = std::fmin(errors_.least, error);
    errors_.most = std::fmax(errors_.most, error);
    errors_.sum += error;
    ++errors_.count;
  }

  // Calls move(offset in the activation, offset in the buffer, elements) for each sample's run of a
  // block's maps.
  template <class Move>
  static void for_each_run(Activation* activation, CommBlockInfo* block, Move move) {
    const size_t run = block->GetFmCount() * block->GetFmSize();
    const size_t sample = activation->GetLocalFmCount() * activation->GetFmSize();
    for (size_t s = 0; s < block->GetMbCount(); ++s)
      move((block->GetMbOffset() + s) * sample + block->GetFmOffset() * block->GetFmSize(),
           block->GetBufOffset() + s * run, run);
  }

  static void* pack(Activation* activation, const std::vector<float>& local, void* own) {
    auto* const buffer = static_cast<float*>(own != nullptr ? own : activation->GetCommBuf());
    for (size_t b = 0; b < activation->GetPackBlockCount(); ++b)
      for_each_run(activation, activation->GetPackBlock(b), [&](size_t from, size_t to, size_t n) {
        std::memcpy(buffer + to, &local[from], n * sizeof(float));
      });
    return buffer;
  }

  static void unpack(Activation* activation, const void* received, std::vector<float>& local) {
    const auto* const buffer = static_cast<const float*>(received);
    for (size_t b = 0; b < activation->GetUnpackBlockCount(); ++b)
      for_each_run(activation, activation->GetUnpackBlock(b),
                   [&](size_t to, size_t from, size_t n) {
                     std::memcpy(&local[to], buffer + from, n * sizeof(float));
                   });
  }

  Environment& environment_;
  const Options& options_;
  Operation* operation_;
  size_t index_;
  Activation* in_;
  Activation* out_;
  ParameterSet* parameters_;
  size_t samples_;
  std::vector<float> input_, output_, input_gradient_, output_gradient_, weights_, gradient_;
  void* in_buffer_ = nullptr;
  void* out_buffer_ = nullptr;
  Layer* previous_ = nullptr;
  Layer* next_ = nullptr;
  size_t wrong_ = 0;
  Errors errors_;
};

size_t add_operation(Session* session, Distribution* distribution, const Options& options,
                     size_t layer) {
  OperationRegInfo* info = session->CreateOperationRegInfo(OT_CC);
  info->SetName(layer == 0 ? "first convolution" : "second convolution");
  info->AddInput(kMaps[layer], kSpace, DT_FLOAT);
  info->AddOutput(kMaps[layer + 1], kSpace, DT_FLOAT);
  info->AddParameterSet(kMaps[layer] * kMaps[layer + 1], kKernel, DT_FLOAT, options.distributed,
                        options.quantizer != nullptr ? CT_QUANTIZATION : CT_NONE);
  const size_t index = session->AddOperation(info, distribution);
  session->DeleteOperationRegInfo(info);
  return index;
}

void train(Layer& first, Layer& second) {
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    for (int minibatch = 0; minibatch < kMinibatches; ++minibatch) {
      first.forward();
      second.forward();
      second.backward1();
      second.backward2();
      first.backward1();
      first.backward2();
      first.update();
      second.update();
    }
    first.finish();
    second.finish();
  }
}

void set_quantizer(Environment& environment, char* library) {
  static char compress[] = "dl_comp_compress_buffer", decompress[] = "dl_comp_decompress_buffer",
              add[] = "dl_comp_compressed_buffer_reduce_sum";
  QuantParams params = {library, compress, decompress, add, 268, 256};
  environment.SetQuantizationParams(&params);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s GROUP_COUNT [DIST_UPDATE] [USER_BUF] [USE_TEST] [QUANT_LIB]\n",
                 argv[0]);
    return 2;
  }
  Options options;
  options.model_parts = static_cast<size_t>(std::atoi(argv[1]));
  options.distributed = argc > 2 && std::atoi(argv[2]) != 0;
  options.user_buffers = argc > 3 && std::atoi(argv[3]) != 0;
  options.use_test = argc > 4 && std::atoi(argv[4]) != 0;
  options.quantizer = argc > 5 ? argv[5] : nullptr;

  Environment& environment = Environment::GetEnv();
  environment.Init(&argc, &argv);
  if (options.quantizer != nullptr) set_quantizer(environment, options.quantizer);
  Distribution* distribution = environment.CreateDistribution(
      environment.GetProcessCount() / options.model_parts, options.model_parts);
  Session* session = environment.CreateSession(PT_TRAIN);
  session->SetGlobalMinibatchSize(kMinibatch);
  for (size_t layer = 0; layer < kLayers; ++layer) {
    const size_t index = add_operation(session, distribution, options, layer);
    if (layer > 0) session->GetOperation(index)->SetPrev(session->GetOperation(index - 1), 0, 0);
  }
  session->Commit();

  double wrong = 0;
  {
    Layer first(environment, options, session->GetOperation(0), 0);
    Layer second(environment, options, session->GetOperation(1), 1);
    second.connect(&first);
    train(first, second);
    wrong = static_cast<double>(first.wrong() + second.wrong());
    if (options.quantizer != nullptr && environment.GetProcessIdx() == 0)
      std::printf("relative error of the gradients: average %.3e, least %.3e, most %.3e\n",
                  first.errors().sum / static_cast<double>(first.errors().count),
                  first.errors().least, first.errors().most);
  }
  session->GetStats()->Print();
  environment.Wait(distribution->AllReduce(&wrong, &wrong, 1, DT_DOUBLE, RT_SUM, GT_GLOBAL));
  const size_t rank = environment.GetProcessIdx();
  if (rank == 0) std::printf("mlsl_test: %s\n", wrong == 0 ? "PASSED" : "FAILED");
  environment.DeleteSession(session);
  environment.DeleteDistribution(distribution);
  environment.Finalize();
  std::printf("[%zu] exited normally\n", rank);
  return wrong == 0 ? 0 : 1;
}
