#include <unordered_map>
#include <vector>

#include "xylem/compiler/jit/emitter.h"

namespace xylem::jit {
namespace {

// A splat as IRBuilder makes it: insertelement, then a shuffle by zeros.
llvm::InsertElementInst* splat_source(llvm::Instruction& i) {
  auto* shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(&i);
  if (!shuffle || !shuffle->isZeroEltSplat()) return nullptr;
  auto* insert = llvm::dyn_cast<llvm::InsertElementInst>(shuffle->getOperand(0));
  if (!insert || !insert->hasOneUse() || insert->getParent() != i.getParent()) return nullptr;
  return insert;
}

void sink_in(llvm::BasicBlock& block) {
  std::unordered_map<const llvm::Instruction*, std::size_t> number;
  std::vector<std::size_t> writes;  // instructions before this one that may write memory
  std::vector<llvm::Instruction*> splats;
  std::size_t written = 0;
  for (llvm::Instruction& i : block) {
    number[&i] = writes.size();
    writes.push_back(written);
    written += i.mayWriteToMemory() ? 1 : 0;
    if (splat_source(i)) splats.push_back(&i);
  }
  for (llvm::Instruction* splat : splats) {
    llvm::Instruction* first = nullptr;
    bool local = true;
    for (llvm::User* u : splat->users()) {
      auto* user = llvm::cast<llvm::Instruction>(u);
      if (user->getParent() != &block || llvm::isa<llvm::PHINode>(user)) {
        local = false;
        break;
      }
      if (!first || number[user] < number[first]) first = user;
    }
    if (!local || !first) continue;
    llvm::InsertElementInst* insert = splat_source(*splat);
    auto* load = llvm::dyn_cast<llvm::LoadInst>(insert->getOperand(1));
    const bool moves = load && load->hasOneUse() && load->getParent() == &block &&
                       writes[number[load]] == writes[number[first]];
    if (moves) load->moveBefore(first);
    insert->moveBefore(first);
    splat->moveBefore(first);
  }
}

}  // namespace

void sink_splats(llvm::Function& fn) {
  for (llvm::BasicBlock& block : fn) sink_in(block);
}

}  // namespace xylem::jit
