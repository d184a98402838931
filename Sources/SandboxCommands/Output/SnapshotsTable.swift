internal import ArchiveStore
internal import Codecs
internal import SystemIO

/// Snapshots as a list for a person, a line each.
///
/// Why one was made and of which apps it is stands there only where it is not the same for all: a
/// person has mostly snapshots of the whole device, made in one way.
struct SnapshotsTable {
  private let snapshots: [StoredSnapshot]

  init(_ snapshots: [StoredSnapshot]) { self.snapshots = snapshots }

  var lines: [String] {
    var table = Table(columns.map { ($0.title, $0.alignment) })
    for stored in snapshots { table.add(columns.map { $0.cell(stored) }) }
    return table.lines
  }

  private struct Column {
    let title: String
    let alignment: Table.Alignment
    let cell: (StoredSnapshot) -> String

    init(
      _ title: String, _ alignment: Table.Alignment = .left,
      _ cell: @escaping (StoredSnapshot) -> String
    ) {
      (self.title, self.alignment, self.cell) = (title, alignment, cell)
    }
  }

  private var columns: [Column] {
    let hasReasons = snapshots.contains { $0.snapshot.reason != .manual }
    let hasParts = snapshots.contains { $0.snapshot.scope != .device }
    let head = [
      Column("id") { String($0.id.hex.prefix(8)) }, Column("time") { Times.text($0.snapshot.time) },
      Column("device") {
        Self.shown("\($0.snapshot.user)@\($0.snapshot.host):") + $0.snapshot.device.root.description
      },
    ]
    let reason = Column("reason") { Self.shown($0.snapshot.reason.rawValue) }
    let scope = Column("scope") { Self.shown($0.snapshot.scope.text) }
    return head + (hasReasons ? [reason] : []) + (hasParts ? [scope] : []) + [
      Column("policy") { Self.shown($0.snapshot.policy.name) },
      Column("apps", .right) { Sizes.count($0.snapshot.apps.count) },
      Column("files", .right) { Sizes.count(Int(clamping: $0.snapshot.totals.files)) },
      Column("size", .right) { Sizes.text($0.snapshot.totals.bytes) },
      Column("stored", .right) { Sizes.text($0.snapshot.totals.stored) },
      Column("tags") { Self.shown($0.snapshot.tags.joined(separator: ",")) },
    ]
  }

  /// A text of a repository, which may be anybody's.
  private static func shown(_ text: String) -> String { ByteString(text).description }
}

extension Scope {
  /// "device", or the apps by identifier, the first of several with how many there are more.
  fileprivate var text: String {
    guard case .apps(let apps) = self else { return "device" }
    guard let first = apps.first else { return "no app" }
    return apps.count == 1 ? first : "\(first) and \(apps.count - 1) more"
  }
}
