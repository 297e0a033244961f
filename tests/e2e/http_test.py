"""Record files behind a server on this machine: ranges, retries, the cache, and what servers do wrong."""

import http.server
import json
import os
import pathlib
import ssl
import subprocess
import tempfile
import threading
import unittest
import unittest.mock

import built


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves `server.files` by name. `server.faults` is a list of what the next answers do wrong."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        server = self.server
        with server.lock:
            fault = server.faults.pop(0) if server.faults else None
            server.requests.append((self.path, self.headers.get("Range"), fault))
        name = self.path.split("?")[0].lstrip("/")
        if name.startswith("moved/"):
            self.send_response(302)
            self.send_header("Location", "/" + name[len("moved/"):])
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if fault in (404, 429, 500, 503):
            self.send_response(fault)
            if fault == 429:
                self.send_header("Retry-After", "0")
            self.send_header("Content-Length", "4")
            self.end_headers()
            self.wfile.write(b"oops")
            return
        if fault == "drop":
            self.close_connection = True
            self.connection.close()
            return
        data = server.files.get(name)
        if data is None:
            self.send_error(404)
            return
        ranged = server.ranges and self.headers.get("Range")
        begin, end = 0, len(data)
        if ranged:
            a, b = ranged.removeprefix("bytes=").split("-")
            begin, end = int(a), min(int(b) + 1, len(data))
        if ranged and begin >= len(data):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(data)}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body = data[begin:end]
        self.send_response(206 if ranged else 200)
        if ranged:
            shift = 1 if fault == "other range" else 0
            self.send_header("Content-Range", f"bytes {begin + shift}-{end - 1 + shift}/{len(data)}")
        self.send_header("ETag", f'"{hash(data):x}"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if fault == "cut":
            self.wfile.write(body[:len(body) // 2])
            self.close_connection = True
            return
        self.wfile.write(body)


class Http(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.server = self.serve()
        lines = "".join(json.dumps({"n": i, "text": "x" * (900 + i % 97)}) + "\n" for i in range(12000))
        (self.folder / "a.jsonl").write_text(lines)
        built.run(built.XYLEM, "data", "convert", self.folder / "a.jsonl", "--out", self.folder / "a.array_record",
                  "--options", "group_size:5,uncompressed")
        for path in self.folder.iterdir():
            self.server.files[path.name] = path.read_bytes()
        self.assertGreater(len(self.server.files["a.array_record"]), 10 << 20)

    def serve(self, context=None):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.files, server.faults, server.requests, server.ranges = {}, [], [], True
        server.lock = threading.Lock()
        if context:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server

    def address(self, name):
        return f"http://127.0.0.1:{self.server.server_port}/{name}"

    def cat(self, path, *arguments, **environment):
        env = {k: v for k, v in os.environ.items() if "proxy" not in k.lower()} | environment
        env["XYLEM_HTTP_BACKOFF_MS"] = "20"
        done = subprocess.run([str(built.XYLEM), "data", "cat", "--json", str(path), *map(str, arguments)],
                              capture_output=True, text=True, env=env, timeout=100)
        return done.returncode, done.stdout, done.stderr

    def test_ranges_give_what_the_file_gives(self):
        for name in ("a.array_record", "a.jsonl"):
            want = self.cat(self.folder / name)
            self.assertEqual(want[0], 0)
            self.assertEqual(self.cat(self.address(name + "?version=3")), want)
            self.assertEqual(self.cat(self.address("moved/" + name), "--start", 7001, "--count", 3),
                             self.cat(self.folder / name, "--start", 7001, "--count", 3))

    def test_a_few_records_cost_a_few_ranges(self):
        self.cat(self.address("a.array_record"), "--start", 5000, "--count", 2)
        size = len(self.server.files["a.array_record"])
        asked = 0
        for _, text, _ in self.server.requests:
            a, b = text.removeprefix("bytes=").split("-")
            asked += min(int(b) + 1, size) - int(a)
        self.assertLess(asked, size // 2)

    def test_failures_that_pass_are_tried_again(self):
        want = self.cat(self.folder / "a.jsonl")
        self.server.faults = ["drop", None, 503, 429, "cut", None, 500, "drop", "cut"]
        self.assertEqual(self.cat(self.address("a.jsonl")), want)
        self.assertEqual(self.server.faults, [])

    def test_failures_that_stay_are_errors_behind_what_came_before(self):
        self.server.faults = [404]
        status, out, err = self.cat(self.address("a.jsonl"))
        self.assertEqual((status, out, err.count("\n")), (1, "", 1))
        self.assertIn("status 404", err)
        self.assertEqual(len(self.server.requests), 1)
        self.server.faults = [None, None] + [503] * 6
        status, out, err = self.cat(self.address("a.jsonl"))
        self.assertEqual((status, err.count("\n")), (1, 1))
        self.assertIn("status 503 (oops), after 6 attempts", err)
        whole = self.cat(self.folder / "a.jsonl")[1]
        self.assertTrue(out and whole.startswith(out) and len(out) < len(whole))
        self.server.faults = ["other range"]
        status, out, err = self.cat(self.address("a.jsonl"))
        self.assertEqual((status, out), (1, ""))
        self.assertIn("does not say which bytes", err)

    def test_a_file_that_is_replaced_is_noticed(self):
        before = self.server.files["a.jsonl"]
        original = Handler.do_GET

        def replace(handler):
            original(handler)
            if len(self.server.requests) == 2:
                self.server.files["a.jsonl"] = before[::-1]

        with unittest.mock.patch.object(Handler, "do_GET", replace):
            status, _, err = self.cat(self.address("a.jsonl"))
        self.assertEqual(status, 1)
        self.assertIn("another file than before", err)

    def test_servers_without_ranges_send_the_file_once(self):
        self.server.ranges = False
        for name in ("a.array_record", "a.jsonl"):
            self.server.requests.clear()
            self.assertEqual(self.cat(self.address(name)), self.cat(self.folder / name))
            self.assertEqual(len(self.server.requests), 1)
        self.server.files["e.txt"] = b""
        self.assertEqual(self.cat(self.address("e.txt")), (0, "", ""))
        self.server.faults = ["cut"]
        self.assertEqual(self.cat(self.address("a.jsonl")), self.cat(self.folder / "a.jsonl"))

    def test_an_empty_file_is_empty(self):
        self.server.files["e.txt"] = b""
        self.assertEqual(self.cat(self.address("e.txt")), (0, "", ""))

    def test_the_cache_spares_the_network_and_survives_damage(self):
        cache = {"XYLEM_HTTP_CACHE": str(self.folder / "cache")}
        want = self.cat(self.folder / "a.array_record")
        self.assertEqual(self.cat(self.address("a.array_record"), **cache), want)
        first = len(self.server.requests)
        self.server.requests.clear()
        self.assertEqual(self.cat(self.address("a.array_record"), **cache), want)
        self.assertEqual(len(self.server.requests), 1)      # is it still the same file?
        self.assertGreater(first, 2)
        blocks = sorted((self.folder / "cache").glob("*/*"))
        for i, path in enumerate(blocks[1:4]):
            data = bytearray(path.read_bytes())
            if i == 0:
                data[100] ^= 1
            path.write_bytes(data if i == 0 else data[:50] if i == 1 else b"")
        self.assertEqual(self.cat(self.address("a.array_record"), **cache), want)
        self.server.files["a.array_record"] = self.server.files["a.array_record"][:-65536]
        self.assertEqual(self.cat(self.address("a.array_record"), **cache)[0], 1)

    def test_other_schemes_and_dead_servers_are_named(self):
        status, _, err = self.cat("s3://bucket/a.jsonl")
        self.assertEqual(status, 1)
        self.assertIn("http:// or https://", err)
        port = self.server.server_port
        self.server.shutdown()
        self.server.server_close()
        status, _, err = self.cat(f"http://127.0.0.1:{port}/a.jsonl")
        self.assertEqual((status, err.count("\n")), (1, 1))
        self.assertIn("after 6 attempts", err)

    def test_https_holds_certificates_against_the_ones_that_are_trusted(self):
        key, certificate = self.folder / "key.pem", self.folder / "cert.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
                       check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        server = self.serve(context)
        server.files = self.server.files
        address = f"https://127.0.0.1:{server.server_port}/a.jsonl"
        self.assertEqual(self.cat(address, CURL_CA_BUNDLE=str(certificate)), self.cat(self.folder / "a.jsonl"))
        status, out, err = self.cat(address)
        self.assertEqual((status, out), (1, ""))
        self.assertIn("certificate", err)


if __name__ == "__main__":
    unittest.main()
