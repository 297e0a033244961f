"""Checkpoints read from a web server on this machine."""

import http.server
import pathlib
import shutil
import subprocess
import tempfile
import threading
import unittest

import built


class Handler(http.server.SimpleHTTPRequestHandler):
    """Files by ranges, and directories as pages of links."""
    ranges = True
    broken = 0
    requests = 0

    def log_message(self, *arguments):
        pass

    def send_head(self):
        type(self).requests += 1
        if type(self).broken > 0:
            type(self).broken -= 1
            self.send_error(503)
            return None
        path = pathlib.Path(self.translate_path(self.path))
        wanted = self.headers.get("Range")
        if not (self.ranges and wanted and path.is_file()):
            return super().send_head()
        first, last = wanted.removeprefix("bytes=").split("-")
        data = path.read_bytes()[int(first):int(last) + 1]
        self.send_response(206)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        return None


class HttpCheckpoints(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        tool = built.tool("e2e", "save")
        subprocess.run([tool, self.folder / "run one", self.folder / "c", "0", "1", "1", "2"], check=True, capture_output=True)
        self.handler = type("ThisHandler", (Handler,), {})
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), lambda *a: self.handler(*a, directory=str(self.folder)))
        thread = threading.Thread(target=self.server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def run_verb(self, *arguments, status=0):
        done = subprocess.run([built.XYLEM, "checkpoint", *map(str, arguments)], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout if status == 0 else done.stdout + done.stderr

    def test_every_reading_verb_gives_what_it_gives_for_files(self):
        local = self.folder / "run one"
        for below in ("", "/2", "/2/params", "/2/state"):
            self.assertEqual(self.run_verb("show", "--json", "--values", f"{self.url}/run one{below}"),
                             self.run_verb("show", "--json", "--values", f"{local}{below}"))
        self.assertEqual(self.run_verb("kv", "--json", f"{self.url}/run one/2/params"), self.run_verb("kv", "--json", local / "2" / "params"))
        self.assertEqual(self.run_verb("verify", f"{self.url}/run one"), "")
        self.assertIn('"step": 2', self.run_verb("ls", "--json", f"{self.url}/run one"))
        self.run_verb("diff", f"{self.url}/run one/2", local / "2")
        self.run_verb("convert", f"{self.url}/run one/2", self.folder / "copy" / "2", "--to", "orbax-v0")
        self.run_verb("diff", self.folder / "copy" / "2", local / "2")
        self.run_verb("convert", local / "2", self.folder / "x.safetensors", "--item", "params")
        self.assertEqual(self.run_verb("show", "--json", "--values", f"{self.url}/x.safetensors"),
                         self.run_verb("show", "--json", "--values", self.folder / "x.safetensors"))

    def test_failures_are_told(self):
        self.assertIn("nothing is there", self.run_verb("show", f"{self.url}/missing", status=1))
        self.assertIn("Connection refused", self.run_verb("show", "http://127.0.0.1:9/x", status=1))
        self.handler.broken = 2
        self.run_verb("show", "--quick", f"{self.url}/run one/2")
        damaged = self.folder / "damaged"
        shutil.copytree(self.folder / "run one" / "2", damaged)
        (damaged / "params" / "manifest.ocdbt").write_bytes(b"x")
        self.assertIn(f"{self.url}/damaged: params", self.run_verb("verify", f"{self.url}/damaged", status=1))
        self.run_verb("convert", self.folder / "run one" / "2", self.folder / "x.safetensors", "--item", "params")
        self.handler.ranges = False
        self.assertIn("read http", self.run_verb("show", f"{self.url}/x.safetensors", status=1))


if __name__ == "__main__":
    unittest.main()
