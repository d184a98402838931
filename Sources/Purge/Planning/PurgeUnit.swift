package import PolicyEngine
package import SystemIO

/// A unit of deletion, which is deleted completely or not at all: a file, a database with its
/// companions, or a directory that a rule names as one, or whose files belong together
/// (docs/purge.md, "Units").
package struct PurgeUnit: Sendable, Hashable {
  /// The kind of a unit.
  package enum Kind: String, Sendable, Hashable, CaseIterable {
    case file
    /// A database's file, which is deleted with its log, journal and shared memory.
    case database
    /// A directory with its content.
    case directory = "folder"
  }

  package let kind: Kind
  /// The terms of deletion; the order is the highest of all entries in the unit.
  package let terms: PurgeDisposition.Terms
  package let dataClass: DataClass
  /// The time of the last change or, if the volume records it, the last access of any entry in the
  /// unit, in seconds since 1970.
  package internal(set) var newest: Int64
  /// The bytes that the volume gains from this unit alone, without blocks that other names or files
  /// share.
  package internal(set) var bytes: UInt64
  /// How far its app is over a quota that counts the unit: the usage in thousandths of the quota, 0
  /// if no quota is exceeded.
  package internal(set) var overQuota: UInt32 = 0
  /// The number of files.
  package let files: Int32

  /// The index of the container in the scan.
  let container: Int32
  /// The entry of the unit; for a database, the entry of its main file.
  let entry: Int32
  /// The rank of its path among all units, in byte order.
  var rank: UInt32 = 0
  /// Whether a file in it has hard links outside of it.
  let hasLinks: Bool

  /// The time since the last use, in the coarse steps by which units are ordered.
  package enum Age: Int8, Sendable, Hashable, CaseIterable, Comparable {
    case over90Days, over30Days, over7Days, over1Day, younger

    static let day: Int64 = 86_400

    init(seconds: Int64) {
      self =
        switch seconds {
        case let age where age > 90 * Self.day: .over90Days
        case let age where age > 30 * Self.day: .over30Days
        case let age where age > 7 * Self.day: .over7Days
        case let age where age > Self.day: .over1Day
        default: .younger
        }
    }

    /// Creates the age of a unit at a time.
    package init(_ unit: PurgeUnit, at now: Timestamp) { self.init(seconds: unit.age(at: now)) }

    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
  }

  /// Returns the seconds since the last use of any entry in the unit; negative if a clock was
  /// wrong.
  package func age(at now: Timestamp) -> Int64 {
    let (age, overflow) = now.seconds.subtractingReportingOverflow(newest)
    return overflow ? 0 : age
  }
}
