#include "xylem/runtime/client.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <thread>

#include "xylem/base/error.h"
#include "xylem/ir/builder.h"
#include "xylem/ir/interpreter.h"
#include "xylem/ir/ops/all.h"

namespace xylem::runtime {
namespace {

namespace o = ir::ops;
using ir::Builder;
using ir::GraphPtr;
using ir::Type;
using ir::ValueId;

// x * x + x, and the sum of both results' use: elementwise, of n floats.
GraphPtr polynomial(std::int64_t n) {
  Builder b("poly");
  const ValueId x = b.param(Type::tensor(DType::kF32, {n}));
  const ValueId y = b.one(o::kAdd, {b.one(o::kMultiply, {x, x}), x});
  return b.finish({y});
}

HostArray ramp(std::int64_t n) {
  std::vector<float> v;
  for (std::int64_t i = 0; i < n; ++i) v.push_back(static_cast<float>(i % 100) / 8);
  return HostArray::from(v, {n});
}

class ClientTest : public ::testing::TestWithParam<bool> {
 protected:
  std::unique_ptr<Client> client = GetParam() ? make_cpu_client() : make_interpreter_client();
};

TEST_P(ClientTest, RunsSmallAndLargePrograms) {
  for (std::int64_t n : {7, 4'000'000}) {
    const GraphPtr g = polynomial(n);
    const HostArray x = ramp(n);
    const ExecutablePtr e = client->compile(g);
    const BufferPtr in = client->from_host(x);
    const std::vector<BufferPtr> out = e->execute(std::vector<BufferPtr>{in});
    EXPECT_TRUE(out[0]->to_host().bit_equal(ir::evaluate(*g, std::vector<HostArray>{x})[0]));
    EXPECT_FALSE(in->released());
  }
}

TEST_P(ClientTest, ChainsWithoutWaiting) {
  const std::int64_t n = 1'000'000;
  const GraphPtr g = polynomial(n);
  const ExecutablePtr e = client->compile(g, {.donated = {0}});
  HostArray want = HostArray::from(std::vector<float>(static_cast<std::size_t>(n), 0.125f), {n});
  BufferPtr b = client->from_host(want.clone());
  for (int i = 0; i < 3; ++i) {
    want = ir::evaluate(*g, std::vector<HostArray>{want})[0];
    std::vector<BufferPtr> args;
    args.push_back(std::move(b));
    b = e->execute(args, {.donated = {0}})[0];
    EXPECT_TRUE(args[0]->released());
  }
  EXPECT_TRUE(b->to_host().bit_equal(want));
}

TEST_P(ClientTest, DonationSparesBuffersThatOthersHold) {
  const GraphPtr g = polynomial(64);
  const ExecutablePtr e = client->compile(g, {.donated = {0}});
  const HostArray x = ramp(64);
  BufferPtr b = client->from_host(x.clone());
  const BufferPtr kept = b;
  std::vector<BufferPtr> args{std::move(b)};
  const BufferPtr y = e->execute(args, {.donated = {0}})[0];
  EXPECT_FALSE(kept->released());
  EXPECT_TRUE(kept->to_host().bit_equal(x));
  EXPECT_TRUE(y->to_host().bit_equal(ir::evaluate(*g, std::vector<HostArray>{x})[0]));
}

// Of another library, or a mapped file: the write of a donated argument would be a fatal signal.
TEST_P(ClientTest, DonationNeverWritesToMemoryGivenByTheCaller) {
  const std::int64_t n = 1024;
  void* page = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  const ExecutablePtr e = client->compile(polynomial(n), {.donated = {0}});
  std::vector<BufferPtr> args{client->from_host(
      HostArray(DType::kF32, {n},
                std::shared_ptr<std::byte>(static_cast<std::byte*>(page), [](std::byte*) {})))};
  const HostArray y = e->execute(args, {.donated = {0}})[0]->to_host();
  EXPECT_TRUE(y.bit_equal(HostArray::zeros(DType::kF32, {n})));
  ::munmap(page, 4096);
}

TEST_P(ClientTest, ChecksArguments) {
  const ExecutablePtr e = client->compile(polynomial(8));
  EXPECT_THROW(e->execute({}), UserError);
  EXPECT_THROW(e->execute(std::vector<BufferPtr>{client->from_host(ramp(9))}), UserError);
  EXPECT_THROW(e->execute(std::vector<BufferPtr>{nullptr}), UserError);
  const BufferPtr gone = client->from_host(ramp(8));
  gone->release();
  EXPECT_THROW(e->execute(std::vector<BufferPtr>{gone}), UserError);
  EXPECT_THROW(gone->to_host(), UserError);
}

TEST_P(ClientTest, ConcurrentCalls) {
  const GraphPtr g = polynomial(100'000);
  const ExecutablePtr e = client->compile(g);
  const HostArray x = ramp(100'000);
  const HostArray want = ir::evaluate(*g, std::vector<HostArray>{x})[0];
  std::vector<std::thread> threads;
  std::atomic<int> bad{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) {
        const BufferPtr in = client->from_host(x);
        if (!e->execute(std::vector<BufferPtr>{in})[0]->to_host().bit_equal(want)) ++bad;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(bad, 0);
}

TEST(CpuClientTest, AnErrorBeforeTheRunLeavesDonatedArgumentsAsTheyWere) {
  const std::unique_ptr<Client> client = make_cpu_client();
  // A result that takes the argument's memory, and one for which there is none.
  Builder b("huge");
  const ValueId x = b.param(Type::tensor(DType::kF32, {8}));
  const ValueId y = b.one(o::kAdd, {x, x});
  const ValueId z = b.one(o::kBroadcastInDim, {x},
                          ir::Attrs{{"broadcast_dimensions", ir::Attr(Dims{1})},
                                    {"shape", ir::Attr(Dims{std::int64_t{1} << 40, 8})}});
  const ExecutablePtr e = client->compile(b.finish({y, z}), {.donated = {0}});
  std::vector<BufferPtr> args{client->from_host(ramp(8))};
  EXPECT_THROW(e->execute(args, {.donated = {0}}), EnvironmentError);
  ASSERT_FALSE(args[0]->released());
  EXPECT_TRUE(args[0]->to_host().bit_equal(ramp(8)));
}

INSTANTIATE_TEST_SUITE_P(Platforms, ClientTest, ::testing::Bool(), [](const auto& p) {
  return std::string(p.param ? "Cpu" : "Interpreter");
});

TEST(EventTest, CompletesOnceAndCallsBack) {
  Event e = Event::make();
  int calls = 0;
  const auto count = [](void* p) { ++*static_cast<int*>(p); };
  e.on_ready(count, &calls);
  EXPECT_FALSE(e.ready());
  EXPECT_EQ(calls, 0);
  e.complete(std::make_exception_ptr(UserError("broken")));
  EXPECT_TRUE(e.ready());
  e.on_ready(count, &calls);
  EXPECT_EQ(calls, 2);
  EXPECT_THROW(e.wait(), UserError);
  EXPECT_THROW(e.complete(), InternalError);
}

}  // namespace
}  // namespace xylem::runtime
