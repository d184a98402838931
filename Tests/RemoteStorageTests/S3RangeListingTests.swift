import ArchiveStore
import Codecs
import RemoteStorage
import SystemIO
import TestSupport
import Testing

/// Several directories of a bucket that are listed together: the result is the same as one by one,
/// with fewer requests, even if there are thousands of other objects between them or the store
/// ignores where a listing should begin.
struct S3RangeListingTests {
  private func directories(_ names: [String]) throws -> [ObjectPath] {
    try names.map { try objectPath($0) }
  }

  /// Returns the objects of directories listed together, in the order in which they are reported.
  private func together(_ storage: S3Storage, _ names: [String]) throws -> [String] {
    var found: [String] = []
    try storage.forEachObject(belowAny: directories(names)) { path, _ in found.append("\(path)") }
    return found
  }

  /// Returns the objects of directories listed one by one.
  private func oneByOne(_ storage: S3Storage, _ names: [String]) throws -> [String] {
    var found: [String] = []
    for directory in try directories(names) {
      try storage.forEachObject(below: directory) { path, _ in found.append("\(path)") }
    }
    return found
  }

  private func fill(_ storage: S3Storage, _ names: [String]) throws {
    for name in names { try storage.touch(objectPath(name)) }
  }

  /// Returns the number of listings that a server answers during `body`.
  private func listings(_ server: StoreServer, _ body: () throws -> Void) throws -> Int {
    let before = try server.requests().count { $0.target.contains("list-type") }
    try body()
    return try server.requests().count { $0.target.contains("list-type") } - before
  }

  @Test(arguments: ["some/place", ""]) func neighboursAreListedByOneRequest(
    prefix: String
  ) throws {
    let server = try StoreServer()
    let storage = try testStorage(server.endpoint, prefix: ByteString(prefix))
    try fill(
      storage,
      [
        "a/before", "pins", "pins.x", "pins/1", "pins/2/deep", "pinsx/3", "recover.py", "reserve",
        "snapshots/4", "snapshots/5", "snapshots0", "t/after",
      ])
    let names = ["snapshots", "pins"]
    var listed: [String] = []
    let count = try listings(server) { listed = try together(storage, names) }
    #expect(listed == ["pins/1", "pins/2/deep", "snapshots/4", "snapshots/5"])
    #expect(count == 1)
    // Empty directories, a directory within another one, and a duplicate.
    #expect(try together(storage, ["none", "zzz", "pins"]) == ["pins/1", "pins/2/deep"])
    #expect(try together(storage, ["pins/2", "pins", "pins"]) == ["pins/1", "pins/2/deep"])
    #expect(try together(storage, ["zzz", "none"]).isEmpty)
    #expect(try together(storage, []).isEmpty)
  }

  /// If there are pages of 1,000 keys that mostly belong to other programs, listing together costs
  /// no more requests than listing separately.
  @Test(arguments: [(2, 1500, 3), (1100, 3, 3), (1100, 1500, 1100)])
  func pagesOfOtherObjectsAreSkipped(pins: Int, others: Int, snapshots: Int) throws {
    let server = try StoreServer()
    let storage = try testStorage(server.endpoint)
    let all = [("pins", pins), ("q", others), ("snapshots", snapshots), ("t", others)]
    for (name, count) in all { try server.fill("some/place/\(name)/", count: count) }
    let names = ["pins", "snapshots"]
    var (joint, separate) = ([String](), [String]())
    let most = try listings(server) { separate = try oneByOne(storage, names) }
    let count = try listings(server) { joint = try together(storage, names) }
    #expect(joint == separate && joint.count == pins + snapshots)
    #expect(count <= most, "\(count) of \(most)")
  }

  /// If a store ignores where a listing should begin, this is noticed once, and from then on
  /// directories are listed one by one.
  @Test func aStoreThatBeginsElsewhereIsListedOneByOne() throws {
    let server = try StoreServer(
      #"[{"query": "start-after", "status": 200, "times": 0, "#
        + #""body": "\#(Self.page(["index/1", "pins/1", "snapshots/4"]))"}]"#)
    let storage = try testStorage(server.endpoint)
    try fill(storage, ["pins/1", "snapshots/4"])
    for requests in [3, 2] {
      var listed: [String] = []
      let count = try listings(server) { listed = try together(storage, ["pins", "snapshots"]) }
      #expect(listed == ["pins/1", "snapshots/4"])
      #expect(count == requests)
    }
  }

  private static func page(_ keys: [String], next: String? = nil) -> String {
    let objects = keys.map {
      "<Contents><Key>some/place/\($0)</Key><LastModified>2026-11-28T08:00:00Z</LastModified>"
        + "<Size>0</Size></Contents>"
    }
    let more = next.map {
      "<IsTruncated>true</IsTruncated><NextContinuationToken>\($0)</NextContinuationToken>"
    }
    return "<ListBucketResult>\(more ?? "")\(objects.joined())</ListBucketResult>"
  }

  /// Whatever a store answers, the listing ends and reports no object twice.
  @Test func inconsistentListingsEndWithAnError() throws {
    for (body, words) in [
      // The same page of a directory, repeated endlessly.
      (Self.page(["pins/1"], next: "t"), "lists 'some/place/pins/1' after 'some/place/pins/1'"),
      (Self.page([], next: "t"), "lists empty pages without end"),
    ] {
      let server = try StoreServer(
        #"[{"query": "list-type", "status": 200, "times": 0, "body": "\#(body)"}]"#)
      let storage = try testStorage(server.endpoint)
      let found = failure { _ = try together(storage, ["pins", "snapshots"]) }
      #expect(found?.reason.contains(words) == true, "\(String(describing: found))")
    }
    // Pages that always end between the directories, so that the second listing begins before its
    // directory.
    let server = try StoreServer(
      #"[{"query": "list-type", "status": 200, "times": 0, "#
        + #""body": "\#(Self.page(["pins/1", "q/1"], next: "t"))"}]"#)
    let storage = try testStorage(server.endpoint)
    let found = failure { _ = try together(storage, ["pins", "snapshots"]) }
    #expect(
      found?.reason.contains("which does not begin with 'some/place/snapshots/'") == true,
      "\(String(describing: found))")
    #expect(try server.requests().count == 3)
  }

  /// If the keys of a page are not sorted, they are still assigned to the right directories.
  @Test func pagesWithoutOrderAreRead() throws {
    let server = try StoreServer(
      #"[{"query": "list-type", "status": 200, "times": 0, "#
        + #""body": "\#(Self.page(["snapshots/2", "pins/1", "q", "snapshots/1"]))"}]"#)
    let storage = try testStorage(server.endpoint)
    let found = try together(storage, ["pins", "snapshots"])
    #expect(found == ["snapshots/2", "pins/1", "snapshots/1"])
  }

  @Test func aTooLargeListingIsNoDamage() throws {
    let body = String(repeating: "x", count: 9 << 20)
    let server = try StoreServer(
      #"[{"query": "list-type", "status": 200, "times": 0, "body": "\#(body)"}]"#)
    let storage = try testStorage(server.endpoint)
    let found = failure { try storage.forEachObject(below: .root) { _, _ in } }
    #expect(found?.code == .system)
    #expect(found?.reason.contains("of more than 8 MiB") == true, "\(String(describing: found))")
  }
}
