import ArchiveStore
import RemoteStorage
import SystemIO
import TestSupport
import Testing

/// The hashes of bodies, with which a store detects damage in transit.
struct S3HashTests {
  private let store: FaultStore
  private let storage: S3Storage
  private static let large = [UInt8](repeating: 7, count: 1 << 20)

  init() throws {
    store = try FaultStore()
    var options = testOptions()
    (options.multipartThreshold, options.partSize) = (4 << 20, 2 << 20)
    storage = try testStorage(store.endpoint, options)
  }

  /// Puts objects, and returns the requests for them and for the probe.
  private func put(
    _ objects: [[UInt8]]
  ) throws -> (bodies: [FaultStore.Request], probes: [FaultStore.Request]) {
    for (number, bytes) in objects.enumerated() {
      let path = try objectPath("packs/\(number)")
      try storage.save(bytes, as: path, by: objectPath("lease"))
      #expect(try storage.load(path, limit: 16 << 20) == bytes)
    }
    let changes = try store.requests().filter { $0.method == "PUT" || $0.method == "DELETE" }
    return (
      changes.filter { !$0.target.hasSuffix("/probe-body") },
      changes.filter { $0.target.hasSuffix("/probe-body") }
    )
  }

  private static func haveMD5(_ requests: [FaultStore.Request]) -> [Bool] {
    requests.map { $0.headers["content-md5"] != nil }
  }

  @Test func largeBodiesHaveNoMD5IfTheStoreComparesTheirSHA256() throws {
    let requests = try put([Self.large, [1, 2], Self.large + [1]])
    #expect(Self.haveMD5(requests.bodies) == [false, true, false])
    #expect(requests.probes.map(\.method) == ["PUT"])
    #expect(try store.keys() == ["some/place/packs/0", "some/place/packs/1", "some/place/packs/2"])
  }

  @Test func partsHaveNoMD5Either() throws {
    let requests = try put([[UInt8](repeating: 3, count: 5 << 20)])
    #expect(Self.haveMD5(requests.bodies) == [false, false, false])
    #expect(requests.probes.count == 1)
  }

  @Test func allBodiesHaveTheirMD5IfTheStoreDoesNotCompareTheirSHA256() throws {
    try store.protect(.unchecked)
    let requests = try put([Self.large, Self.large + [1]])
    #expect(Self.haveMD5(requests.bodies) == [true, true])
    #expect(requests.probes.map(\.method) == ["PUT", "DELETE"])
    #expect(try store.keys() == ["some/place/packs/0", "some/place/packs/1"])
  }

  @Test func bodiesHaveTheirMD5IfAStoreThatLocksObjectsWantsIt() throws {
    try store.protect(.locked)
    let requests = try put([Self.large, Self.large + [1]])
    #expect(Self.haveMD5(requests.bodies) == [false, true, true])
    #expect(requests.probes.count == 1)
  }

  /// A probe that is refused for another reason proves nothing.
  @Test func bodiesHaveTheirMD5IfTheProbeIsNotPermitted() throws {
    try store.setRules(#"[{"path": "probe-body", "status": 403}, {"path": "/0", "status": 500}]"#)
    let requests = try put([Self.large, Self.large + [1]])
    #expect(Self.haveMD5(requests.bodies) == [true, true, true])
    #expect(requests.probes.map(\.method) == ["PUT"])
  }

  /// A body that was damaged in transit is refused and sent again, still without an MD5.
  @Test func damagedBodiesAreSentAgain() throws {
    try store.setRules(
      #"[{"path": "/packs/0", "status": 400, "body": "<Error><Code>XAmzContentSHA256Mismatch</Code></Error>"}]"#
    )
    let requests = try put([Self.large])
    #expect(Self.haveMD5(requests.bodies) == [false, false])
  }
}
