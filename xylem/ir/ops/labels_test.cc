#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "xylem/base/error.h"
#include "xylem/ir/op_def.h"
#include "xylem/ir/ops/families.h"
#include "xylem/ir/ops/internal/input_labels.h"
#include "xylem/ir/text.h"

// Constraint labels, told of programs as text: testdata/constraint_cases.txt has a call of each op
// that keeps all constraints, and calls that break one. testdata/constraint_labels.txt lists the
// labels of StableHLO's specification.

namespace xylem::ir::ops {
namespace {

std::string trimmed(std::string s) {
  s.erase(0, s.find_first_not_of(' '));
  s.erase(s.find_last_not_of(' ') + 1);
  return s;
}

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream words(line);
  for (std::string f; std::getline(words, f, '|');) fields.push_back(trimmed(f));
  return fields;
}

// "tensor<2x3xf32>, tuple<…>" at commas outside of brackets.
std::vector<std::string> types_of(const std::string& list) {
  std::vector<std::string> types;
  int depth = 0;
  std::string t;
  for (char c : list) {
    if (c == '<' || c == '{') ++depth;
    if (c == '>' || c == '}') --depth;
    if (c == ',' && depth == 0) {
      types.push_back(trimmed(t));
      t.clear();
    } else {
      t += c;
    }
  }
  if (!trimmed(t).empty()) types.push_back(trimmed(t));
  return types;
}

std::string region_text(const std::string& name) {
  if (name == "noargs")
    return "{\n  %v = stablehlo.constant dense<1.0> : tensor<f32>\n"
           "  stablehlo.return %v : tensor<f32>\n}";
  if (name == "add2")
    return "{\n^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>):\n"
           "  stablehlo.return %a, %b : tensor<f32>, tensor<f32>\n}";
  if (name == "less1" || name == "same1") {
    std::string use = name == "same1" ? "  stablehlo.return %a : tensor<f32>\n}"
                                      : "  %v = stablehlo.compare LT, %a, %a : (tensor<f32>, "
                                        "tensor<f32>) -> tensor<i1>\n"
                                        "  stablehlo.return %v : tensor<i1>\n}";
    return "{\n^bb0(%a: tensor<f32>):\n" + use;
  }
  if (name == "reduced")
    return "{\n^bb0(%a: tensor<4xf32>):\n  %v = \"stablehlo.collective_permute\"(%a) "
           "<{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> "
           "tensor<4xf32>\n  stablehlo.return %v : tensor<4xf32>\n}";
  std::string t = name == "addi" ? "tensor<i32>" : "tensor<f32>";
  std::string head = "{\n^bb0(%a: " + t + ", %b: " + t + "):\n";
  if (name == "ge")
    return head + "  %v = stablehlo.compare GE, %a, %b : (" + t + ", " + t +
           ") -> tensor<i1>\n  stablehlo.return %v : tensor<i1>\n}";
  return head + "  %v = stablehlo.add %a, %b : " + t + "\n  stablehlo.return %v : " + t + "\n}";
}

std::string program(const std::string& op, const std::vector<std::string>& f) {
  std::vector<std::string> operands = types_of(f[1]), results = types_of(f[3]);
  if (f[4] == "noargs") operands.clear();
  std::string args, uses, types;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    std::string sep = i ? ", " : "", name = "%x" + std::to_string(i);
    args += sep + name + ": " + operands[i];
    uses += sep + name;
    types += sep + operands[i];
  }
  std::string out;
  for (const std::string& t : results) out += (out.empty() ? "" : ", ") + t;
  std::string regions;
  std::istringstream words(f[4]);
  for (std::string r; words >> r;)
    if (r != "none") regions += (regions.empty() ? "" : ", ") + region_text(r);
  std::string text = "func.func @main(" + args + ") {\n  ";
  if (!results.empty()) text += "%r:" + std::to_string(results.size()) + " = ";
  text += "\"" + op + "\"(" + uses + ") <{" + f[2] + "}>";
  if (!regions.empty()) text += " (" + regions + ")";
  return text + " : (" + types + ") -> (" + out + ")\n  return\n}\n";
}

