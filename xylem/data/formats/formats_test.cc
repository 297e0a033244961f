#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "xylem/base/bytes.h"
#include "xylem/base/file.h"
#include "xylem/data/formats/internal/highway_hash.h"
#include "xylem/data/formats/internal/riegeli.h"
#include "xylem/data/formats/record.h"
#include "xylem/data/formats/testing/samples.h"
#include "xylem/data/formats/transform.h"

namespace xylem::data {
namespace {

using ::testing::HasSubstr;

ReaderPtr open_bytes(std::string bytes, const std::string& name, const std::string& format = "") {
  ReadOptions options;
  options.format = format;
  return open_records(memory_source(std::move(bytes), name), options);
}

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.message();
  }
  return "no error";
}

std::vector<DamageError> damage_of(const ReaderPtr& r) {
  std::vector<DamageError> found;
  r->verify([&](const DamageError& e) { found.push_back(e); });
  return found;
}

TEST(RecordFormats, GiveBackWhatWasWritten) {
  for (const testing::Sample& s : testing::samples()) {
    SCOPED_TRACE(s.name + " " + s.format);
    const ReaderPtr r = open_bytes(s.bytes, s.name);
    EXPECT_EQ(r->format(), s.format);
    const testing::Reading all = testing::read_all(r);
    EXPECT_EQ(all.error, "");
    ASSERT_EQ(all.records.size(), s.records.size());
    for (std::size_t i = 0; i < s.records.size(); ++i) {
      EXPECT_EQ(all.records[i].bytes, s.records[i].bytes) << i;
      EXPECT_TRUE(Value(all.records[i].fields) == Value(s.records[i].fields))
          << to_json(Value(all.records[i].fields)) << "\n"
          << to_json(Value(s.records[i].fields));
    }
    EXPECT_TRUE(damage_of(r).empty());
  }
}

TEST(RecordFormats, ReadAtRandomWhatTheyReadInOrder) {
  for (const testing::Sample& s : testing::samples()) {
    SCOPED_TRACE(s.name + " " + s.format);
    const ReaderPtr r = open_bytes(s.bytes, s.name);
    const std::uint64_t n = r->count();
    ASSERT_EQ(n, s.records.size());
    std::vector<std::uint64_t> indices;
    for (std::uint64_t i = 0; i < 3 * n; ++i) indices.push_back((i * 7 + 3) % n);
    const std::vector<Record> batch = r->read_batch(indices);
    for (std::size_t k = 0; k < indices.size(); ++k) {
      EXPECT_TRUE(batch[k] == s.records[indices[k]]) << indices[k];
      EXPECT_TRUE(r->read(indices[k]) == s.records[indices[k]]) << indices[k];
    }
    for (std::uint64_t begin = 0; begin <= n; ++begin) {
      const auto cursor = r->scan(begin);
      Record record;
      for (std::uint64_t i = begin; i < n; ++i) {
        ASSERT_TRUE(cursor->next(record));
        EXPECT_TRUE(record == s.records[i]);
      }
      EXPECT_FALSE(cursor->next(record));
      const auto second = r->scan(0);
      EXPECT_EQ(second->skip(begin), begin);
      EXPECT_EQ(second->skip(n + 5), n - begin);
    }
    EXPECT_THAT(error_of([&] { r->read(n); }), HasSubstr("an index below"));
    EXPECT_THAT(error_of([&] {
                  r->read_batch(std::vector<std::uint64_t>{0, n + 7});
                }),
                HasSubstr("an index below"));
  }
}

// A reader of a compressed stream keeps its place in the stream, and nothing keeps the reader.
TEST(RecordFormats, ReadersEndWithTheirLastHolder) {
  for (const testing::Sample& s : testing::samples()) {
    SCOPED_TRACE(s.name);
    ReaderPtr r = open_bytes(s.bytes, s.name);
    r->read(0);
    r->read_batch(std::vector<std::uint64_t>{1, 0});
    r->scan(1);
    const std::weak_ptr<const RecordReader> watched = r;
    r.reset();
    EXPECT_TRUE(watched.expired());
  }
}

