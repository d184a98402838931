public import PolicyEngine
public import SandboxModel
public import SystemIO

/// What a scan found in one container, each entry with what the policy says of it.
///
/// Entries stand in the order of the walk: a directory before all that is below it, and the children of
/// one directory one after another. Names lie in one byte arena.
public struct ContainerScan: Sendable {
  public let container: Container
  /// The entries; the first is the container's root. `append` adds to them.
  public internal(set) var entries = SpillableArray<ScannedEntry>()
  var names = SpillableArray<UInt8>()
  /// What could not be looked at, by its path in the container.
  public internal(set) var unreadable: [PathRemark] = []
  /// Mounts below the root, which are not entered, by their path in the container.
  public internal(set) var mounts: [ByteString] = []
  /// Repositories that are not the one in use, which the policy would keep, by their path in the
  /// container.
  var repositories: [ByteString] = []
  /// Mounts below the root that were entered, as the scan was told to, by their path in the container.
  public internal(set) var crossedMounts: [ByteString] = []

  /// When each entry was last read.
  private(set) var accessTimes: AccessTimes
  /// The program's own directories and repositories, which are left alone whatever the policy says.
  var ownDirectories: Set<Int> = []
  /// The marks that entries bear themselves, by index.
  var marks: [Int: MarkSet] = [:]
  /// Which names that rules ask for lie in a directory, by its index.
  var siblings: [Int: SiblingSet] = [:]

  /// - Parameter notesAccess: whether the scan records when entries were last read; the same for all
  ///   parts of one container's scan.
  init(_ container: Container, notesAccess: Bool = false) {
    self.container = container
    accessTimes = AccessTimes(isRecorded: notesAccess)
  }

  /// Adds an entry with its access time.
  ///
  /// - Parameter accessed: seconds since 1970.
  /// - Returns: its index.
  @discardableResult
  mutating func append(_ entry: ScannedEntry, accessed: Int64) -> Int {
    entries.append(entry)
    accessTimes.append(accessed)
    return entries.count - 1
  }

  /// Makes room for more entries, and more bytes of names, at once.
  mutating func reserve(_ entries: Int, names: Int) {
    self.entries.reserve(self.entries.count + entries)
    self.names.reserve(self.names.count + names)
    accessTimes.reserve(entries)
  }

  /// Lets memory that the scan takes be written to a file where many are held.
  mutating func makeSpillable() {
    entries.makeSpillable()
    names.makeSpillable()
    accessTimes.makeSpillable()
  }

  /// The name of an entry; the root's is empty.
  public func name(_ index: Int) -> ByteString { ByteString(names.copy(entries[index].nameRange)) }

  /// The bytes of an entry's name.
  func nameBytes(_ index: Int) -> [UInt8] { Array(names.copy(entries[index].nameRange)) }

  /// Calls `body` with the name of an entry, which is not copied.
  @inline(__always)
  func withName<Result, Failure: Error>(
    _ index: Int, _ body: (Span<UInt8>) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let range = entries[index].nameRange
    return try names.withSpan { names throws(Failure) in try body(names.extracting(range)) }
  }

  /// The path of an entry in the container; the root's is empty.
  public func path(_ index: Int) -> ByteString {
    var parts: [[UInt8]] = []
    var at = index
    while at > 0 {
      parts.append(nameBytes(at))
      at = Int(entries[at].parent)
    }
    return ByteString(parts.reversed().joined(separator: [UInt8(ascii: "/")]))
  }

  /// The logical path of an entry.
  public func logicalPath(_ index: Int) -> ByteString {
    container.logicalPrefix.appending(path(index))
  }

  /// The entry at a path in the container, nil when the scan found none there.
  public func index(of path: ByteString) -> Int? {
    guard !entries.isEmpty else { return nil }
    return path.components.reduce(0 as Int?) { found, wanted in
      found.flatMap { directory in entries[directory].children.first { name($0) == wanted } }
    }
  }

