"""A server of objects for tests: answers as S3 does, from memory, or as a script says.

usage: store.py [SCRIPT [CERTIFICATE KEY]]

It listens on a free port of 127.0.0.1, by TLS with a certificate, prints the port, and ends when its
standard input ends. It checks no signatures: other tests do that with real stores.

Each line of standard input is a command as JSON, which is answered with a line of JSON:

  {"do": "rules", "rules": […]}   replaces the rules, and forgets the requests so far
  {"do": "save", "name": …}       keeps a copy of all objects under a name
  {"do": "load", "name": …}       replaces all objects by the copy
  {"do": "advance", "seconds": …} moves the clock that dates the objects
  {"do": "mode", "mode": …}       "append-only": neither overwrites nor removes objects; "versions": keeps
                                  earlier versions; "locked": also refuses to remove one, and bodies
                                  without their MD5; "unchecked": does not compare a body with its
                                  SHA-256; "huge": states 2^64 - 1 bytes as the size of each
                                  object in listings; "": none of them
  {"do": "down", "after": N}      the link drops after N further requests: connections are closed without
                                  an answer; with "done": true the first of these requests is done
  {"do": "key", "name": …}        accepts only requests that are signed with this access key
  {"do": "up"}                    the link is up again; the answer has the number of "lost" requests
  {"do": "fill", "prefix": …, "count": N}  makes N empty objects, whose keys are a prefix and a number
  {"do": "search", "text": …}     the keys of the objects whose content has a text
  {"do": "log"}, {"do": "keys"}   the requests so far without lost ones, the keys of all objects

SCRIPT is a file of JSON: a list of rules. The first rule that applies to a request is carried out,
and only once unless it has "times". A request is answered from memory if none applies.

  method, path, query   apply only to requests with this method, with this text in their path, with
                        this text in their query
  skip                  the number of requests to let pass first (default: 0)
  times                 the number of requests to which it applies (default: 1; 0: all)
  delay                 seconds to wait first
  done                  true: do the request before the answer of the rule, which is lost or an error
  drop                  true: close the connection without an answer
  truncate              the number of bytes of the body after which the connection is closed
  nagle                 true: send the parts of the answer as a server with Nagle's algorithm does
  drip                  the seconds before each byte of the body
  status, headers, body the answer; {port} in a header is the port of this server

A request to /-/log is answered with the requests so far, as JSON; one to /-/log?take also forgets
them. One to /-/sleep?SECONDS makes all objects older, as if the store had waited.
"""

import base64
import hashlib
import json
import re
import socket
import ssl
import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from xml.etree import ElementTree
from xml.sax.saxutils import escape


