import ArchiveStore
import Codecs
import Foundation
import RemoteStorage
import SystemIO
import TestSupport
import Testing

/// Real object stores, if installed.
@Suite(.serialized) struct RealStoreTests {
  private func storage(
    _ lab: StoreLab, bucket: String, prefix: ByteString = "r", keys: (String, String)? = nil,
    _ change: (inout S3Storage.Options) -> Void = { _ in }
  ) throws -> S3Storage {
    let (accessKey, secret) = keys ?? (lab.accessKey, lab.secret)
    var options = testOptions(["AWS_ACCESS_KEY_ID": accessKey, "AWS_SECRET_ACCESS_KEY": secret])
    change(&options)
    return try testStorage(lab.endpoint, bucket: bucket, prefix: prefix, options)
  }

  /// Creates a bucket with a new name, in which each version is locked for a day if `isLocked`.
  private func makeBucket(_ lab: StoreLab, isLocked: Bool = false) throws -> String {
    let name = "sandboxctl-" + Host.randomHex(bytes: 6)
    let settings = S3Settings { variable in
      switch variable {
      case "AWS_ACCESS_KEY_ID": ByteString(lab.accessKey)
      case "AWS_SECRET_ACCESS_KEY": ByteString(lab.secret)
      default: nil
      }
    }
    let client = S3Client(
      endpoint: try S3Endpoint(bucket: name, region: "us-east-1", url: lab.endpoint),
      region: "us-east-1", credentials: S3CredentialSource(settings), http: testOptions().http)
    var answer: [UInt8] = []
    let headers = isLocked ? [("x-amz-bucket-object-lock-enabled", "true")] : []
    _ = try client.send(S3Request(.put, headers: headers), into: &answer)
    guard isLocked else { return name }
    let text =
      "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule>"
      + "<DefaultRetention><Mode>COMPLIANCE</Mode><Days>1</Days></DefaultRetention></Rule>"
      + "</ObjectLockConfiguration>"
    let request = S3Request(
      .put, query: [("object-lock", "")], headers: [("content-type", "application/xml")],
      body: .bytes(Array(text.utf8)))
    _ = try client.send(request, into: &answer)
    return name
  }

