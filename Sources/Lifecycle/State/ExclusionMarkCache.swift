internal import Codecs
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// The marks that the last scans of a source found, for a scan of it, and what this one finds.
///
/// What is known is known of an inode as it was: by a fingerprint of its number, kind and time of
/// change, of the container that it is in, and of all that was looked for. Whatever changes an
/// extended attribute of an entry, or a name in a directory, moves the time of change. So an entry with
/// a known fingerprint bears the marks that it bore (docs/state-file.md, "Marks").
public struct ExclusionMarkCache: Sendable {
  /// What earlier scans found.
  private let known: MarkTable
  /// What this scan found.
  private(set) var found = MarkTable()
  /// Whether this scan met something that was not known.
  private(set) var hasNews = false
  /// When the scan began, by the clock of the file system that the state lies on.
  private let clock: RunClock
  /// The program and its version, which may look in another way.
  private let program: String
  /// What a container's fingerprints begin with; nothing where nothing can be known.
  private var seed: UInt64?

  init(_ known: MarkTable, at clock: RunClock, by program: String) {
    (self.known, self.clock, self.program) = (known, clock, program)
  }

  /// Begins with a container, in which a policy has marks looked for as `search` tells in full.
  ///
  /// Nothing is remembered of what lies on a volume of another machine, or behind a program, which
  /// may keep times as it likes; nor of a read-only one, where other contents may have the same
  /// inodes and times.
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

  /// The fingerprint of an entry; nothing where nothing can be known of it.
  func fingerprint(_ status: FileStatus) -> UInt64? {
    guard var print = seed, !status.isMountPoint else { return nil }
    let seconds = UInt64(bitPattern: status.changed.seconds)
    let rest = UInt64(status.changed.nanoseconds) << 8 | UInt64(status.kind.rawValue)
    for word in [status.identity.inode, seconds, rest] { Self.mix(word, into: &print) }
    return print
  }

  /// The marks of an entry; nothing when they are to be looked for. Those are known from now on.
  mutating func marks(_ fingerprint: UInt64) -> MarkSet? {
    guard let marks = known.marks(fingerprint) else { return nil }
    found.add(fingerprint, marks)
    return marks
  }

  /// Remembers the marks that were found after the status was asked for. A change within the same
  /// tick of the clock would not show: what was changed shortly before the scan is not known.
  mutating func remember(_ fingerprint: UInt64, _ status: FileStatus, _ marks: MarkSet) {
    guard ChangeRules.hasStoodStill(status.changed, before: clock) else { return }
    found.add(fingerprint, marks)
    hasNews = true
  }

  /// Takes over what another thread of the same scan found.
  mutating func add(_ other: ExclusionMarkCache) {
    found.add(other.found)
    hasNews = hasNews || other.hasNews
  }

  /// All that is known now: after a look at a part of the source with what is known of the rest.
  /// Nothing when it is what was known before.
  func table(isPart: Bool) -> MarkTable? {
    let isSame = !hasNews && (isPart || found.count == known.count)
    if isSame { return nil }
    let joined = isPart ? found.joined(with: known) : found.sorted
    return joined.count <= MarkTable.limit ? joined : found.sorted
  }

  /// Mixes a word into a fingerprint: each bit of both changes about half of the result's
  /// (the finalizer of MurmurHash3, Austin Appleby, public domain).
  private static func mix(_ word: UInt64, into print: inout UInt64) {
    var bits = (print ^ word) &+ 0x9e37_79b9_7f4a_7c15
    bits = (bits ^ bits >> 33) &* 0xff51_afd7_ed55_8ccd
    bits = (bits ^ bits >> 33) &* 0xc4ce_b9fe_1a85_ec53
    print = bits ^ bits >> 33
  }
}
