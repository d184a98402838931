internal import Codecs
internal import SystemIO

/// Checks whether the user of this program can replace or remove the objects of a repository.
///
/// It attempts both with objects of its own, written as a backup writes them, in each directory
/// whose objects snapshots need. A probe that cannot be removed stays, is ignored by all readers,
/// and is removed by a prune of another user (`ProbeRemoval`).
public struct ProtectionCheck {
  private let repository: Repository

  /// Prepares a check.
  public init(_ repository: Repository) { self.repository = repository }

  /// The result of an attempt to destroy the content of an object.
  public enum Outcome: String, Sendable, CaseIterable {
    /// The storage refuses it.
    case refused
    /// The storage does it, but keeps the content as a version, and refuses to remove the version.
    case kept
    /// The content is gone.
    case possible
  }

  /// The result for the objects of one directory.
  public struct Result: Sendable, Hashable {
    /// The directory: packs, index or snapshots.
    public let directory: String
    /// The outcome of a put in place of an object.
    public internal(set) var replacement = Outcome.refused
    /// The outcome of a removal.
    public internal(set) var removal = Outcome.refused

    /// Whether no stored data can be lost.
    public var isProtected: Bool { replacement != .possible && removal != .possible }
  }

  /// The directories whose objects snapshots need.
  private static let directories = [
    RepositoryLayout.packs, RepositoryLayout.indexes, RepositoryLayout.snapshots,
  ]

  private var storage: RepositoryStorage { repository.storage }

  /// Makes the attempts.
  ///
  /// - Throws: if an object cannot be written, or an attempt fails for a reason other than a
  ///   refusal.
  public func run() throws(StoreError) -> [Result] {
    try repository.requireKnownFeatures(for: .write)
    let lease = try Lease(storage)
    defer { lease.release() }
    var results: [Result] = []
    for directory in Self.directories { results.append(try attempt(in: directory, lease)) }
    return results
  }

  private func attempt(
    in directory: ObjectPath, _ lease: Lease
  ) throws(StoreError) -> Result {
    let path = directory.appending(RepositoryLayout.newProbe())
    var result = Result(directory: "\(directory)")
    try lease.save(Host.random(count: Self.size), as: path)
    defer { try? storage.remove(path) }
    var object = try Content(path, storage)
    if try isDone([.replacement, .writing], to: object, lease) {
      result.replacement = try outcome(object)
      object = try Content(path, storage)
    }
    if try isDone([.removal, .moving], to: object, lease) { result.removal = try outcome(object) }
    return result
  }

  /// The ways to destroy the content of an object.
  private enum Attempt {
    /// Another object takes its place.
    case replacement
    /// It is written to, which a file may permit even if it cannot be replaced.
    case writing
    case removal
    /// It is moved into the lease.
    case moving
  }

  private func make(
    _ attempt: Attempt, on path: ObjectPath, _ lease: Lease
  ) throws(StoreError) {
    switch attempt {
    case .replacement: try lease.save(Host.random(count: Self.size), as: path)
    case .writing: try storage.touch(path)
    case .removal: try storage.remove(path)
    case .moving:
      guard storage.canRename else { return }
      try storage.rename(path, to: lease.path.appending(path.name))
    }
  }

  /// The size of an object in bytes.
  private static let size = 64

  /// The content of an object before an attempt.
  private struct Content {
    let path: ObjectPath
    let bytes: [UInt8]
    /// The version that has it; nil if the storage keeps no versions.
    let version: String?

    init(_ path: ObjectPath, _ storage: RepositoryStorage) throws(StoreError) {
      self.path = path
      bytes = try storage.load(path, limit: ProtectionCheck.size)
      version = try storage.versions?.currentVersion(of: path)
    }
  }

  /// Makes attempts until the storage accepts one. Returns whether the object no longer has the
  /// content, whatever the storage answered.
  private func isDone(
    _ attempts: [Attempt], to object: Content, _ lease: Lease
  ) throws(StoreError) -> Bool {
    for attempt in attempts {
      do throws(StoreError) { try make(attempt, on: object.path, lease) } catch {
        guard Self.isRefusal(error) else { throw error }
      }
      do throws(StoreError) {
        guard try storage.load(object.path, limit: Self.size) == object.bytes else { return true }
      } catch {
        guard error.code == .missing || error.code == .damaged else { throw error }
        return true
      }
    }
    return false
  }

  /// Whether the storage does not permit a call to this user, or to any user.
  private static func isRefusal(_ error: StoreError) -> Bool {
    error.cause?.isRefused == true || error.code == .unsupported
  }

  /// Returns whether the content of an object that was replaced or removed is gone, or can be
  /// removed for good. In a storage without versions it is gone.
  private func outcome(_ object: Content) throws(StoreError) -> Outcome {
    guard let versions = storage.versions, let version = object.version else { return .possible }
    do throws(StoreError) {
      let bytes = try versions.load(object.path, version: version, limit: Self.size)
      guard bytes == object.bytes else { return .possible }
    } catch {
      if error.code == .missing { return .possible }
      // A user who may not read versions cannot see it, but the storage reported the version.
      guard error.cause?.isRefused == true else { throw error }
    }
    do throws(StoreError) { try versions.remove(object.path, version: version) } catch {
      guard Self.isRefusal(error) else { throw error }
      return .kept
    }
    return .possible
  }
}