  /// Runs all requirements, each below a separate prefix, and those of large objects.
  private func check(_ lab: StoreLab, _ bucket: String) throws {
    for (number, requirement) in StorageConformance.all.enumerated() {
      let storage = try storage(lab, bucket: bucket, prefix: ByteString("c/\(number)"))
      do { try requirement.check(storage) } catch { Issue.record("\(requirement): \(error)") }
    }
    let storage = try storage(lab, bucket: bucket) { options in
      (options.multipartThreshold, options.partSize) = (6 << 20, 5 << 20)
    }
    try storage.requireConsistency()
    let bytes = (0..<(12 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 12) }
    let large = try objectPath("packs/ab/large")
    try storage.save(bytes, as: large, by: objectPath("lease"))
    #expect(try storage.load(large, limit: 12 << 20) == bytes)
    #expect(
      try storage.load(large, offset: 5_242_870, count: 20) == Array(bytes[5_242_870..<5_242_890]))
    #expect(try storage.status(large)?.size == 12 << 20)
    try storage.remove(large)
  }

  /// Checks the errors for wrong keys and missing buckets.
  ///
  /// - Parameter hasUnknown: whether the store distinguishes an unknown key from a wrong secret.
  private func checkErrors(_ lab: StoreLab, _ bucket: String, hasUnknown: Bool = true) throws {
    let wrong = failure {
      try storage(lab, bucket: bucket, keys: (lab.accessKey, "wrong")).touch(objectPath("a"))
    }
    let isWrong = "the store refuses the signature: the secret access key is wrong"
    #expect(wrong?.reason == isWrong, "\(String(describing: wrong))")
    let unknown = failure {
      try storage(lab, bucket: bucket, keys: ("UNKNOWNKEY", "wrong")).touch(objectPath("a"))
    }
    let isUnknown = hasUnknown ? "the store does not know the access key ID" : isWrong
    #expect(unknown?.reason == isUnknown, "\(String(describing: unknown))")
    let put = failure { try storage(lab, bucket: "no-such-bucket-here").touch(objectPath("a")) }
    #expect(put?.code == .noRepository, "\(String(describing: put))")
  }

  private func checkMissingBucket(_ lab: StoreLab) {
    let missing = failure { _ = try storage(lab, bucket: "no-such-bucket-here").list(.root) }
    #expect(missing?.code == .noRepository, "\(String(describing: missing))")
  }

  private func checkClock(_ lab: StoreLab, _ bucket: String) throws {
    let skewed = try storage(lab, bucket: bucket) { options in
      options.clock = { Timestamp(seconds: Host.now().seconds - 1200) }
    }
    for body in [
      { _ = try skewed.list(.root) }, { try skewed.touch(objectPath("a")) },
      { _ = try skewed.load(objectPath("a"), limit: 1) },
    ] as [() throws -> Void] {
      let found = failure(body)
      #expect(found?.reason.hasSuffix("by 20 minutes") == true, "\(String(describing: found))")
    }
  }

  @Test(.enabled(if: StoreLab.ceph != nil)) func cephMeetsTheRequirements() throws {
    let lab = try #require(StoreLab.ceph)
    let bucket = try makeBucket(lab)
    #expect(try storage(lab, bucket: bucket).canCreateExclusively)
    try check(lab, bucket)
    try checkErrors(lab, bucket)
    checkMissingBucket(lab)
    try checkClock(lab, bucket)
  }

  /// In a bucket with object lock, replaced or removed content is kept as a version.
  @Test(.enabled(if: StoreLab.ceph != nil), arguments: [false, true])
  func cephKeepsLockedVersions(isLocked: Bool) throws {
    let lab = try #require(StoreLab.ceph)
    let storage = try storage(lab, bucket: makeBucket(lab, isLocked: isLocked))
    _ = try Repository.create(in: storage, program: "test")
    let results = try ProtectionCheck(Repository.open(storage)).run()
    let wanted = isLocked ? ProtectionCheck.Outcome.kept : .possible
    #expect(results.map(\.directory) == ["packs", "index", "snapshots"])
    for result in results {
      #expect(result.replacement == wanted && result.removal == wanted, "\(result)")
      #expect(result.isProtected == isLocked)
    }
    let names = try ["packs", "index", "snapshots"].flatMap { try storage.list(objectPath($0)) }
    #expect(names.isEmpty)
  }

  @Test(.enabled(if: StoreLab.swift != nil)) func swiftMeetsTheRequirements() throws {
    let lab = try #require(StoreLab.swift)
    let bucket = try makeBucket(lab)
    #expect(try !storage(lab, bucket: bucket).canCreateExclusively)
    try check(lab, bucket)
    try checkErrors(lab, bucket, hasUnknown: false)
    checkMissingBucket(lab)
    try checkClock(lab, bucket)
  }

  /// moto verifies signatures only for requests without encoded parameters: for a listing with a
  /// slash in its prefix, it refuses even those of AWS's own library. So this tests requests for
  /// objects, and policies.
  @Test(.enabled(if: StoreLab.moto != nil)) func motoAcceptsSignaturesAndAppliesPolicies() throws {
    let lab = try #require(StoreLab.moto)
    let bucket = try makeBucket(lab)
    try checkErrors(lab, bucket)
    let own = try storage(lab, bucket: bucket)
    let (a, b) = (try objectPath("x/a b"), try objectPath("x/b"))
    try own.save([1, 2, 3], as: a, by: objectPath("lease"))
    #expect(try own.load(a, limit: 3) == [1, 2, 3])
    #expect(try own.load(a, offset: 1, count: 2) == [2, 3])
    #expect(own.canCreateExclusively)
    #expect(try own.create([1], as: b))
    #expect(try !own.create([2], as: b))
    let keys = try #require(lab.reader)
    let reader = try storage(lab, bucket: bucket, keys: keys)
    #expect(try reader.load(b, limit: 1) == [1])
    for body in [{ try reader.touch(b) }, { try reader.remove(b) }] as [() throws -> Void] {
      let found = failure(body)
      #expect(found?.errorCode == .permissionDenied, "\(String(describing: found))")
    }
    try own.remove(b)
    #expect(failure { _ = try own.load(b, limit: 1) }?.code == .missing)
  }
}
