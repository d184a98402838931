public import PolicyEngine
public import SandboxModel
public import SystemIO

/// The entries that a scan found in one container, each with the policy's verdicts.
///
/// Entries are in the order of the walk: a directory precedes everything below it, and the children
/// of a directory are consecutive. One buffer holds all names.
public struct ContainerScan: Sendable {
  public let container: Container
  /// The entries; the first is the container's root. Entries are added by `append`.
  public var entries = SpillableArray<ScannedEntry>()
  public var names = SpillableArray<UInt8>()
  /// Entries that could not be examined, by their paths in the container.
  public internal(set) var unreadable: [PathRemark] = []
  /// Entries that the policy may include and that vanished during the scan, before they were
  /// examined or, for directories, before their content was listed.
  public internal(set) var vanished: [VanishedEntry] = []
  /// Mounts below the root that were not entered, by their paths in the container.
  public internal(set) var mounts: [ByteString] = []
  /// Repositories other than the one in use that the policy would include, by their paths in the
  /// container.
  public var repositories: [ByteString] = []
  /// Mounts below the root that were entered because of an option, by their paths in the container.
  var crossedMounts: [ByteString] = []

  /// The access time of each entry.
  public private(set) var accessTimes: AccessTimes
  /// The program's own directories and repositories, which are skipped whatever the policy says.
  public var ownDirectories: Set<Int> = []
  /// The marks of the entries themselves, by index.
  public var marks: [Int: MarkSet] = [:]
  /// The sibling names used in rules that exist in a directory, by its index.
  public var siblings: [Int: SiblingSet] = [:]
  /// The databases of the logs and journals that have their database's verdicts and not their own.
  var databases: [Int: Int] = [:]

  /// - Parameter notesAccess: whether the scan records access times; the same for all parts of one
  ///   container's scan.
  init(_ container: Container, notesAccess: Bool = false) {
    self.container = container
    accessTimes = AccessTimes(isRecorded: notesAccess)
  }

  /// Adds an entry with its access time.
  ///
  /// - Parameter accessed: the access time in seconds since 1970.
  /// - Returns: the index of the entry.
  @discardableResult
  public mutating func append(_ entry: ScannedEntry, accessed: Int64) -> Int {
    entries.append(entry)
    accessTimes.append(accessed)
    return entries.count - 1
  }

  /// Reserves space for more entries and more bytes of names.
  mutating func reserve(_ entries: Int, names: Int) {
    self.entries.reserve(self.entries.count + entries)
    self.names.reserve(self.names.count + names)
    accessTimes.reserve(entries)
  }

  /// Allows the tables of the scan to spill to a file if they are large.
  mutating func makeSpillable() {
    entries.makeSpillable()
    names.makeSpillable()
    accessTimes.makeSpillable()
  }

  /// Returns the name of an entry; the root's is empty.
  public func name(_ index: Int) -> ByteString { ByteString(names.copy(entries[index].nameRange)) }

  /// Returns the bytes of an entry's name.
  public func nameBytes(_ index: Int) -> [UInt8] { Array(names.copy(entries[index].nameRange)) }

  /// Calls `body` with the name of an entry, without a copy.
  @inlinable @inline(__always)
  public func withName<Result, Failure: Error>(
    _ index: Int, _ body: (Span<UInt8>) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let range = entries[index].nameRange
    return try names.withSpan { names throws(Failure) in try body(names.extracting(range)) }
  }

  /// Returns the path of an entry in the container; the root's is empty.
  public func path(_ index: Int) -> ByteString {
    var (above, at) = (AscendingPath(), index)
    while at > 0 {
      withName(at) { above.prepend($0) }
      at = Int(entries[at].parent)
    }
    return above.path
  }

  /// Returns the directories below the root down to the given one, which is the last.
  public func directories(to directory: Int) -> [Int32] {
    var chain: [Int32] = []
    var at = directory
    while at > 0 {
      chain.append(Int32(at))
      at = Int(entries[at].parent)
    }
    chain.reverse()
    return chain
  }

  /// The unreadable entries by their logical paths.
  public var unreadableByLogicalPath: [PathRemark] {
    unreadable.map {
      PathRemark(path: container.logicalPrefix.appending($0.path), remark: $0.remark)
    }
  }

  /// Returns the logical path of an entry.
  public func logicalPath(_ index: Int) -> ByteString {
    container.logicalPrefix.appending(path(index))
  }

  /// Returns the entry at a path in the container, or nil if the scan found none there.
  public func index(of path: ByteString) -> Int? {
    guard !entries.isEmpty else { return nil }
    return path.components.reduce(0 as Int?) { found, wanted in
      found.flatMap { directory in entries[directory].children.first { name($0) == wanted } }
    }
  }

  /// The reliability of the times of the volumes with the scanned entries.
  public var volumes: [VolumeTimes] {
    let root = container.absolutePath
    let paths = [root] + crossedMounts.map(root.appending)
    return paths.map { (try? Directory.open(path: $0).volumeTimes()) ?? .loose }
  }

  /// Returns the policy query for an entry, or for the database whose verdicts it has.
  public func query(_ index: Int) -> EntryQuery {
    let index = databases[index] ?? index
    var chain = [index]
    while let last = chain.last, last > 0 { chain.append(Int(entries[last].parent)) }
    chain.reverse()
    var query = container.query(
      chain.dropFirst().map { nameBytes($0) },
      ContainerScanner.facts(entries[index].type, entries[index].status))
    for (depth, entry) in chain.enumerated() {
      query.marks[depth] = marks[entry]
      query.siblings[depth] = siblings[entry]
    }
    return query
  }