class Store:
    """Buckets, objects and rules, for all threads."""

    def __init__(self, rules):
        self.lock = threading.RLock()
        self.rules = rules
        self.log = []
        self.objects = {}
        self.uploads = {}
        self.count = 0
        self.saved = {}
        self.offset = 0.0
        self.mode = ""
        self.key = ""
        self.versions = {}
        # The requests until the link drops, whether the first lost one is done, and the lost ones.
        self.left, self.is_first_done, self.lost = None, False, 0

    def control(self, command):
        """Carries out a command of standard input and returns the answer."""
        with self.lock:
            action = command["do"]
            if action == "rules":
                self.rules, self.log = command["rules"], []
            elif action == "save":
                self.saved[command["name"]] = dict(self.objects)
            elif action == "load":
                self.objects = dict(self.saved[command["name"]])
            elif action == "advance":
                self.offset += command["seconds"]
            elif action == "mode":
                self.mode = command["mode"]
            elif action == "key":
                self.key = command["name"]
            elif action == "fill":
                for number in range(command["count"]):
                    self.objects[f"{command['prefix']}{number}"] = (b"", time.time() + self.offset, {})
            elif action == "search":
                text = command["text"].encode()
                return [key for key, (body, *_) in self.objects.items() if text in body]
            elif action == "down":
                self.left, self.lost = command["after"], 0
                self.is_first_done = command.get("done", False)
            elif action == "up":
                self.left = None
                return {"lost": self.lost}
            elif action == "log":
                return self.log
            elif action == "keys":
                return sorted(self.objects)
            return {}

    @property
    def keeps_versions(self):
        return self.mode in ("versions", "locked")

    def put(self, key, body, kept):
        """Stores an object and returns its version, or None."""
        kept = dict(kept)
        version = None
        if self.keeps_versions:
            self.count += 1
            version = kept["x-amz-version-id"] = f"v{self.count}"
            self.versions.setdefault(key, {})[version] = (body, time.time() + self.offset, kept)
        self.objects[key] = (body, time.time() + self.offset, kept)
        return version

    def remove(self, key):
        """Removes an object, of which versions may stay. Returns whether that is permitted."""
        if self.mode == "append-only":
            return False
        self.objects.pop(key, None)
        return True

    def rule(self, method, path, query):
        """Returns the rule for a request, or None."""
        with self.lock:
            for rule in self.rules:
                if rule.get("method", method) != method or rule.get("path", "") not in path:
                    continue
                if rule.get("query", "") not in query:
                    continue
                if rule.get("skip", 0) > 0:
                    rule["skip"] -= 1
                    continue
                times = rule.get("times", 1)
                if times < 0:
                    continue
                if times > 0:
                    rule["times"] = times - 1 or -1
                return rule
        return None

    def loses(self):
        """Whether the link is down for the next request, and whether that one is done nevertheless."""
        with self.lock:
            if self.left is None:
                return False, False
            if self.left > 0:
                self.left -= 1
                return False, False
            self.lost += 1
            return True, self.is_first_done and self.lost == 1

    def sleep(self, seconds):
        """Makes all objects older."""
        with self.lock:
            for key, (body, at, kept) in self.objects.items():
                self.objects[key] = (body, at - seconds, kept)


class Answer:
    """A status, headers and a body."""

    def __init__(self, status=200, headers=None, body=b""):
        self.status, self.headers, self.body = status, headers or {}, body


def error(status, code, message=""):
    text = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>"
    return Answer(status, {"Content-Type": "application/xml"}, text.encode())


def document(text):
    return Answer(200, {"Content-Type": "application/xml"}, text.encode())


