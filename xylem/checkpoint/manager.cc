#include "xylem/checkpoint/manager.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <exception>
#include <nlohmann/json.hpp>
#include <string_view>
#include <thread>
#include <utility>

#include "xylem/base/error.h"
#include "xylem/base/file.h"
#include "xylem/checkpoint/orbax/metadata.h"

namespace xylem::checkpoint {
namespace {

constexpr std::string_view kTemporary = orbax::kTemporarySuffix;
// Of runs from before Orbax's layout.
constexpr std::string_view kOldTemporary = ".xylem-checkpoint-tmp";

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

struct CheckpointManager::Pending {
  std::int64_t step = 0;
  std::thread thread;
  std::exception_ptr error;
  std::atomic<bool> done{false};
};

CheckpointManager::CheckpointManager(std::string directory, ManagerOptions options,
                                     std::unique_ptr<StepFormat> format)
    : directory_(std::move(directory)), options_(std::move(options)) {
  if (options_.max_to_keep < 1)
    throw_user_error({"max_num_checkpoints_to_keep", "at least 1",
                      fmt::format("{}", options_.max_to_keep),
                      "Keep one checkpoint, or set enable_checkpointing=false"});
  if (!options_.coordinator) options_.coordinator = single_process();
  const int processes = options_.coordinator->num_processes();
  if (processes > 1 && !format->set_process(options_.coordinator->process(), processes))
    throw_user_error({"save with several processes", "a format that they can write together",
                      std::string(format->name()), "Use Orbax's layout"});
  const bool orbax = format->name() == "orbax";
  formats_.push_back(std::move(format));
  formats_.push_back(orbax ? make_safetensors_format() : make_orbax_format());
}

CheckpointManager::~CheckpointManager() {
  if (pending_) pending_->thread.join();
}

void CheckpointManager::prepare() {
  if (options_.coordinator->num_processes() > 1)
    return do_together(*options_.coordinator, "prepare", [&] {
      if (is_primary()) prepare_directory();
    });
  prepare_directory();
}

void CheckpointManager::prepare_directory() {
  const FileSystem& fs = options_.fs;
  fs.make_directories(directory_, /*durable=*/true);
  for (const DirectoryEntry& e : fs.list(directory_)) {
    if (!e.is_directory) continue;
    const std::string path = join_path(directory_, e.name);
    for (const std::string_view suffix : {kTemporary, kOldTemporary})
      if (e.name.ends_with(suffix) && parse_name(e.name.substr(0, e.name.size() - suffix.size())))
        fs.remove_tree(path);
    // Written in place and never finished.
    if (options_.commit == Commit::kFile && parse_name(e.name) &&
        !fs.is_file(join_path(path, orbax::kCommitFile)))
      fs.remove_tree(path);
  }
}

bool CheckpointManager::should_save(std::int64_t step) const {
  const std::vector<std::int64_t> all = steps();
  SaveContext c;
  c.step = step;
  if (!all.empty()) c.latest_step = all.back();
  if (pending_) c.latest_step = std::max(c.latest_step.value_or(pending_->step), pending_->step);
  if (c.latest_step && step <= *c.latest_step) return false;
  c.latest_time_ns = last_time_ns_;
  c.is_saving = is_saving();
  c.now_ns = now_ns();
  return !options_.should_save || options_.should_save(c);
}

bool CheckpointManager::is_saving() const {
  return pending_ && !pending_->done.load(std::memory_order_acquire);
}

void CheckpointManager::save(std::int64_t step, StepContents contents) {
  wait();
  if (step < 0)
    throw_user_error({"save a checkpoint", "a step that is not negative", fmt::format("{}", step),
                      "Number steps from 0"});
  const std::vector<std::int64_t> all = steps();
  if (!all.empty() && step <= all.back())
    throw_user_error({fmt::format("save the checkpoint of step {} in {}", step, directory_),
                      fmt::format("a step above the latest, {}", all.back()),
                      fmt::format("{}", step),
                      step == all.back() ? "It is saved already; remove it to save it anew"
                                         : "Remove the later steps, or save to another directory"});
  last_time_ns_ = now_ns();
  if (!options_.async) {
    write_step(step, contents);
    return;
  }
  pending_ = std::make_unique<Pending>();
  pending_->step = step;
  pending_->thread = std::thread([this, step, p = pending_.get(), c = std::move(contents)] {
    try {
      write_step(step, c);
    } catch (const std::exception& e) {
      p->error = std::current_exception();
      if (options_.on_error) options_.on_error(step, e.what());
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
  if (options_.coordinator->num_processes() > 1) return write_together(step, contents);
  const FileSystem& fs = options_.fs;
  const std::string final_path = step_directory(step);
  const bool rename = options_.commit == Commit::kRename;
  const std::string directory = rename ? final_path + std::string(kTemporary) : final_path;
  try {
    // A step's directory that no format knows is no step; it is in the way.
    fs.make_directories(directory_, /*durable=*/true);
    fs.remove_tree(directory);
    fs.make_directories(directory);
    if (rename) {
      formats_[0]->write(fs, directory, final_path, step, contents);
      formats_[0]->mark(fs, directory, final_path);
      fs.commit_directory(directory, final_path);
    } else {
      commit_in_place(step, contents);
    }
  } catch (Error& e) {
    remove_unfinished(directory);
    e.add_context(fmt::format("while saving the checkpoint of step {}", step));
    throw;
  }
  if (options_.on_commit) options_.on_commit(step);
  apply_preservation();
}

void CheckpointManager::copy_step(std::int64_t step, const FileSystem& source,
                                  const std::string& directory) {
  const FileSystem& fs = options_.fs;
  const std::string final_path = step_directory(step);
  const bool rename = options_.commit == Commit::kRename;
  const std::string to = rename ? final_path + std::string(kTemporary) : final_path;
  try {
    fs.make_directories(directory_, /*durable=*/true);
    fs.remove_tree(to);
    fs.make_directories(to);
    for (const DirectoryEntry& e : source.list(directory))
      if (e.name != orbax::kCommitFile)
        fs.copy_tree(source, join_path(directory, e.name), join_path(to, e.name));
    if (!rename) {
      fs.sync_directories(to);
      fs.sync_directory(directory_);
    }
    formats_[0]->mark(fs, to, final_path);
    if (rename)
      fs.commit_directory(to, final_path);
    else
      fs.sync_directory(to);
  } catch (Error& e) {
    remove_unfinished(to);
    e.add_context(fmt::format("while copying the checkpoint of step {}", step));
    throw;
  }
  if (options_.on_commit) options_.on_commit(step);
  apply_preservation();
}

// A full disk needs the room back; what cannot be removed now goes at the next start.
void CheckpointManager::remove_unfinished(const std::string& directory) {
  try {
    const FileSystem& fs = options_.fs;
    if (options_.commit == Commit::kRename || !fs.is_file(join_path(directory, orbax::kCommitFile)))
      fs.remove_tree(directory);
  } catch (const Error&) {
  }
}

void CheckpointManager::write_together(std::int64_t step, const StepContents& contents) {
  const FileSystem& fs = options_.fs;
  const std::string final_path = step_directory(step);
  const bool rename = options_.commit == Commit::kRename;
  const std::string directory = rename ? final_path + std::string(kTemporary) : final_path;
  Coordinator& c = *options_.coordinator;
  const auto name = [&](std::string_view phase) { return fmt::format("{} {}", phase, step); };
  try {
    do_together(c, name("begin"), [&] {
      if (!is_primary()) return;
      fs.make_directories(directory_, /*durable=*/true);
      fs.remove_tree(directory);
      fs.make_directories(directory);
    });
    do_together(c, name("write"),
                [&] { formats_[0]->write(fs, directory, final_path, step, contents); });
    do_together(c, name("commit"), [&] {
      if (!is_primary()) return;
      formats_[0]->finish(fs, directory, final_path, contents);
      if (rename) {
        formats_[0]->mark(fs, directory, final_path);
        fs.commit_directory(directory, final_path);
      } else {
        fs.sync_directories(directory);
        fs.sync_directory(directory_);
        formats_[0]->mark(fs, directory, final_path);
        fs.sync_directory(directory);
      }
    });
  } catch (Error& e) {
    if (is_primary()) remove_unfinished(directory);
    e.add_context(fmt::format("while saving the checkpoint of step {}", step));
    throw;
  }
  if (options_.on_commit) options_.on_commit(step);
  if (is_primary()) apply_preservation();
}

// All but the commit file first, durable with every name, then that.
void CheckpointManager::commit_in_place(std::int64_t step, const StepContents& contents) {
  const FileSystem& fs = options_.fs;
  const std::string path = step_directory(step);
  formats_[0]->write(fs, path, path, step, contents);
  fs.sync_directories(path);
  fs.sync_directory(directory_);
  formats_[0]->mark(fs, path, path);
  fs.sync_directory(path);
}

void CheckpointManager::apply_preservation() {
  const std::vector<CheckpointInfo> all = infos();
  const Preservation preserve =
      options_.preserve ? options_.preserve : keep_latest(options_.max_to_keep);
  const std::vector<bool> keep = preserve(all, now_ns());
  for (std::size_t i = 0; i < all.size(); ++i)
    if (!keep[i]) remove_directory(step_directory(all[i].step));
}

void CheckpointManager::remove(std::int64_t step) { remove_directory(step_directory(step)); }

void CheckpointManager::remove_directory(const std::string& directory) {
  const FileSystem& fs = options_.fs;
  if (options_.commit == Commit::kFile) {
    // Without its commit file it is no step.
    const std::string commit = join_path(directory, orbax::kCommitFile);
    if (fs.exists(commit)) fs.calls()->remove_file(commit);
    fs.sync_directory(directory);
    fs.remove_tree(directory);
    return;
  }
  const std::string temporary = directory + std::string(kTemporary);
  fs.remove_tree(temporary);
  fs.rename(directory, temporary);
  // Else the name could come back after a crash, with its files gone.
  fs.sync_directory(directory_);
  fs.remove_tree(temporary);
}

std::string CheckpointManager::step_directory(std::int64_t step) const {
  return join_path(
      directory_,
      fmt::format("{}{:0{}}", options_.step_prefix.empty() ? "" : options_.step_prefix + "_", step,
                  options_.step_digits));
}

std::optional<std::int64_t> CheckpointManager::parse_name(const std::string& name) const {
  std::string_view digits = name;
  if (!options_.step_prefix.empty()) {
    const std::string prefix = options_.step_prefix + "_";
    if (!digits.starts_with(prefix)) return std::nullopt;
    digits.remove_prefix(prefix.size());
  }
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (error != std::errc() || end != digits.data() + digits.size() || step < 0) return std::nullopt;
  if (join_path(directory_, name) != step_directory(step)) return std::nullopt;
  return step;
}

const StepFormat* CheckpointManager::format_of(const std::string& directory) const {
  for (const auto& f : formats_)
    if (f->recognises(options_.fs, directory)) return f.get();
  return nullptr;
}

const StepFormat& CheckpointManager::require_format(std::int64_t step) const {
  const std::string directory = step_directory(step);
  const StepFormat* f = format_of(directory);
  if (f == nullptr)
    throw_user_error({fmt::format("restore step {} from {}", step, directory_), "a saved step",
                      options_.fs.exists(directory) ? "the directory holds none" : "there is none",
                      "Ask for one that steps() lists"});
  return *f;
}

std::vector<std::int64_t> CheckpointManager::steps() const {
  const FileSystem& fs = options_.fs;
  std::vector<std::int64_t> out;
  if (!fs.is_directory(directory_)) return out;
  for (const DirectoryEntry& e : fs.list(directory_)) {
    const auto step = parse_name(e.name);
    const std::string path = join_path(directory_, e.name);
    if (!step || !e.is_directory) continue;
    if (options_.commit == Commit::kFile && !fs.is_file(join_path(path, orbax::kCommitFile)))
      continue;
    if (format_of(path) != nullptr) out.push_back(*step);
  }
  std::sort(out.begin(), out.end());
  return out;
}

void CheckpointManager::check_step(std::int64_t step) const {
  require_format(step).check(options_.fs, step_directory(step));
}

std::optional<std::int64_t> CheckpointManager::latest_step() const {
  const std::vector<std::int64_t> all = steps();
  for (auto it = all.rbegin(); it != all.rend(); ++it) {
    try {
      check_step(*it);
      return *it;
    } catch (const Error&) {
    }
  }
  return std::nullopt;
}

std::vector<CheckpointInfo> CheckpointManager::infos() const {
  const FileSystem& fs = options_.fs;
  std::vector<CheckpointInfo> out;
  for (const std::int64_t step : steps()) {
    const std::string path = step_directory(step);
    CheckpointInfo info{step, 0, std::nullopt};
    // What cannot be read counts as absent: a damaged step must not keep others from being saved.
    try {
      info.time_ns = fs.status(path).modified_ns;
      const std::string metadata = join_path(path, orbax::kStepMetadata);
      if (fs.is_file(metadata))
        info.time_ns = orbax::parse_step_metadata(fs.read_file(metadata), metadata)
                           .commit_ns.value_or(info.time_ns);
      const std::string metrics = join_path(join_path(path, "metrics"), "metrics");
      if (!options_.metric.empty() && fs.is_file(metrics)) {
        const auto j =
            nlohmann::json::parse(orbax::standard_json(fs.read_file(metrics)), nullptr, false);
        if (j.is_object() && j.contains(options_.metric) && j[options_.metric].is_number())
          info.metric = j[options_.metric].get<double>();
      }
    } catch (const Error&) {
    }
    out.push_back(info);
  }
  return out;
}

std::optional<std::int64_t> CheckpointManager::best_step() const {
  std::optional<CheckpointInfo> best;
  for (const CheckpointInfo& c : infos()) {
    if (!c.metric) continue;
    if (!best || (options_.least_is_best ? *c.metric <= *best->metric : *c.metric >= *best->metric))
      best = c;
  }
  if (!best) return std::nullopt;
  return best->step;
}

StepContents CheckpointManager::restore(std::int64_t step,
                                        const std::vector<std::string>& items) const {
  return require_format(step).read(options_.fs, step_directory(step), items);
}

}  // namespace xylem::checkpoint
