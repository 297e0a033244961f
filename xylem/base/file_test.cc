#include "xylem/base/file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <thread>

#include "xylem/base/bytes.h"
#include "xylem/base/error.h"

namespace xylem {
namespace {

class FileTest : public testing::Test {
 protected:
  void SetUp() override { dir_ = make_temporary_directory("file-test"); }
  void TearDown() override { remove_tree(dir_); }
  std::string at(std::string_view name) const { return join_path(dir_, name); }
  std::string dir_;
};

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const EnvironmentError& e) {
    return e.message();
  }
  return "none";
}

TEST_F(FileTest, WholeFilesRoundTrip) {
  for (const std::size_t n : {0u, 1u, 4095u, 4096u, 3000000u}) {
    std::string data(n, '\0');
    for (std::size_t i = 0; i < n; ++i) data[i] = static_cast<char>(i * 7);
    write_file(at("a"), data);
    EXPECT_EQ(read_file(at("a")), data);
    EXPECT_EQ(file_size(at("a")), n);
    write_file_atomic(at("b"), data);
    EXPECT_EQ(read_file(at("b")), data);
  }
  EXPECT_EQ(list_directory(dir_).size(), 2u);
  EXPECT_FALSE(read_file("/proc/self/status").empty());
}

// As root a rename over /dev/null would replace the device by a file.
TEST_F(FileTest, AtomicFilesSpareDevicesPipesAndLinks) {
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  std::string received;
  std::thread reader([&] { received = read_file(at("pipe")); });
  write_file_atomic(at("pipe"), "through the pipe");
  reader.join();
  EXPECT_EQ(received, "through the pipe");

  write_file(at("target"), "old");
  ASSERT_EQ(::symlink("target", at("link").c_str()), 0);
  write_file_atomic(at("link"), "new");
  struct stat status;
  ASSERT_EQ(::lstat(at("link").c_str(), &status), 0);
  EXPECT_TRUE(S_ISLNK(status.st_mode));
  EXPECT_EQ(read_file(at("target")), "new");

  // A link to the device, so that a failure of this test does no harm.
  ASSERT_EQ(::symlink("/dev/full", at("full").c_str()), 0);
  EXPECT_NE(error_of([&] { write_file_atomic(at("full"), "x"); }).find("No space"),
            std::string::npos);
  ASSERT_EQ(::lstat("/dev/full", &status), 0);
  EXPECT_TRUE(S_ISCHR(status.st_mode));
  EXPECT_EQ(list_directory(dir_).size(), 4u);
}

TEST_F(FileTest, ErrorsNameThePathTheReasonAndTheRemedy) {
  const std::string e = error_of([&] { read_file(at("missing")); });
  EXPECT_NE(e.find(at("missing")), std::string::npos);
  EXPECT_NE(e.find("No such file or directory"), std::string::npos);
  EXPECT_NE(e.find("Check the spelling"), std::string::npos);
  EXPECT_NE(error_of([&] { read_file(dir_); }).find("Is a directory"), std::string::npos);
  EXPECT_NE(error_of([&] { write_file("/dev/full", "x"); }).find("free space"), std::string::npos);
  EXPECT_NE(error_of([&] { AppendFile("/dev/full").write("x"); }).find("No space"),
            std::string::npos);
  EXPECT_NE(error_of([&] { MappedFile m(at("missing")); }).find("open"), std::string::npos);
  EXPECT_NE(error_of([&] { RandomAccessFile f(dir_); }).find("Is a directory"), std::string::npos);
  EXPECT_NE(error_of([&] { list_directory(at("missing")); }).find("list"), std::string::npos);
}

TEST_F(FileTest, AnAtomicFileThatIsNotCommittedLeavesNothing) {
  write_file(at("a"), "old");
  {
    AtomicFile f(at("a"));
    f.write("new");
    EXPECT_EQ(f.size(), 3u);
    EXPECT_EQ(read_file(at("a")), "old");
  }
  EXPECT_EQ(read_file(at("a")), "old");
  EXPECT_EQ(list_directory(dir_).size(), 1u);
  // A failed commit: a directory stands in the way.
  make_directories(at("d/e"));
  EXPECT_NE(error_of([&] { write_file_atomic(at("d"), "x"); }), "none");
  EXPECT_EQ(list_directory(dir_).size(), 2u);
  EXPECT_NE(error_of([&] { write_file_atomic(at("no/such/dir"), "x"); }), "none");
}

