// transaction_tool DIR: changes an OCDBT database. Every line of standard input is an object of
// keys and values in hex, or null for keys that are to go, and is one transaction.

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "xylem/base/error.h"
#include "xylem/checkpoint/ocdbt/transaction.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    for (std::string line; std::getline(std::cin, line);) {
      const auto t =
          xylem::checkpoint::ocdbt::begin_transaction(xylem::checkpoint::FileSystem(), argv[1]);
      const nlohmann::json changes = nlohmann::json::parse(line);
      for (const auto& [key, hex] : changes.items()) {
        if (hex.is_null()) {
          t->erase(key);
          continue;
        }
        const auto text = hex.get<std::string>();
        std::string value;
        for (std::size_t i = 0; i + 1 < text.size(); i += 2)
          value += static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16));
        t->write(key, value);
      }
      t->commit();
    }
  } catch (const xylem::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
