package import SystemIO

/// The changes of files between snapshots of a device, one of each day.
///
/// The number of paths is bounded; beyond it, further ones are not examined.
package struct ChangeHistory: Sendable {
  /// The maximum number of changed paths: each takes about 150 bytes.
  package static let limit = 200_000
  /// The maximum number of days from which a snapshot is compared: a week and the day before it.
  package static let maximumDays = 8

  /// The changes of one file.
  package struct Changes: Sendable, Hashable {
    /// The number of pairs of successive snapshots between which the content changed.
    package fileprivate(set) var count = 0
    /// The number of different days on which a snapshot with a change was made.
    package fileprivate(set) var days = 0
    /// The number of pairs in which both snapshots have the file, if it was created between two
    /// snapshots; nil if all of them have it.
    package fileprivate(set) var intervals: Int?
    fileprivate var lastDay: Day?
  }

  /// A day in the host's time zone.
  package struct Day: Sendable, Hashable {
    private let number: Int64

    /// Finds the day of a time.
    package init(of time: Timestamp) {
      // The date in the time zone as if it were one of UTC.
      let date = time.local.flatMap { Timestamp($0, isUTC: true) } ?? time
      let (days, rest) = date.seconds.quotientAndRemainder(dividingBy: 86_400)
      number = rest < 0 ? days - 1 : days
    }
  }

  /// The number of compared pairs of snapshots.
  package private(set) var intervals = 0
  /// The changed files by logical path.
  package private(set) var files: [ByteString: Changes] = [:]
  /// The number of entries of bundles that differ between snapshots although the app's version is
  /// the same, by the logical path of the bundle's container.
  package private(set) var bundles: [ByteString: Int] = [:]
  /// The number of entries of bundles on the device that differ from the last snapshot although the
  /// app's version is the same, by the logical path of the bundle's container.
  package private(set) var changedSince: [ByteString: Int] = [:]
  /// Whether there are more changed paths than the limit.
  package private(set) var isTruncated = false
  private var day: Day?

  /// Creates a history without snapshots.
  package init() {}

  /// Returns the indexes of the snapshots to compare, in their order: the last snapshot of each of
  /// the last `maximumDays` days with a snapshot. The last few of hourly snapshots would show
  /// nothing about days.
  ///
  /// - Parameter times: The times of all snapshots, the oldest first.
  package static func daily(_ times: [Timestamp]) -> [Int] {
    var last: [Day: Int] = [:]
    for (index, time) in times.enumerated() { last[Day(of: time)] = index }
    return Array(last.values.sorted().suffix(maximumDays))
  }

  /// Begins the comparison of a snapshot with the one before it. The pairs are added from the
  /// newest to the oldest.
  ///
  /// - Parameter time: The time of the later snapshot.
  package mutating func beginInterval(_ time: Timestamp) {
    intervals += 1
    day = Day(of: time)
  }

  /// Adds a file whose content differs between the two snapshots.
  package mutating func addChange(_ path: ByteString) {
    guard files.count < Self.limit || files[path] != nil else {
      isTruncated = true
      return
    }
    var changes = files[path] ?? Changes()
    // Changes of an earlier file of that name are not changes of the file that was created later.
    if changes.intervals != nil { return }
    changes.count += 1
    if changes.lastDay != day { changes.days += 1 }
    changes.lastDay = day
    files[path] = changes
  }

  /// Adds an entry that only the later snapshot has: older ones do not count for it.
  package mutating func addCreation(_ path: ByteString) {
    // Without a later change, the entry has no record.
    guard let changes = files[path], changes.intervals == nil else { return }
    files[path]?.intervals = intervals - 1
  }

  /// Adds an entry of a bundle that differs between snapshots although the app's version and build
  /// are the same.
  package mutating func addBundleChange(in container: ByteString) {
    bundles[container, default: 0] += 1
  }

  /// Adds an entry of a bundle that differs from the last snapshot although the app's version and
  /// build are the same.
  package mutating func addChangeSince(in container: ByteString) {
    changedSince[container, default: 0] += 1
  }
}