TEST_F(FileTest, WritesPastTheSizeLimitLeaveNothingBehind) {
  const std::string path = at("limited");
  const pid_t child = fork();
  if (child == 0) {
    // The first write is cut short at the limit, the next one fails.
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1500000, 1500000};
    setrlimit(RLIMIT_FSIZE, &limit);
    const std::string e = error_of([&] { write_file_atomic(path, std::string(4000000, 'x')); });
    _exit(e.find("ulimit -f") == std::string::npos ? 1 : path_exists(path) ? 2 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(list_directory(dir_).empty());
}

TEST_F(FileTest, AKilledWriterLeavesTheOldFileOrTheNew) {
  const std::string path = at("state");
  write_file_atomic(path, std::string(100000, 'a'));
  for (int round = 0; round < 20; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      for (char c = 'b';; c = c == 'z' ? 'b' : static_cast<char>(c + 1))
        write_file_atomic(path, std::string(100000, c));
    }
    usleep(static_cast<useconds_t>(500 + 700 * round));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const std::string data = read_file(path);
    ASSERT_EQ(data.size(), 100000u);
    EXPECT_EQ(data, std::string(100000, data[0]));
  }
}

TEST_F(FileTest, RandomAccessReadsAnywhereAndRefusesBeyondTheEnd) {
  write_file(at("a"), "0123456789");
  const RandomAccessFile f(at("a"));
  EXPECT_EQ(f.size(), 10u);
  EXPECT_EQ(f.read(3, 4), "3456");
  EXPECT_EQ(f.read(10, 0), "");
  EXPECT_NE(error_of([&] { f.read(8, 3); }).find("the file has 10 bytes"), std::string::npos);
  EXPECT_NE(error_of([&] { f.read(2, ~std::size_t{0}); }), "none");
  std::byte b[4];
  EXPECT_NE(error_of([&] { f.read(8, b); }).find("ends at 10"), std::string::npos);
}

TEST_F(FileTest, MappedFilesShareTheirMemory) {
  write_file(at("a"), "0123456789");
  std::shared_ptr<std::byte> tail;
  {
    const MappedFile m(at("a"));
    EXPECT_EQ(as_string_view(m.bytes()), "0123456789");
    tail = m.share(8);
  }
  EXPECT_EQ(static_cast<char>(tail.get()[1]), '9');
  write_file(at("empty"), "");
  EXPECT_EQ(MappedFile(at("empty")).size(), 0u);
}

TEST_F(FileTest, DirectoriesAreMadeListedAndRemoved) {
  make_directories(at("x/y/z/"));
  make_directories(at("x/y/z"));
  write_file(at("x/b"), "");
  write_file(at("x/a"), "");
  ASSERT_EQ(symlink(dir_.c_str(), at("x/link").c_str()), 0);
  const auto entries = list_directory(at("x"));
  ASSERT_EQ(entries.size(), 4u);
  EXPECT_EQ(entries[0].name, "a");
  EXPECT_FALSE(entries[0].is_directory);
  EXPECT_EQ(entries[2].name, "link");
  EXPECT_TRUE(entries[3].is_directory);
  EXPECT_NE(error_of([&] { make_directories(at("x/a/b")); }).find("Not a directory"),
            std::string::npos);
  remove_tree(at("x"));
  EXPECT_TRUE(is_directory(dir_));  // the link was not followed
  EXPECT_FALSE(path_exists(at("x")));
  remove_tree(at("x"));
}

TEST_F(FileTest, ACommittedDirectoryNeverReplacesAnother) {
  make_directories(at("step.tmp/sub"));
  write_file(at("step.tmp/sub/data"), "1");
  commit_directory(at("step.tmp"), at("step"));
  EXPECT_EQ(read_file(at("step/sub/data")), "1");
  EXPECT_FALSE(path_exists(at("step.tmp")));
  make_directories(at("other.tmp"));
  make_directories(at("empty"));
  for (const char* target : {"step", "empty"})
    EXPECT_NE(error_of([&] { commit_directory(at("other.tmp"), at(target)); }).find("exists"),
              std::string::npos);
  EXPECT_TRUE(path_exists(at("other.tmp")));
}

TEST_F(FileTest, AppendedLinesFollowWhatIsThere) {
  write_file(at("log"), "a\nb\n");
  {
    AppendFile f(at("log"));
    f.write("c\n");
    f.sync();
  }
  EXPECT_EQ(read_file(at("log")), "a\nb\nc\n");
  truncate_file(at("log"), 4);
  EXPECT_EQ(read_file(at("log")), "a\nb\n");
}

TEST(PathTest, NamesAreJoinedAndSplit) {
  EXPECT_EQ(join_path("a", "b"), "a/b");
  EXPECT_EQ(join_path("a/", "b"), "a/b");
  EXPECT_EQ(join_path("a", "/b"), "/b");
  EXPECT_EQ(join_path("", "b"), "b");
  EXPECT_EQ(join_path("a", ""), "a");
  EXPECT_EQ(parent_path("a/b"), "a");
  EXPECT_EQ(parent_path("a/b//"), "a");
  EXPECT_EQ(parent_path("a"), ".");
  EXPECT_EQ(parent_path("/a"), "/");
  EXPECT_EQ(base_name("a/b/"), "b");
  EXPECT_EQ(base_name("b"), "b");
}

}  // namespace
}  // namespace xylem
