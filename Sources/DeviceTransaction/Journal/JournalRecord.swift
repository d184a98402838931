internal import ArchiveStore
internal import Codecs
package import SystemIO

/// The journal's record of an operation (docs/journal.md). Any process can finish the operation or
/// roll it back from this record.
package struct JournalRecord: Hashable, Sendable {
  /// The progress of an operation with its current container.
  enum State: String, Sendable {
    /// Staging is in progress and the container is unchanged. Recovery removes the staged entries.
    case preparing
    /// Everything is staged and synced, and steps are being applied. Recovery applies the remaining
    /// steps.
    case moving
    /// Steps are being rolled back because one could not be applied. Recovery rolls back the
    /// remaining steps.
    case returning
  }

  /// A directory that contains the paths of steps.
  package struct Root: Hashable, Sendable {
    package let path: ByteString
    /// The directory's inode number, which protects another directory that has replaced it. Nil for
    /// a directory that may have to be created.
    let inode: UInt64?

    /// Creates a root.
    package init(path: ByteString, inode: UInt64?) {
      self.path = path
      self.inode = inode
    }
  }

  /// The operation's ID, which names its journal files and its directory in the trash.
  package let id: String
  /// The kind of the operation, for example `restore`.
  let operation: String
  let time: Timestamp
  /// The logical paths of the locked apps, groups and directories.
  package let subjects: [ByteString]
  /// The logical paths of the containers, in the order in which they are changed.
  let containers: [ByteString]
  /// Whether all steps are applied or none. If set and a step cannot be applied, all steps are
  /// rolled back. Otherwise the step is reported, and the steps after it are applied. In both cases
  /// a full or failing volume ends the recovery, and the journal stays.
  let isWhole: Bool
  /// The index of the current container.
  var currentContainer = 0
  var state = State.preparing
  /// The device's directory, which contains the paths; nil in journals of earlier versions.
  var device: ByteString?
  /// The directories that contain staged entries (`StagingDirectory`).
  var staging: [ByteString] = []
  var roots: [Root] = []
  var steps = JournalSteps()

  package init(
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

  /// Returns the record after all steps were rolled back. It has to be written before the staged
  /// entries are removed: a step without a staged entry would be mistaken for one to roll back.
  ///
  /// - Parameter hasPlacedEntries: whether any new entry was in place, so that the staged entries
  ///   are kept; otherwise they are removed.
  func withoutSteps(hasPlacedEntries: Bool) -> JournalRecord {
    var record = self
    record.state = hasPlacedEntries ? .returning : .preparing
    (record.roots, record.steps) = ([], [])
    return record
  }

  /// The record once no further step is to be applied. It has to be written before the rest of the
  /// staging is removed: a step without a staged entry would be mistaken for an applied one.
  var settled: JournalRecord {
    var record = self
    (record.roots, record.steps) = ([], [])
    return record
  }

  /// The record for a device that is now at another path, for example on a disk that is mounted
  /// elsewhere.
  func located(at root: ByteString) -> JournalRecord {
    guard let device, device != root else { return self }
    var record = self
    record.device = root
    record.staging = staging.map { $0.moved(from: device, to: root) }
    record.roots = roots.map {
      Root(path: $0.path.moved(from: device, to: root), inode: $0.inode)
    }
    return record
  }

  /// Syncs the volumes of the roots.
  func syncRoots() throws(SystemError) {
    for root in roots {
      do throws(SystemError) {
        try Directory.open(resolved: root.path).syncVolume()
      } catch { if !error.isMissing { throw error } }
    }
  }
}

// MARK: - JSON

extension JournalRecord {
  private static let format: Int64 = 1

  /// The maximum size of a journal file in bytes: 2 GiB, about ten million steps. The check is made
  /// before the first step, since a larger journal could not be read back.
  static let limit = 1 << 31
  /// The maximum size in bytes of the line of a step, and the number of bytes of a journal that its
  /// steps leave to the first line.
  static let lineLimit = 1 << 20
  static let headReserve = 64 << 20

  /// Whether a name is the ID of an operation: `20260131T120000-` and eight hexadecimal digits.
  static func isID(_ name: ByteString) -> Bool {
    let parts = name.bytes.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
    let isDigit = { (byte: UInt8) in (0x30...0x39).contains(byte) }
    guard parts.count == 2, parts[0].count == 15, parts[1].count == 8 else { return false }
    let (day, time) = (parts[0].prefix(8), parts[0].suffix(6))
    return day.allSatisfy(isDigit) && parts[0].dropFirst(8).first == UInt8(ascii: "T")
      && time.allSatisfy(isDigit)
      && parts[1].allSatisfy { isDigit($0) || (0x61...0x66).contains($0) }
  }

  /// Writes the journal file in pieces: the head on the first line, then one step a line.
  func write(
    to sink: (borrowing [UInt8]) throws(SystemError) -> Void
  ) throws(SystemError) {
    var piece = JSON.object(
      [
        JSON.Member("format", .integer(Self.format)), JSON.Member("id", .string(id)),
        JSON.Member("operation", .string(operation)), JSON.Member("time", .string(time.rfc3339)),
        JSON.Member("subjects", Self.list(subjects)),
        JSON.Member("containers", Self.list(containers)),
        JSON.Member("whole", .bool(isWhole)),
        JSON.Member("in_hand", .integer(Int64(currentContainer))),
        JSON.Member("state", .string(state.rawValue)), JSON.Member("staging", Self.list(staging)),
      ] + (device.map { JSON.path($0, named: "device") } ?? []) + [
        JSON.Member("roots", .array(roots.map(\.json)))
      ]
    ).compactBytes
    piece.removeLast()
    piece.append(contentsOf: Array(",\"steps\":[".utf8))
    for (number, step) in steps.enumerated() {
      piece.append(contentsOf: Array((number == 0 ? "\n" : ",\n").utf8))
      let start = piece.count
      step.json.write(to: &piece)
      guard piece.count - start <= Self.lineLimit - Self.ending.count else {
        throw SystemError.tooLarge(ByteString(id + ".json"))
      }
      if piece.count >= Self.pieceLength {
        try sink(piece)
        piece.removeAll(keepingCapacity: true)
      }
    }
    piece.append(contentsOf: Self.ending + [UInt8(ascii: "\n")])
    try sink(piece)
  }

  private static let pieceLength = 256 << 10

  /// Reads a journal file line by line.
  ///
  /// - Parameter values: the maximum number of JSON values in a step.
  /// - Returns: the record, or nil if the file is not in this format, is larger than `limit`, or
  ///   has a step with a line of more than `lineLimit` bytes.
  static func read(
    _ file: consuming Descriptor, values: Int = 64
  ) throws(SystemError) -> JournalRecord? {
    guard try file.status().size <= UInt64(limit) else { return nil }
    var lines = LineReader(file)
    guard let head = try lines.next(limit: limit).map({ Array($0) }) else { return nil }
    var line = try lines.next(limit: lineLimit)
    guard var record = JournalRecord(head: line == nil ? head : head + ending) else { return nil }
    while let current = line.map({ Array($0) }) {
      line = try lines.next(limit: lineLimit)
      guard record.addStep(of: current, isLast: line == nil, values: values) else { return nil }
    }
    return lines.isTooLong ? nil : record
  }

  /// Adds the step on a line. Returns false if the line has none.
  private mutating func addStep(of line: [UInt8], isLast: Bool, values: Int) -> Bool {
    let end = isLast ? Self.ending : [UInt8(ascii: ",")]
    let limits = JSON.Limits(bytes: Self.lineLimit, depth: 8, values: values)
    guard line.suffix(end.count) == end[...],
      let json = try? JSON(parsing: Array(line.dropLast(end.count)), limits: limits),
      let step = JournalStep(json, roots: roots.count)
    else { return false }
    steps.append(step)
    return true
  }

  /// The end of the list of steps and of the file.
  private static let ending = Array("]}".utf8)

  /// Parses the first line, which has no steps.
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
    device = json.path(named: "device")
    self.staging = staging
    self.roots = roots.compactMap { $0 }
  }

  static func list(_ paths: [ByteString]) -> JSON {
    .array(paths.map { .object(JSON.path($0, named: "path")) })
  }

  static func paths(_ json: JSON?) -> [ByteString]? {
    guard let paths = json?.array?.map({ $0.path(named: "path") }), !paths.contains(nil) else {
      return nil
    }
    return paths.compactMap { $0 }
  }
}

