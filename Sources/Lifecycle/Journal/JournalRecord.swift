internal import ArchiveStore
internal import Codecs
internal import SystemIO

/// What the journal says of an operation (docs/journal.md): enough to finish it or to take it back
/// without whoever began it.
struct JournalRecord: Hashable, Sendable {
  /// How far an operation is with the container in hand.
  enum State: String, Sendable {
    /// All that is to come is being staged: the container is as it was. It is taken back by removing
    /// what was staged.
    case preparing
    /// All is staged and on the disk: the steps are being taken, and an interruption is made good by
    /// taking those that are left.
    case moving
    /// Steps are being taken back, because they could not all be taken: an interruption is made good by
    /// taking back those that are left.
    case returning
  }

  /// A directory below which steps work.
  struct Root: Hashable, Sendable {
    let path: ByteString
    /// The directory's number on its volume, so that another directory that came in its place is left alone;
    /// nothing for one that may have to be made.
    let inode: UInt64?
  }

  /// The operation's name: its files in the journal and its directory in the trash.
  let id: String
  /// What is done: `restore`.
  let operation: String
  let time: Timestamp
  /// The apps, groups and directories that are locked, by their logical paths.
  let subjects: [ByteString]
  /// The logical paths of the containers, in the order in which they come.
  let containers: [ByteString]
  /// Whether the steps are taken all or none: one that cannot be taken ends the recovery, and the
  /// journal stays. Else it is named, and those after it are taken.
  let isWhole: Bool
  /// The container in hand, by its number.
  var currentContainer = 0
  var state = State.preparing
  /// The directories in which something is staged (`StagingDirectory`).
  var staging: [ByteString] = []
  var roots: [Root] = []
  var steps = JournalSteps()

  init(
    operation: String, time: Timestamp, subjects: [ByteString], containers: [ByteString],
    isWhole: Bool = false
  ) {
    let digits = time.rfc3339.prefix { $0 != "." && $0 != "Z" }.filter { $0 != "-" && $0 != ":" }
    id = "\(digits)-\(Host.randomHex(bytes: 4))"
    self.operation = operation
    self.time = time
    self.subjects = subjects
    self.containers = containers
    self.isWhole = isWhole
  }
}

// MARK: - JSON

extension JournalRecord {
  private static let format: Int64 = 1

  /// The most bytes of a journal's file: 2 GiB, about ten million steps. A longer one is not written,
  /// before the first step is taken, as it could not be read.
  static let limit = 1 << 31

  /// Whether a name is that of an operation: `20260131T120000-` and eight hexadecimal digits.
  static func isID(_ name: ByteString) -> Bool {
    let parts = name.bytes.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
    let isDigit = { (byte: UInt8) in (0x30...0x39).contains(byte) }
    guard parts.count == 2, parts[0].count == 15, parts[1].count == 8 else { return false }
    let (day, time) = (parts[0].prefix(8), parts[0].suffix(6))
    return day.allSatisfy(isDigit) && parts[0].dropFirst(8).first == UInt8(ascii: "T")
      && time.allSatisfy(isDigit)
      && parts[1].allSatisfy { isDigit($0) || (0x61...0x66).contains($0) }
  }

  /// Gives the journal's file piece by piece: the head on the first line, then a step a line.
  func write(
    to take: (borrowing [UInt8]) throws(SystemError) -> Void
  ) throws(SystemError) {
    var piece = JSON.object([
      JSON.Member("format", .integer(Self.format)), JSON.Member("id", .string(id)),
      JSON.Member("operation", .string(operation)), JSON.Member("time", .string(time.rfc3339)),
      JSON.Member("subjects", Self.list(subjects)),
      JSON.Member("containers", Self.list(containers)),
      JSON.Member("whole", .bool(isWhole)),
      JSON.Member("in_hand", .integer(Int64(currentContainer))),
      JSON.Member("state", .string(state.rawValue)), JSON.Member("staging", Self.list(staging)),
      JSON.Member("roots", .array(roots.map(\.json))),
    ]).compactBytes
    piece.removeLast()
    piece.append(contentsOf: Array(",\"steps\":[".utf8))
    for (number, step) in steps.enumerated() {
      piece.append(contentsOf: Array((number == 0 ? "\n" : ",\n").utf8))
      step.json.write(to: &piece)
      if piece.count >= Self.pieceLength {
        try take(piece)
        piece.removeAll(keepingCapacity: true)
      }
    }
    piece.append(contentsOf: Self.ending + [UInt8(ascii: "\n")])
    try take(piece)
  }

