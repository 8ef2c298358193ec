#include "tutti/mlsl/quantizer.h"

#include <dlfcn.h>

namespace tutti::mlsl {
namespace {

std::string text_of(const char* text, const char* what) {
  demand(text != nullptr && *text != '\0', "SetQuantizationParams: {} is missing", what);
  return text;
}

void check(int result, const std::string& function) {
  if (result != 0)
    throw CommError(fmt::format("the quantisation library's function {} failed with code {}",
                                function, result));
}

// The three vectors of tiles in a QuantizedSum's window.
enum Vector : size_t { kSent, kReceived, kSums };

}  // namespace

Quantizer::Quantizer(const api::QuantParams& params)
    : path_(text_of(params.lib_path, "lib_path")),
      quantise_name_(text_of(params.quant_buffer_func_name, "quant_buffer_func_name")),
      dequantise_name_(text_of(params.dequant_buffer_func_name, "dequant_buffer_func_name")),
      reduce_sum_name_(text_of(params.reduce_sum_func_name, "reduce_sum_func_name")),
      params_{path_.data(),
              quantise_name_.data(),
              dequantise_name_.data(),
              reduce_sum_name_.data(),
              params.block_size,
              params.elem_in_block},
      library_(dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL), &dlclose) {
  demand(params.block_size > 0 && params.elem_in_block > 0,
         "SetQuantizationParams: blocks of {} bytes for {} elements", params.block_size,
         params.elem_in_block);
  if (!library_) throw ConfigError(fmt::format("SetQuantizationParams: {}", dlerror()));
  quantise_ = find<Quantise>("quantises", quantise_name_);
  dequantise_ = find<Dequantise>("dequantises", dequantise_name_);
  reduce_sum_ = find<ReduceSum>("adds", reduce_sum_name_);
}

template <class Function>
Function* Quantizer::find(const char* what, const std::string& name) const {
  void* const function = dlsym(library_.get(), name.c_str());
  demand(function != nullptr, "SetQuantizationParams: {} has no function {}, which {}", path_, name,
         what);
  return reinterpret_cast<Function*>(function);
}

void Quantizer::encode(const float* values, size_t count, float* residual,
                       std::byte* blocks) const {
  constexpr int kFloat = 2;
  constexpr size_t kRatio = 4;
  constexpr int kMethod = 1;  // dynamic fixed point
  const std::lock_guard turn(mutex_);
  check(quantise_(values, blocks, count, residual, kFloat, kRatio, kMethod), quantise_name_);
}

void Quantizer::add(const std::byte* blocks, std::byte* sum, size_t count) const {
  const std::lock_guard turn(mutex_);
  check(reduce_sum_(blocks, sum, count), reduce_sum_name_);
}

void Quantizer::decode(const std::byte* blocks, size_t count, float* values) const {
  const std::lock_guard turn(mutex_);
  check(dequantise_(blocks, values, count), dequantise_name_);
}

QuantizedSum::QuantizedSum(Group& group, const Quantizer& quantizer, const Spec& spec)
    : StagedOperation(group.communicator(), "quantised gradient"), job_(group.job()),
      quantizer_(quantizer), spec_(spec), mine_(static_cast<size_t>(group.index())),
      ranks_(static_cast<size_t>(group.size())),
      tile_bytes_(quantizer.bytes(quantizer.blocks(spec.part))),
      bytes_((spec.everywhere ? 2 : 1) * ranks_ * tile_bytes_), residuals_(spec.count),
      window_(group.allocate((spec.everywhere ? 3 : 2) * ranks_ * tile_bytes_)),
      tiles_(plan(group, comm::Collective::all_to_all, kSent, kReceived)) {
  if (spec.everywhere) sums_ = plan(group, comm::Collective::allgather, kReceived, kSums);
}

QuantizedSum::~QuantizedSum() { withdraw(); }

comm::StagedOperation::Exchange QuantizedSum::plan(Group& group, comm::Collective kind, size_t from,
                                                   size_t to) const {
  comm::CollectiveSpec spec;
  spec.name = name();
  spec.kind = kind;
  spec.element = comm::Element::byte;
  spec.count = ranks_ * tile_bytes_;
  spec.input = tile(from, 0);
  spec.output = tile(to, 0);
  return {.operation = group.plan(spec)};
}

void QuantizedSum::start(const float* values, float* sum) {
  wait();
  values_ = values;
  sum_ = sum;
  job_.start(*this, bytes_);
}

comm::StagedOperation::Exchange* QuantizedSum::next(int stage) {
  if (stage == 0) {
    encode();
    return &tiles_;
  }
  if (stage == 1) {
    add_up();
    if (spec_.everywhere) return &sums_;
  }
  decode();
  return nullptr;
}

void QuantizedSum::encode() {
  const std::span<float> residual = residuals_.of(values_);
  for (size_t p = 0; p < ranks_; ++p)
    if (const size_t n = floats_of(p); n > 0)
      quantizer_.encode(values_ + p * spec_.part, n, residual.data() + p * spec_.part,
                        tile(kSent, p));
}

// Adds all tiles of this rank's part into the tile that rank 0 has sent.
void QuantizedSum::add_up() {
  const size_t blocks = quantizer_.blocks(floats_of(mine_));
  if (blocks == 0) return;
  for (size_t p = 1; p < ranks_; ++p)
    quantizer_.add(tile(kReceived, p), tile(kReceived, 0), blocks);
}

void QuantizedSum::decode() const {
  if (!spec_.everywhere) {
    if (const size_t n = floats_of(mine_); n > 0) quantizer_.decode(tile(kReceived, 0), n, sum_);
    return;
  }
  for (size_t p = 0; p < ranks_; ++p)
    if (const size_t n = floats_of(p); n > 0)
      quantizer_.decode(tile(kSums, p), n, sum_ + p * spec_.part);
}

}  // namespace tutti::mlsl
