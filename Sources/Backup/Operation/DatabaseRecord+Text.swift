package import ArchiveStore
internal import DatabaseCapture

extension DatabaseRecord {
  /// How the database was captured, in words; the recorded word if a newer version recorded it.
  package var text: String {
    switch CaptureResult.Method(rawValue: how) {
    case .watching: "consistent, did not change while it was read"
    case .locks: "consistent, locked while it was read"
    case .unlocked: "perhaps inconsistent, in use while it was read or without its log"
    case nil: how
    }
  }
}
