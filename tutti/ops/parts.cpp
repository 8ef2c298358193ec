#include "tutti/ops/parts.h"

#include <algorithm>
#include <numeric>

#include "tutti/ops/elementwise.h"
#include "tutti/ops/shape_check.h"

namespace tutti::ops {

std::string ExchangeParts::attributes() const {
  std::string text = fmt::format("tag {}", tag_);
  for (const Give& give : gives_) text += fmt::format(" {}>{}", give.input, give.peer);
  for (const Get& get : gets_) text += fmt::format(" <{} {}", get.peer, get.type.desc);
  return text;
}

std::vector<ValueType> ExchangeParts::infer(Types in) const {
  for (const Give& give : gives_)
    require(give.input >= 0 && static_cast<size_t>(give.input) < in.size(),
            "exchange_parts: input {} of {}", give.input, in.size());
  std::vector<ValueType> out;
  for (const Get& get : gets_) out.push_back(get.type);
  return out;
}

std::vector<Value> ExchangeParts::grad(const GradArgs& args) const {
  if (constant_) return std::vector<Value>(args.node.in.size());
  std::vector<Give> gives;
  std::vector<Get> gets;
  std::vector<Value> in;
  for (size_t i = 0; i < gets_.size(); ++i) {
    CHECK(args.dout[i].valid(), "{}: what rank {} sent is not read", args.node.name, gets_[i].peer);
    gives.push_back({static_cast<int>(i), gets_[i].peer});
    in.push_back(args.dout[i]);
  }
  for (const Give& give : gives_)
    gets.push_back({give.peer, args.graph.type(args.node.in[static_cast<size_t>(give.input)])});
  const std::vector<Value> back = args.append(".dx", like(tag_ + 1, gives, gets), in);
  std::vector<Value> din(args.node.in.size());
  for (size_t i = 0; i < gives_.size(); ++i) {
    Value& slot = din[static_cast<size_t>(gives_[i].input)];
    slot = slot.valid() ? args.append1(".sum", std::make_shared<Add>(), {slot, back[i]}) : back[i];
  }
  return din;
}

std::string SumParts::attributes() const { return fmt::format("scale {}", scale_); }

std::vector<ValueType> SumParts::infer(Types in) const {
  require(!in.empty(), "sum_parts: no inputs");
  for (const ValueType& type : in)
    require(!type.batched && type.desc.dtype == DType::f32 && type.desc.shape == in[0].desc.shape,
            "sum_parts: {} and {}", in[0].desc, type.desc);
  return {unbatched_f32(in[0].desc.shape)};
}

std::vector<ValueType> BatchNormMoments::infer(Types in) const {
  require_inputs(name(), in, 1);
  require_batched(name(), in[0], 2);
  const ValueType each = unbatched_f32(Shape{in[0].desc.shape[1]});
  return {each, each};
}

int64_t NormGroup::values() const {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

double NormGroup::share() const {
  return static_cast<double>(counts[me]) / static_cast<double>(values());
}

std::vector<std::vector<Value>> exchange_in_group(Graph& graph, const std::string& name,
                                                  const NormGroup& group, int tag,
                                                  const std::vector<Value>& mine) {
  std::vector<ExchangeParts::Give> gives;
  std::vector<ExchangeParts::Get> gets;
  for (size_t r = 0; r < group.peers.size(); ++r)
    for (size_t i = 0; r != group.me && i < mine.size(); ++i) {
      gives.push_back({static_cast<int>(i), group.peers[r]});
      gets.push_back({group.peers[r], graph.type(mine[i])});
    }
  const std::vector<Value> others =
      graph.append(name, std::make_shared<ExchangeParts>(tag, gives, gets, true), mine);
  std::vector<std::vector<Value>> all;
  size_t next = 0;
  for (size_t r = 0; r < group.peers.size(); ++r) {
    all.emplace_back(mine);
    for (size_t i = 0; r != group.me && i < mine.size(); ++i) all.back()[i] = others[next++];
  }
  return all;
}

std::string MergeMoments::attributes() const {
  std::string text = statistics_.to_string() + " counts";
  for (const int64_t n : group_.counts) text += fmt::format(" {}", n);
  return text;
}

std::vector<ValueType> MergeMoments::infer(Types in) const {
  require_inputs(name(), in, 2 + 2 * group_.counts.size());
  for (const ValueType& type : in)
    require(!type.batched && type.desc.dtype == DType::f32 && type.desc.shape == in[0].desc.shape,
            "merge_moments: {} and {}", in[0].desc, type.desc);
  return {unbatched_f32(in[0].desc.shape), unbatched_f32(in[0].desc.shape)};
}

}  // namespace tutti::ops
