internal import ArchiveStore
internal import SystemIO

/// `SNAP[:PATH]` on the command line.
struct SnapshotPath {
  private let name: SnapshotName
  /// The part after the colon.
  private let path: ByteString

  /// The description of SNAP and PATH in help texts.
  static let help = """
    SNAP is an id or its first characters (at least four), latest, latest~2, or a time such as \
    2026-11-01 or 2026-11-01T10.30. PATH is a logical path \
    (apps/com.example.app/data/Documents), a path in an app's data (app/Documents), or an \
    absolute path of the device (default: the whole snapshot). See sandboxctl(1).
    """

  init(_ word: ByteString) throws {
    // Split by bytes: a combining mark at the beginning of a path would form one character with the
    // colon.
    let parts = word.bytes.split(
      separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
    guard let first = parts.first, let text = ByteString(first).utf8, !text.isEmpty else {
      throw UsageError(
        "'\(word)' does not name a snapshot",
        hint: "write 'latest:apps/com.example.app/data', or 'latest'")
    }
    name = try SnapshotName(text)
    path = parts.count > 1 ? ByteString(parts[1]) : ""
  }

  /// Returns the snapshot that `SnapshotFinder` finds.
  func find(
    in repository: Repository, holding apps: [String] = [], _ console: Console
  ) throws -> StoredSnapshot {
    try name.find(in: repository, holding: apps, console)
  }

  /// Whether there is a path after the colon.
  var hasPath: Bool { !path.isEmpty }

  /// Returns the logical path in a snapshot, without a slash at either end; empty for the whole
  /// snapshot.
  func logicalPath(in snapshot: Snapshot) throws -> ByteString {
    try snapshot.logicalPath(path)
  }
}

/// The name of a snapshot on the command line.
enum SnapshotName: Equatable {
  /// The snapshot `back` steps before the newest of its device.
  case latest(back: Int, text: String)
  /// An id, or its first characters.
  case id(String)
  /// The newest snapshot before a time.
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
        "'\(ByteString(text))' does not name a snapshot",
        hint: """
          give 'latest', 'latest~2', at least four characters of an id, or a time such as \
          '2026-11-01' or '2026-11-01T10.30'
          """)
    }
  }

  /// Returns the snapshot that a new `SnapshotFinder` finds.
  func find(
    in repository: Repository, holding apps: [String] = [], _ console: Console
  ) throws -> StoredSnapshot {
    try SnapshotFinder(repository, console).find(self, holding: apps)
  }

  /// Returns the end of the day, minute or second that a text names, in local time, or in UTC if it
  /// ends with Z; nil if it is not a time.
  private static func end(of text: String) -> Timestamp? {
    let isUTC = text.hasSuffix("Z")
    let halves = text.dropLast(isUTC ? 1 : 0).split(
      separator: "T", maxSplits: 1, omittingEmptySubsequences: false)
    guard let date = halves.first.flatMap({ numbers($0, separatedBy: "-", digits: [4, 2, 2]) })
    else { return nil }
    var clock = [0, 0, 0]
    if halves.count > 1 {
      guard let found = numbers(halves[1], separatedBy: ".", digits: [2, 2, 2]), found.count > 1
      else { return nil }
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

  /// Returns numbers with the given counts of digits, separated by `separator`; the last ones may
  /// be missing.
  private static func numbers(
    _ text: Substring, separatedBy separator: Character, digits: [Int]
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
