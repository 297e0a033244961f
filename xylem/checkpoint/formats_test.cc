#include <gtest/gtest.h>
#include <zstd.h>

#include <random>
#include <string>
#include <vector>

#include "xylem/base/bytes.h"
#include "xylem/base/error.h"
#include "xylem/checkpoint/checkpoint.h"
#include "xylem/checkpoint/flax_msgpack.h"
#include "xylem/checkpoint/npz.h"
#include "xylem/checkpoint/ocdbt/database.h"
#include "xylem/checkpoint/ocdbt/writer.h"
#include "xylem/checkpoint/orbax/tree_item.h"
#include "xylem/checkpoint/orbax/writer.h"
#include "xylem/checkpoint/storage/codec.h"
#include "xylem/checkpoint/struct_tree.h"
#include "xylem/checkpoint/zarr/array.h"

namespace xylem::checkpoint {
namespace {

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.message();
  }
  return "none";
}

std::string random_bytes(std::mt19937& random, std::size_t n, int values = 256) {
  std::string out(n, '\0');
  for (char& c : out) c = static_cast<char>(random() % static_cast<unsigned>(values));
  return out;
}

std::vector<std::vector<Codec>> codec_chains() {
  const Codec stored{CodecKind::kZstd, kStoredLevel, true}, zstd{CodecKind::kZstd, 3, true},
      gzip{CodecKind::kGzip, 6, false}, zlib{CodecKind::kZlib, 1, false},
      bz2{CodecKind::kBz2, 1, false}, crc{CodecKind::kCrc32c, 0, true};
  return {{},    {stored},    {zstd},           {gzip},        {zlib},
          {crc}, {zstd, crc}, {crc, gzip, crc}, {stored, crc}, {bz2}};
}

TEST(Codecs, GiveBackWhatTheyTook) {
  std::mt19937 random(1);
  for (const auto& chain : codec_chains())
    for (const std::size_t n : {0, 1, 100, 131071, 131072, 131073, 300000}) {
      const std::string data = random_bytes(random, n, 7);
      const std::string encoded = encode(chain, as_byte_span(data));
      std::string out(n, '\1');
      decode(chain, as_byte_span(encoded), std::as_writable_bytes(std::span<char>(out)), "x");
      EXPECT_EQ(out, data);
      EXPECT_EQ(decode_unsized(chain, as_byte_span(encoded), n + n / 8 + 100, "x"), data);
      if (n == 0) continue;
      EXPECT_NE(error_of([&] { decode_unsized(chain, as_byte_span(encoded), n - 1, "x"); }),
                "none");
    }
}

TEST(Codecs, RefuseDamagedData) {
  std::mt19937 random(2);
  for (const auto& chain : codec_chains()) {
    if (chain.empty()) continue;
    const std::string data = random_bytes(random, 5000, 9),
                      good = encode(chain, as_byte_span(data));
    std::string out(data.size(), '\0');
    const auto read = [&](const std::string& s) {
      return error_of([&] {
        decode(chain, as_byte_span(s), std::as_writable_bytes(std::span<char>(out)), "chunk x");
      });
    };
    for (std::size_t cut = 0; cut < good.size(); cut += 1 + good.size() / 50)
      EXPECT_NE(read(good.substr(0, cut)), "none");
    EXPECT_NE(read(good + "x"), "none");
    for (int i = 0; i < 200; ++i) {
      std::string bad = good;
      bad[random() % bad.size()] ^= static_cast<char>(1 << random() % 8);
      const std::string e = read(bad);
      // A flipped bit in a header may mean the same; the contents may not differ.
      EXPECT_TRUE(e != "none" || out == data);
    }
  }
}

TEST(Codecs, ReadZstdFramesThatDoNotStateTheirSize) {
  const std::string data(300000, 'a');
  ZSTD_CCtx* c = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(c, ZSTD_c_contentSizeFlag, 0);
  std::string frame(ZSTD_compressBound(data.size()), '\0');
  frame.resize(ZSTD_compress2(c, frame.data(), frame.size(), data.data(), data.size()));
  ZSTD_freeCCtx(c);
  const Codec zstd;
  std::string out(data.size(), '\0');
  decode({&zstd, 1}, as_byte_span(frame), std::as_writable_bytes(std::span<char>(out)), "x");
  EXPECT_EQ(out, data);
  EXPECT_EQ(decode_unsized({&zstd, 1}, as_byte_span(frame), 1 << 20, "x"), data);
  out.resize(data.size() + 1);
  EXPECT_NE(
      error_of([&] {
        decode({&zstd, 1}, as_byte_span(frame), std::as_writable_bytes(std::span<char>(out)), "x");
      }).find("300001"),
      std::string::npos);
}

