internal import Codecs
internal import SystemIO

extension SnapshotHeadCache {
  /// The loss of all snapshots, as the reason of an error, if none exists although this host knows
  /// some; otherwise nil. It no longer knows those that it has removed itself.
  var loss: String? {
    let known = load().records.values.map(\.head).sortedByAge()
    if known.isEmpty { return nil }
    let names = known.suffix(3).reversed().map { head in
      "\(head.id.hex.prefix(8)) of '\(ByteString(head.host))' (\(head.time.rfc3339))"
    }
    let more = known.count > 3 ? " and \(known.count - 3) more" : ""
    let count =
      known.count == 1
      ? "the snapshot that this host knows does not exist"
      : "none of the \(known.count) snapshots that this host knows exists"
    return "\(count): \(names.joined(separator: ", "))\(more)"
  }
}
