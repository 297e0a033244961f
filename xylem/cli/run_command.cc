#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "xylem/base/error.h"
#include "xylem/base/file.h"
#include "xylem/base/npy.h"
#include "xylem/cli/commands.h"
#include "xylem/cli/output.h"
#include "xylem/cli/program_commands.h"
#include "xylem/cli/program_file.h"
#include "xylem/cli/program_runner.h"
#include "xylem/ir/interpreter.h"
#include "xylem/ir/text.h"

namespace xylem::cli {
namespace {

Backend backend_of(const RunArguments& a) {
  return a.backend == "interpret" ? Backend::kInterpret : Backend::kCpu;
}

std::string signature(const ir::Graph& g) {
  std::string s;
  for (ir::ValueId p : g.params) s += (s.empty() ? "" : ", ") + g.type(p).to_mlir();
  return "(" + s + ")";
}

// The file's array as the parameter's type: narrow integers may also come as NumPy's 8-bit ones,
// whose high bits are ignored.
HostArray read_input(const std::string& path, const ir::Type& type, std::size_t index) {
  const ir::QuantParams* quant = type.extra() ? type.extra()->quant.get() : nullptr;
  const DType want = quant ? quant->storage : type.dtype();
  HostArray a = read_npy(path, want);
  const bool narrow = is_integer(want) && dtype_bits(want) < 8;
  if (narrow && a.dtype() == (is_signed_int(want) ? DType::kI8 : DType::kU8)) {
    const HostArray c = a.to_contiguous();
    a = HostArray::from_bytes(want, c.dims(), {c.data(), c.nbytes()});
  }
  bool fits = a.dtype() == want && a.rank() == type.rank();
  for (int d = 0; fits && d < type.rank(); ++d)
    fits = type.dim(d) == ir::kDynamic || type.dim(d) == a.dims()[d];
  if (!fits)
    throw_user_error({fmt::format("run: --input {} (argument {})", path, index),
                      fmt::format("an array of type {}", type.to_mlir()),
                      fmt::format("the file holds {}", a.type_string()),
                      "Save an array of that shape and type"});
  if (narrow) {
    a = a.clone();
    const auto mask = static_cast<std::byte>((1 << dtype_bits(want)) - 1);
    for (std::size_t i = 0; i < a.nbytes(); ++i) a.data()[i] &= mask;
  }
  return a;
}

std::vector<HostArray> read_inputs(const ir::Graph& g, const std::vector<std::string>& paths) {
  std::vector<HostArray> inputs;
  std::size_t next = 0;
  std::size_t arrays = 0;
  for (ir::ValueId p : g.params) arrays += !g.type(p).is_token();
  if (arrays != paths.size())
    throw_user_error({"run: --input",
                      fmt::format("one file for each of the {} arguments {}", arrays, signature(g)),
                      fmt::format("{} were given", paths.size()),
                      "Repeat --input X.npy for every argument, in order"});
  for (ir::ValueId p : g.params) {
    const ir::Type& t = g.type(p);
    if (t.is_token()) {
      inputs.emplace_back();
      continue;
    }
    if (!t.is_tensor())
      throw_user_error({"run: --input", "arguments that are tensors",
                        fmt::format("argument {} is {}", next, t.to_mlir()),
                        "Wrap the function in one that takes tensors"});
    inputs.push_back(read_input(paths[next], t, next));
    ++next;
  }
  return inputs;
}

void show_results(const ir::Graph& g, const std::vector<HostArray>& results,
                  const std::string& dir) {
  if (!dir.empty()) make_directories(dir);
  std::vector<ir::Type> types;  // tuples come as their elements
  for (ir::ValueId v : g.results) ir::append_leaves(g.type(v), types);
  std::string text;
  for (std::size_t k = 0; k < results.size(); ++k) {
    const ir::Type& t = types[k];
    if (!t.is_tensor()) {
      if (dir.empty()) text += t.to_mlir() + "\n";
    } else if (dir.empty()) {
      text += ir::print_dense(results[k], t) + "\n";
    } else {
      write_npy(join_path(dir, fmt::format("{}.npy", k)), results[k]);
    }
  }
  put(text);
}

void show_times(ProgramRunner& runner, const std::vector<HostArray>& inputs, int n) {
  runner.time_us(inputs);
  std::vector<double> us;
  for (int i = 0; i < n; ++i) us.push_back(runner.time_us(inputs));
  std::sort(us.begin(), us.end());
  const std::size_t half = us.size() / 2;
  const double median = us.size() % 2 ? us[half] : (us[half - 1] + us[half]) / 2;
  put(fmt::format("time n={} median_us={:.3f} min_us={:.3f} spread_us={:.3f}\n", n, median,
                  us.front(), us.back() - us.front()));
}

int run_whole(const RunArguments& a) {
  const ProgramFile file = read_program_file(a.file);
  const ir::Module module = parse_chunk(file, whole(file), false);
  const ir::Module::Function& f = entry_of(module, a.entry);
  const std::vector<HostArray> inputs = read_inputs(*f.graph, a.inputs);
  const auto runner = make_runner(f.graph, backend_of(a), inputs, a.probe_dir);
  show_results(*f.graph, runner->run(inputs), a.output_dir);
  if (a.time > 0) show_times(*runner, inputs, a.time);
  return kDone;
}

std::string one_line(std::string_view message) {
  std::string s(message);
  std::replace(s.begin(), s.end(), '\n', ' ');
  std::replace(s.begin(), s.end(), '\r', ' ');
  return s;
}

// The functions of a piece that run by themselves.
std::vector<const ir::Module::Function*> entries_of(const ir::Module& module) {
  std::vector<const ir::Module::Function*> entries;
  for (const ir::Module::Function& f : module.functions) {
    if (!f.graph) continue;
    if (f.name == "main") return {&f};
    if (!f.is_private && f.graph->params.empty()) entries.push_back(&f);
  }
  return entries;
}

int run_split(const RunArguments& a) {
  const ProgramFile file = read_program_file(a.file);
  bool failed = false;
  for (const Chunk& chunk : split_chunks(file)) {
    const auto fail = [&](std::string_view name, std::string_view why) {
      failed = true;
      put(fmt::format("FAILED {} {}: {}\n", chunk.number, name, one_line(why)));
    };
    ir::Module module;
    try {
      module = parse_chunk(file, chunk, false);
    } catch (const Error& e) {
      const std::vector<std::string> lines = diagnostics_of(e.message());
      std::vector<std::string> names = guess_entries(chunk.text);
      if (names.empty()) names.emplace_back("?");
      for (const std::string& name : names) fail(name, lines.empty() ? e.message() : lines[0]);
      continue;
    }
    const auto entries = entries_of(module);
    if (entries.empty()) put(fmt::format("skipped {}\n", chunk.number));
    for (const ir::Module::Function* f : entries) {
      try {
        if (!f->graph->params.empty())
          throw_user_error({fmt::format("run: @{}", f->name), "a function without arguments",
                            fmt::format("it takes {}", signature(*f->graph)),
                            "Run it without --split and give --input"});
        make_runner(f->graph, backend_of(a), {}, a.probe_dir)->run({});
        put(fmt::format("ok {} {}\n", chunk.number, f->name));
      } catch (const EnvironmentError&) {
        throw;
      } catch (const std::exception& e) {
        const auto* own = dynamic_cast<const Error*>(&e);
        fail(f->name, own ? own->message() : std::string(e.what()));
      }
    }
  }
  return failed ? kFailed : kDone;
}

}  // namespace

int run_command(const RunArguments& a) {
  if (!a.split) return with_diagnostics([&] { return run_whole(a); });
  if (!a.inputs.empty() || !a.entry.empty() || !a.output_dir.empty() || a.time > 0) {
    put_error(
        "xylem: run --split takes none of --input, --entry, --output-dir and --time. See xylem run "
        "--help.");
    return kUsage;
  }
  return with_diagnostics([&] { return run_split(a); });
}

}  // namespace xylem::cli
