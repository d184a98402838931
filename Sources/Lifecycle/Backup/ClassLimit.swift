internal import ArchiveStore
internal import SandboxModel
internal import SystemIO

/// How many data classes of single paths a snapshot has room for, beside all else that it may say
/// (docs/repository-format.md, "Snapshot").
///
/// They are not summed up as notes are (`NoteLimit`): a path without a class of its own has that of the
/// directory above, so a restore by class would lack it, or bring too much, without a word. What needs more
/// is refused before anything is read, and not when all is stored.
struct ClassLimit: Sendable {
  var runs = 300_000
  /// About so many bytes of JSON.
  var bytes = 40 << 20

  /// Refuses what there is no room for.
  func require(_ runs: [ClassRun], of device: ByteString) throws(LifecycleError) {
    let size = runs.reduce(0) { $0 + Self.size(of: $1.path) }
    guard runs.count > self.runs || size > bytes else { return }
    let most = Dictionary(grouping: runs) { NoteLimit.owner(of: $0.path) }
      .min { ($1.value.count, $0.key) < ($0.value.count, $1.key) }
    let place = most.map { "; \($0.value.count) of them are in '\($0.key)'" } ?? ""
    throw LifecycleError(
      .failed,
      "cannot back up '\(device)': the policy gives \(runs.count) paths another data class than the "
        + "directory above has, more than a snapshot can note\(place)",
      hint: "leave such files out with '--exclude', or give their directory one class by '--policy'"
    )
  }

  /// Bytes of a run in JSON at most: what is not UTF-8 stands there twice, escaped and in base64.
  private static func size(of path: ByteString) -> Int {
    guard path.utf8 != nil else { return 7 * path.count + 64 }
    let escaped = path.bytes.count {
      $0 < 0x20 || $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "\\")
    }
    return path.count + 5 * escaped + 64
  }
}

extension BackupPlan {
  /// The data classes that the snapshot notes.
  var classRuns: [ClassRun] { scans.flatMap(\.classRuns) }
}
