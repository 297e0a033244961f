// The JIT session: LLVM's options, target machines, linking into this process.

#include "xylem/compiler/jit/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include "llvm/Config/llvm-config.h"
#include "llvm/ExecutionEngine/JITLink/EHFrameSupport.h"
#include "llvm/ExecutionEngine/Orc/Core.h"
#include "llvm/ExecutionEngine/Orc/DebugObjectManagerPlugin.h"
#include "llvm/ExecutionEngine/Orc/EPCDebugObjectRegistrar.h"
#include "llvm/ExecutionEngine/Orc/ExecutorProcessControl.h"
#include "llvm/ExecutionEngine/Orc/MapperJITLinkMemoryManager.h"
#include "llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h"
#include "llvm/ExecutionEngine/Orc/TargetProcess/JITLoaderGDB.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "xylem/base/error.h"
#include "xylem/base/float_types.h"
#include "xylem/compiler/jit/target.h"

namespace xylem::jit {
namespace {

[[noreturn]] void fail(const char* doing, const std::string& given) {
  throw InternalError(ErrorParts{fmt::format("code generator: {}", doing),
                                 "LLVM to accept our code", given,
                                 "Report this with the kernel's text"});
}

// LLVM ends the process on internal errors; an exception leaks a little and keeps it alive.
void on_fatal_error(void*, const char* message, bool) { fail("fatal error of LLVM", message); }

// Once per process, before any code is generated: measured to be what pays for explicit vector
// code (see README.md).
void initialise_llvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
    auto& options = llvm::cl::getRegisteredOptions();
    const auto set = [&](const char* name, const char* value) {
      const auto it = options.find(name);
      if (it != options.end()) it->second->addOccurrence(0, name, value);
    };
    set("disable-lsr", "true");
    set("optimize-regalloc", "true");
    set("enable-misched", "false");
    set("post-RA-scheduler", "false");
    llvm::install_fatal_error_handler(on_fatal_error);
  });
}

std::string triple() { return llvm::sys::getProcessTriple(); }

std::unique_ptr<llvm::TargetMachine> make_machine(bool best) {
  initialise_llvm();
  std::string error;
  const llvm::Target* t = llvm::TargetRegistry::lookupTarget(triple(), error);
  if (!t) fail("target", error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  const Target& host = host_target();
  return std::unique_ptr<llvm::TargetMachine>(t->createTargetMachine(
      triple(), host.cpu, host.features, options, llvm::Reloc::PIC_, llvm::CodeModel::Small,
      best ? llvm::CodeGenOptLevel::Default : llvm::CodeGenOptLevel::None));
}

// One machine per tier and thread: they are costly to make and not thread safe.
llvm::TargetMachine& machine(bool best) {
  thread_local std::unique_ptr<llvm::TargetMachine> machines[2];
  std::unique_ptr<llvm::TargetMachine>& m = machines[best ? 1 : 0];
  if (!m) m = make_machine(best);
  return *m;
}

// Errors that LLVM reports through the context instead of returning them.
class Diagnostics : public llvm::DiagnosticHandler {
 public:
  explicit Diagnostics(std::string& errors) : errors_(errors) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo& info) override {
    if (info.getSeverity() == llvm::DS_Error) {
      llvm::raw_string_ostream out(errors_);
      llvm::DiagnosticPrinterRawOStream printer(out);
      info.print(printer);
      out << '\n';
    }
    return true;
  }

 private:
  std::string& errors_;
};

class BufferObject : public Object {
 public:
  explicit BufferObject(llvm::SmallVector<char, 0> bytes) : bytes_(std::move(bytes)) {}
  std::span<const std::byte> bytes() const override {
    return {reinterpret_cast<const std::byte*>(bytes_.data()), bytes_.size()};
  }

 private:
  llvm::SmallVector<char, 0> bytes_;
};

// What processors without F16C call for half precision. The ABI passes halves in the low bits of a
// vector register, as it does floats.
float f16_bits_in_xmm(float x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(xylem::internal::f16_from_float(x)));
}
float f32_of_f16_in_xmm(float x) {
  return xylem::internal::f16_to_float(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x)));
}

namespace orc = llvm::orc;

class Session {
 public:
  // Never destroyed: code may run until the process ends.
  static Session& get() {
    static auto* s = new Session;
    return *s;
  }

