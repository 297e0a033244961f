#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

// Compilation and loading of modules: everything that needs LLVM's heavy headers stands behind
// this one.

namespace llvm {
class Module;
}

namespace xylem::jit {

// A relocatable object in memory.
class Object {
 public:
  virtual ~Object() = default;
  virtual std::span<const std::byte> bytes() const = 0;
};

// Code of an object in executable memory; unloaded by the destructor.
class Code {
 public:
  virtual ~Code() = default;
  virtual void* entry(std::size_t i) const = 0;
};

// Machine code for a verified module. Throws InternalError if LLVM refuses it.
std::unique_ptr<Object> generate_code(llvm::Module& module, bool best_tier);
// Throws InternalError with the verifier's text.
void verify_module(const llvm::Module& module);
// Prepares a module for the host: triple and data layout.
void prepare_module(llvm::Module& module);
std::string module_text(const llvm::Module& module);

std::unique_ptr<Object> object_from_bytes(std::span<const std::byte> bytes);
// Links an object that defines k0 … k<count-1>. `debug` registers it with gdb.
// Throws UserError if the bytes are no such object.
std::unique_ptr<Code> load_code(const Object& object, std::size_t count, bool debug);

// LLVM's version, processor, features.
std::string target_description();

}  // namespace xylem::jit
