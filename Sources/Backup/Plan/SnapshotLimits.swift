internal import ArchiveStore
internal import Codecs
internal import DeviceDiscovery
internal import DeviceScan
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// The maximum number of data classes of single paths that a snapshot can record besides its other
/// contents (docs/repository-format.md, "Snapshot").
///
/// Unlike notes (`NoteLimit`), they cannot be summarized: a path without a class of its own has the
/// class of the directory above, so a restore by class would silently omit files or add others. A
/// plan above the limit is refused before anything is read.
struct ClassLimit: Sendable {
  var runs = 300_000
  /// The approximate number of bytes of JSON.
  var bytes = 40 << 20

  /// Throws if the data classes exceed the limit.
  func require(_ runs: [ClassRun], of device: ByteString) throws(OperationError) {
    let size = runs.reduce(0) { $0 + Self.size(of: $1.path) }
    guard runs.count > self.runs || size > bytes else { return }
    let most = Dictionary(grouping: runs) { $0.path.subject }
      .min { ($1.value.count, $0.key) < ($0.value.count, $1.key) }
    let largest = most.map { "; \($0.value.count) of them are in '\($0.key)'" } ?? ""
    throw OperationError(
      .failed, code: .limitExceeded,
      "back up", subject: device,
      reason: "the policy gives \(runs.count) paths another data class than "
        + "the directory above, more than a snapshot can record\(largest)",
      hint: "exclude such files with '--exclude', or give their directory one class with '--policy'"
    )
  }

  /// Returns the maximum size of a run in JSON, in bytes: a path that is not UTF-8 is stored twice,
  /// escaped and in base64.
  private static func size(of path: ByteString) -> Int {
    guard path.utf8 != nil else { return 7 * path.count + 64 }
    let escaped = path.bytes.count {
      $0 < 0x20 || $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "\\")
    }
    return path.count + 5 * escaped + 64
  }
}

extension ContainerScan {
  /// The paths at which the data class changes. A path has the class of the nearest of these paths
  /// that contains it.
  var classRuns: [ClassRun] {
    entries.indices.compactMap { index in
      let entry = entries[index]
      guard entry.selection != .excluded else { return nil }
      let name = entry.verdicts.keep.dataClass
      if index > 0, entries[Int(entry.parent)].verdicts.keep.dataClass == name { return nil }
      return ClassRun(path: logicalPath(index), name: name.rawValue)
    }
  }
}

/// Limits the notes on single paths in a snapshot: a directory with a million unreadable files, or
/// half a million files excluded by a rule, must not make the snapshot too large to be read
/// (docs/repository-format.md, "Snapshot").
///
/// Notes above the limit are summarized as one for each app, group or directory. A restore with
/// `--delete` keeps everything below such a summary, so it never deletes files that were only
/// unreadable or excluded.
enum NoteLimit {
  /// The approximate number of bytes of JSON for each kind of note.
  static let bytes = LimitedNotes.bytes

  /// Returns the notes that a snapshot records.
  static func limited(_ remarks: [PathRemark]) -> [PathNote] {
    var notes = LimitedNotes()
    for remark in remarks { notes.add(PathNote(path: remark.path, note: remark.remark)) }
    return notes.notes
  }

  /// Returns the database records that a snapshot stores.
  static func limited(_ databases: [DatabaseRecord]) -> [DatabaseRecord] {
    let remarks = databases.map { PathRemark(path: $0.path, remark: $0.how) }
    return limited(remarks).map { DatabaseRecord(path: $0.path, how: $0.note) }
  }

  /// Returns the exclusions that a snapshot records. Those nearest to the root come first:
  /// these are the ones that a platform's rules exclude and that a restore recreates empty.
  static func limited(_ excluded: [Exclusion]) -> [Exclusion] {
    let depths = excluded.map { left in left.path.bytes.count { $0 == UInt8(ascii: "/") } }
    let order = excluded.indices.sorted { (depths[$0], $0) < (depths[$1], $1) }
    var named: [Int] = []
    var others: [ByteString: Exclusion] = [:]
    var room = bytes
    for index in order {
      let left = excluded[index]
      room -= 5 * left.path.count + left.rule.utf8.count + 80
      if room >= 0 {
        named.append(index)
      } else {
        let owner = left.path.subject
        others[owner, default: Exclusion(unnamedIn: owner)].add(left)
      }
    }
    return named.sorted().map { excluded[$0] } + others.values.sorted { $0.path < $1.path }
  }
}

extension Exclusion {
  fileprivate init(unnamedIn path: ByteString) {
    self.init(path: path, rule: Self.unnamed, files: 0, bytes: 0)
  }

  fileprivate mutating func add(_ other: Exclusion) {
    files += other.files
    bytes.addClamping(other.bytes)
  }
}
