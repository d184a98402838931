internal import ArchiveStore
internal import Synchronization
internal import SystemIO

extension S3Storage {
  /// The size in bytes from which a body is sent without its MD5, if the store compares it with the
  /// SHA-256 that is signed. The MD5 of packs took an eighth of the time of a backup.
  static let largeBody: UInt64 = 1 << 20

  /// The object that is put with a wrong hash. A store that does not compare hashes keeps it if
  /// these credentials cannot remove it.
  private static let wrongBody = ObjectPath.root.appending("probe-body")

  /// Puts an object or a part of one.
  func sendBody(
    _ request: S3Request, into answer: inout [UInt8]
  ) throws(S3Failure) -> HTTPResponse {
    var request = request
    if request.body.count >= Self.largeBody, storeComparesHashes() { request.sendsMD5 = false }
    do throws(S3Failure) {
      return try client.send(request, into: &answer)
    } catch {
      guard !request.sendsMD5, error.refusal?.mayWantMD5 == true else { throw error }
      comparesHashes.withLock { $0 = false }
      request.sendsMD5 = true
      return try client.send(request, into: &answer)
    }
  }

  /// Whether the store refuses a body that does not match its SHA-256. Tested once, when the first
  /// large body is sent.
  private func storeComparesHashes() -> Bool {
    comparesHashes.withLock { known in
      if let known { return known }
      let answer = try? putWrongBody()
      known = answer
      return answer ?? false
    }
  }

  private func putWrongBody() throws(S3Failure) -> Bool {
    var request = S3Request(
      .put, key: key(Self.wrongBody), headers: [("content-type", Self.contentType)],
      body: .bytes([1]))
    request.sendsMD5 = false
    request.wrongSHA256 = String(repeating: "0", count: 64)
    var answer: [UInt8] = []
    do throws(S3Failure) {
      _ = try client.send(request, into: &answer)
    } catch {
      guard let refusal = error.refusal else { throw error }
      return refusal.isWrongHash
    }
    try? remove(Self.wrongBody)
    return false
  }
}