  /// Excludes a directory and those of its entries that were added, whatever the policy says.
  mutating func exclude(_ directory: Int) {
    ownDirectories.insert(directory)
    entries[directory].selection = .excluded
    for child in entries[directory].children { entries[child].selection = .excluded }
  }

  /// Returns whether a backup to a destination excludes each entry, by index, or the scan itself
  /// did. A directory that contains an entry which is not excluded is not excluded either.
  public func exclusions(for destination: Destination) -> SpillableArray<Bool> {
    let destination = destination.deciding(for: container.kind)
    var excluded = SpillableArray(repeating: false, count: entries.count)
    for (index, entry) in entries.enumerated() {
      excluded[index] =
        entry.selection == .excluded
        || entry.verdicts.keep.backup.mode(for: destination) == .never
    }
    for index in stride(from: entries.count - 1, to: 0, by: -1) where !excluded[index] {
      excluded[Int(entries[index].parent)] = false
    }
    return excluded
  }

  /// Marks excluded directories as bare if something below them is included.
  mutating func findBareDirectories() {
    for index in stride(from: entries.count - 1, to: 0, by: -1)
    where entries[index].selection != .excluded {
      let parent = Int(entries[index].parent)
      if entries[parent].selection == .excluded { entries[parent].selection = .parentOnly }
    }
  }
}

extension ContainerScan {
  /// The access times of a scan's entries by index: of all entries, or of none.
  public struct AccessTimes: Sendable {
    /// Whether the scan records access times.
    let isRecorded: Bool
    private var seconds = SpillableArray<Int64>()

    init(isRecorded: Bool) { self.isRecorded = isRecorded }

    /// The access time of an entry in seconds since 1970, or nil if none are recorded.
    public subscript(index: Int) -> Int64? { isRecorded ? seconds[index] : nil }

    fileprivate mutating func reserve(_ more: Int) {
      if isRecorded { seconds.reserve(seconds.count + more) }
    }

    fileprivate mutating func makeSpillable() { seconds.makeSpillable() }

    fileprivate mutating func append(_ accessed: Int64) {
      if isRecorded { seconds.append(accessed) }
    }
  }
}

/// An entry that vanished during a scan.
public struct VanishedEntry: Sendable {
  /// The path in the container.
  public let path: ByteString
  public let identity: FileIdentity
}

/// An entry of a container: its status, and the decision on it.
public struct ScannedEntry: Sendable, BitwiseCopyable {
  public var parent: Int32
  @usableFromInline var nameStart: UInt32
  @usableFromInline let nameLength: UInt16
  private var troubles: Troubles = []
  public var selection: Selection
  public var firstChild: Int32 = 0
  public var childCount: Int32 = 0
  public let status: FileStatus
  /// The policy's verdicts on the entry.
  public internal(set) var verdicts: Verdicts
  /// The type of the entry, as far as rules distinguish types.
  public let type: EntryType

  init(
    parent: Int32, nameStart: UInt32, nameLength: UInt16, selection: Selection, status: FileStatus,
    verdicts: Verdicts, type: EntryType
  ) {
    self.parent = parent
    self.nameStart = nameStart
    self.nameLength = nameLength
    self.selection = selection
    self.status = status
    self.verdicts = verdicts
    self.type = type
  }

  /// The reasons why the children of an entry are unknown.
  private struct Troubles: OptionSet, Sendable, BitwiseCopyable {
    let rawValue: UInt8
    static let isUnreadable = Troubles(rawValue: 1)
    static let isStale = Troubles(rawValue: 2)
  }

  /// Whether the entry could not be entered or its marks could not be read.
  public internal(set) var isUnreadable: Bool {
    get { troubles.contains(.isUnreadable) }
    set { troubles.formSymmetricDifference(newValue == isUnreadable ? [] : .isUnreadable) }
  }

  /// Whether a directory was removed, renamed or replaced before all its entries were listed.
  public internal(set) var isStale: Bool {
    get { troubles.contains(.isStale) }
    set { troubles.formSymmetricDifference(newValue == isStale ? [] : .isStale) }
  }

  /// The decision of a backup on an entry.
  public enum Selection: UInt8, Sendable, BitwiseCopyable {
    /// The entry is stored.
    case included
    /// The entry is a directory that is excluded but contains an included entry.
    case parentOnly
    /// The entry is not stored.
    case excluded
  }

  @inlinable public var nameRange: Range<Int> {
    Int(nameStart)..<(Int(nameStart) + Int(nameLength))
  }

  public var children: Range<Int> { Int(firstChild)..<Int(firstChild + childCount) }
}

extension Container {
  /// The identifier that rules for single apps match.
  public var policyApp: String? { (owner ?? identifier)?.bytes.utf8 }

  /// The identifier that rules for single groups match.
  public var policyGroup: String? { kind == .group ? identifier?.bytes.utf8 : nil }

  /// Returns the policy query for an entry of the container, without marks.
  public func query(_ path: [[UInt8]], _ facts: EntryFacts) -> EntryQuery {
    EntryQuery(kind, app: policyApp, group: policyGroup, path: path, facts: facts)
  }
}
