internal import ArchiveStore
internal import Codecs
internal import Lifecycle
internal import SystemIO

extension RepositoryStatistics {
  /// The statistics as text.
  var lines: [String] {
    var table = Table([("", .left), ("", .right), ("", .left)])
    let times = [oldest, newest].compactMap { $0 }.map { Times.text($0) }
    table.add(["snapshots", Sizes.count(snapshots), times.joined(separator: " to ")])
    table.add(["content", Sizes.text(bytes), "in \(Sizes.count(Int(clamping: files), "file"))"])
    table.add([
      "distinct", Sizes.text(data.bytes),
      "in \(Sizes.count(data.count, "blob")): \(Self.text(deduplication)) by deduplication",
    ])
    table.add([
      "directories", Sizes.text(trees.bytes + lists.bytes),
      "in \(Sizes.count(trees.count + lists.count, "blob"))",
    ])
    table.add([
      "stored", Sizes.text(packBytes),
      "in \(Sizes.count(packs, "pack")): \(Self.text(compression)) by compression",
    ])
    table.add(["index", Sizes.text(indexBytes), ""])
    return Array(table.lines.dropFirst())
  }

  /// Returns a ratio as text: `2.8 to 1`.
  private static func text(_ ratio: Double) -> String {
    let tenths = Int(min(ratio * 10, 1e15).rounded())
    return "\(Sizes.count(tenths / 10)).\(tenths % 10) to 1"
  }

  /// The statistics as `stats --json` prints them.
  var json: JSON {
    [
      "snapshots": .integer(Int64(snapshots)),
      "oldest": oldest.map { .string($0.rfc3339) } ?? .null,
      "newest": newest.map { .string($0.rfc3339) } ?? .null,
      "files": .integer(Int64(clamping: files)), "bytes": .integer(Int64(clamping: bytes)),
      "data": data.json, "trees": trees.json, "lists": lists.json,
      "packs": .integer(Int64(packs)), "pack_bytes": .integer(Int64(clamping: packBytes)),
      "index_bytes": .integer(Int64(clamping: indexBytes)),
      "snapshot_bytes": .integer(Int64(clamping: snapshotBytes)),
      "deduplication": .double(deduplication), "compression": .double(compression),
    ]
  }
}

extension RepositoryStatistics.BlobTotals {
  fileprivate var json: JSON {
    ["blobs": .integer(Int64(count)), "bytes": .integer(Int64(clamping: bytes))]
  }
}

extension SnapshotStatistics {
  /// Files and bytes by owner and class, the largest of an owner first, and the total.
  var table: Table {
    var table = Table([("", .left), ("class", .left), ("files", .right), ("size", .right)])
    var last: ByteString?
    for row in rows {
      table.add([
        row.owner == last ? "" : row.owner.description, row.dataClass, Sizes.count(row.files),
        Sizes.text(row.bytes),
      ])
      last = row.owner
    }
    table.add([
      "total", "", Sizes.count(rows.reduce(0) { $0 + $1.files }),
      Sizes.text(rows.lazy.map(\.bytes).clampedSum),
    ])
    return table
  }

  /// Returns the statistics as `stats SNAP --json` prints them.
  func json(_ stored: StoredSnapshot) -> JSON {
    let rows = rows.map { row -> JSON in
      .object(
        JSON.path(row.owner, named: "owner") + [
          JSON.Member("class", .string(row.dataClass)),
          JSON.Member("files", .integer(Int64(row.files))),
          JSON.Member("bytes", .integer(Int64(clamping: row.bytes))),
        ])
    }
    return ["snapshot": .string(stored.id.hex), "rows": .array(rows)]
  }
}
