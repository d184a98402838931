package import SystemIO

/// The changes of files between the last snapshots of a device.
///
/// The number of paths is bounded; beyond it, further ones are not examined.
package struct ChangeHistory: Sendable {
  /// The maximum number of changed paths: each takes about 150 bytes.
  package static let limit = 200_000

  /// The changes of one file.
  package struct Changes: Sendable, Hashable {
    /// The number of pairs of successive snapshots between which the content changed.
    package fileprivate(set) var count = 0
    /// The number of different days on which a snapshot with a change was made.
    package fileprivate(set) var days = 0
    fileprivate var lastDay = Int64.min
  }

  /// The number of compared pairs of snapshots.
  package private(set) var intervals = 0
  /// The changed files by logical path.
  package private(set) var files: [ByteString: Changes] = [:]
  /// The number of entries of bundles that differ although the app's version is the same, by the
  /// logical path of the bundle's container.
  package private(set) var bundles: [ByteString: Int] = [:]
  /// Whether there are more changed paths than the limit.
  package private(set) var isTruncated = false
  private var day = Int64.min

  /// Creates a history without snapshots.
  package init() {}

  /// Begins the comparison of a snapshot with the one before it. Snapshots are added by age.
  ///
  /// - Parameter time: The time of the later snapshot.
  package mutating func beginInterval(_ time: Timestamp) {
    intervals += 1
    day = time.seconds.quotientAndRemainder(dividingBy: 86_400).quotient
  }

  /// Adds a file whose content differs between the two snapshots.
  package mutating func addChange(_ path: ByteString) {
    guard files.count < Self.limit || files[path] != nil else {
      isTruncated = true
      return
    }
    var changes = files[path] ?? Changes()
    changes.count += 1
    if changes.lastDay != day { changes.days += 1 }
    changes.lastDay = day
    files[path] = changes
  }

  /// Adds an entry of a bundle that differs although the app's version and build are the same.
  package mutating func addBundleChange(in container: ByteString) {
    bundles[container, default: 0] += 1
  }
}
