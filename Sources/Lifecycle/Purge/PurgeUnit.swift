public import PolicyEngine
public import SystemIO

/// What is deleted together to gain space, or not at all: a file, a database with its companions, or
/// a directory that a rule names as one (docs/purge.md, "Units").
public struct PurgeUnit: Sendable, Hashable {
  /// What it is.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    case file
    /// A database's file; with it go its log, its journal and its shared memory.
    case database
    /// A directory with all that is in it.
    case folder
  }

  public let kind: Kind
  /// The terms on which it may go: the order is the largest of all that is in it.
  public let terms: PurgeTerms
  public let dataClass: DataClass
  /// When anything in it was last changed or, where the volume notes that, read: seconds since 1970.
  public internal(set) var newest: Int64
  /// Bytes that the volume gives back for it alone. What other names or files have, too, is not
  /// among them.
  public internal(set) var bytes: UInt64
  /// By how much its app is over a quota that counts the unit: thousandths of the quota that are
  /// used, 0 where it is not over any.
  public internal(set) var overQuota: UInt32 = 0
  /// How many files it has.
  public let files: Int32

  /// The container's place in the scan.
  let container: Int32
  /// The entry that it is, of a database the database's own file.
  let entry: Int32
  /// The place of its path among all, by bytes.
  var rank: UInt32 = 0
  /// Whether something in it has names elsewhere.
  let hasLinks: Bool

  /// How long ago it was in use, in the coarse steps by which units are ordered.
  public enum Age: Int8, Sendable, Hashable, CaseIterable, Comparable {
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

    /// The age of a unit at a time.
    public init(_ unit: PurgeUnit, at now: Timestamp) { self.init(seconds: unit.age(at: now)) }

    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
  }

  /// Seconds since anything in it was in use; negative where a clock was wrong.
  public func age(at now: Timestamp) -> Int64 {
    let (age, overflow) = now.seconds.subtractingReportingOverflow(newest)
    return overflow ? 0 : age
  }
}

/// Why something is not deleted though a purge came by.
public enum PurgeConflict: Sendable, Hashable {
  /// The policy lets it never go.
  case never
  /// Its class is precious to somebody, and no rule says `allow-loss`.
  case precious(DataClass)
  /// Something that it goes together with may not go.
  case holds(ByteString)
  /// Another file system begins there.
  case mount
  /// It is this program's own, or a repository of it.
  case own
  /// A directory that is emptied and stays, or goes when it is empty.
  case folder
  /// The mark by which its directory is known to be disposable.
  case mark
  /// A file that would be emptied, and that has other names.
  case linked
  /// A socket, a pipe or a device, which takes no space.
  case special
  /// It was not found.
  case missing
}
