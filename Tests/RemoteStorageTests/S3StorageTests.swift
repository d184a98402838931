import ArchiveStore
import Codecs
import Foundation
import RemoteStorage
import Synchronization
import SystemIO
import TestSupport
import Testing

/// The storage on an in-memory server that answers like S3.
struct S3StorageTests {
  /// Each storage has a separate prefix.
  @Test func meetsTheRequirementsOnAllStorages() throws {
    let server = try StoreServer()
    for (number, requirement) in StorageConformance.all.enumerated() {
      let storage = try testStorage(server.endpoint, prefix: ByteString("r/\(number)"))
      do { try requirement.check(storage) } catch { Issue.record("\(requirement): \(error)") }
    }
    let whole = try testStorage(server.endpoint, bucket: "other", prefix: "")
    for path in try whole.list(.root).map({ ObjectPath.root.appending($0) }) {
      #expect(path == ObjectPath("r"))
    }
  }

  @Test func everyRequestHasTheHashOfItsBodyAndASignature() throws {
    let server = try StoreServer()
    let options = testOptions([
      "AWS_ACCESS_KEY_ID": "KEY", "AWS_SECRET_ACCESS_KEY": "SECRET", "AWS_SESSION_TOKEN": "TOKEN",
    ])
    let storage = try testStorage(server.endpoint, options)
    try storage.touch(objectPath("a"))
    try storage.save([1, 2], as: objectPath("b"), by: objectPath("x"))
    _ = try storage.load(objectPath("b"), offset: 1, count: 1)
    try storage.remove([objectPath("a"), objectPath("b"), objectPath("c")])
    let requests = try server.requests()
    #expect(requests.map(\.method) == ["PUT", "PUT", "GET", "POST"])
    for request in requests {
      let value = try #require(request.headers["authorization"])
      #expect(value.hasPrefix("AWS4-HMAC-SHA256 Credential=KEY/"))
      #expect(value.contains("/us-east-1/s3/aws4_request"))
      #expect(value.contains("host;") && value.contains(";x-amz-security-token"))
      #expect(request.headers["x-amz-content-sha256"]?.count == 64)
      #expect(request.headers["x-amz-security-token"] == "TOKEN")
      #expect(request.headers["host"] == "127.0.0.1:\(server.port)")
      #expect((request.headers["content-md5"] != nil) == (request.method != "GET"))
      #expect(!"\(request.headers)".contains("SECRET"))
    }
  }

  @Test func unfinishedObjectsAreOnlyInUnnamedFilesOfTheUser() throws {
    let server = try StoreServer()
    let directory = try TemporaryDirectory("spool")
    let storage = try testStorage(
      server.endpoint, testOptions(["AWS_ACCESS_KEY_ID": "K"], directory))
    let writer = try storage.startObject(in: objectPath("lease"))
    try writer.append([UInt8](repeating: 1, count: 3 << 20))
    #expect(try directory.directory.names().isEmpty)
    #expect(try server.requests().isEmpty)
    writer.discard()
  }

  @Test func largeObjectsArePutInParts() throws {
    let server = try StoreServer(
      #"[{"query": "partNumber=2", "status": 500}, {"query": "partNumber=3", "drop": true, "done": true}]"#
    )
    var options = testOptions()
    (options.multipartThreshold, options.partSize) = (2 << 20, 1 << 20)
    let storage = try testStorage(server.endpoint, options)
    let bytes = (0..<3_500_000).map { UInt8(truncatingIfNeeded: $0 &* 13 &+ $0 >> 10) }
    try storage.save(bytes, as: objectPath("packs/large"), by: objectPath("lease"))
    #expect(try storage.load(objectPath("packs/large"), limit: 4 << 20) == bytes)
    let targets = try server.requests().filter { $0.method != "GET" }
    #expect(targets.count { $0.target.contains("partNumber=") } == 6)
    #expect(targets.first?.target.hasSuffix("?uploads=") == true)
    #expect(targets.last?.method == "POST")
    #expect(targets.last?.target.hasSuffix("?uploadId=upload%2B1") == true)
  }

