#include "tutti/backend/conformance/case_table.h"

namespace tutti::backend {

const CaseTable::Ops& CaseTable::Ops::lines(const Words& rests, const Words& types) const {
  for (const std::string& type : types)
    for (const std::string& rest : rests)
      for (const std::string& op : ops_) table_.lines_.push_back(op + ' ' + type + ' ' + rest);
  return *this;
}

CaseTable::Ops CaseTable::add(const Words& ops, Make make) {
  for (const std::string& op : ops) makers_[op] = make;
  return {*this, ops};
}

CaseTable::Make CaseTable::find(std::string_view op) const {
  const auto make = makers_.find(op);
  return make == makers_.end() ? nullptr : make->second;
}

CaseTable::Words with_endings(const CaseTable::Words& texts, const CaseTable::Words& endings) {
  CaseTable::Words all;
  for (const std::string& text : texts)
    for (const std::string& ending : endings) all.push_back(text + ending);
  return all;
}

}  // namespace tutti::backend
