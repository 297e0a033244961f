#include "xylem/checkpoint/manager.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <exception>
#include <string_view>
#include <thread>
#include <utility>

#include "xylem/base/error.h"
#include "xylem/base/file.h"

namespace xylem::checkpoint {
namespace {

constexpr std::string_view kTemporary = ".xylem-checkpoint-tmp";

// The step that a directory's name stands for: decimal without leading zeros.
std::optional<std::int64_t> parse_step(std::string_view name) {
  if (name.empty() || (name[0] == '0' && name.size() > 1)) return std::nullopt;
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  if (error != std::errc() || end != name.data() + name.size() || step < 0) return std::nullopt;
  return step;
}

}  // namespace

struct CheckpointManager::Pending {
  std::thread thread;
  std::exception_ptr error;
  std::atomic<bool> done{false};
};

CheckpointManager::CheckpointManager(std::string directory, const ManagerOptions& options,
                                     std::unique_ptr<StepFormat> format)
    : directory_(std::move(directory)), options_(options), format_(std::move(format)) {
  if (options_.max_to_keep < 1)
    throw_user_error({"max_num_checkpoints_to_keep", "at least 1",
                      fmt::format("{}", options_.max_to_keep),
                      "Keep one checkpoint, or set enable_checkpointing=false"});
}

CheckpointManager::~CheckpointManager() {
  if (pending_) pending_->thread.join();
}

void CheckpointManager::prepare() {
  make_directories(directory_);
  for (const DirectoryEntry& e : list_directory(directory_))
    if (e.is_directory && e.name.ends_with(kTemporary) &&
        parse_step(std::string_view(e.name).substr(0, e.name.size() - kTemporary.size())))
      remove_tree(join_path(directory_, e.name));
}

void CheckpointManager::save(std::int64_t step, StepContents contents) {
  wait();
  if (path_exists(step_directory(step))) return;
  if (!options_.async) {
    write_step(step, contents);
    return;
  }
  pending_ = std::make_unique<Pending>();
  pending_->thread = std::thread([this, step, p = pending_.get(), c = std::move(contents)] {
    try {
      write_step(step, c);
    } catch (...) {
      p->error = std::current_exception();
    }
    p->done.store(true, std::memory_order_release);
  });
}

void CheckpointManager::wait() {
  if (!pending_) return;
  pending_->thread.join();
  const std::unique_ptr<Pending> done = std::move(pending_);
  if (done->error) std::rethrow_exception(done->error);
}

void CheckpointManager::poll() {
  if (pending_ && pending_->done.load(std::memory_order_acquire)) wait();
}

void CheckpointManager::write_step(std::int64_t step, const StepContents& contents) {
  const std::string temporary = step_directory(step) + std::string(kTemporary);
  try {
    remove_tree(temporary);
    make_directories(temporary);
    format_->write(temporary, step, contents);
    commit_directory(temporary, step_directory(step));
  } catch (Error& e) {
    // A full disk needs the room back; what cannot be removed now goes at the next start.
    try {
      remove_tree(temporary);
    } catch (const Error&) {
    }
    e.add_context(fmt::format("while saving the checkpoint of step {}", step));
    throw;
  }
  remove_old();
}

void CheckpointManager::remove_old() {
  const std::vector<std::int64_t> all = steps();
  const std::size_t keep = static_cast<std::size_t>(options_.max_to_keep);
  for (std::size_t i = 0; i + keep < all.size(); ++i) {
    const std::string temporary = step_directory(all[i]) + std::string(kTemporary);
    remove_tree(temporary);
    rename_path(step_directory(all[i]), temporary);
    remove_tree(temporary);
  }
}

std::string CheckpointManager::step_directory(std::int64_t step) const {
  return join_path(directory_, fmt::format("{}", step));
}

std::vector<std::int64_t> CheckpointManager::steps() const {
  std::vector<std::int64_t> out;
  if (!is_directory(directory_)) return out;
  for (const DirectoryEntry& e : list_directory(directory_))
    if (const auto step = parse_step(e.name);
        step && e.is_directory && format_->recognises(join_path(directory_, e.name)))
      out.push_back(*step);
  std::sort(out.begin(), out.end());
  return out;
}

std::optional<std::int64_t> CheckpointManager::latest_step() const {
  const std::vector<std::int64_t> all = steps();
  if (all.empty()) return std::nullopt;
  return all.back();
}

StepContents CheckpointManager::restore(std::int64_t step,
                                        const std::vector<std::string>& items) const {
  return format_->read(step_directory(step), items);
}

}  // namespace xylem::checkpoint
