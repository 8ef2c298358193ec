#include "tensors.h"

#include <ATen/ATen.h>

#include <optional>

namespace tutti_torch {
namespace {

// Returns the values without the bookkeeping of gradients, which collectives do not need.
at::Tensor values(const at::Tensor& x) { return x.detach(); }

// Allocates memory for the values of several tensors.
at::Tensor room_for(const std::vector<at::Tensor>& tensors) {
  int64_t count = 0;
  for (const at::Tensor& x : tensors) count += x.numel();
  return at::empty({count}, tensors.front().options().requires_grad(false));
}

// Returns tensors that follow each other in one storage as one tensor; nothing for others.
std::optional<at::Tensor> as_one(const std::vector<at::Tensor>& tensors) {
  int64_t count = 0;
  const at::Tensor& first = tensors.front();
  for (const at::Tensor& x : tensors) {
    if (!x.is_contiguous() || !x.is_alias_of(first) ||
        x.storage_offset() != first.storage_offset() + count)
      return std::nullopt;
    count += x.numel();
  }
  return values(first).as_strided({count}, {1}, first.storage_offset());
}

bool apart(const at::Tensor& x, const at::Tensor& y) {
  const auto* const a = static_cast<const char*>(x.data_ptr());
  const auto* const b = static_cast<const char*>(y.data_ptr());
  return a + x.nbytes() <= b || b + y.nbytes() <= a;
}

template <class Input>
at::Tensor read_apart(TuttiWork& work, const Input& input, const at::Tensor& y) {
  at::Tensor x = read_by(work, input);
  if (!apart(x, y)) work.keep(x = x.clone());
  return x;
}

}  // namespace

void check_tensor(const char* call, const at::Tensor& x) {
  TORCH_CHECK_VALUE(x.defined(), "tutti: ", call, ": an undefined tensor");
  TORCH_CHECK_NOT_IMPLEMENTED(x.layout() == at::kStrided, "tutti: ", call, ": a tensor of layout ",
                              x.layout(), "; only dense ones are supported");
  TORCH_CHECK_NOT_IMPLEMENTED(
      x.device().is_cpu(), "tutti: ", call, ": a tensor on ", x.device(),
      "; only cpu is supported: move it there, or use another back end for this device");
  TORCH_CHECK_NOT_IMPLEMENTED(!x.is_conj() && !x.is_neg(), "tutti: ", call,
                              ": a conjugated or negated view; resolve it first");
}

void check_tensors(const char* call, const std::vector<at::Tensor>& tensors) {
  TORCH_CHECK_VALUE(!tensors.empty(), "tutti: ", call, ": no tensors");
  for (const at::Tensor& x : tensors) check_tensor(call, x);
}

at::Tensor& only(const char* call, std::vector<at::Tensor>& tensors) {
  TORCH_CHECK_VALUE(tensors.size() == 1, "tutti: ", call, ": ", tensors.size(),
                    " tensors instead of one");
  check_tensor(call, tensors.front());
  return tensors.front();
}

std::vector<at::Tensor>& only(const char* call, std::vector<std::vector<at::Tensor>>& lists) {
  TORCH_CHECK_VALUE(lists.size() == 1, "tutti: ", call, ": ", lists.size(),
                    " lists of tensors instead of one");
  check_tensors(call, lists.front());
  return lists.front();
}

void check_pairs(const char* call, const std::vector<at::Tensor>& outputs,
                 const std::vector<at::Tensor>& inputs) {
  check_tensors(call, outputs);
  check_tensors(call, inputs);
  TORCH_CHECK_VALUE(outputs.size() == inputs.size(), "tutti: ", call, ": ", outputs.size(),
                    " outputs for ", inputs.size(), " inputs");
}

void check_same_type(const char* call, const at::Tensor& x, const at::Tensor& y) {
  TORCH_CHECK_TYPE(x.scalar_type() == y.scalar_type(), "tutti: ", call, ": tensors of ",
                   x.scalar_type(), " and ", y.scalar_type());
}

Reduction reduction(const char* call, at::ScalarType type, const c10d::ReduceOp& op) {
  const auto kind = static_cast<c10d::ReduceOp::RedOpType>(op);
  int number = TUTTI_COMM_SUM;
  switch (kind) {
    case c10d::ReduceOp::SUM: number = TUTTI_COMM_SUM; break;
    case c10d::ReduceOp::AVG: number = TUTTI_COMM_MEAN; break;
    case c10d::ReduceOp::PRODUCT: number = TUTTI_COMM_PRODUCT; break;
    case c10d::ReduceOp::MIN: number = TUTTI_COMM_MIN; break;
    case c10d::ReduceOp::MAX: number = TUTTI_COMM_MAX; break;
    default:
      TORCH_CHECK_NOT_IMPLEMENTED(false, "tutti: ", call, ": ReduceOp number ",
                                  static_cast<int>(kind),
                                  "; SUM, AVG, PRODUCT, MIN and MAX are supported");
  }
  switch (type) {
    case at::kFloat: return {TUTTI_COMM_F32, number};
    case at::kDouble: return {TUTTI_COMM_F64, number};
    case at::kBFloat16: return {TUTTI_COMM_BF16, number};
    case at::kHalf: return {TUTTI_COMM_F16, number};
    case at::kChar: return {TUTTI_COMM_I8, number};
    case at::kInt: return {TUTTI_COMM_I32, number};
    case at::kLong: return {TUTTI_COMM_I64, number};
    case at::kByte: return {TUTTI_COMM_U8, number};
    case at::kBool:  // 0 and 1: "or" and "and" are the largest and the smallest
      if (number == TUTTI_COMM_SUM) return {TUTTI_COMM_U8, TUTTI_COMM_MAX};
      if (number == TUTTI_COMM_PRODUCT) return {TUTTI_COMM_U8, TUTTI_COMM_MIN};
      if (number != TUTTI_COMM_MEAN) return {TUTTI_COMM_U8, number};
      TORCH_CHECK_NOT_IMPLEMENTED(false, "tutti: ", call, ": the mean of bool");
    default:
      TORCH_CHECK_NOT_IMPLEMENTED(false, "tutti: ", call, ": values of ", type,
                                  " cannot be reduced; float32, float64, bfloat16, float16, int8, "
                                  "uint8, int32, int64 and bool can");
  }
}

at::Tensor read_by(TuttiWork& work, const at::Tensor& x) {
  at::Tensor y = values(x).contiguous();
  work.keep(y);
  return y;
}

at::Tensor updated_by(TuttiWork& work, const at::Tensor& x) {
  at::Tensor y = read_by(work, x);
  if (!x.is_contiguous()) work.afterwards([x = values(x), y] { x.copy_(y); });
  return y;
}

at::Tensor written_by(TuttiWork& work, const at::Tensor& x) {
  if (x.is_contiguous()) return read_by(work, x);
  at::Tensor y = at::empty(x.sizes(), x.options().requires_grad(false));
  work.keep(y);
  work.afterwards([x = values(x), y] { x.copy_(y); });
  return y;
}

at::Tensor read_by(TuttiWork& work, const std::vector<at::Tensor>& tensors) {
  at::Tensor all;
  if (const auto one = as_one(tensors)) {
    all = *one;
  } else {
    all = room_for(tensors);
    int64_t begin = 0;
    for (const at::Tensor& x : tensors) {
      all.narrow(0, begin, x.numel()).view(x.sizes()).copy_(values(x));
      begin += x.numel();
    }
  }
  work.keep(all);
  return all;
}

at::Tensor written_by(TuttiWork& work, const std::vector<at::Tensor>& tensors) {
  at::Tensor all;
  if (const auto one = as_one(tensors)) {
    all = *one;
  } else {
    all = room_for(tensors);
    work.afterwards([tensors, all] {
      int64_t begin = 0;
      for (const at::Tensor& x : tensors) {
        values(x).copy_(all.narrow(0, begin, x.numel()).view(x.sizes()));
        begin += x.numel();
      }
    });
  }
  work.keep(all);
  return all;
}

at::Tensor read_beside(TuttiWork& work, const at::Tensor& x, const at::Tensor& y) {
  return read_apart(work, x, y);
}

at::Tensor read_beside(TuttiWork& work, const std::vector<at::Tensor>& x, const at::Tensor& y) {
  return read_apart(work, x, y);
}

}  // namespace tutti_torch
