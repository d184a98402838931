import ArchiveStore
import Foundation
import RemoteStorage
import Synchronization
import SystemIO
import TestSupport
import Testing

/// Requests to a server whose answers are given by rules.
struct HTTPClientTests {
  private func client(
    _ change: (inout HTTPConfiguration) -> Void = { _ in }
  ) -> HTTPClient {
    var configuration = HTTPConfiguration()
    configuration.proxy = ""
    change(&configuration)
    return HTTPClient(configuration)
  }

  private func failure(
    _ client: HTTPClient, _ request: HTTPRequest
  ) -> HTTPFailure? {
    var body: [UInt8] = []
    do {
      let response = try client.send(request, into: &body)
      Issue.record("answered with status \(response.status)")
      return nil
    } catch { return error }
  }

  @Test func bodiesAndHeadersArriveUnchanged() throws {
    let server = try StoreServer(
      #"[{"status": 203, "headers": {"X-One": " a: b ", "x-TWO": ""}, "body": "hello"}]"#)
    var body = [UInt8](repeating: 9, count: 100)
    let response = try client().send(
      HTTPRequest(.get, url: server.endpoint + "/a/../b%20c?x=%2F", headers: [("X-Sent", "")]),
      into: &body)
    #expect(response.status == 203)
    #expect(body == Array("hello".utf8))
    #expect(response.header("x-one") == "a: b")
    #expect(response.header("x-two") == "")
    #expect(response.header("x-three") == nil)
    let request = try #require(try server.requests().first)
    #expect(request.target == "/a/../b%20c?x=%2F")
    #expect(request.headers["x-sent"] == "")
    #expect(request.headers["expect"] == nil)
    #expect(request.headers["accept-encoding"] == "identity")
  }

  /// The caller's buffer is reused, and a new one is allocated with the right size at once.
  @Test func answersAreReceivedInTheCallersMemory() throws {
    let text = String(repeating: "x", count: 600_000)
    let server = try StoreServer(#"[{"status": 200, "body": "\#(text)", "times": 0}]"#)
    let (client, request) = (client(), HTTPRequest(.get, url: server.endpoint + "/a"))
    var body: [UInt8] = []
    _ = try client.send(request, into: &body)
    #expect(body.count == 600_000 && body.capacity < 700_000)
    let place = body.withUnsafeBufferPointer { Int(bitPattern: $0.baseAddress) }
    _ = try client.send(request, into: &body)
    #expect(body == Array(text.utf8))
    #expect(body.withUnsafeBufferPointer { Int(bitPattern: $0.baseAddress) } == place)
  }

  /// The system acknowledges the first parts of a new connection at once, and later ones after
  /// 40 ms.
  @Test func serversWithNaglesAlgorithmDoNotWaitForDelayedAcknowledgments() throws {
    let server = try StoreServer(#"[{"status": 200, "body": "x", "nagle": true, "times": 0}]"#)
    let (client, clock) = (client(), ContinuousClock())
    var body: [UInt8] = []
    let times = try (0..<40).map { _ in
      try clock.measure {
        _ = try client.send(HTTPRequest(.get, url: server.endpoint + "/x"), into: &body)
        #expect(body == Array("x".utf8))
      }
    }
    // The fastest one, because other programs may delay most of them.
    let fastest = try #require(times.suffix(20).min())
    #expect(fastest < .milliseconds(30))
  }

  @Test func connectionsAreKept() throws {
    let server = try StoreServer(#"[{"status": 200, "body": "x", "times": 0}]"#)
    let client = client()
    var body: [UInt8] = []
    for number in 0..<4 {
      let request = HTTPRequest(
        number % 2 == 0 ? .put : .get, url: server.endpoint + "/x",
        body: number == 0 ? .bytes([1, 2, 3]) : .none)
      _ = try client.send(request, into: &body)
    }
    let requests = try server.requests()
    #expect(requests.map(\.method) == ["PUT", "GET", "PUT", "GET"])
    #expect(requests.map(\.size) == [3, 0, 0, 0])
    #expect(Set(requests.map(\.connection)).count == 1)
  }

  @Test func filesAreSentFromARange() throws {
    let server = try StoreServer()
    let bytes = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 11) }
    let file = SpoolFile(try Descriptor.inMemory(bytes))
    let storage = try testStorage(server.endpoint)
    let client = S3Client(
      endpoint: try S3Endpoint(bucket: "bucket", region: "x", url: server.endpoint), region: "x",
      credentials: S3CredentialSource(S3Settings { _ in "K" }), http: testOptions().http)
    var answer: [UInt8] = []
    let request = S3Request(
      .put, key: "some/place/a", body: .file(file, offset: 1_000_000, count: 1_500_000))
    _ = try client.send(request, into: &answer)
    let found = try storage.load(objectPath("a"), limit: 4 << 20)
    #expect(found == Array(bytes[1_000_000..<2_500_000]))
    // A file that turns out too short must not be stored as if it were complete.
    let short = S3Request(.put, key: "b", body: .file(file, offset: 2_000_000, count: 1_500_000))
    #expect(throws: S3Failure.self) { try client.send(short, into: &answer) }
  }

  @Test func answersAreBounded() throws {
    let server = try StoreServer(
      """
      [{"path": "/a", "status": 200, "body": "123456789", "times": 0},
       {"path": "/b", "status": 200, "headers": {"X-Long": "\(String(repeating: "x", count: 60_000))",
        "X-More": "\(String(repeating: "y", count: 60_000))"}},
       {"path": "/c", "status": 404, "body": "\(String(repeating: "z", count: 200_000))"},
       {"path": "/d", "status": 500, "body": "\(String(repeating: "z", count: 2_000_000))"}]
      """)
    let client = client()
    let url = server.endpoint
    #expect(failure(client, HTTPRequest(.get, url: url + "/a", limit: 8))?.kind == .tooLarge)
    var body: [UInt8] = []
    _ = try client.send(HTTPRequest(.get, url: url + "/a", limit: 9), into: &body)
    #expect(body.count == 9)
    #expect(failure(client, HTTPRequest(.get, url: url + "/b"))?.kind == .unusable)
    let missing = try client.send(HTTPRequest(.get, url: url + "/c", limit: 1), into: &body)
    #expect(missing.status == 404)
    #expect(body.count == 64 << 10)
    #expect(failure(client, HTTPRequest(.get, url: url + "/d"))?.kind == .unusable)
  }

  @Test func redirectsAreNotFollowed() throws {
    let server = try StoreServer(
      """
      [{"path": "/from", "status": 307, "headers": {"Location": "http://127.0.0.1:{port}/to"}}]
      """)
    var body: [UInt8] = []
    let response = try client().send(
      HTTPRequest(.get, url: server.endpoint + "/from", headers: [("Authorization", "secret")]),
      into: &body)
    #expect(response.status == 307)
    #expect(try server.requests().map(\.target) == ["/from"])
  }

  @Test func lostConnectionsAndTimeoutsAreReported() throws {
    let server = try StoreServer(
      """
      [{"path": "/drop", "drop": true}, {"path": "/cut", "status": 200, "body": "12345", "truncate": 2},
       {"path": "/late", "status": 200, "delay": 20}]
      """)
    let client = client { configuration in
      (configuration.idleTimeout, configuration.connectTimeout) = (1, 2)
    }
    for (name, kind) in [
      ("/drop", HTTPFailure.Kind.dropped), ("/cut", .dropped), ("/late", .timedOut),
    ] {
      let found = failure(client, HTTPRequest(.get, url: server.endpoint + name))
      #expect(found?.kind == kind, "\(name): \(String(describing: found))")
      #expect(found?.isPassing == true)
    }
    let nobody = failure(client, HTTPRequest(.get, url: "http://127.0.0.1:1/"))
    #expect(nobody?.kind == .unreachable)
    let unknown = failure(client, HTTPRequest(.get, url: "http://no-such-host.invalid/"))
    // Without a name server, there is no answer at all.
    #expect(unknown?.kind == .unreachable || unknown?.kind == .timedOut)
  }

  /// On a slow link, the last bytes of a body may still be in the system's buffers, so the answer
  /// may take longer.
  @Test func theAnswerToABodyIsAwaitedLonger() throws {
    let server = try StoreServer(
      """
      [{"path": "/late", "status": 200, "delay": 5}, {"path": "/later", "status": 200, "delay": 20}]
      """)
    let body = HTTPBody.bytes([1])
    var answer: [UInt8] = []
    let late = HTTPRequest(.put, url: server.endpoint + "/late", body: body)
    #expect(try client { $0.idleTimeout = 1 }.send(late, into: &answer).status == 200)
    let later = HTTPRequest(.put, url: server.endpoint + "/later", body: body)
    #expect(failure(client { $0.bodyIdleTimeout = 1 }, later)?.kind == .timedOut)
  }

  /// A host that sends a byte from time to time is never idle.
  @Test func aHostThatSendsTooFewBytesTimesOut() throws {
    let body = String(repeating: "x", count: 5000)
    let server = try StoreServer(
      #"[{"path": "/drip", "status": 200, "body": "\#(body)", "drip": 0.02}]"#)
    let client = client { ($0.minimumRate, $0.rateWindow) = (10_000, 1) }
    let found = failure(client, HTTPRequest(.get, url: server.endpoint + "/drip"))
    #expect(found?.kind == .timedOut && found?.isPassing == true, "\(String(describing: found))")
    #expect(found?.reason == "fewer than 10000 bytes were transferred within 1 seconds")
  }

  @Test func otherProtocolsAndControlCharactersAreRefused() {
    for url in ["file:///etc/passwd", "ftp://127.0.0.1/", "", "http://a b/"] {
      #expect(failure(client(), HTTPRequest(.get, url: url))?.kind == .unusable, "\(url)")
    }
    let split = HTTPRequest(.get, url: "http://127.0.0.1:1/", headers: [("X", "a\r\nY: b")])
    #expect(failure(client(), split)?.kind == .unusable)
  }

  @Test func requestsEndWhenTheyAreCancelled() throws {
    let server = try StoreServer(#"[{"status": 200, "delay": 20, "times": 0, "path": "/late"}]"#)
    let isStopping = Mutex(false)
    let client = client { $0.isStopping = { isStopping.withLock { $0 } } }
    let began = Host.monotonicSeconds()
    Thread.detachNewThread {
      Host.pause(seconds: 0.2)
      isStopping.withLock { $0 = true }
    }
    #expect(failure(client, HTTPRequest(.get, url: server.endpoint + "/late"))?.kind == .cancelled)
    #expect(Host.monotonicSeconds() - began < 10)
    // Later requests, which clean up, are not cancelled.
    var body: [UInt8] = []
    let request = HTTPRequest(.put, url: server.endpoint + "/bucket/x", body: .bytes([1]))
    #expect(try client.send(request, into: &body).status == 400)
  }

  @Test func transfersAreObserved() throws {
    let server = try StoreServer(#"[{"status": 200, "body": "12345"}]"#)
    let counts = Mutex([0, 0, 0])
    let client = client { configuration in
      configuration.onRequest = { counts.withLock { $0[0] += 1 } }
      configuration.onTransfer = { direction, bytes in
        counts.withLock { $0[direction == .upload ? 1 : 2] += bytes }
      }
    }
    var body: [UInt8] = []
    let sent = HTTPBody.bytes([UInt8](repeating: 1, count: 70_000))
    _ = try client.send(HTTPRequest(.put, url: server.endpoint + "/x", body: sent), into: &body)
    #expect(counts.withLock { $0 } == [1, 70_000, 5])
  }

  @Test func proxyGetsTheWholeURL() throws {
    let server = try StoreServer(#"[{"status": 200, "body": "by the proxy"}]"#)
    let client = client { $0.proxy = server.endpoint }
    var body: [UInt8] = []
    _ = try client.send(HTTPRequest(.get, url: "http://store.example/a"), into: &body)
    #expect(body == Array("by the proxy".utf8))
    #expect(try server.requests().first?.target == "http://store.example/a")
  }

  @Test(.enabled(if: Program.exists("openssl"))) func certificatesAreChecked() throws {
    let directory = try TemporaryDirectory("tls")
    let (certificate, key) = (directory.string + "/cert.pem", directory.string + "/key.pem")
    let made = try Program.run(
      "openssl",
      [
        "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=store",
        "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate,
      ])
    #expect(made.code == 0, "\(made.errors)")
    let server = try StoreServer(certificate: (certificate, key))
    let url = "https://127.0.0.1:\(server.port)"
    let request = HTTPRequest(.get, url: url + "/bucket/x")
    let refused = failure(client(), request)
    #expect(refused?.kind == .insecure, "\(String(describing: refused))")
    var body: [UInt8] = []
    let trusting = client { $0.authorities = ByteString(certificate) }
    #expect(try trusting.send(request, into: &body).status == 404)
    // The certificate is for another name.
    let other = HTTPRequest(.get, url: "https://localhost:\(server.port)/bucket/x")
    #expect(failure(trusting, other)?.kind == .insecure)
    var options = testOptions()
    options.retries.firstAttempts = 1
    let found = RemoteStorageTests.failure {
      _ = try testStorage(url, options).list(.root)
    }
    #expect(found?.reason.hasPrefix("no secure connection to '127.0.0.1:") == true)
    #expect(found?.hint?.contains("AWS_CA_BUNDLE") == true)
    // The file can also be named by the settings of the AWS tools.
    let keys = ["AWS_ACCESS_KEY_ID": "KEY", "AWS_SECRET_ACCESS_KEY": "SECRET"]
    try directory.write("[default]\nca_bundle = \(certificate)\n", at: ".aws/config")
    for more in [["AWS_CA_BUNDLE": certificate], ["HOME": directory.string]] {
      let storage = try testStorage(url, testOptions(keys.merging(more) { $1 }))
      try storage.touch(objectPath("a"))
      #expect(try storage.list(.root) == ["a"])
    }
  }
}
