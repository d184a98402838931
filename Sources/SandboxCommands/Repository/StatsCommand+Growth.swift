internal import ArchiveStore
internal import Codecs
internal import SnapshotQueries
internal import SystemIO

extension StatsCommand {
  /// Prints the growth of the repository, the oldest snapshot first.
  func showGrowth(of query: SnapshotQuery, _ console: Console) throws -> ExitStatus {
    let growth = try query.growth { path, error in
      console.warning("damaged: \(path.isEmpty ? "." : path): \(error.reason)")
    }
    for error in growth.damaged { console.warning(error.description) }
    if growth.lostBlobs > 0 {
      console.warning("snapshots need \(Sizes.count(growth.lostBlobs, "blob")) that no pack has")
      console.hint("'sandboxctl check' lists the affected files")
    }
    if output.json {
      for row in growth.rows { try console.result(row.json) }
      try console.result(growth.json)
    } else {
      for line in growth.lines(listsAll: list.all) { try console.result(line) }
    }
    let isWhole = growth.damaged.isEmpty && growth.unreadable == 0 && growth.lostBlobs == 0
    return isWhole ? .done : .damaged
  }
}

extension RepositoryGrowth {
  /// Returns the growth by snapshot, then by app and class; of many rows the largest.
  fileprivate func lines(listsAll: Bool) -> [String] {
    let hasDevices = Set(rows.lazy.map(\.head.device.identity)).count > 1
    var table = Table(
      [("snapshot", .left), ("time", .left)] + (hasDevices ? [("device", .left)] : []) + [
        ("size", .right), ("added", .right), ("stored", .right), ("alone", .right),
        ("stored", .right),
      ])
    let excerpt = ListExcerpt(rows, all: listsAll, isEmpty: { _ in false }, size: \.added.stored)
    for row in excerpt.shown {
      table.add(
        [String(row.head.id.hex.prefix(8)), Times.text(row.head.time)]
          + (hasDevices ? [row.head.deviceText] : []) + [Sizes.text(row.head.totals.bytes)]
          + row.added.cells + row.alone.cells)
    }
    return table.lines + [excerpt.remainder].compactMap(\.self) + [""]
      + partLines(listsAll: listsAll)
  }

  private func partLines(listsAll: Bool) -> [String] {
    var table = Table([("", .left), ("class", .left), ("added", .right), ("stored", .right)])
    let excerpt = ListExcerpt(parts, all: listsAll, size: \.amount.stored)
    var last: ByteString?
    for part in excerpt.shown {
      let owner = part.owner.isEmpty ? "." : part.owner.description
      table.add([part.owner == last ? "" : owner, part.dataClass.shown] + part.amount.cells)
      last = part.owner
    }
    table.add(["total", ""] + total.cells)
    var lines = table.lines
    if let remainder = excerpt.remainder { lines.insert(remainder, at: lines.count - 1) }
    return lines
  }

  /// The last line of `stats --growth --json`.
  fileprivate var json: JSON {
    [
      "summary": [
        "snapshots": .integer(Int64(rows.count)), "added": total.json,
        "parts": .array(parts.map(\.json)), "unreadable": .integer(Int64(unreadable)),
        "lost_blobs": .integer(Int64(lostBlobs)),
      ]
    ]
  }
}

extension RepositoryGrowth.Row {
  /// The snapshot as a line of `stats --growth --json`.
  fileprivate var json: JSON {
    [
      "snapshot": .string(head.id.hex), "time": .string(head.time.rfc3339),
      "device": .string(head.device.identity),
      "files": .integer(Int64(clamping: head.totals.files)),
      "bytes": .integer(Int64(clamping: head.totals.bytes)), "added": added.json,
      "alone": alone.json, "parts": .array(parts.map(\.json)),
    ]
  }
}

extension RepositoryGrowth.Part {
  fileprivate var json: JSON {
    .object(
      JSON.path(owner, named: "owner") + [JSON.Member("class", .string(dataClass))]
        + amount.members)
  }
}

extension RepositoryGrowth.Amount {
  fileprivate var cells: [String] { [Sizes.text(bytes), Sizes.text(stored)] }

  fileprivate var members: [JSON.Member] {
    [
      JSON.Member("blobs", .integer(Int64(blobs))),
      JSON.Member("bytes", .integer(Int64(clamping: bytes))),
      JSON.Member("stored_bytes", .integer(Int64(clamping: stored))),
    ]
  }

  fileprivate var json: JSON { .object(members) }
}
