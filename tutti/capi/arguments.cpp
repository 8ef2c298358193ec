#include "tutti/capi/arguments.h"

#include "tutti/capi/options.h"
#include "tutti/capi/status.h"

namespace tutti::capi {
namespace {

// These numbers are part of the ABI.
static_assert(int{TUTTI_COMM_F32} == int(comm::Element::f32) &&
              int{TUTTI_COMM_F64} == int(comm::Element::f64) &&
              int{TUTTI_COMM_BF16} == int(comm::Element::bf16) &&
              int{TUTTI_COMM_F16} == int(comm::Element::f16) &&
              int{TUTTI_COMM_I8} == int(comm::Element::i8) &&
              int{TUTTI_COMM_I32} == int(comm::Element::i32) &&
              int{TUTTI_COMM_BYTE} == int(comm::Element::byte) &&
              int{TUTTI_COMM_I64} == int(comm::Element::i64) &&
              int{TUTTI_COMM_U8} == int(comm::Element::u8));
static_assert(int{TUTTI_COMM_SUM} == int(comm::ReduceOp::sum) &&
              int{TUTTI_COMM_MIN} == int(comm::ReduceOp::min) &&
              int{TUTTI_COMM_MAX} == int(comm::ReduceOp::max) &&
              int{TUTTI_COMM_MEAN} == int(comm::ReduceOp::mean) &&
              int{TUTTI_COMM_PRODUCT} == int(comm::ReduceOp::product));

}  // namespace

comm::Element element_of(int type) {
  if (type < 0 || type >= comm::kElements)
    throw ConfigError(fmt::format("{} is no enum tutti_comm_type", type));
  return static_cast<comm::Element>(type);
}

comm::ReduceOp op_of(int op) {
  if (op < 0 || op >= comm::kReduceOps)
    throw ConfigError(fmt::format("{} is no enum tutti_comm_op", op));
  return static_cast<comm::ReduceOp>(op);
}

tutti_comm_plan_options plan_options(const tutti_comm_plan_options* given_options) {
  static_assert(sizeof(tutti_comm_plan_options) == 48);
  const auto options = read_options(given_options, 40);
  if (options.reserved != 0) throw ConfigError("`reserved` is not 0");
  return options;
}

tutti_comm_plan_options options_of_one_rank(const tutti_comm_plan_options* given_options,
                                            std::string_view what) {
  const auto options = plan_options(given_options);
  if (options.algorithm != nullptr || options.chunk != 0 || options.reproducible != 0)
    throw ConfigError(fmt::format("{} has no algorithm, chunks or order of sums", what));
  return options;
}

std::span<std::byte> bytes_at(const void* data, size_t bytes) {
  return {static_cast<std::byte*>(const_cast<void*>(data)), bytes};
}

std::string text_of(const char* text) { return text == nullptr ? "" : text; }

}  // namespace tutti::capi