TEST(Codecs, StoredFramesAreFramesForTheLibraryToo) {
  std::mt19937 random(3);
  for (const std::size_t n : {0, 5, 131072, 400000}) {
    const std::string data = random_bytes(random, n);
    const Codec stored{CodecKind::kZstd, kStoredLevel, true};
    const std::string frame = encode({&stored, 1}, as_byte_span(data));
    EXPECT_EQ(frame.size(), stored_frame_size(n));
    std::string out(n + 1, '\0');
    EXPECT_EQ(ZSTD_decompress(out.data(), out.size(), frame.data(), frame.size()), n);
    EXPECT_EQ(out.substr(0, n), data);
  }
}

TEST(Lz4, ReadsLiteralsAndOverlappingMatches) {
  // "abc" and six bytes from three back, then the literal "z".
  const std::string in(
      "\x32"
      "abc\x03\x00\x10z",
      8);
  std::string out(10, '\0');
  EXPECT_TRUE(internal::lz4_decode(as_byte_span(in), std::as_writable_bytes(std::span<char>(out))));
  EXPECT_EQ(out, "abcabcabcz");
  std::mt19937 random(4);
  for (int i = 0; i < 20000; ++i) {
    const std::string noise = random_bytes(random, random() % 40);
    internal::lz4_decode(as_byte_span(noise), std::as_writable_bytes(std::span<char>(out)));
    internal::blosclz_decode(as_byte_span(noise), std::as_writable_bytes(std::span<char>(out)));
  }
}

// ---- OCDBT

TEST(Ocdbt, WritesTreesOfAnyHeightThatReadBack) {
  std::mt19937 random(5);
  for (const std::uint64_t node : {200, 1000, 100000}) {
    const FileSystem fs = FileSystem::memory();
    ocdbt::Config config = ocdbt::default_config();
    config.max_decoded_node_bytes = node;
    config.compressed = node != 1000;
    std::map<std::string, std::string> all{{"", "the empty key"}};
    for (int i = 0; i < 300; ++i)
      all["dir" + std::to_string(i % 7) + "/" + random_bytes(random, random() % 12) +
          std::to_string(i)] = random_bytes(random, i % 3 == 0 ? 2000 : random() % 50);
    ocdbt::DataFileWriter data(fs, "/db", 20000);
    std::vector<ocdbt::KeyValue> keys;
    for (const auto& [k, v] : all) {
      ocdbt::KeyValue kv;
      kv.key = k;
      kv.inlined = v.size() < 1024;
      if (kv.inlined)
        kv.value = v;
      else
        kv.reference = data.append(v);
      keys.insert(keys.begin() + static_cast<std::ptrdiff_t>(random() % (keys.size() + 1)), kv);
    }
    data.close();
    ocdbt::write_database(fs, "/db", keys, config);
    const ocdbt::Database db(fs, "/db");
    std::vector<std::string> defects, listed;
    db.check([&](std::string_view d) { defects.emplace_back(d); });
    EXPECT_EQ(defects, std::vector<std::string>{});
    db.for_each("", [&](std::string_view k) { listed.emplace_back(k); });
    ASSERT_EQ(listed.size(), all.size());
    std::size_t i = 0;
    for (const auto& [k, v] : all) {
      EXPECT_EQ(listed[i++], k);
      ASSERT_TRUE(db.find(k).has_value()) << k;
      EXPECT_EQ(db.find(k)->read_all(), v);
      EXPECT_FALSE(db.find(k + "!").has_value());
    }
    std::size_t below = 0;
    db.for_each("dir3/", [&](std::string_view) { ++below; });
    EXPECT_EQ(below, 43u);
  }
}