extension ByteString {
  /// Returns the path of an entry after a directory that may contain it has moved to another path.
  func moved(from old: ByteString, to new: ByteString) -> ByteString {
    isWithin(old) ? new.appending(relative(to: old)) : self
  }
}

extension JournalRecord.Root {
  fileprivate var json: JSON {
    let number = inode.map { JSON.integer(Int64(bitPattern: $0)) } ?? .null
    return .object(JSON.path(path, named: "path") + [JSON.Member("inode", number)])
  }

  fileprivate init?(_ json: JSON) {
    guard let path = json.path(named: "path"), path.isAbsolute, let inode = json["inode"] else {
      return nil
    }
    self.init(path: path, inode: inode.integer.map { UInt64(bitPattern: $0) })
  }
}

extension JournalRecord {
  /// A reader of the lines of a text file that holds only a few lines in memory. Empty lines are
  /// skipped.
  struct LineReader: ~Copyable {
    private let file: Descriptor
    private var buffer: [UInt8] = []
    /// The offset of the next line in the buffer.
    private var start = 0
    private var offset: UInt64 = 0
    private var isAtEnd = false
    /// Whether a line was longer than its limit. No line follows then.
    private(set) var isTooLong = false

    private static let step = 256 << 10

    init(_ file: consuming Descriptor) { self.file = file }

    /// Returns the next line without its newline, or nil at the end of the file, or if the line has
    /// more than `limit` bytes. Holds little more than that in memory.
    mutating func next(limit: Int) throws(SystemError) -> ArraySlice<UInt8>? {
      var searched = start
      while !isTooLong {
        if let end = buffer[searched...].firstIndex(of: UInt8(ascii: "\n")) {
          defer { start = end + 1 }
          if end - start > limit { break }
          if end > start { return buffer[start..<end] }
          searched = end + 1
          continue
        }
        if buffer.count - start > limit { break }
        if isAtEnd {
          defer { start = buffer.endIndex }
          return start < buffer.endIndex ? buffer[start...] : nil
        }
        searched = buffer.count - start
        try fill()
      }
      isTooLong = true
      return nil
    }

    private mutating func fill() throws(SystemError) {
      buffer.removeFirst(start)
      start = 0
      let before = buffer.count
      try file.read(count: Self.step, at: offset, appendingTo: &buffer)
      offset += UInt64(buffer.count - before)
      isAtEnd = buffer.count == before
    }
  }
}