struct Case {
  std::string op, label, text;  // label: empty for the call that keeps all constraints
};

std::vector<Case> load_cases() {
  std::ifstream file(XYLEM_SOURCE_DIR "/xylem/ir/ops/testdata/constraint_cases.txt");
  std::vector<Case> cases;
  std::vector<std::string> base;
  std::string op;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    bool good = line[0] == '=';
    std::vector<std::string> f = fields_of(good ? line.substr(1) : line);
    // A field that is written but blank is empty where the block's is not wanted: properties of
    // broken calls, results of infeed_c1.
    bool no_properties = f.size() == 3 && f[2].empty();
    bool no_results = f.size() == 4 && f[3].empty();
    f.resize(5);
    if (good) {
      op = f[0];
      base = f;
      cases.push_back({op, "", program(op, f)});
      continue;
    }
    std::string label = f[0];
    for (std::size_t i = 1; i < 5; ++i)
      if (f[i].empty() && !(i == 2 && no_properties) && !(i == 3 && no_results)) f[i] = base[i];
    cases.push_back({op, label, program(op, f)});
  }
  return cases;
}

std::string error_of(const std::string& text) {
  try {
    parse_stablehlo(text, "case");
  } catch (const UserError& e) {
    return e.message();
  }
  return "";
}

TEST(LabelsTest, CallsThatKeepAllConstraintsAreAccepted) {
  int n = 0;
  for (const Case& c : load_cases()) {
    if (!c.label.empty()) continue;
    ++n;
    EXPECT_EQ(error_of(c.text), "") << c.text;
  }
  EXPECT_GT(n, 40);
}

TEST(LabelsTest, BrokenConstraintsAreToldByTheirLabelAtTheirLine) {
  int n = 0;
  for (const Case& c : load_cases()) {
    if (c.label.empty()) continue;
    ++n;
    std::string message = error_of(c.text);
    std::string label = "[" + c.op.substr(c.op.find('.') + 1) + "_" + c.label + "]";
    EXPECT_NE(message.find(label), std::string::npos) << label << "\n" << c.text << "\n" << message;
    EXPECT_EQ(message.rfind("case:2:", 0), 0u) << message;
  }
  EXPECT_GT(n, 200);
}

TEST(LabelsTest, EveryOpAndLabelOfTheSpecificationIsKnown) {
  std::set<std::pair<std::string, std::string>> broken;
  for (const Case& c : load_cases()) broken.insert({c.op, c.label});
  std::ifstream file(XYLEM_SOURCE_DIR "/xylem/ir/ops/testdata/constraint_labels.txt");
  std::ifstream without(XYLEM_SOURCE_DIR "/xylem/ir/ops/testdata/constraint_labels_unreached.txt");
  std::set<std::string> unreached;
  for (std::string line; std::getline(without, line);)
    if (!line.empty() && line[0] != '#') unreached.insert(line.substr(0, line.find(':')));
  int known = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::string op = line.substr(0, line.find(' ')), label = line.substr(line.find(' ') + 1);
    const OpDef* def = find_op("stablehlo." + op);
    ASSERT_NE(def, nullptr) << op;
    std::string full = op + "_" + label;
    bool stated =
        (" " + std::string(def->labels) + " ").find(" " + full + " ") != std::string::npos;
    bool result =
        (" " + std::string(def->result_labels) + " ").find(" " + label + " ") != std::string::npos;
    bool input = false;
    for (const AttrDef& a : def->attrs) input = input || input_label(*def, a.name) == full;
    bool reached = stated || result || input || broken.count({"stablehlo." + op, label}) == 1;
    EXPECT_NE(reached, unreached.count(full) == 1) << full;
    known += reached;
  }
  EXPECT_GT(known, 650);
}

}  // namespace
}  // namespace xylem::ir::ops
