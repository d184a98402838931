internal import ArchiveStore
internal import Codecs
internal import SystemIO

/// The text output of `snapshots list`, a line for each snapshot.
///
/// The columns for the reason and the scope are omitted if all snapshots were made by hand and of
/// whole devices.
struct SnapshotsTable {
  private let snapshots: [SnapshotHead]

  init(_ snapshots: [SnapshotHead]) { self.snapshots = snapshots }

  var lines: [String] {
    var table = Table(columns.map { ($0.title, $0.alignment) })
    for stored in snapshots { table.add(columns.map { $0.cell(stored) }) }
    return table.lines
  }

  private struct Column {
    let title: String
    let alignment: Table.Alignment
    let cell: (SnapshotHead) -> String

    init(
      _ title: String, _ alignment: Table.Alignment = .left,
      cell: @escaping (SnapshotHead) -> String
    ) {
      (self.title, self.alignment, self.cell) = (title, alignment, cell)
    }
  }

  private var columns: [Column] {
    let hasReasons = snapshots.contains { $0.reason != .manual }
    let hasParts = snapshots.contains { $0.scope != .device }
    let head = [
      Column("id") { String($0.id.hex.prefix(8)) }, Column("time") { Times.text($0.time) },
      Column("device") {
        Self.shown("\($0.user)@\($0.host):") + $0.device.root.description
      },
    ]
    let reason = Column("reason") { Self.shown($0.reason.rawValue) }
    let scope = Column("scope") { Self.shown($0.scope.text) }
    return head + (hasReasons ? [reason] : []) + (hasParts ? [scope] : []) + [
      Column("policy") { Self.shown($0.policy.name) },
      Column("apps", .right) { Sizes.count($0.apps.count) },
      Column("files", .right) { Sizes.count(Int(clamping: $0.totals.files)) },
      Column("size", .right) { Sizes.text($0.totals.bytes) },
      Column("stored", .right) { Sizes.text($0.totals.stored) },
      Column("tags") { Self.shown($0.tags.joined(separator: ",")) },
    ]
  }

  /// Returns a text of the repository for display. Repositories are not trusted.
  private static func shown(_ text: String) -> String { ByteString(text).description }
}

extension Scope {
  /// "device", or the first app and the number of the others.
  fileprivate var text: String {
    guard case .apps(let apps) = self else { return "device" }
    guard let first = apps.first else { return "no app" }
    return apps.count == 1 ? first : "\(first) and \(apps.count - 1) more"
  }
}
