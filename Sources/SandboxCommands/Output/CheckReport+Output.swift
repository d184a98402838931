internal import ArchiveStore
internal import Codecs
internal import SystemIO

extension RepositoryCheck.Finding {
  /// Whether the finding affects a snapshot, or may affect one.
  var isDamage: Bool { if case .remark = self { false } else { true } }

  /// The finding as text.
  var text: String {
    switch self {
    case .damage(let object, let reason): return "damaged  \(object): \(reason)"
    case .cost(let path, let snapshots, _):
      let place = path.isEmpty ? "everything" : path.description
      return "lost     \(place)\(snapshots.shortNames)"
    case .remark(let object, let reason): return "remark   \(object): \(reason)"
    }
  }

  /// The finding as a line of `check --json`.
  var json: JSON {
    switch self {
    case .damage(let object, let reason):
      return ["finding": "damage", "object": .string(object), "reason": .string(reason)]
    case .cost(let path, let snapshots, let reason):
      return .object(
        [JSON.Member("finding", "cost")] + JSON.path(path) + [
          JSON.Member("snapshots", snapshots.json),
          JSON.Member("reason", .string(reason)),
        ])
    case .remark(let object, let reason):
      return ["finding": "remark", "object": .string(object), "reason": .string(reason)]
    }
  }
}

extension RepositoryCheck.Report {
  /// The report as the last line of `check --json`.
  var json: JSON {
    [
      "summary": [
        "snapshots": .integer(Int64(snapshots)), "indexes": .integer(Int64(indexes)),
        "packs": .integer(Int64(packs)), "stored_bytes": .integer(Int64(clamping: storedBytes)),
        "trees": .integer(Int64(trees)), "entries": .integer(Int64(entries)),
        "packs_read": .integer(Int64(packsRead)),
        "bytes_read": .integer(Int64(clamping: bytesRead)),
        "blobs_read": .integer(Int64(blobsRead)), "damaged": .integer(Int64(damaged)),
        "costs": .integer(Int64(costs)), "remarks": .integer(Int64(remarks)),
        "seconds": .double(seconds),
      ]
    ]
  }

  /// Returns the summary as text.
  func lines(_ reading: RepositoryCheck.Reading) -> [String] {
    let what =
      "\(Sizes.count(snapshots, "snapshot")), \(Sizes.count(trees, "directory")), "
      + "\(Sizes.count(packs, "pack")) of \(Sizes.text(storedBytes))"
    let read =
      reading == .trees
      ? "data not read (--read-data reads it)"
      : "\(Sizes.text(bytesRead)) in \(Sizes.count(packsRead, "pack")) read"
    let looked = "checked \(what); \(read); in \(Times.duration(seconds))"
    if damaged == 0, costs == 0 { return [looked, "no damage found"] }
    if costs == 0 {
      return [
        looked,
        "\(Sizes.count(damaged, "object")) damaged; "
          + "all readable snapshots can be restored completely",
      ]
    }
    return [
      looked,
      "\(Sizes.count(damaged, "object")) damaged, "
        + "\(Sizes.count(costs, "path")) cannot be restored completely",
    ]
  }
}
