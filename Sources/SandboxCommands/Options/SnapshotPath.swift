internal import ArchiveStore
internal import SnapshotQueries
internal import SystemIO

/// `SNAP[:PATH]` on the command line.
struct SnapshotPath {
  let name: SnapshotName
  /// The part after the colon.
  let path: ByteString

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
        .invalidValue, "'\(word)' does not name a snapshot",
        hint: "write 'latest:apps/com.example.app/data', or 'latest'")
    }
    name = try SnapshotName(text)
    path = parts.count > 1 ? ByteString(parts[1]) : ""
  }

  /// Whether there is a path after the colon.
  var hasPath: Bool { !path.isEmpty }

  /// Whether a snapshot can have the path: it has the app, group or directory that contains the
  /// path, or several apps that it may mean.
  func fits(_ head: SnapshotHead) -> Bool {
    if path.isEmpty { return true }
    let subject: ByteString
    do {
      subject = try head.logicalPath(path).subject
    } catch { return (error as? OperationError)?.code == .ambiguousApp }
    // A snapshot without containers was imported.
    return subject.components.count < 2 || head.device.containers.isEmpty
      || head.device.containers.contains { $0.path.isWithin(subject) }
  }

  /// Whether it names a snapshot or a container, whose restore needs many of the trees.
  var isBroad: Bool {
    let parts = path.components
    guard let first = parts.first else { return true }
    return parts.count <= 2 && !path.isAbsolute && Self.containerRoots.contains(first)
  }

  /// The first components of logical paths.
  static let containerRoots: [ByteString] = ["apps", "groups", "folders"]

  /// Returns the logical path in a snapshot, without a slash at either end; empty for the whole
  /// snapshot.
  func logicalPath(in snapshot: Snapshot) throws -> ByteString {
    try snapshot.logicalPath(path)
  }
}

extension SnapshotName {
  /// Parses the name of a snapshot on the command line.
  init(_ text: String) throws {
    if let back = SnapshotListing.stepsBack(text) {
      self = .latest(back: back, text: text)
    } else if text.utf8.count >= 4, text.allSatisfy({ $0.isASCII && $0.isHexDigit }) {
      self = .id(text)
    } else if let end = Self.end(of: text) {
      self = .before(end, text: text)
    } else {
      // A path follows the colon only where a command takes one.
      let path = text.contains(":") ? "give a path as an argument of its own; " : ""
      throw UsageError(
        .invalidValue, "'\(ByteString(text))' does not name a snapshot",
        hint: """
          \(path)give 'latest', 'latest~2', at least four characters of an id, or a time such as \
          '2026-11-01' or '2026-11-01T10.30'
          """)
    }
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

/// A snapshot or its head, as far as the paths of arguments depend on it.
protocol SnapshotPaths {
  var device: DeviceRecord { get }
  var apps: [AppRecord] { get }
}

extension Snapshot: SnapshotPaths {}
extension SnapshotHead: SnapshotPaths {}

extension SnapshotPaths {
  /// Returns the logical path of an argument: a logical path, a path in an app's data, or a path of
  /// the device, which is absolute, begins with a dot, or leads from the working directory into a
  /// container and need not exist. Empty for the whole snapshot.
  func logicalPath(_ path: ByteString) throws -> ByteString {
    if path.isAbsolute { return try logicalPath(ofReal: path) }
    let parts = path.components
    guard let first = parts.first else { return "" }
    if path.beginsWithDots { return try logicalPath(ofReal: path.absolute ?? path) }
    if SnapshotPath.containerRoots.contains(first) { return ByteString(joining: parts) }
    let app: AppRecord
    do {
      app = try self.app(first, isInPath: true)
    } catch {
      let paths = [try? Host.realPath(path), path.absolute].compactMap { $0 }
      if let logical = paths.lazy.compactMap(inContainer).first { return logical }
      throw error
    }
    return ByteString(joining: ["apps", ByteString(app.identifier), "data"] + parts.dropFirst())
  }

  /// Returns the logical path of an absolute path, as written or with symbolic links resolved.
  private func logicalPath(ofReal path: ByteString) throws -> ByteString {
    let parts = path.components.filter { $0 != "." }
    let written = ByteString("/").appending(ByteString(joining: parts))
    for candidate in [written, try? Host.realPath(path)].compactMap({ $0 }) {
      if let logical = inContainer(candidate) { return logical }
      if candidate == device.root { return "" }
    }
    throw OperationError(
      .notFound, code: .notInContainer, "find", subject: path,
      reason: "it is not in a container of the snapshot's device '\(device.root)'",
      hint: "'sandboxctl ls' shows logical paths, which do not begin with a slash")
  }

  private func inContainer(_ path: ByteString) -> ByteString? {
    let around = device.containers.filter { path.isWithin($0.realPath) }
    guard let container = around.max(by: { $0.realPath.count < $1.realPath.count }) else {
      return nil
    }
    return container.path.appending(
      ByteString(path.bytes.dropFirst(container.realPath.count).drop { $0 == 0x2f }))
  }

  /// Returns the app with a name: its identifier, or, in any case, the last part of that or its
  /// display name, if only one app matches.
  ///
  /// - Parameter isInPath: whether the name is the beginning of a path, and not an option's value.
  func app(_ name: ByteString, isInPath: Bool = false) throws -> AppRecord {
    if let app = apps.first(where: { ByteString($0.identifier) == name }) { return app }
    let found = apps.filter { app in name.utf8.map(app.isCalled) ?? false }
    guard let app = found.first else {
      let hints = [
        isInPath ? "logical paths begin with 'apps', 'groups' or 'folders'" : nil,
        apps.isEmpty ? nil : "the snapshot's apps are " + Self.listed(apps.map(\.identifier)),
      ].compactMap(\.self)
      throw OperationError(
        .notFound, code: .noApp, "find", subject: name, reason: "the snapshot has no such app",
        hint: hints.isEmpty ? nil : hints.joined(separator: "; "))
    }
    guard found.count == 1 else {
      throw OperationError(
        .unclear, code: .ambiguousApp,
        "'\(name)' is ambiguous: it matches several apps: "
          + Self.listed(found.map(\.identifier)), hint: "give the full identifier")
    }
    return app
  }

  /// Returns the first five names in quotes, and the number of the others.
  private static func listed(_ names: [String]) -> String {
    let shown = names.prefix(5).map { "'\(ByteString($0))'" }.joined(separator: ", ")
    return names.count > 5 ? "\(shown) and \(names.count - 5) more" : shown
  }
}

extension Snapshot {
  /// Returns the identifiers of the named apps.
  ///
  /// - Throws: `OperationError` for a name that matches no app of the snapshot, or several.
  func identifiers(of names: [String]) throws -> [String] {
    try names.map { try app(ByteString($0)).identifier }
  }
}
