internal import ArchiveStore
internal import SystemIO

/// `SNAP[:PATH]` as a command line gives it.
struct SnapshotPath {
  private let name: SnapshotName
  /// What stands behind the colon.
  private let path: ByteString

  /// How SNAP and PATH are written, for help texts.
  static let help = """
    SNAP is at least four characters of an id, latest, latest~2 for the second before it of \
    the same device, or a time as 2026-11-01 or 2026-11-01T10.30, which means the newest that was \
    not begun after that day or minute; all but an id name snapshots of a whole device. Where \
    several devices have such snapshots a warning says whose it is; an id names another's. Where a \
    damaged snapshot may be the one that is meant it is named and passed over, and the exit \
    status is 13. PATH is a logical path, as apps/com.example.app/data/Documents, an app and a \
    path in its data, as app/Documents, or an absolute path of the device; without it the whole \
    snapshot is meant.
    """

  init(_ word: ByteString) throws {
    // By bytes: a path may begin with a mark that makes one letter of the colon and itself.
    let parts = word.bytes.split(
      separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
    guard let first = parts.first, let text = ByteString(first).utf8, !text.isEmpty else {
      throw UsageError(
        "'\(word)' names no snapshot",
        hint: "write it as 'latest:apps/com.example.app/data', or 'latest'")
    }
    name = try SnapshotName(text)
    path = parts.count > 1 ? ByteString(parts[1]) : ""
  }

  /// Finds the snapshot, as `SnapshotFinder` does it.
  func find(
    in repository: Repository, holding apps: [String] = [], _ console: Console
  ) throws -> StoredSnapshot {
    try name.find(in: repository, holding: apps, console)
  }

  /// Whether a path stands behind the colon.
  var hasPath: Bool { !path.isEmpty }

  /// The logical path in a snapshot, without a slash at either end; empty for all of it.
  func logicalPath(in snapshot: Snapshot) throws -> ByteString {
    try snapshot.logicalPath(path)
  }
}

/// How a command line names a snapshot.
enum SnapshotName: Equatable {
  /// So many before the newest of its device.
  case latest(back: Int, text: String)
  /// By its id, or how that begins.
  case id(String)
  /// The newest before a moment.
  case before(Timestamp, text: String)

  init(_ text: String) throws {
    if let back = SnapshotListing.stepsBack(text) {
      self = .latest(back: back, text: text)
    } else if text.utf8.count >= 4, text.allSatisfy({ $0.isASCII && $0.isHexDigit }) {
      self = .id(text)
    } else if let end = Self.end(of: text) {
      self = .before(end, text: text)
    } else {
      throw UsageError(
        "'\(ByteString(text))' names no snapshot",
        hint: """
          give 'latest', 'latest~2', at least four characters of an id, or a time as '2026-11-01' or \
          '2026-11-01T10.30'
          """)
    }
  }

  /// Finds the snapshot alone, as `SnapshotFinder` does it.
  func find(
    in repository: Repository, holding apps: [String] = [], _ console: Console
  ) throws -> StoredSnapshot {
    try SnapshotFinder(repository, console).find(self, holding: apps)
  }

  /// The first moment after the day, minute or second that a text names: by this host's clock, or
  /// with a Z at its end by UTC.
  private static func end(of text: String) -> Timestamp? {
    let isUTC = text.hasSuffix("Z")
    let halves = text.dropLast(isUTC ? 1 : 0).split(
      separator: "T", maxSplits: 1, omittingEmptySubsequences: false)
    guard let date = halves.first.flatMap({ numbers($0, "-", [4, 2, 2]) }) else { return nil }
    var clock = [0, 0, 0]
    if halves.count > 1 {
      guard let found = numbers(halves[1], ".", [2, 2, 2]), found.count > 1 else { return nil }
      clock = found + (found.count < 3 ? [0] : [])
      clock[found.count - 1] += 1
    }
    guard date.count == 3 else { return nil }
    let day = CalendarTime(
      year: date[0], month: date[1], day: date[2], hour: 0, minute: 0, second: 0)
    let end = CalendarTime(
      year: date[0], month: date[1], day: date[2] + (halves.count > 1 ? 0 : 1), hour: clock[0],
      minute: clock[1], second: clock[2])
    guard day.exists, clock[0] < 24, clock[1] <= 60, clock[2] <= 60 else { return nil }
    return Timestamp(end, isUTC: isUTC)
  }

  /// Numbers of so many digits, with a separator between them; the last ones may be missing.
  private static func numbers(
    _ text: Substring, _ separator: Character, _ digits: [Int]
  ) -> [Int]? {
    let parts = text.split(separator: separator, omittingEmptySubsequences: false)
    guard parts.count <= digits.count else { return nil }
    var numbers: [Int] = []
    for (part, count) in zip(parts, digits) {
      guard part.utf8.count == count, part.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
        let number = Int(part)
      else { return nil }
      numbers.append(number)
    }
    return numbers
  }
}