TEST(Ocdbt, MergesTheDatabasesOfProcesses) {
  const FileSystem fs = FileSystem::memory();
  for (int p = 0; p < 3; ++p) {
    const std::string directory = "/item/ocdbt.process_" + std::to_string(p);
    ocdbt::DataFileWriter data(fs, directory);
    std::vector<ocdbt::KeyValue> keys(2);
    keys[0].key = "w/.zarray";
    keys[0].value = "same";
    keys[1].key = "w/" + std::to_string(p);
    keys[1].inlined = false;
    keys[1].reference = data.append(std::string(5000, static_cast<char>('a' + p)));
    data.close();
    ocdbt::write_database(fs, directory, keys, ocdbt::default_config());
  }
  ocdbt::merge_databases(fs, "/item", {"ocdbt.process_0/", "ocdbt.process_1/", "ocdbt.process_2/"},
                         ocdbt::default_config());
  const ocdbt::Database db(fs, "/item");
  EXPECT_EQ(db.num_keys(), 4u);
  for (int p = 0; p < 3; ++p)
    EXPECT_EQ(db.find("w/" + std::to_string(p))->read_all(),
              std::string(5000, static_cast<char>('a' + p)));
  db.check([](std::string_view d) { ADD_FAILURE() << d; });
}

TEST(Ocdbt, AnEmptyDatabaseHasNoKeys) {
  const FileSystem fs = FileSystem::memory();
  ocdbt::write_database(fs, "/db", {}, ocdbt::default_config());
  const ocdbt::Database db(fs, "/db");
  EXPECT_EQ(db.num_keys(), 0u);
  EXPECT_FALSE(db.find("a").has_value());
}

// A database whose manifest names a file outside its directory.
TEST(Ocdbt, RefusesFilesOutsideTheDirectory) {
  for (const char* path : {"../secret", "/etc/passwd", "a/../../b", "d//x", ""}) {
    ocdbt::Manifest m;
    m.config = ocdbt::default_config();
    ocdbt::Version v;
    v.root = {{"", path}, 0, 10};
    m.versions = {v};
    const std::string bytes = ocdbt::encode_manifest(m);
    EXPECT_NE(error_of([&] { ocdbt::decode_manifest(as_byte_span(bytes), "m"); }), "none") << path;
  }
}

// ---- zarr

HostArray iota(DType t, const Dims& dims) {
  HostArray a = HostArray(DType::kF64, dims);
  for (std::int64_t i = 0; i < a.size(); ++i) a.as<double>()[i] = static_cast<double>(i % 251);
  return a.astype(t);
}

TEST(Zarr, AnyBoxOfAnyChunkGridIsWhatItIsInTheArray) {
  std::mt19937 random(6);
  for (int round = 0; round < 60; ++round) {
    const FileSystem fs = FileSystem::memory();
    const int rank = static_cast<int>(random() % 4);
    Dims shape, shard;
    for (int i = 0; i < rank; ++i) {
      shape.push_back(1 + static_cast<std::int64_t>(random() % 9));
      shard.push_back(1 + static_cast<std::int64_t>(random() % static_cast<unsigned>(shape[i])));
    }
    const DType types[] = {DType::kF32, DType::kBF16, DType::kI8,
                           DType::kC64, DType::kI4,   DType::kBool};
    Leaf leaf = array_leaf({{"w", false}}, iota(types[round % 6], shape));
    leaf.shard = shard;
    orbax::WriteOptions o;
    o.use_zarr3 = random() % 2 != 0;
    o.use_ocdbt = random() % 2 != 0;
    o.codec = codec_chains()[1 + random() % 2][0];
    if (random() % 4 == 0) o.codec.reset();
    fs.make_directories("/t");
    orbax::write_tree(fs, "/t", {leaf}, o);
    const auto item = orbax::open_tree(fs, "/t");
    EXPECT_TRUE(item->read(0).bit_equal(leaf.value));
    EXPECT_TRUE(item->read_named("w").bit_equal(leaf.value));
    for (int k = 0; k < 8; ++k) {
      Box box;
      for (int i = 0; i < rank; ++i) {
        box.start.push_back(static_cast<std::int64_t>(random()) % (shape[i] + 1));
        box.shape.push_back(static_cast<std::int64_t>(random()) % (shape[i] - box.start[i] + 1));
      }
      EXPECT_TRUE(item->read(0, box).bit_equal(cut_box(leaf.value, box, "x")));
    }
    if (rank > 0) {
      Box outside{Dims(static_cast<std::size_t>(rank), 0), shape};
      outside.start[0] = 1;
      EXPECT_NE(error_of([&] { item->read(0, outside); }).find("within the shape"),
                std::string::npos);
    }
    item->check([](std::string_view w, std::string_view r) { ADD_FAILURE() << w << ": " << r; });
  }
}