  @Test func failedUploadInPartsIsDiscarded() throws {
    let server = try StoreServer(#"[{"query": "partNumber=2", "status": 403, "times": 0}]"#)
    var options = testOptions()
    (options.multipartThreshold, options.partSize) = (2 << 20, 1 << 20)
    let storage = try testStorage(server.endpoint, options)
    let found = failure {
      try storage.save(
        [UInt8](repeating: 1, count: 3 << 20), as: objectPath("packs/large"),
        by: objectPath("lease"))
    }
    #expect(found?.errorCode == .permissionDenied)
    // Later requests only check whether an earlier attempt has stored the object.
    #expect(try server.requests().last { $0.method != "GET" }?.method == "DELETE")
    #expect(try storage.status(objectPath("packs/large")) == nil)
  }

  /// The upload was completed, but the answer was lost: the repeated request finds no upload.
  @Test func lostAnswerToACompletedUploadIsNotAnError() throws {
    let server = try StoreServer(
      #"[{"method": "POST", "query": "uploadId", "done": true, "drop": true}]"#)
    var options = testOptions()
    (options.multipartThreshold, options.partSize) = (2 << 20, 1 << 20)
    let storage = try testStorage(server.endpoint, options)
    let bytes = [UInt8](repeating: 7, count: 3 << 20)
    try storage.save(bytes, as: objectPath("packs/large"), by: objectPath("lease"))
    #expect(try storage.load(objectPath("packs/large"), limit: 4 << 20) == bytes)
  }

  @Test func errorInTheBodyOfASuccessIsSeen() throws {
    let body = "<?xml version='1.0'?><Error><Code>InternalError</Code></Error>"
    let server = try StoreServer(
      #"[{"method": "POST", "query": "uploadId", "status": 200, "body": "\#(body)"}]"#)
    var options = testOptions()
    (options.multipartThreshold, options.partSize) = (2 << 20, 1 << 20)
    let storage = try testStorage(server.endpoint, options)
    let bytes = [UInt8](repeating: 7, count: 3 << 20)
    try storage.save(bytes, as: objectPath("packs/large"), by: objectPath("lease"))
    #expect(try storage.load(objectPath("packs/large"), limit: 4 << 20) == bytes)
  }

  // MARK: - Removal

  @Test func objectsAreRemovedByTheThousand() throws {
    let server = try StoreServer()
    let storage = try testStorage(server.endpoint)
    let all = try (0..<2050).map { try objectPath("o/\($0)") }
    try storage.remove(all)
    #expect(try server.requests().map(\.method) == ["POST", "POST", "POST"])
  }

  @Test(arguments: [
    #"{"method": "POST", "status": 501, "times": 0}"#,
    #"""
    {"method": "POST", "status": 200, "body": "<DeleteResult><Error><Key>some/place/b</Key>
      <Code>InternalError</Code></Error><Error><Key>some/place/c</Key><Code>SlowDown</Code></Error>
      <Error><Key>some/place/a</Key><Code>X</Code></Error></DeleteResult>"}
    """#,
  ]) func remainingObjectsAreRemovedOneByOne(rule: String) throws {
    let server = try StoreServer("[\(rule.replacing("\n", with: " "))]")
    let storage = try testStorage(server.endpoint)
    for name in ["a", "b", "c"] { try storage.touch(objectPath(name)) }
    try storage.remove([objectPath("a"), objectPath("b"), objectPath("c")])
    #expect(try storage.list(.root).isEmpty)
  }

  // MARK: - Creating exclusively

  @Test func storeThatIgnoresTheConditionCannotCreate() throws {
    let rule =
      #"{"method": "PUT", "path": "/probe", "status": 200, "headers": {"ETag": "x"}, "times": 0}"#
    for rule in [rule, #"{"method": "PUT", "path": "/probe", "status": 501, "times": 0}"#] {
      let server = try StoreServer("[\(rule)]")
      let storage = try testStorage(server.endpoint)
      #expect(!storage.canCreateExclusively)
      #expect(failure { _ = try storage.create([1], as: objectPath("a")) }?.code == .unsupported)
      #expect(try storage.list(.root).isEmpty)
      let count = try server.requests().count
      #expect(!storage.canCreateExclusively)
      #expect(try server.requests().count == count)
    }
  }

  @Test func objectThatWasCreatedBeforeTheAnswerWasLostIsOwn() throws {
    let server = try StoreServer(
      #"""
      [{"method": "PUT", "path": "/own", "done": true, "drop": true},
       {"method": "PUT", "path": "/late", "done": true, "status": 502},
       {"method": "PUT", "path": "/other", "skip": 1, "drop": true}]
      """#)
    let storage = try testStorage(server.endpoint)
    #expect(storage.canCreateExclusively)
    #expect(try storage.create([1], as: objectPath("own")))
    #expect(try storage.create([1], as: objectPath("late")))
    try storage.save([1], as: objectPath("other"), by: objectPath("x"))
    #expect(try !storage.create([1], as: objectPath("other")))
    #expect(try storage.list(.root) == ["late", "other", "own"])
  }

  // MARK: - Faults

  @Test(arguments: [
    #""status": 500"#, #""status": 503, "body": "<Error><Code>SlowDown</Code></Error>""#,
    #""status": 429"#, #""drop": true"#, #""drop": true, "done": true"#, #""truncate": 1"#,
    #""status": 504, "headers": {"Content-Type": "text/html"}, "body": "<html>late</html>""#,
  ]) func passingFaultsAreRetried(fault: String) throws {
    let server = try StoreServer("[{\(fault), \"skip\": 1, \"times\": 2}]")
    let storage = try testStorage(server.endpoint)
    try storage.touch(objectPath("first"))
    try storage.save([1, 2, 3], as: objectPath("a"), by: objectPath("x"))
    #expect(try storage.load(objectPath("a"), limit: 3) == [1, 2, 3])
    #expect(try storage.list(.root) == ["a", "first"])
    #expect(try server.requests().count >= 5)
  }

  /// A store that does not allow objects to be replaced refuses the attempt after one whose answer
  /// was lost.
  @Test(arguments: [3, 5 << 20]) func refusalsAfterALostAnswerAreNotErrors(size: Int) throws {
    let server = try StoreServer(
      #"[{"method": "PUT", "path": "packs/a", "done": true, "drop": true}, "#
        + #"{"method": "PUT", "path": "packs/", "status": 403, "times": 0}]"#)
    let storage = try testStorage(server.endpoint)
    let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 9) }
    try storage.save(bytes, as: objectPath("packs/a"), by: objectPath("lease"))
    #expect(try storage.load(objectPath("packs/a"), limit: size) == bytes)
    // This does not apply if the object has other bytes or does not exist.
    for (name, other) in [("packs/a", bytes.reversed()), ("packs/b", bytes)] {
      let found = failure {
        try storage.save(Array(other), as: objectPath(name), by: objectPath("lease"))
      }
      #expect(found?.errorCode == .permissionDenied)
    }
  }

  /// A store that recovers from an outage may first answer with errors, which are counted
  /// separately.
  @Test func errorsAfterAnOutageAreNotTheLastAttempt() throws {
    let server = try StoreServer(
      #"[{"path": "late", "drop": true, "times": 20}, {"path": "late", "status": 503, "times": 3}]"#
    )
    let storage = try testStorage(server.endpoint)
    try storage.touch(objectPath("early"))
    try storage.touch(objectPath("late"))
    #expect(try storage.status(objectPath("late")) != nil)
  }

  /// If a store or a proxy in front of it restarts, all requests fail for minutes: the client waits
  /// as for a lost connection.
  @Test(arguments: [429, 500, 502, 503, 504]) func aStoreThatRestartsIsWaitedFor(
    status: Int
  ) throws {
    let server = try StoreServer(#"[{"status": \#(status), "skip": 1, "times": 40}]"#)
    let storage = try testStorage(server.endpoint)
    try storage.touch(objectPath("early"))
    try storage.save([1], as: objectPath("late"), by: objectPath("x"))
    #expect(try storage.load(objectPath("late"), limit: 1) == [1])
    #expect(try server.requests().count > 40)
  }

  /// The client waits as long as for a lost connection, and only if the store has answered before.
  @Test(arguments: [0, 1]) func aStoreThatStaysAwayIsAnError(answered: Int) throws {
    let server = try StoreServer(#"[{"status": 503, "skip": \#(answered), "times": 0}]"#)
    var options = testOptions()
    options.retries.patience = 1
    let storage = try testStorage(server.endpoint, options)
    if answered > 0 { try storage.touch(objectPath("early")) }
    let found = failure { try storage.touch(objectPath("late")) }
    #expect(found?.reason.contains("ServiceUnavailable (status 503)") == true)
    #expect(found?.reason.contains("(after 8 attempts)") == (answered == 0))
  }

  /// The client does not wait if only one object cannot be read.
  @Test func anObjectThatIsNeverSentIsAnError() throws {
    let server = try StoreServer(#"[{"path": "place/a", "status": 503, "times": 0}]"#)
    let storage = try testStorage(server.endpoint)
    try storage.touch(objectPath("early"))
    let found = failure { _ = try storage.load(objectPath("a"), limit: 3) }
    #expect(found?.reason.contains("(after 8 attempts)") == true)
    #expect(found?.description.contains("'a' in the repository") == true)
    // The last request checks whether the store answers other requests.
    #expect(try server.requests().count == 1 + 8 + 1)
  }

  @Test func attemptsAreLimited() throws {
    let server = try StoreServer(
      #"[{"status": 503, "path": "place/a", "times": 0}, {"drop": true, "path": "place/b", "times": 0}]"#
    )
    var options = testOptions()
    (options.retries.attempts, options.retries.firstAttempts) = (3, 2)
    options.retries.patience = 0.3
    let storage = try testStorage(server.endpoint, options)
    let first = failure { try storage.touch(objectPath("b")) }
    #expect(first?.reason.hasSuffix("(after 2 attempts)") == true, "\(String(describing: first))")
    let answered = failure { try storage.touch(objectPath("a")) }
    #expect(answered?.reason.contains("ServiceUnavailable (status 503)") == true)
    #expect(answered?.reason.contains("(after 3 attempts)") == true)
    #expect(try server.requests().count == 5)
    // Once the store has answered, the client waits for a lost connection.
    #expect(failure { try storage.touch(objectPath("b")) } != nil)
    #expect(try server.requests().count > 8)
  }

  @Test func stopEndsTheWaitForAnotherAttempt() throws {
    let server = try StoreServer(#"[{"status": 503, "times": 0}]"#)
    let isStopping = Mutex(false)
    var options = testOptions()
    (options.retries.base, options.retries.maximum) = (30, 30)
    options.http.isStopping = { isStopping.withLock { $0 } }
    let storage = try testStorage(server.endpoint, options)
    Thread.detachNewThread {
      Host.pause(seconds: 0.3)
      isStopping.withLock { $0 = true }
    }
    #expect(failure { try storage.touch(objectPath("a")) }?.code == .interrupted)
  }

  /// After a stop, the program tries to clean up, but does not wait for a store that fails.
  @Test func cleaningUpAfterAStopIsShort() throws {
    let server = try StoreServer(
      #"[{"status": 503, "times": 0, "headers": {"Retry-After": "50"}}]"#)
    var options = testOptions()
    options.http.isStopping = { true }
    let storage = try testStorage(server.endpoint, options)
    let began = Host.monotonicSeconds()
    #expect(failure { try storage.remove(objectPath("a")) }?.errorCode != nil)
    #expect(Host.monotonicSeconds() - began < 10)
    #expect(try server.requests().count == 2)
  }

  @Test func versionsAreReadAndRemoved() throws {
    let server = try StoreServer(
      #"""
      [{"method": "HEAD", "status": 200, "headers": {"x-amz-version-id": "v 1"}},
       {"method": "HEAD", "status": 200, "headers": {"x-amz-version-id": "null"}},
       {"method": "HEAD", "status": 200},
       {"method": "GET", "query": "versionId=v%201", "status": 200, "body": "old"},
       {"method": "DELETE", "query": "versionId=v%201", "status": 204},
       {"method": "DELETE", "query": "versionId=v2", "status": 403, "times": 1},
       {"method": "DELETE", "query": "versionId=v2", "status": 204, "times": 1},
       {"method": "DELETE", "query": "versionId=v3", "status": 403, "times": 2}]
      """#)
    let storage = try testStorage(server.endpoint)
    let path = try objectPath("a")
    #expect(try storage.currentVersion(of: path) == "v 1")
    #expect(try storage.currentVersion(of: path) == nil)
    #expect(try storage.currentVersion(of: path) == nil)
    #expect(try storage.load(path, version: "v 1", limit: 3) == Array("old".utf8))
    try storage.remove(path, version: "v 1")
    // A lock in governance mode can be bypassed with the right permission.
    try storage.remove(path, version: "v2")
    #expect(failure { try storage.remove(path, version: "v3") }?.errorCode == .permissionDenied)
    let bypassed = try server.requests().compactMap {
      $0.headers["x-amz-bypass-governance-retention"]
    }
    #expect(bypassed == ["true", "true"])
  }

  @Test func refusedTokensAreRenewedOnce() throws {
    let server = try StoreServer(
      #"[{"status": 400, "body": "<Error><Code>ExpiredToken</Code></Error>", "times": 3}]"#)
    let calls = Mutex(0)
    var options = testOptions()
    options.environment = { name in
      if name == "AWS_ACCESS_KEY_ID" { calls.withLock { $0 += 1 } }
      return name.hasPrefix("AWS_ACCESS") || name.hasPrefix("AWS_SECRET") ? "K" : nil
    }
    let storage = try testStorage(server.endpoint, options)
    let found = failure { try storage.touch(objectPath("a")) }
    #expect(found?.reason.hasPrefix("the session token is invalid") == true)
    #expect(calls.withLock { $0 } == 2)
    try storage.touch(objectPath("a"))
  }

  @Test func listingsAreRequestedPageByPage() throws {
    let server = try StoreServer(#"[{"query": "continuation-token", "status": 500}]"#)
    let storage = try testStorage(server.endpoint)
    try storage.touch(objectPath("o/a"))
    var count = 0
    try storage.forEachObject(below: .root) { _, status in count += 1 }
    #expect(count == 1)
  }

  @Test(arguments: [
    (
      "<Contents><Key>elsewhere</Key><LastModified>2026-11-28T08:00:00Z</LastModified><Size>1</Size>"
        + "</Contents>", "which does not begin with 'some/place/'"
    ),
    (
      "<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>"
        + "<Contents><Key>some/place/a</Key><LastModified>2026-11-28T08:00:00Z</LastModified>"
        + "<Size>1</Size></Contents>", "lists 'some/place/a' after 'some/place/a'"
    ),
    (
      "<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>",
      "lists empty pages without end"
    ),
  ]) func inconsistentListingsAreRefused(content: String, words: String) throws {
    let server = try StoreServer(
      #"[{"query": "list-type", "status": 200, "times": 0, "#
        + #""body": "<ListBucketResult>\#(content)</ListBucketResult>"}]"#)
    let storage = try testStorage(server.endpoint)
    let found = failure { try storage.forEachObject(below: .root) { _, _ in } }
    #expect(found?.reason.contains(words) == true, "\(String(describing: found))")
    #expect(failure { _ = try storage.list(.root) } != nil)
  }

  @Test(arguments: [
    (
      #"{"query": "list-type", "status": 200, "body": "<ListBucketResult/>"}"#,
      "a new object is not listed"
    ),
    (
      #"{"method": "GET", "path": "/probe", "status": 200, "body": "x"}"#,
      "an object is read with other bytes"
    ),
    (#"{"method": "DELETE", "status": 204}"#, "a removed object is listed"),
    ("", ""),
  ]) func inconsistentStoresAreRefused(rule: String, reason: String) throws {
    let server = try StoreServer("[\(rule)]")
    let storage = try testStorage(server.endpoint)
    let found = failure { try storage.requireConsistency() }
    #expect((found?.reason ?? "") == reason)
    if reason.isEmpty { #expect(try storage.list(.root).isEmpty) }
  }
}
