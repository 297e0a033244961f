// Runs tokenizers for tokenizer_test.py: tokenizer_tool TOKENIZER [bench TEXTFILE [THREADS]].
// Every line of standard input is {"text": text} or {"ids": list} and gives one line: {"ids": of
// the text alone, "special": with what the post-processor adds, "text": what `ids` decode to, in
// hex, "skipped": the same without special tokens}, or
// {"error": text}.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "xylem/base/error.h"
#include "xylem/base/file.h"
#include "xylem/models/tokenizers/hf_tokenizer.h"

namespace {

using Json = nlohmann::json;
using xylem::models::HfTokenizer;

std::string hex(std::string_view s) {
  std::string out;
  for (unsigned char c : s) {
    out += "0123456789abcdef"[c >> 4];
    out += "0123456789abcdef"[c & 15];
  }
  return out;
}

Json answer(const HfTokenizer& t, const Json& j) {
  Json out;
  std::vector<std::int32_t> ids;
  if (j.contains("text")) {
    const auto text = j["text"].get<std::string>();
    ids = t.encode(text);
    out["special"] = t.encode_with_special_tokens(text);
  } else {
    ids = j.at("ids").get<std::vector<std::int32_t>>();
  }
  out["ids"] = ids;
  out["text"] = hex(t.decode(ids));
  out["skipped"] = hex(t.decode(ids, true));
  return out;
}

// Megabytes a second of one thread over the lines of a file, or of several over all of it each.
int bench(const HfTokenizer& t, const std::string& file, int threads) {
  const std::string text = xylem::read_file(file);
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    lines.push_back(text.substr(at, end - at));
    at = end;
  }
  for (int round = 0; round < 3; ++round) {
    std::vector<std::thread> pool;
    std::vector<std::size_t> ids(static_cast<std::size_t>(threads));
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < threads; ++i)
      pool.emplace_back([&, i] {
        for (const std::string& l : lines) ids[static_cast<std::size_t>(i)] += t.encode(l).size();
      });
    for (auto& p : pool) p.join();
    const double s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::printf("%.2f MB/s, %zu ids\n", static_cast<double>(text.size()) * threads / s / 1e6,
                ids[0]);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto start = std::chrono::steady_clock::now();
    const auto t = HfTokenizer::open(argc > 1 ? argv[1] : "");
    if (argc > 3 && std::string(argv[2]) == "bench") {
      std::printf("loaded in %.3f s\n",
                  std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
      return bench(*t, argv[3], argc > 4 ? std::stoi(argv[4]) : 1);
    }
    std::cout << Json{{"vocab_size", t->vocab_size()},
                      {"bos", t->bos_id() ? Json(*t->bos_id()) : Json()},
                      {"eos", t->eos_id() ? Json(*t->eos_id()) : Json()}}
                     .dump()
              << std::endl;
    for (std::string line; std::getline(std::cin, line);) {
      Json out;
      try {
        out = answer(*t, Json::parse(line));
      } catch (const std::exception& e) {
        out = {{"error", e.what()}};
      }
      std::cout << out.dump() << std::endl;
    }
  } catch (const xylem::Error& e) {
    std::cout << Json{{"error", e.what()}}.dump() << std::endl;
    return 1;
  }
  return 0;
}