  std::pair<orc::JITDylib*, std::vector<void*>> load(std::span<const std::byte> bytes,
                                                     std::size_t count, bool debug) {
    orc::JITDylib& dylib = session_->createBareJITDylib(fmt::format("xylem{}", next_.fetch_add(1)));
    dylib.addToLinkOrder(*runtime_);
    std::vector<void*> entries;
    const llvm::StringRef text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    // A private copy: the linker may read it for as long as the code lives.
    auto buffer = llvm::MemoryBuffer::getMemBufferCopy(text, dylib.getName());
    orc::ObjectLinkingLayer& layer = debug ? *debug_layer_ : *layer_;
    std::string error;
    cause().clear();
    if (llvm::Error e = layer.add(dylib, std::move(buffer))) {
      error = llvm::toString(std::move(e));
    } else {
      orc::SymbolLookupSet names;
      for (std::size_t i = 0; i < count; ++i) names.add(session_->intern(fmt::format("k{}", i)));
      auto found = session_->lookup(orc::makeJITDylibSearchOrder(&dylib), names);
      if (found) {
        for (std::size_t i = 0; i < count; ++i)
          entries.push_back(
              (*found)[session_->intern(fmt::format("k{}", i))].getAddress().toPtr<void*>());
        return {&dylib, std::move(entries)};
      }
      error = llvm::toString(found.takeError());
      if (!cause().empty()) error = cause();
    }
    unload(dylib);
    throw UserError(ErrorParts{"xylem_jit_load", "an object that xylem_jit_object gave", error,
                               "Compile the kernels anew"});
  }

  void unload(orc::JITDylib& dylib) {
    if (llvm::Error e = session_->removeJITDylib(dylib)) llvm::consumeError(std::move(e));
  }

 private:
  Session() {
    initialise_llvm();
    auto control = orc::SelfExecutorProcessControl::Create();
    if (!control) fail("session", llvm::toString(control.takeError()));
    session_ = std::make_unique<orc::ExecutionSession>(std::move(*control));
    // The cause of a failed lookup (an undefined symbol, say) comes this way.
    session_->setErrorReporter(
        [](llvm::Error e) { cause() += llvm::toString(std::move(e)) + "; "; });
    layer_ = make_layer();
    debug_layer_ = make_layer();
    debug_layer_->addPlugin(std::make_unique<orc::DebugObjectManagerPlugin>(
        *session_,
        std::make_unique<orc::EPCDebugObjectRegistrar>(
            *session_, orc::ExecutorAddr::fromPtr(&llvm_orc_registerJITLoaderGDBWrapper)),
        true, true));
    define_runtime();
  }

  static std::string& cause() {
    thread_local std::string text;
    return text;
  }

  std::unique_ptr<orc::ObjectLinkingLayer> make_layer() {
    auto memory = orc::MapperJITLinkMemoryManager::CreateWithMapper<orc::InProcessMemoryMapper>(
        std::size_t{64} << 20);
    if (!memory) fail("memory", llvm::toString(memory.takeError()));
    auto layer = std::make_unique<orc::ObjectLinkingLayer>(*session_, std::move(*memory));
    layer->addPlugin(std::make_unique<orc::EHFrameRegistrationPlugin>(
        *session_, std::make_unique<llvm::jitlink::InProcessEHFrameRegistrar>()));
    return layer;
  }

  // The functions that generated code may call, and no others.
  void define_runtime() {
    runtime_ = &session_->createBareJITDylib("runtime");
    orc::SymbolMap symbols;
    const auto add = [&](const char* name, auto* fn) {
      symbols[session_->intern(name)] = {
          orc::ExecutorAddr::fromPtr(fn),
          llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
    };
    add("fmodf", static_cast<float (*)(float, float)>(&::fmodf));
    add("fmod", static_cast<double (*)(double, double)>(&::fmod));
    add("fmaf", static_cast<float (*)(float, float, float)>(&::fmaf));
    add("fma", static_cast<double (*)(double, double, double)>(&::fma));
    add("floorf", static_cast<float (*)(float)>(&::floorf));
    add("floor", static_cast<double (*)(double)>(&::floor));
    add("ceilf", static_cast<float (*)(float)>(&::ceilf));
    add("ceil", static_cast<double (*)(double)>(&::ceil));
    add("rintf", static_cast<float (*)(float)>(&::rintf));
    add("rint", static_cast<double (*)(double)>(&::rint));
    add("roundf", static_cast<float (*)(float)>(&::roundf));
    add("round", static_cast<double (*)(double)>(&::round));
    add("roundevenf", static_cast<float (*)(float)>(&::roundevenf));
    add("roundeven", static_cast<double (*)(double)>(&::roundeven));
    add("truncf", static_cast<float (*)(float)>(&::truncf));
    add("trunc", static_cast<double (*)(double)>(&::trunc));
    add("__truncsfhf2", &f16_bits_in_xmm);
    add("__extendhfsf2", &f32_of_f16_in_xmm);
    add("memcpy", &::memcpy);
    add("memset", &::memset);
    if (llvm::Error e = runtime_->define(orc::absoluteSymbols(std::move(symbols))))
      fail("runtime functions", llvm::toString(std::move(e)));
  }

  std::unique_ptr<orc::ExecutionSession> session_;
  std::unique_ptr<orc::ObjectLinkingLayer> layer_, debug_layer_;
  orc::JITDylib* runtime_ = nullptr;
  std::atomic<std::uint64_t> next_{0};
};

class LoadedCode : public Code {
 public:
  LoadedCode(orc::JITDylib& dylib, std::vector<void*> entries)
      : dylib_(dylib), entries_(std::move(entries)) {}
  ~LoadedCode() override { Session::get().unload(dylib_); }
  void* entry(std::size_t i) const override { return i < entries_.size() ? entries_[i] : nullptr; }