TEST(Zarr, ReadsOrderEndiannessSeparatorsAndFillValues) {
  const FileSystem fs = FileSystem::memory();
  fs.make_directories("/a/f/0");
  fs.write_file("/a/f/.zarray",
                R"({"chunks":[2,3],"compressor":null,"dimension_separator":"/","dtype":">i2",
                    "fill_value":-7,"filters":[],"order":"F","shape":[2,5],"zarr_format":2})");
  // Column by column, big endian: [[1, 3, 5], [2, 4, 6]].
  fs.write_file("/a/f/0/0", std::string("\0\1\0\2\0\3\0\4\0\5\0\6", 12));
  const auto store = std::shared_ptr<const KvStore>(open_directory_store(fs, "/a"));
  const auto a = zarr::ZarrArray::open(store, "f");
  ASSERT_TRUE(a.has_value());
  EXPECT_EQ(a->read().to_vector<std::int16_t>(),
            (std::vector<std::int16_t>{1, 3, 5, -7, -7, 2, 4, 6, -7, -7}));
  EXPECT_NE(error_of([&] { a->read({.missing_is_error = true}); }).find("0/1"), std::string::npos);
}

TEST(Zarr, MetadataThatIsWrongIsRefused) {
  const std::string v2 =
      R"({"chunks":[2],"compressor":null,"dtype":"<f4","fill_value":null,"filters":null,"order":"C","shape":[4],"zarr_format":2})";
  const std::string v3 = zarr::format_v3(
      zarr::make_metadata(3, DType::kF32, {4}, {2}, Codec{CodecKind::kZstd, 1, true}));
  EXPECT_EQ(error_of([&] { zarr::parse_v2(v2, "m"); }), "none");
  EXPECT_EQ(error_of([&] { zarr::parse_v3(v3, "m"); }), "none");
  const auto replaced = [](std::string s, const std::string& from, const std::string& to) {
    const std::size_t at = s.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return s.replace(at, from.size(), to);
  };
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"[2]", "[0]"},
           {"[2]", "[2,2]"},
           {"[4]", "[-4]"},
           {"[4]", "[4611686018427387904]"},
           {"\"<f4\"", "\"<f5\""},
           {"\"<f4\"", "7"},
           {"\"C\"", "\"X\""},
           {"2}", "3}"},
           {"\"filters\":null", "\"filters\":[{\"id\":\"delta\"}]"},
           {"\"compressor\":null", "\"compressor\":{\"id\":\"lzma\"}"}})
    EXPECT_NE(error_of([&] { zarr::parse_v2(replaced(v2, from, to), "m"); }), "none") << to;
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"regular", "other"},
           {"\"zstd\"", "\"lzma\""},
           {"crc32c", "zstd"},
           {"float32", "float33"},
           {"\"array\"", "\"group\""},
           {"{\"chunk_grid\"", "{\"x\": 1, \"chunk_grid\""}})
    EXPECT_NE(error_of([&] { zarr::parse_v3(replaced(v3, from, to), "m"); }), "none") << to;
}

TEST(Zarr, ChunksAreChosenAsOrbaxDoes) {
  EXPECT_EQ(zarr::choose_chunk({8192, 1024}, {4096, 1024}, 4, 4 << 20), (Dims{1024, 1024}));
  EXPECT_EQ(zarr::choose_chunk({8, 12}, {8, 12}, 4, 0), (Dims{8, 12}));
  EXPECT_EQ(zarr::choose_chunk({0, 3}, {0, 3}, 4, 0), (Dims{1, 3}));
  EXPECT_NE(error_of([] { zarr::choose_chunk({8}, {8}, 8, 4); }), "none");
}

// ---- trees and files

LeafTree sample_tree() {
  return {
      array_leaf(parse_path_text("a.w"), iota(DType::kF32, {300, 7})),
      array_leaf(parse_path_text("a.b"), iota(DType::kBF16, {9})),
      string_leaf(parse_path_text("text"), "ключ/~ \"x\""),
      empty_leaf(parse_path_text("none"), LeafKind::kNone),
      array_leaf(parse_path_text("list[0]"), HostArray::scalar(std::int64_t{7}), LeafKind::kScalar),
      empty_leaf(parse_path_text("list[1]"), LeafKind::kEmptyDict)};
}

