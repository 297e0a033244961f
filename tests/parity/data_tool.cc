// Runs pipelines for data_test.py. Every line of standard input is an object:
//
//   {"spec": specification, "restore": state or absent, "take": number or absent, "states": bool}
//
// and gives one line: {"state0": .., "elements": [..], "states": [..]} or {"error": text}.

#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "xylem/base/error.h"
#include "xylem/data/testing/spec.h"

namespace {

using Json = nlohmann::ordered_json;
using xylem::data::testing::build_spec;
using xylem::data::testing::plain;

Json run(const Json& j) {
  const auto built = build_spec(j.at("spec").dump());
  Json out;
  if (j.value("items", 0) > 0) {
    out["length"] = built.map->size();
    out["elements"] = Json::array();
    for (int i = 0; i < j["items"]; ++i) {
      const auto e = built.map->at(i);
      out["elements"].push_back(e ? Json::parse(plain(*e)) : Json());
    }
    return out;
  }
  auto it = built.to_iter().iterator();
  if (j.contains("restore")) it.set_state(j["restore"].dump());
  const bool states = j.value("states", true);
  out["state0"] = Json::parse(it.get_state());
  out["elements"] = out["states"] = Json::array();
  const std::int64_t take = j.value("take", std::int64_t{1} << 60);
  while (static_cast<std::int64_t>(out["elements"].size()) < take) {
    const auto e = it.next();
    if (!e) break;
    out["elements"].push_back(Json::parse(plain(*e)));
    if (states) out["states"].push_back(Json::parse(it.get_state()));
  }
  out["text4"] = it.get_state(4);
  return out;
}

}  // namespace

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    Json out;
    try {
      out = run(Json::parse(line));
    } catch (const std::exception& e) {
      out["error"] = e.what();
    }
    std::cout << out.dump() << std::endl;
  }
}