TEST(RecordFormats, AreEmptyWithoutRecords) {
  std::set<std::string> seen;
  for (const testing::Sample& s : testing::samples()) {
    if (!seen.insert(s.name).second) continue;
    SCOPED_TRACE(s.name);
    const ReaderPtr r = open_bytes(testing::written(s.name, {s.format, ""}, {}), s.name, s.format);
    EXPECT_EQ(r->count(), 0u);
    EXPECT_TRUE(testing::read_all(r).records.empty());
    EXPECT_TRUE(damage_of(r).empty());
  }
}

// What a checksum covers cannot change unseen: after any flipped bit, records are those that were
// written, up to an error.
TEST(RecordFormats, FlippedBitsAreFoundWhereThereAreChecksums) {
  std::mt19937_64 rng(7);
  for (const testing::Sample& s : testing::samples()) {
    if (!s.checked) continue;
    SCOPED_TRACE(s.name + " " + s.format);
    // Long files are mostly padding: their ends and some places between are enough here.
    for (int k = 0; k < 120; ++k) {
      std::size_t at = rng() % s.bytes.size();
      if (s.bytes.size() > 10000 && k % 4 != 0) at = rng() % 1500;
      std::string bytes = s.bytes;
      bytes[at] = static_cast<char>(bytes[at] ^ 1 << (rng() % 8));
      testing::Reading all;
      std::vector<DamageError> damage;
      try {
        const ReaderPtr r = open_bytes(bytes, s.name, s.format);
        all = testing::read_all(r);
        damage = damage_of(r);
      } catch (const UserError& e) {
        all.error = e.message();
      }
      ASSERT_LE(all.records.size(), s.records.size()) << at;
      for (std::size_t i = 0; i < all.records.size(); ++i)
        ASSERT_TRUE(all.records[i] == s.records[i]) << "bit at " << at << ", record " << i;
      if (all.error.empty()) {
        ASSERT_EQ(all.records.size(), s.records.size()) << at;
      }
      for (const DamageError& e : damage) {
        EXPECT_LE(e.begin(), bytes.size());
        EXPECT_LE(e.end(), bytes.size() + 1);
      }
      // In the files of chunks every byte is under a hash or must be zero.
      if (s.format == "riegeli" || s.format == "array_record") {
        ASSERT_TRUE(!damage.empty() || !all.error.empty()) << at;
      }
      if (s.format == "array_record" && damage.size() == 1 && at > 64) {
        EXPECT_GE(at, damage[0].begin());
        EXPECT_LE(at, damage[0].end());
      }
    }
  }
}

TEST(RecordFormats, CutFilesGiveAPrefixAndAnError) {
  for (const testing::Sample& s : testing::samples()) {
    SCOPED_TRACE(s.name + " " + s.format);
    const bool lines = s.format == "text" || s.format == "jsonl" || s.format == "csv";
    const bool plain_lines = lines && !s.name.ends_with(".zst") && !s.name.ends_with(".br");
    const std::size_t step = s.bytes.size() > 5000 ? s.bytes.size() / 50 : 3;
    for (std::size_t n = 0; n < s.bytes.size(); n += step) {
      testing::Reading all;
      try {
        all = testing::read_all(open_bytes(s.bytes.substr(0, n), s.name, s.format));
      } catch (const UserError& e) {
        all.error = e.message();
      }
      // A cut line is a line, and chunks and records may end at the cut.
      // So may samples of an archive; and nothing in a Bagz file tells where it was cut.
      if (plain_lines || s.format == "bagz" || s.name == "a.tar") continue;
      ASSERT_LE(all.records.size(), s.records.size()) << n;
      for (std::size_t i = 0; i < all.records.size(); ++i)
        ASSERT_TRUE(all.records[i] == s.records[i]) << "cut at " << n << ", record " << i;
    }
  }
}

TEST(RecordFormats, SurviveChangedFiles) {
  std::mt19937_64 rng(11);
  for (const testing::Sample& s : testing::samples())
    for (int k = 0; k < 60; ++k) testing::exercise(testing::mutate(s.bytes, rng), s.name, s.format);
}

