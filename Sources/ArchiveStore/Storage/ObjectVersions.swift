/// The earlier contents of objects, in a storage that keeps them when an object is replaced or
/// removed.
public protocol ObjectVersions: Sendable {
  /// Returns the version that has the current content of an object, or nil if none is kept.
  func currentVersion(of path: ObjectPath) throws(StoreError) -> String?

  /// Returns the content of a version, of at most `limit` bytes.
  ///
  /// - Throws: `missing` if it does not exist.
  func load(
    _ path: ObjectPath, version: String, limit: Int
  ) throws(StoreError) -> [UInt8]

  /// Removes a version for good.
  func remove(_ path: ObjectPath, version: String) throws(StoreError)
}
