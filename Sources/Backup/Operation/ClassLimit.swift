internal import ArchiveStore
internal import SandboxModel
internal import SystemIO

/// The maximum number of data classes of single paths that a snapshot can record besides its other
/// contents (docs/repository-format.md, "Snapshot").
///
/// Unlike notes (`NoteLimit`), they cannot be summarized: a path without a class of its own has the
/// class of the directory above, so a restore by class would silently omit files or add others. A
/// plan above the limit is refused before anything is read.
package struct ClassLimit: Sendable {
  var runs = 300_000
  /// The approximate number of bytes of JSON.
  var bytes = 40 << 20

  /// Throws if the data classes exceed the limit.
  func require(_ runs: [ClassRun], of device: ByteString) throws(OperationError) {
    let size = runs.reduce(0) { $0 + Self.size(of: $1.path) }
    guard runs.count > self.runs || size > bytes else { return }
    let most = Dictionary(grouping: runs) { NoteLimit.owner(of: $0.path) }
      .min { ($1.value.count, $0.key) < ($0.value.count, $1.key) }
    let place = most.map { "; \($0.value.count) of them are in '\($0.key)'" } ?? ""
    throw OperationError(
      .failed,
      "cannot back up '\(device)': the policy gives \(runs.count) paths another data class than "
        + "the directory above, more than a snapshot can record\(place)",
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

extension BackupPlan {
  /// The data classes that the snapshot records.
  var classRuns: [ClassRun] { scans.flatMap(\.classRuns) }
}
