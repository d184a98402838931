package import ArchiveStore
internal import Codecs
internal import SystemIO

/// The versions of a bucket with versioning. In such a bucket a removal without a version only adds
/// a marker, and a put adds a version; a locked version cannot be removed.
///
/// Source: Amazon S3 User Guide, "Deleting object versions from a versioning-enabled bucket" and
/// "Object Lock considerations".
extension S3Storage: ObjectVersions {
  /// The storage itself, because the bucket may have versions.
  package var versions: (any ObjectVersions)? { self }

  private static let versionHeader = "x-amz-version-id"
  /// The version of objects in a bucket with suspended versioning, which a put replaces.
  private static let noVersion = "null"

  /// Returns the version of an object by a request for its headers.
  package func currentVersion(of path: ObjectPath) throws(StoreError) -> String? {
    var answer: [UInt8] = []
    let response = try send(S3Request(.head, key: key(path)), to: "read", path, into: &answer)
    guard let version = response.header(Self.versionHeader), !version.isEmpty,
      version != Self.noVersion
    else { return nil }
    return version
  }

  /// Reads a version.
  package func load(
    _ path: ObjectPath, version: String, limit: Int
  ) throws(StoreError) -> [UInt8] {
    var bytes: [UInt8] = []
    let request = S3Request(.get, key: key(path), query: [("versionId", version)], limit: limit)
    _ = try send(request, to: "read a version of", path, into: &bytes)
    return bytes
  }

  /// Removes a version, even one that is locked in governance mode if these credentials permit
  /// that.
  package func remove(_ path: ObjectPath, version: String) throws(StoreError) {
    var answer: [UInt8] = []
    var request = S3Request(.delete, key: key(path), query: [("versionId", version)])
    do {
      _ = try send(request, to: "remove a version of", path, into: &answer)
    } catch {
      guard error.cause?.isRefused == true else { throw error }
      request.headers = [("x-amz-bypass-governance-retention", "true")]
      // The first answer is that of a store which does not know the header.
      do { _ = try client.send(request, into: &answer) } catch _ { throw error }
    }
  }
}