TEST(OrbaxTree, RefusesNamesThatCollide) {
  const FileSystem fs = FileSystem::memory();
  fs.make_directories("/t");
  const auto save = [&](LeafTree t) { return error_of([&] { orbax::write_tree(fs, "/t", t); }); };
  const HostArray one = HostArray::scalar(1.0f);
  EXPECT_NE(save({array_leaf({{"a", false}, {"b", false}}, one), array_leaf({{"a.b", false}}, one)})
                .find("\"a.b\" twice"),
            std::string::npos);
  EXPECT_NE(save({}).find("empty"), std::string::npos);
  EXPECT_NE(save({array_leaf({{"x", false}}, HostArray(DType::kU4, {2}))}).find("uint4"),
            std::string::npos);
  EXPECT_NE(save({array_leaf({{"\xff", false}}, one)}).find("UTF-8"), std::string::npos);
}

// Every file of a checkpoint, cut, flipped and replaced by noise: errors or the same contents, no
// crash and no unbounded memory.
TEST(OrbaxTree, HostileFilesGiveErrorsOnly) {
  std::mt19937 random(7);
  for (const bool zarr3 : {false, true}) {
    const FileSystem fs = FileSystem::memory();
    orbax::StepOptions o;
    o.use_zarr3 = zarr3;
    o.codec = Codec{CodecKind::kZstd, zarr3 ? 3 : kStoredLevel, true};
    std::map<std::string, orbax::StepItem> items;
    items["default"].tree = sample_tree();
    items["m"].kind = orbax::StepItem::Kind::kJson;
    items["m"].json = "{\"x\": [1, 2]}";
    fs.make_directories("/r/3");
    orbax::write_step(fs, "/r/3", "/r/3", items, o);
    std::vector<std::string> files;
    const std::function<void(const std::string&)> walk = [&](const std::string& d) {
      for (const DirectoryEntry& e : fs.list(d))
        e.is_directory ? walk(d + "/" + e.name) : files.push_back(d + "/" + e.name);
    };
    walk("/r/3");
    const auto read = [&] {
      return error_of([&] {
        const Checkpoint c = open_checkpoint(fs, "/r");
        for (const auto& [name, item] : c.items) {
          if (item->json() != nullptr) continue;
          item->check([](std::string_view, std::string_view) {});
          read_tree(*item);
        }
      });
    };
    EXPECT_EQ(read(), "none");
    for (const std::string& f : files) {
      const std::string good = fs.read_file(f);
      for (int i = 0; i < 60; ++i) {
        std::string bad = good;
        switch (random() % 4) {
          case 0: bad.resize(random() % (bad.size() + 1)); break;
          case 1:
            if (!bad.empty()) bad[random() % bad.size()] ^= static_cast<char>(1 << random() % 8);
            break;
          case 2: bad = random_bytes(random, random() % 300); break;
          default:
            if (!bad.empty()) bad[random() % bad.size()] = static_cast<char>(random());
            bad += random_bytes(random, random() % 5);
        }
        fs.write_file(f, bad);
        read();
      }
      fs.write_file(f, good);
    }
    EXPECT_EQ(read(), "none");
  }
}

TEST(FlaxMsgpack, ReadsMapsArraysAndScalars) {
  // {"a": ndarray ext (shape [2], "int16", 4 bytes), "b": {"0": nil, "1": -3}, "c": 1.5}
  ByteWriter payload;
  payload.write_string(std::string("\x93\x91\x02\xa5int16\xc4\x04\x01\x00\xfe\xff", 15));
  ByteWriter w;
  w.write_string(
      "\x83\xa1"
      "a\xc7");
  w.write(static_cast<std::uint8_t>(payload.size()));
  w.write(std::int8_t{1});
  w.write_string(payload.str());
  w.write_string(
      std::string("\xa1"
                  "b\x82\xa1"
                  "0\xc0\xa1"
                  "1\xfd\xa1"
                  "c\xcb\x3f\xf8\0\0\0\0\0\0",
                  20));
  const LeafTree t = read_flax_msgpack(w.str(), "f");
  ASSERT_EQ(t.size(), 4u);
  EXPECT_EQ(t[0].value.to_vector<std::int16_t>(), (std::vector<std::int16_t>{1, -2}));
  EXPECT_EQ(t[1].kind, LeafKind::kNone);
  EXPECT_EQ(t[2].value.at(0), -3);
  EXPECT_EQ(param_name(t[2].path), "b.1");
  EXPECT_EQ(t[3].value.at(0), 1.5);
  for (std::size_t n = 0; n < w.size(); ++n)
    EXPECT_NE(error_of([&] { read_flax_msgpack(w.str().substr(0, n), "f"); }), "none");
  std::mt19937 random(8);
  for (int i = 0; i < 5000; ++i) {
    std::string bad = w.str();
    bad[random() % bad.size()] = static_cast<char>(random());
    error_of([&] { read_flax_msgpack(bad, "f"); });
  }
  EXPECT_NE(error_of([] { read_flax_msgpack(std::string(100000, '\x91'), "f"); }).find("nested"),
            std::string::npos);
}