class Request:
    """One request to the store: path style, /bucket/key."""

    def __init__(self, store, method, target, headers, body):
        self.store, self.method, self.headers, self.body = store, method, headers, body
        path, _, query = target.partition("?")
        parts = urllib.parse.unquote(path).lstrip("/").split("/", 1)
        self.bucket, self.key = parts[0], parts[1] if len(parts) > 1 else ""
        self.query = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))

    def answer(self):
        if f"Credential={self.store.key}" not in self.headers.get("authorization", "Credential="):
            return error(403, "InvalidAccessKeyId")
        if self.bucket == "no-such-bucket":
            return error(404, "NoSuchBucket")
        refusal = self.refusal_of_body()
        if refusal:
            return refusal
        with self.store.lock:
            if not self.key:
                return self.of_bucket()
            if "uploads" in self.query or "uploadId" in self.query:
                return self.of_upload()
            return getattr(self, self.method.lower())()

    def refusal_of_body(self):
        """The answer to a body that differs from its hashes, or has not those that are needed."""
        if not self.body:
            return None
        sha = self.headers.get("x-amz-content-sha256")
        if self.store.mode != "unchecked" and sha != hashlib.sha256(self.body).hexdigest():
            return error(400, "XAmzContentSHA256Mismatch", "the body differs from its SHA-256")
        wanted = self.headers.get("content-md5")
        sum = base64.b64encode(hashlib.md5(self.body).digest()).decode()
        if wanted is not None and wanted != sum:
            return error(400, "BadDigest", "the body differs from its MD5")
        if wanted is None and self.store.mode == "locked":
            return error(400, "InvalidRequest", "Content-MD5 is required with Object Lock parameters")
        return None

    # Objects

    def put(self):
        if self.headers.get("if-none-match") == "*" and self.key in self.store.objects:
            return error(412, "PreconditionFailed")
        if self.store.mode == "append-only" and self.key in self.store.objects:
            return error(403, "AccessDenied", "overwriting is not permitted")
        kept = {n: v for n, v in self.headers.items() if n.startswith("x-amz-meta-")}
        return self.keep(self.body, kept)

    def keep(self, body, kept):
        version = self.store.put(self.key, body, kept)
        headers = {"ETag": '"' + hashlib.md5(body).hexdigest() + '"'}
        return Answer(200, headers | ({"x-amz-version-id": version} if version else {}))

    def get(self):
        objects, key = self.store.objects, self.key
        if "versionId" in self.query:
            objects, key = self.store.versions.get(self.key, {}), self.query["versionId"]
        if key not in objects:
            return error(404, "NoSuchKey")
        body, _, kept = objects[key]
        wanted = re.match(r"bytes=(\d+)-(\d+)$", self.headers.get("range", ""))
        if not wanted:
            return Answer(200, kept, body)
        first, last = int(wanted[1]), int(wanted[2])
        if first >= len(body):
            return error(416, "InvalidRange")
        return Answer(206, kept, body[first : last + 1])

    head = get

    def delete(self):
        if "versionId" in self.query:
            if self.store.mode == "locked":
                return error(403, "AccessDenied", "the object is locked")
            self.store.versions.get(self.key, {}).pop(self.query["versionId"], None)
            return Answer(204)
        if not self.store.remove(self.key):
            return error(403, "AccessDenied", "removal is not permitted")
        return Answer(204, {"x-amz-delete-marker": "true"} if self.store.keeps_versions else {})

    def post(self):
        return error(405, "MethodNotAllowed")

    # Uploads in parts

    def of_upload(self):
        if self.method == "POST" and "uploads" in self.query:
            self.store.count += 1
            name = f"upload+{self.store.count}"
            self.store.uploads[name] = {}
            return document(
                f"<InitiateMultipartUploadResult><UploadId>{name}</UploadId>"
                "</InitiateMultipartUploadResult>")
        parts = self.store.uploads.get(self.query["uploadId"])
        if parts is None:
            return error(404, "NoSuchUpload")
        if self.method == "PUT":
            parts[int(self.query["partNumber"])] = self.body
            return Answer(200, {"ETag": '"' + hashlib.md5(self.body).hexdigest() + '"'})
        del self.store.uploads[self.query["uploadId"]]
        if self.method == "DELETE":
            return Answer(204)
        self.keep(b"".join(body for _, body in sorted(parts.items())), {})
        return document("<CompleteMultipartUploadResult></CompleteMultipartUploadResult>")

    # The bucket

    def of_bucket(self):
        if self.method == "POST" and "delete" in self.query:
            keys = [e.text for e in ElementTree.fromstring(self.body).iter() if e.tag.endswith("Key")]
            text = "".join(
                f"<Error><Key>{escape(key)}</Key><Code>AccessDenied</Code></Error>"
                for key in keys if not self.store.remove(key))
            return document(f"<DeleteResult>{text}</DeleteResult>")
        if self.method == "GET":
            return self.list()
        return error(405, "MethodNotAllowed")

    def list(self):
        prefix, delimiter = self.query.get("prefix", ""), self.query.get("delimiter", "")
        after = self.query.get("continuation-token", self.query.get("start-after", ""))
        names = {}
        keys = [key for key in self.store.objects if key.startswith(prefix)]
        for key in sorted(keys, key=str.encode):
            rest, found, _ = key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "")
            names[prefix + rest + delimiter if found else key] = not found
        names = [item for item in names.items() if item[0] > after]
        size = int(self.query.get("max-keys", "1000"))
        text = "".join(self.entry(*item) for item in names[:size])
        more = len(names) > size
        last = names[size - 1][0] if more else ""
        token = f"<NextContinuationToken>{escape(last)}</NextContinuationToken>"
        return document(
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<EncodingType>url</EncodingType><IsTruncated>{str(more).lower()}</IsTruncated>"
            f"{token if more else ''}{text}</ListBucketResult>")

    def entry(self, name, is_object):
        shown = urllib.parse.quote_plus(name, safe="/")
        if not is_object:
            return f"<CommonPrefixes><Prefix>{shown}</Prefix></CommonPrefixes>"
        body, at, _ = self.store.objects[name]
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + f".{int(at * 1000) % 1000:03}Z"
        size = 2**64 - 1 if self.store.mode == "huge" else len(body)
        return (
            f"<Contents><Key>{shown}</Key><LastModified>{moment}</LastModified>"
            f"<Size>{size}</Size></Contents>")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Headers and body in one segment: otherwise each answer waits 40 ms for an acknowledgment.
    wbufsize = -1
    disable_nagle_algorithm = True
    store = None
    # The entry of the log for the last request of this connection.
    entry = None

    def log_message(self, *_):
        pass

    def handle_request(self):
        size = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(size)
        if len(body) < size:
            # The client was killed. No store keeps a part of an object.
            self.close_connection = True
            return None
        if self.path in ("/-/log", "/-/log?take"):
            with self.store.lock:
                log = self.store.log
                if self.path != "/-/log":
                    self.store.log = []
            return self.send(Answer(200, {}, json.dumps(log).encode()))
        if self.path.startswith("/-/sleep?"):
            self.store.sleep(float(self.path.partition("?")[2]))
            return self.send(Answer())
        headers = {name.lower(): value for name, value in self.headers.items()}
        entry = {
            "method": self.command, "target": self.path, "headers": headers, "size": len(body),
            "connection": self.client_address[1], "sent": 0}
        self.entry = entry
        is_lost, is_done = self.store.loses()
        if not is_lost or is_done:
            with self.store.lock:
                self.store.log.append(entry)
        # The target of a request to a proxy is a URL.
        target = re.sub(r"^https?://[^/]*", "", self.path)
        path, _, query = target.partition("?")
        request = Request(self.store, self.command, target, headers, body)
        if is_lost:
            if is_done:
                request.answer()
            self.close_connection = True
            return None
        rule = self.store.rule(self.command, path, query)
        if rule is None:
            return self.send(request.answer())
        time.sleep(rule.get("delay", 0))
        done = request.answer() if rule.get("done") or "status" not in rule else None
        if rule.get("drop"):
            self.close_connection = True
            return None
        if "status" in rule:
            port = str(self.server.server_address[1])
            headers = {n: v.replace("{port}", port) for n, v in rule.get("headers", {}).items()}
            done = Answer(rule["status"], headers, rule.get("body", "").encode())
        if rule.get("nagle"):
            return self.send_with_nagle(done)
        return self.send(done, rule.get("truncate"), rule.get("drip"))

    def send_with_nagle(self, answer):
        """Sends headers, body and end apart, each when what is before it is acknowledged: as Ceph does."""
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 0)
        self.send_response(answer.status)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for part in (b"%x\r\n%s\r\n" % (len(answer.body), answer.body), b"0\r\n\r\n"):
            self.wfile.flush()
            self.wfile.write(part)

    def send(self, answer, truncate=None, drip=None):
        # Without a second date.
        start = self.send_response_only if "Date" in answer.headers else self.send_response
        start(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.status != 204:
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        if self.entry:
            self.entry["sent"] = len(answer.body[:truncate])
        if drip:
            try:
                for byte in answer.body:
                    time.sleep(drip)
                    self.wfile.write(bytes([byte]))
                    self.wfile.flush()
            except OSError:
                self.close_connection = True
            return
        self.wfile.write(answer.body[:truncate])
        if truncate is not None:
            self.wfile.flush()
            self.close_connection = True

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_request


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *_):
        pass  # a client that closes its connection


def main(arguments):
    rules = []
    if len(arguments) > 1:
        with open(arguments[1], encoding="utf-8") as file:
            rules = json.load(file)
    Handler.store = Store(rules)
    server = Server(("127.0.0.1", 0), Handler)
    if len(arguments) > 3:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*arguments[2:4])
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    for line in sys.stdin:
        print(json.dumps(Handler.store.control(json.loads(line))), flush=True)


main(sys.argv)