TEST(RecordFormats, FoldersSurviveChangedFiles) {
  std::mt19937_64 rng(13);
  for (const testing::FolderSample& s : testing::folder_samples()) {
    EXPECT_TRUE(testing::exercise_folder(s)) << s.format;
    for (int k = 0; k < 40; ++k) {
      testing::FolderSample changed = s;
      auto it = changed.files.begin();
      std::advance(it, static_cast<std::ptrdiff_t>(rng() % changed.files.size()));
      it->second = testing::mutate(it->second, rng);
      testing::exercise_folder(changed);
    }
  }
}

// ---- particular formats

TEST(TfRecord, MatchesTheBytesOfTensorFlow) {
  std::string out = testing::written("x.tfrecord", {}, {{"abc", {}}, {"", {}}});
  EXPECT_EQ(to_hex(out),
            "0300000000000000b099490e6162636e57f121"
            "000000000000000029039807d8ea82a2");
}

TEST(TfRecord, GoesOnBehindARecordWhoseDataAreBad) {
  std::vector<Record> records;
  for (int i = 0; i < 6; ++i) records.push_back({"record " + std::to_string(i), {}});
  std::string bytes = testing::written("x.tfrecord", {}, records);
  bytes[24 * 2 + 14] ^= 1;  // data of record 2
  bytes[24 * 4 + 1] ^= 1;   // length of record 4
  const ReaderPtr r = open_bytes(bytes, "x.tfrecord");
  const std::vector<DamageError> damage = damage_of(r);
  ASSERT_EQ(damage.size(), 2u);
  EXPECT_EQ(damage[0].begin(), 48u);
  EXPECT_EQ(damage[0].end(), 72u);
  EXPECT_THAT(damage[0].reason(), HasSubstr("the data's checksum is"));
  EXPECT_EQ(damage[1].begin(), 96u);
  EXPECT_THAT(damage[1].reason(), HasSubstr("the length does not match its checksum"));
  const auto cursor = r->scan();
  std::vector<std::string> found;
  Record record;
  while (true) {
    try {
      if (!cursor->next(record)) break;
      found.push_back(record.bytes);
    } catch (const DamageError&) {
      ASSERT_TRUE(cursor->recover());
    }
  }
  EXPECT_THAT(found, ::testing::ElementsAre("record 0", "record 1", "record 3", "record 5"));
}

TEST(Lines, EndWithLineFeedsOrCarriageReturns) {
  const auto lines = [](std::string text) {
    std::vector<std::string> out;
    for (const Record& r : testing::read_all(open_bytes(std::move(text), "x.txt")).records)
      out.push_back(r.bytes);
    return out;
  };
  EXPECT_THAT(lines("a\nb\r\n\nc"), ::testing::ElementsAre("a", "b", "", "c"));
  EXPECT_THAT(lines("\n"), ::testing::ElementsAre(""));
}

TEST(JsonLines, NameTheLineThatIsNotJson) {
  const ReaderPtr r = open_bytes("{\"a\": 1}\n{\"a\": }\n\n[1, 2]\n", "x.jsonl");
  const testing::Reading all = testing::read_all(r);
  EXPECT_EQ(all.records.size(), 1u);
  EXPECT_THAT(all.error, HasSubstr("bytes 9-16"));
  EXPECT_EQ(r->count(), 3u);
  EXPECT_EQ(to_json(Value(r->read(2).fields)), "{\"value\": [1, 2]}");
  EXPECT_EQ(damage_of(r).size(), 1u);
  EXPECT_THAT(
      testing::read_all(open_bytes(std::string(600, '[') + std::string(600, ']'), "x.jsonl")).error,
      HasSubstr("deeper than 500 levels"));
}

TEST(Csv, RefusesRowsThatDoNotFit) {
  const auto error = [](std::string text) {
    try {
      return testing::read_all(open_bytes(std::move(text), "x.csv")).error;
    } catch (const Error& e) {
      return std::string(e.what());
    }
  };
  EXPECT_THAT(error("a,b\n1\n"), HasSubstr("the row has 1 fields, there are 2 columns"));
  EXPECT_THAT(error("a,b\n1,\"x\n"), HasSubstr("no closing quote"));
  EXPECT_THAT(error("a,b\n1,\"x\"y\n"), HasSubstr("a closing quote is followed by text"));
  EXPECT_THAT(error("a,a\n1,2\n"), HasSubstr("two columns are named \"a\""));
}