TEST(Npz, ComesBackAndDamageIsRefused) {
  const FileSystem fs = FileSystem::memory();
  const NamedArrays arrays{{"w", iota(DType::kF32, {3, 4})},
                           {"é/x", iota(DType::kI8, {0})},
                           {"s", HostArray::scalar(std::uint64_t{1} << 63)}};
  write_npz(fs, "/x.npz", arrays);
  const auto item = open_npz(fs, "/x.npz");
  ASSERT_EQ(item->leaves().size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(param_name(item->leaves()[i].path), arrays[i].name);
    EXPECT_TRUE(item->read(i).bit_equal(arrays[i].value));
  }
  EXPECT_NE(error_of([&] {
              write_npz(fs, "/y.npz", {arrays[0], arrays[0]});
            }).find("twice"),
            std::string::npos);
  EXPECT_FALSE(fs.exists("/y.npz"));
  const std::string good = fs.read_file("/x.npz");
  for (std::size_t n = 0; n < good.size(); ++n) {
    fs.write_file("/x.npz", good.substr(0, n));
    EXPECT_NE(error_of([&] { open_npz(fs, "/x.npz"); }), "none") << n;
  }
}

TEST(Transform, RenamesStacksAndSplits) {
  LeafTree t;
  for (int i = 0; i < 3; ++i)
    t.push_back(array_leaf(parse_path_text("layers[" + std::to_string(i) + "].w"),
                           iota(DType::kF32, {2, 2 + 0 * i})));
  t.push_back(array_leaf(parse_path_text("old.name"), iota(DType::kI8, {4})));
  t.push_back(array_leaf(parse_path_text("extra"), iota(DType::kI8, {4})));
  const auto source = make_memory_item(t);
  using Kind = Transform::Kind;
  const auto item = transform(*source, {{Kind::kStack, "layers\\.(\\d+)\\.w", "layers.w"},
                                        {Kind::kRename, "old\\.(.*)", "new.$1"},
                                        {Kind::kDrop, "extra", ""}});
  ASSERT_EQ(item->leaves().size(), 2u);
  EXPECT_EQ(item->read_named("layers.w").dims(), (Dims{3, 2, 2}));
  EXPECT_EQ(item->read_named("new.name").dims(), (Dims{4}));
  const auto back = transform(*item, {{Kind::kUnstack, "layers\\.w", "layers.{}.w"}});
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_TRUE(back->read_named("layers." + std::to_string(i) + ".w").bit_equal(t[i].value));
  EXPECT_NE(error_of([&] {
              transform(*source, {{Kind::kRename, "(", ""}});
            }).find("regular expression"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              transform(*source, {{Kind::kRename, "old.*|extra", "same"}});
            }).find("twice"),
            std::string::npos);
}

struct Pair {
  Array w, b;
};

TEST(StructTree, RestoreListsTheFirstDifferences) {
  const Pair like{Array(iota(DType::kF32, {2})), Array(iota(DType::kI32, {3}))};
  const LeafTree saved{array_leaf(parse_path_text("w"), iota(DType::kF32, {4})),
                       array_leaf(parse_path_text("c"), iota(DType::kF32, {1}))};
  const std::string e = error_of([&] { from_leaf_tree(like, saved, "restore x"); });
  for (const char* part :
       {"restore x", "w must be f32[2]", "f32[4]", "b must be i32[3]", "also has c"})
    EXPECT_NE(e.find(part), std::string::npos) << e;
  RestoreReport report;
  const LeafTree half{array_leaf(parse_path_text("w"), iota(DType::kF64, {2})), saved[1]};
  const Pair p =
      from_leaf_tree(like, half, "restore x",
                     {.allow_missing = true, .allow_unexpected = true, .cast = true}, &report);
  EXPECT_EQ(p.w.dtype(), DType::kF32);
  EXPECT_EQ(p.b.to_vector<std::int32_t>(), (std::vector<std::int32_t>{0, 1, 2}));
  EXPECT_EQ(report.missing, std::vector<std::string>{"b"});
  EXPECT_EQ(report.unexpected, std::vector<std::string>{"c"});
  EXPECT_EQ(report.cast, std::vector<std::string>{"w"});
}

}  // namespace
}  // namespace xylem::checkpoint