  private static let pieceLength = 256 << 10

  /// Reads a journal's file a line at a time, as it is written.
  ///
  /// - Returns: nil if it is none of this format, or larger than `limit`.
  static func read(_ file: consuming Descriptor) throws(SystemError) -> JournalRecord? {
    guard try file.status().size <= UInt64(limit) else { return nil }
    var lines = LineReader(file)
    guard let head = try lines.next().map({ Array($0) }) else { return nil }
    var line = try lines.next()
    guard var record = JournalRecord(head: line == nil ? head : head + ending) else { return nil }
    while let current = line.map({ Array($0) }) {
      line = try lines.next()
      guard record.addStep(of: current, isLast: line == nil) else { return nil }
    }
    return record
  }

  /// Adds the step of a line; false if there is none in it.
  private mutating func addStep(of line: [UInt8], isLast: Bool) -> Bool {
    let end = isLast ? Self.ending : [UInt8(ascii: ",")]
    guard line.suffix(end.count) == end[...],
      let json = try? JSON(parsing: Array(line.dropLast(end.count))),
      let step = JournalStep(json, roots: roots.count)
    else { return false }
    steps.append(step)
    return true
  }

  /// What ends the list of steps and the file.
  private static let ending = Array("]}".utf8)

  /// Reads the first line, without steps.
  private init?(head bytes: [UInt8]) {
    guard let json = try? JSON(parsing: bytes, limits: JSON.Limits(bytes: Self.limit, depth: 8)),
      json["format"]?.integer == Self.format, let id = json["id"]?.string,
      let operation = json["operation"]?.string,
      let time = json["time"]?.string.flatMap({ Timestamp(rfc3339: $0) }),
      let state = json["state"]?.string.flatMap({ State(rawValue: $0) }),
      let subjects = Self.paths(json["subjects"]), let staging = Self.paths(json["staging"]),
      let containers = Self.paths(json["containers"]),
      let currentContainer = json["in_hand"]?.integer,
      containers.indices.contains(Int(clamping: currentContainer)),
      let roots = json["roots"]?.array?.map({ Root($0) }), !roots.contains(nil),
      json["steps"]?.array?.isEmpty == true
    else { return nil }
    self.id = id
    self.operation = operation
    self.time = time
    self.subjects = subjects
    self.containers = containers
    isWhole = json["whole"]?.bool ?? false
    self.currentContainer = Int(clamping: currentContainer)
    self.state = state
    self.staging = staging
    self.roots = roots.compactMap { $0 }
  }

  static func list(_ paths: [ByteString]) -> JSON {
    .array(paths.map { .object(JSON.members($0, named: "path")) })
  }

  static func paths(_ json: JSON?) -> [ByteString]? {
    guard let paths = json?.array?.map({ $0.bytes(named: "path") }), !paths.contains(nil) else {
      return nil
    }
    return paths.compactMap { $0 }
  }
}

extension JournalRecord.Root {
  fileprivate var json: JSON {
    let number = inode.map { JSON.integer(Int64(bitPattern: $0)) } ?? .null
    return .object(JSON.members(path, named: "path") + [JSON.Member("inode", number)])
  }

  fileprivate init?(_ json: JSON) {
    guard let path = json.bytes(named: "path"), path.isAbsolute, let inode = json["inode"] else {
      return nil
    }
    self.init(path: path, inode: inode.integer.map { UInt64(bitPattern: $0) })
  }
}