  /// The question that the policy answers for an entry.
  public func query(_ index: Int) -> EntryQuery {
    var way = [index]
    while let last = way.last, last > 0 { way.append(Int(entries[last].parent)) }
    way.reverse()
    var query = container.query(
      way.dropFirst().map { nameBytes($0) },
      ContainerScanner.facts(entries[index].type, entries[index].status))
    for (depth, entry) in way.enumerated() {
      query.marks[depth] = marks[entry]
      query.siblings[depth] = siblings[entry]
    }
    return query
  }

  /// Leaves a directory out, whatever the policy says, with those of its entries that are here.
  mutating func exclude(_ directory: Int) {
    ownDirectories.insert(directory)
    entries[directory].fate = .excluded
    for child in entries[directory].children { entries[child].fate = .excluded }
  }

  /// Makes directories that are left out bare where something below them is kept.
  mutating func findBareDirectories() {
    for index in stride(from: entries.count - 1, to: 0, by: -1)
    where entries[index].fate != .excluded {
      let parent = Int(entries[index].parent)
      if entries[parent].fate == .excluded { entries[parent].fate = .bare }
    }
  }

  /// The children of a directory that are stored, in the order of their names' bytes.
  func storedChildren(of index: Int) -> [Int] {
    let range = entries[index].children
    return names.withSpan { names in
      range.filter { entries[$0].fate != .excluded }.sorted {
        names.extracting(entries[$0].nameRange).precedes(names.extracting(entries[$1].nameRange))
      }
    }
  }
}

/// The access times of a scan's entries, by index: of each of them, or of none.
struct AccessTimes: Sendable {
  /// Whether the scan records them.
  let isRecorded: Bool
  private var seconds = SpillableArray<Int64>()

  init(isRecorded: Bool) { self.isRecorded = isRecorded }

  /// The access time of an entry in seconds since 1970; nil if none are recorded.
  subscript(index: Int) -> Int64? { isRecorded ? seconds[index] : nil }

  fileprivate mutating func reserve(_ more: Int) {
    if isRecorded { seconds.reserve(seconds.count + more) }
  }

  fileprivate mutating func makeSpillable() { seconds.makeSpillable() }

  fileprivate mutating func append(_ accessed: Int64) {
    if isRecorded { seconds.append(accessed) }
  }
}

/// An entry of a container: its status, and what becomes of it.
public struct ScannedEntry: Sendable, BitwiseCopyable {
  var parent: Int32
  var nameStart: UInt32
  let nameLength: UInt16
  /// Whether the entry could not be entered or its marks not be read.
  public internal(set) var isUnreadable = false
  public internal(set) var fate: Fate
  var firstChild: Int32 = 0
  var childCount: Int32 = 0
  public let status: FileStatus
  /// What the policy says of it.
  public let verdicts: Verdicts
  /// What it is, as far as rules tell.
  public let type: EntryType

  init(
    parent: Int32, nameStart: UInt32, nameLength: UInt16, fate: Fate, status: FileStatus,
    verdicts: Verdicts, type: EntryType
  ) {
    self.parent = parent
    self.nameStart = nameStart
    self.nameLength = nameLength
    self.fate = fate
    self.status = status
    self.verdicts = verdicts
    self.type = type
  }

  /// What a backup does with an entry.
  public enum Fate: UInt8, Sendable, BitwiseCopyable {
    /// It is stored.
    case kept
    /// A directory that is not kept itself, but has something below it that is.
    case bare
    /// It is not stored.
    case excluded
  }

  var nameRange: Range<Int> { Int(nameStart)..<(Int(nameStart) + Int(nameLength)) }
  var children: Range<Int> { Int(firstChild)..<Int(firstChild + childCount) }
}

extension Container {
  /// The app that rules for single apps go by.
  var policyApp: String? { (owner ?? identifier)?.bytes.utf8 }

  /// The group that rules for single groups go by.
  var policyGroup: String? { kind == .group ? identifier?.bytes.utf8 : nil }

  /// The question that a policy answers for an entry of the container, without marks.
  public func query(_ path: [[UInt8]], _ facts: EntryFacts) -> EntryQuery {
    EntryQuery(kind, app: policyApp, group: policyGroup, path: path, facts: facts)
  }
}