 private:
  orc::JITDylib& dylib_;
  std::vector<void*> entries_;
};

}  // namespace

const Target& host_target() {
  static const Target* target = [] {
    auto* t = new Target;
    const auto has = [&](const llvm::StringMap<bool>& f, const char* name) {
      const auto it = f.find(name);
      return it != f.end() && it->second;
    };
    llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
    const char* wanted = std::getenv("XYLEM_JIT_CPU");
    if (wanted && *wanted) {
      // Another processor's features, as far as this one has them.
      initialise_llvm();
      std::string error;
      const llvm::Target* llvm_target = llvm::TargetRegistry::lookupTarget(triple(), error);
      if (!llvm_target) fail("target", error);
      std::unique_ptr<llvm::MCSubtargetInfo> info(
          llvm_target->createMCSubtargetInfo(triple(), "", ""));
      if (!info->isCPUStringValid(wanted))
        throw UserError(ErrorParts{"environment variable XYLEM_JIT_CPU",
                                   "a processor that LLVM knows (x86-64-v3, znver4, ...)",
                                   fmt::format("it is \"{}\"", wanted), "Change or unset it"});
      info.reset(llvm_target->createMCSubtargetInfo(triple(), wanted, ""));
      t->cpu = wanted;
      for (const llvm::SubtargetFeatureKV& kv : info->getAllProcessorFeatures()) {
        const bool on = info->checkFeatures(std::string("+") + kv.Key);
        auto it = features.find(kv.Key);
        if (it != features.end() && !on) it->second = false;
      }
    } else {
      t->cpu = llvm::sys::getHostCPUName().str();
    }
    std::vector<std::string> sorted;
    for (const auto& f : features) sorted.push_back((f.second ? "+" : "-") + f.first().str());
    std::sort(sorted.begin(), sorted.end());
    for (const std::string& f : sorted) t->features += (t->features.empty() ? "" : ",") + f;
    t->avx2 = has(features, "avx2");
    t->avx512 = has(features, "avx512f") && has(features, "avx512bw") &&
                has(features, "avx512dq") && has(features, "avx512vl");
    t->fma = has(features, "fma");
    t->f16c = has(features, "f16c");
    t->vector_bytes = t->avx512 ? 64 : t->avx2 ? 32 : 16;
    return t;
  }();
  return *target;
}

std::string target_description() {
  const Target& t = host_target();
  return fmt::format("llvm {}; {}; {}; {}", LLVM_VERSION_STRING, triple(), t.cpu, t.features);
}

void prepare_module(llvm::Module& module) {
  module.setTargetTriple(triple());
  module.setDataLayout(machine(true).createDataLayout());
}

void verify_module(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  if (llvm::verifyModule(module, &out)) fail("verifier", text);
}

std::string module_text(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out, nullptr);
  return text;
}

std::unique_ptr<Object> generate_code(llvm::Module& module, bool best_tier) {
  std::string errors;
  module.getContext().setDiagnosticHandler(std::make_unique<Diagnostics>(errors));
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream out(bytes);
  llvm::legacy::PassManager passes;
  llvm::MCContext* mc = nullptr;
  if (machine(best_tier).addPassesToEmitMC(passes, mc, out, /*DisableVerify=*/true))
    fail("object code", "the target emits none");
  passes.run(module);
  if (!errors.empty()) fail("code generation", errors);
  return std::make_unique<BufferObject>(std::move(bytes));
}

std::unique_ptr<Object> object_from_bytes(std::span<const std::byte> bytes) {
  const auto* p = reinterpret_cast<const char*>(bytes.data());
  return std::make_unique<BufferObject>(llvm::SmallVector<char, 0>(p, p + bytes.size()));
}

std::unique_ptr<Code> load_code(const Object& object, std::size_t count, bool debug) {
  auto [dylib, entries] = Session::get().load(object.bytes(), count, debug);
  return std::make_unique<LoadedCode>(*dylib, std::move(entries));
}

}  // namespace xylem::jit
