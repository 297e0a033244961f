#include "xylem/checkpoint/ocdbt/transaction.h"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "xylem/base/error.h"
#include "xylem/checkpoint/ocdbt/database.h"

namespace xylem::checkpoint::ocdbt {
namespace {

// Between the look at the manifest and its replacement.
std::mutex& commit_mutex() {
  static std::mutex mutex;
  return mutex;
}

class Transaction final : public KvTransaction {
 public:
  Transaction(const FileSystem& fs, std::string directory, const Config& config)
      : fs_(fs), directory_(std::move(directory)), config_(config), base_(open()) {
    if (!base_) return;
    config_ = base_->manifest().config;
    if (config_.numbered)
      throw_user_error({fmt::format("begin a transaction on {}", directory_),
                        "a database with one manifest", "one with numbered manifests",
                        "Change it with TensorStore, or copy its keys into a new database"});
  }

  const std::string& name() const override { return directory_; }

  std::optional<ByteSource> find(std::string_view key) const override {
    if (const auto change = changes_.find(key); change != changes_.end()) {
      if (!change->second) return std::nullopt;
      return ByteSource(*change->second, std::string(key));
    }
    return base_ ? base_->find(key) : std::nullopt;
  }

  void for_each(std::string_view prefix,
                const std::function<void(std::string_view key)>& f) const override {
    auto change = changes_.lower_bound(prefix);
    const auto changed_before = [&](const std::string_view* key) {
      for (; change != changes_.end() && change->first.starts_with(prefix) &&
             (key == nullptr || change->first < *key);
           ++change)
        if (change->second) f(change->first);
    };
    if (base_)
      base_->for_each(prefix, [&](std::string_view key) {
        changed_before(&key);
        if (change != changes_.end() && change->first == key) {
          if (change->second) f(key);
          ++change;
        } else {
          f(key);
        }
      });
    changed_before(nullptr);
  }

  void write(std::string_view key, std::string value) override {
    check_open("write");
    if (key.size() > kMaxPath)
      throw_user_error({fmt::format("write to {}", directory_),
                        fmt::format("keys of at most {} bytes", kMaxPath),
                        fmt::format("one of {} bytes", key.size()), "Shorten the key"});
    changes_.insert_or_assign(std::string(key), std::move(value));
  }

  void erase(std::string_view key) override {
    check_open("erase");
    changes_.insert_or_assign(std::string(key), std::nullopt);
  }

  void erase_prefix(std::string_view prefix) override {
    check_open("erase");
    std::vector<std::string> keys;
    for_each(prefix, [&](std::string_view key) { keys.emplace_back(key); });
    for (std::string& key : keys) changes_.insert_or_assign(std::move(key), std::nullopt);
  }

  void commit() override {
    check_open("commit");
    open_ = false;
    if (changes_.empty()) return;
    const std::lock_guard lock(commit_mutex());
    const std::uint64_t before = generation(base_.get()), now = generation(open().get());
    if (now != before)
      throw_user_error({fmt::format("commit to {}", directory_),
                        fmt::format("generation {}, at which the transaction began", before),
                        fmt::format("generation {}", now),
                        "Begin a new transaction and make the changes again"});
    // The names of folders must last before a manifest refers to what is in them.
    fs_.make_directories(join_path(directory_, "d"), /*durable=*/true);
    DataFileWriter data(fs_, directory_);
    std::vector<KeyValue> keys;
    if (base_)
      base_->for_each_value("", [&](std::string_view key, const Value& v) {
        if (changes_.contains(key)) return;
        KeyValue k;
        k.key = key;
        k.inlined = v.inlined;
        if (v.inlined)
          k.value = v.bytes;
        else
          k.reference = {{"", v.file}, v.offset, v.length};
        keys.push_back(std::move(k));
      });
    for (const auto& [key, value] : changes_) {
      if (!value) continue;
      KeyValue k;
      k.key = key;
      k.inlined = value->size() <= config_.max_inline_value_bytes;
      if (k.inlined)
        k.value = *value;
      else
        k.reference = data.append(*value);
      keys.push_back(std::move(k));
    }
    data.close();
    write_database(fs_, directory_, std::move(keys), config_, true, before + 1);
  }

  void abort() override {
    check_open("abort");
    open_ = false;
    changes_.clear();
  }

 private:
  std::unique_ptr<Database> open() const {
    return Database::exists(fs_, directory_) ? std::make_unique<Database>(fs_, directory_)
                                             : nullptr;
  }
  static std::uint64_t generation(const Database* d) {
    return d == nullptr ? 0 : d->manifest().versions.back().generation;
  }
  void check_open(const char* what) const {
    if (!open_)
      throw_user_error({fmt::format("{} in a transaction on {}", what, directory_),
                        "a transaction that is open", "one that was committed or aborted",
                        "Begin a new transaction"});
  }

  FileSystem fs_;
  std::string directory_;
  Config config_;
  std::unique_ptr<Database> base_;
  std::map<std::string, std::optional<std::string>, std::less<>> changes_;
  bool open_ = true;
};

}  // namespace

std::unique_ptr<KvTransaction> begin_transaction(const FileSystem& fs, std::string directory,
                                                 const Config& config_if_new) {
  return std::make_unique<Transaction>(fs, std::move(directory), config_if_new);
}

}  // namespace xylem::checkpoint::ocdbt