TEST(Riegeli, HashesAreThoseOfHighwayHash) {
  std::string bytes;
  for (int i = 0; i < 100; ++i) bytes += static_cast<char>(i);
  const auto hash = [&](std::size_t n) {
    return internal::riegeli_hash(std::string_view(bytes).substr(0, n));
  };
  EXPECT_EQ(internal::riegeli_hash(""), 0x72c3b1e9c0139fe1u);
  EXPECT_EQ(internal::riegeli_hash("a"), 0x24793c7da388949fu);
  EXPECT_EQ(internal::riegeli_hash("abc"), 0x672fe946c18d0ed9u);
  EXPECT_EQ(hash(16), 0x3e13be3a4140f4a7u);
  EXPECT_EQ(hash(31), 0x4d262a709c34ae7du);
  EXPECT_EQ(hash(32), 0xb73f6df550f9dce4u);
  EXPECT_EQ(hash(64), 0xe34b1e100f1322afu);
  EXPECT_EQ(hash(100), 0xe809487465a44f74u);
  const std::array<std::uint64_t, 4> key = {1, 2, 3, 4};
  for (std::size_t n = 0; n < 100; ++n) {
    const std::string_view s = std::string_view(bytes).substr(0, n);
    EXPECT_EQ(internal::highway_hash64(s, key), internal::highway_hash64_portable(s, key)) << n;
  }
}

TEST(Riegeli, ChunksEndWhereTheFormatSays) {
  using internal::chunk_end;
  EXPECT_EQ(chunk_end(0, 0, 0), 64u);
  EXPECT_EQ(chunk_end(64, 0, 65473), 65561u);
  EXPECT_EQ(chunk_end(64, 0, 65496), 65561u);
  EXPECT_EQ(chunk_end(64, 0, 65472), 65536u);
}

TEST(ArrayRecord, FileIsByteForByteThatOfTheRealWriter) {
  // array_record 0.8.6: this options text, no metadata chunk.
  const std::string out = testing::written("x.array_record", {"", "group_size:2,uncompressed"},
                                           {{"aa", {}}, {"bbb", {}}, {"c", {}}});
  ASSERT_EQ(out.size(), 131072u);
  EXPECT_EQ(to_hex(out.substr(0, 64)),
            "83af70d10d884a3f0000000000000000400000000000000091bac23c9287e1a9"
            "0000000000000000e19f13c0e9b1c37273000000000000000000000000000000");
  EXPECT_EQ(to_hex(out.substr(64, 49)),
            "f35f357d69bd6708090000000000000006349291ad0e7c1d72020000000000000500000000000000"
            "0002020361"
            "61626262");
  EXPECT_EQ(to_hex(out.substr(65536, 24)), "bc812e208ad95aea00000000000000006c00000000000000");
}

TEST(ArrayRecord, WithoutItsEndStillGivesItsRecordsInOrder) {
  for (const testing::Sample& s : testing::samples()) {
    if (s.format != "array_record") continue;
    std::string bytes = s.bytes;
    bytes[bytes.size() - 65536 + 30] ^= 4;
    const ReaderPtr r = open_bytes(bytes, s.name);
    EXPECT_EQ(r->format(), "array_record");
    const testing::Reading all = testing::read_all(r);
    EXPECT_EQ(all.records.size(), s.records.size());
    EXPECT_NE(all.error, "");
    EXPECT_NE(error_of([&] { r->count(); }), "no error");
  }
}

TEST(ArrayRecord, DamageInAChunkHidesOnlyThatChunk) {
  std::vector<Record> records;
  for (int i = 0; i < 20; ++i)
    records.push_back({std::string(1000, static_cast<char>('a' + i)), {}});
  std::string bytes = testing::written("x.array_record", {"", "uncompressed"}, records);
  bytes[64 + 7 * 1045 + 200] ^= 1;
  const ReaderPtr r = open_bytes(bytes, "x.array_record");
  EXPECT_EQ(r->read(6).bytes[0], 'g');
  EXPECT_EQ(r->read(8).bytes[0], 'i');
  EXPECT_THAT(error_of([&] { r->read(7); }), HasSubstr("do not match their hash"));
  const auto cursor = r->scan();
  Record record;
  int found = 0, errors = 0;
  while (true) {
    try {
      if (!cursor->next(record)) break;
      ++found;
    } catch (const DamageError&) {
      ++errors;
      ASSERT_TRUE(cursor->recover());
    }
  }
  EXPECT_EQ(found, 19);
  EXPECT_EQ(errors, 1);
  EXPECT_EQ(damage_of(r).size(), 1u);
}

