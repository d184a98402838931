internal import Codecs
public import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// The marks that the last scans of a source found, for the next scan, and those that it finds.
///
/// Marks are recorded for an inode by a fingerprint: of its number, kind and change time, its
/// container, and the marks that were looked for. Every change of an extended attribute of an
/// entry, or of a name in a directory, updates the change time. So an entry with a known
/// fingerprint still has the recorded marks (docs/state-file.md, "Marks").
public struct ExclusionMarkCache: Sendable {
  /// The marks that earlier scans found.
  private let known: MarkTable
  /// The marks that this scan found.
  public private(set) var found = MarkTable()
  /// Whether this scan found marks that were not recorded.
  private(set) var hasNewMarks = false
  /// The start of the scan, by the clock of the file system that holds the state.
  private let clock: RunClock
  /// The program and its version, as other versions may look for marks differently.
  private let program: String
  /// The seed of a container's fingerprints, or nil if nothing can be recorded.
  private var seed: UInt64?

  public init(_ known: MarkTable, at clock: RunClock, by program: String) {
    (self.known, self.clock, self.program) = (known, clock, program)
  }

  /// Begins a container; `search` is a complete description of the marks to look for.
  ///
  /// Nothing is recorded for volumes of another machine or of a user-space file system, whose times
  /// may be arbitrary, nor for read-only volumes, on which other contents may have the same inodes
  /// and times.
  mutating func begin(
    _ container: Container, by policy: CompiledPolicy, searching search: [UInt8],
    in root: borrowing Directory
  ) {
    let times = (try? root.volumeTimes()) ?? .remote
    let isReliable = times != .remote && ((try? !root.isReadOnly()) ?? false)
    guard isReliable else {
      seed = nil
      return
    }
    var bytes = Array(policy.digest.bytes)
    for part: [UInt8] in [Array(program.utf8), search, Array(container.logicalPrefix.bytes)] {
      LittleEndian.append(part.count, to: &bytes)
      bytes += part
    }
    seed = Blake2b.hash(bytes).leadingWord
  }

  /// Returns the fingerprint of an entry, or nil if nothing can be recorded for it.
  func fingerprint(_ status: FileStatus) -> UInt64? {
    guard var print = seed, !status.isMountPoint else { return nil }
    let seconds = UInt64(bitPattern: status.changed.seconds)
    let rest = UInt64(status.changed.nanoseconds) << 8 | UInt64(status.kind.rawValue)
    for word in [status.identity.inode, seconds, rest] { Self.mix(word, into: &print) }
    return print
  }

  /// Returns the recorded marks of an entry and keeps them, or nil if they must be looked for.
  mutating func marks(_ fingerprint: UInt64) -> MarkSet? {
    guard let marks = known.marks(fingerprint) else { return nil }
    found.add(fingerprint, marks)
    return marks
  }

  /// Records marks that were found after the status was read. Entries changed shortly before the
  /// scan are not recorded, because another change within the same tick of the clock would not
  /// show.
  mutating func remember(_ fingerprint: UInt64, status: FileStatus, marks: MarkSet) {
    guard clock.hasSettled(status.changed) else { return }
    found.add(fingerprint, marks)
    hasNewMarks = true
  }

  /// Adds the marks that another thread of the same scan found.
  mutating func add(_ other: ExclusionMarkCache) {
    found.add(other.found)
    hasNewMarks = hasNewMarks || other.hasNewMarks
  }

  /// Returns all marks known now, or nil if they are the ones known before. If only a part of the
  /// source was scanned, the marks of the rest are included.
  public func table(isPart: Bool) -> MarkTable? {
    let isSame = !hasNewMarks && (isPart || found.count == known.count)
    if isSame { return nil }
    let joined = isPart ? found.joined(with: known) : found.sorted
    return joined.count <= MarkTable.limit ? joined : found.sorted
  }

  /// Mixes a word into a fingerprint: each bit of both changes about half of the bits of the result
  /// (the finalizer of MurmurHash3, Austin Appleby, public domain).
  private static func mix(_ word: UInt64, into print: inout UInt64) {
    var bits = (print ^ word) &+ 0x9e37_79b9_7f4a_7c15
    bits = (bits ^ bits >> 33) &* 0xff51_afd7_ed55_8ccd
    bits = (bits ^ bits >> 33) &* 0xc4ce_b9fe_1a85_ec53
    print = bits ^ bits >> 33
  }
}

/// Fingerprints of entries, each with the entry's marks (docs/state-file.md, "Marks").
public struct MarkTable: Sendable {
  /// The fingerprints of entries without marks, which most entries are.
  public var plain: [UInt64] = []
  /// The marks of the other entries, by their fingerprints.
  public var marked: [UInt64: MarkSet] = [:]

  /// The maximum number of entries. A larger table is not kept, and the next scan looks for its
  /// marks.
  public static let limit = 1 << 22

  /// Creates an empty table.
  public init() {}

  /// The number of entries.
  public var count: Int { plain.count + marked.count }

  public mutating func add(_ fingerprint: UInt64, _ marks: MarkSet) {
    if marks.isEmpty { plain.append(fingerprint) } else { marked[fingerprint] = marks }
  }

  /// Adds all entries of another table.
  mutating func add(_ other: MarkTable) {
    plain += other.plain
    marked.merge(other.marked) { first, _ in first }
  }

  /// Returns the marks of a fingerprint, or nil if it is unknown. The table must be sorted.
  func marks(_ fingerprint: UInt64) -> MarkSet? {
    if let marks = marked[fingerprint] { return marks }
    var (low, high) = (0, plain.count)
    while low < high {
      let middle = (low + high) / 2
      if plain[middle] < fingerprint { low = middle + 1 } else { high = middle }
    }
    return low < plain.count && plain[low] == fingerprint ? [] : nil
  }

  /// The sorted table, for lookups. An entry of two containers is in it twice.
  public var sorted: MarkTable {
    var table = self
    table.plain.sort()
    return table
  }

  /// Returns this table with the entries that only another one has, each once.
  public func joined(with other: MarkTable) -> MarkTable {
    var table = MarkTable()
    table.plain = Array(Set(plain).union(other.plain)).sorted()
    table.marked = marked.merging(other.marked) { first, _ in first }
    return table
  }
}