TEST(Riegeli, TransposedPayloadsMayBeAnything) {
  // One state for records that are no messages, 100 of them: 24 bytes of transitions that each
  // stand for four moves, and one for three.
  std::string values, lengths;
  for (int i = 0; i < 100; ++i) {
    values += "xy";
    lengths += '\2';
  }
  std::string header;
  for (const unsigned v : {1u, 2u, 300u, 200u, 100u, 1u, 1u, 0u, 0u, 0u})
    for (unsigned x = v;; x >>= 7) {
      header += static_cast<char>(x >= 128 ? (x & 127) | 128 : x);
      if (x < 128) break;
    }
  const std::string payload = std::string(1, '\0') + static_cast<char>(header.size()) + header +
                              values + lengths + std::string(24, '\3') + '\2';
  internal::ChunkRecords records;
  std::string why;
  ASSERT_TRUE(internal::decode_transposed(payload, 100, 200, 1 << 20, records, why)) << why;
  EXPECT_EQ(records.ends.size(), 100u);
  EXPECT_EQ(records[99], "xy");
  std::mt19937_64 rng(3);
  for (int k = 0; k < 3000; ++k) {
    internal::ChunkRecords out;
    internal::decode_transposed(testing::mutate(payload, rng), 100, 200, 1 << 20, out, why);
  }
}

TEST(Example, MatchesTheBytesOfProtobuf) {
  Fields fields;
  fields.emplace_back("b", List{Bytes{"hi"}});
  fields.emplace_back("f", List{1.0, -2.5});
  fields.emplace_back("i", List{std::int64_t{1}, std::int64_t{300}, std::int64_t{-1}});
  const std::string bytes = encode_example(fields);
  EXPECT_EQ(to_hex(bytes),
            "0a380a0b0a016212060a040a0268690a110a0166120c120a0a080000803f000020c0"
            "0a160a016912111a0f0a0d01ac02ffffffffffffffffff01");
  EXPECT_TRUE(Value(decode_example(bytes)) == Value(fields));
  EXPECT_THAT(error_of([&] { decode_example(bytes.substr(0, 40)); }),
              HasSubstr("tf.train.Example"));
}

TEST(SideIndex, IsUsedWhileTheFileStays) {
  const std::string folder = make_temporary_directory("index");
  const std::string path = folder + "/x.txt";
  write_file(path, "a\nbb\nccc\n");
  EXPECT_EQ(write_index(path), path + ".xyidx");
  EXPECT_EQ(open_records(path)->read(2).bytes, "ccc");
  write_file(path, "a\nbb\nccc\ndddd\n");  // the index is stale now
  EXPECT_EQ(open_records(path)->count(), 4u);
  remove_tree(folder);
}

TEST(RecordFormats, TellWhatTheyNeedToKnow) {
  EXPECT_THAT(error_of([] { open_bytes("hello", "x.dat"); }),
              HasSubstr("neither its contents nor its name tell"));
  EXPECT_THAT(error_of([] { open_bytes("hello", "x.dat", "avro"); }), HasSubstr("\"avro\""));
  EXPECT_THAT(error_of([] {
                create_records("/tmp/x.array_record", {"", "group_size:0"});
              }),
              HasSubstr("an integer from 1"));
  EXPECT_THAT(error_of([] {
                create_records("/tmp/x.array_record", {"", "speed:9"});
              }),
              HasSubstr("\"speed\""));
  ReadOptions small;
  small.max_record_bytes = 10;
  const ReaderPtr r =
      open_records(memory_source("short\na line that is too long\n", "x.txt"), small);
  EXPECT_THAT(testing::read_all(r).error, HasSubstr("more than the limit of 10"));
}

}  // namespace
}  // namespace xylem::data
